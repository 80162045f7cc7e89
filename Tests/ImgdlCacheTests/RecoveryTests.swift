import CacheTesting
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Issue 20: who only reads recovers, too; a flush asks the disk, and tells what was lost once.
final class RecoveryTests: StoreTestCase {
    private func code(_ body: () throws -> Void) -> ErrorCode {
        failure(body)?.code ?? .ok
    }

    private func failure(_ body: () throws -> Void) -> Failure? {
        do {
            try body()
            return nil
        } catch { return error as? Failure ?? Failure(.internal, "\(error)") }
    }

    private func makeStored(_ keys: String...) throws {
        let cache = try open()
        for key in keys { cache.put(key, bytes(100)) }
        try cache.flush()
        cache.close()
    }

    /// With the real clock: the disk is tried again without anybody asking.
    private func openWaiting() throws -> Cache {
        var tuning = tuning
        tuning.batchMilliseconds = 5
        tuning.firstRetryMilliseconds = 20
        return try Cache(configuration, clock: MonotonicClock(), tuning: tuning) { [log] in log.add($0) }
    }

    /// Memory has it, and may let it go: what is on the disk is not to answer then as if nothing had come since.
    func testWhatMemoryAloneHasBesideABrokenDiskIsLost() throws {
        let disk = FailingDisk()
        tuning.disk = disk
        configuration.maximumMemoryBytes = 100_000
        let cache = try open()
        cache.put("k", bytes(100), response(at: 1))
        try cache.flush()
        disk.fail(.write, ENOSPC)
        cache.put("other", bytes(100))
        XCTAssertEqual(code { try cache.flush() }, .diskFull)
        let writer = try XCTUnwrap(cache.write("k", response(at: 2)))
        writer.append(slices(bytes(50)))
        XCTAssertTrue(writer.finish(response(at: 2)))
        XCTAssertTrue(writer.isLost)
        let found = cache.findInMemory("k") { _ in .entry(0, withBody: true) }
        XCTAssertEqual(found?.entry.response.bodyLength, 50)
        cache.close()
    }

    // MARK: The disk is tried again by itself

    func testADiskThatWorksAgainIsFoundThoughNobodyStores() throws {
        let disk = FailingDisk()
        tuning.disk = disk
        let cache = try openWaiting()
        disk.fail(.write, ENOSPC)
        cache.put("k", bytes(100))
        XCTAssertEqual(code { try cache.flush() }, .diskFull)
        XCTAssertEqual(log.kinds, [.unwritable])
        disk.fail(.write, nil)
        XCTAssertTrue(log.wait(for: .writable))
        XCTAssertTrue(try cache.statistics().isWritable)
        cache.close()
    }

    func testWhatWasRemovedGoesOnceTheDiskWorksThoughNobodyStores() throws {
        let disk = FailingDisk()
        tuning.disk = disk
        try makeStored("a")
        let cache = try openWaiting()
        disk.fail(.write, EROFS)
        cache.put("k", bytes(100))
        XCTAssertEqual(code { try cache.flush() }, .readOnly)
        cache.remove(key: "a")
        XCTAssertNil(cache.wait("a"))
        disk.fail(.write, nil)
        XCTAssertTrue(log.wait(for: .writable))
        let other = try Database(path + "/index-1.sqlite", busyMilliseconds: 1_000)
        XCTAssertEqual(try other.integer("SELECT count(*) FROM entries"), 0)
        cache.close()
    }

    func testADiskThatStaysBrokenIsLeftAloneForLongerEachTime() throws {
        let disk = FailingDisk()
        tuning.disk = disk
        let cache = try openWaiting()
        let start = MonotonicClock().now()
        disk.fail(.create, EIO)
        cache.put("k", bytes(100))
        XCTAssertEqual(code { try cache.flush() }, .diskFailed)
        // The body, the flush, and then after 20, 40 and 80 ms.
        XCTAssertTrue(disk.wait(forAttempts: 5))
        XCTAssertGreaterThanOrEqual(MonotonicClock().now(), start.advanced(byMilliseconds: 140))
        XCTAssertEqual(log.kinds, [.unwritable], "said once")
        cache.close()
    }

    // MARK: Another program writes

    func testWhatIsThereIsServedWhileAnotherProgramIsInATransaction() throws {
        for transaction in ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"] {
            try makeStored("a")
            let other = try Database(path + "/index-1.sqlite", busyMilliseconds: 1_000)
            try other.execute(transaction)
            let cache = try open()
            XCTAssertEqual(cache.wait("a")?.bytes, bytes(100), transaction)
            XCTAssertEqual(try cache.query("a")?.response.bodyLength, 100, transaction)
            XCTAssertEqual(log.kinds, [], transaction)
            cache.put("b", bytes(100))
            XCTAssertEqual(cache.wait("b")?.bytes, bytes(100), transaction)
            try other.execute("ROLLBACK")
            try cache.flush()
            XCTAssertEqual(try other.integer("SELECT count(*) FROM entries"), 2, transaction)
            cache.close()
            removeFolder(path)
        }
    }

    /// It has the index for itself: not even reading is possible until it lets go.
    func testAnIndexThatCannotBeReadIsOpenedOnceItCanBe() throws {
        try makeStored("a")
        var other: Database? = try Database(path + "/index-1.sqlite", busyMilliseconds: 1_000)
        try other?.execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; UPDATE entries SET used = used; COMMIT")
        let cache = try openWaiting()
        XCTAssertNil(cache.wait("a"))
        XCTAssertEqual(log.kinds, [.unwritable])
        other = nil
        XCTAssertTrue(log.wait(for: .writable))
        XCTAssertEqual(cache.wait("a")?.bytes, bytes(100))
        cache.close()
    }

    func testAFlushEndsSoonWhileAnotherProgramIsInATransaction() throws {
        tuning.busyMilliseconds = 1000
        let cache = try open()
        cache.put("a", bytes(100))
        try cache.flush()
        try cache.finishBackgroundWork()
        let other = try Database(path + "/index-1.sqlite", busyMilliseconds: 1_000)
        try other.execute("BEGIN IMMEDIATE")
        for number in 0..<10 { cache.put("b\(number)", bytes(100)) }
        let start = MonotonicClock().now()
        XCTAssertEqual(code { try cache.flush() }, .cacheBusy)
        XCTAssertLessThan(MonotonicClock().now(), start.advanced(byMilliseconds: 4_000))
        // Those that had to wait for too long are given up, and counted.
        let waiting = try cache.statistics()
        XCTAssertGreaterThan(waiting.unflushed, 0)
        XCTAssertEqual(waiting.unflushed + waiting.notStored, 10, "none of them is in the index")
        try other.execute("ROLLBACK")
        XCTAssertEqual(code { try cache.flush() }, .ok)
        XCTAssertEqual(try cache.statistics().unflushed, 0)
        cache.close()
    }

    // MARK: Flush

    func testAFlushTriesADiskThatFailedAndTellsWhatWasLostOnce() throws {
        let disk = FailingDisk()
        tuning.disk = disk
        let cache = try open()
        disk.fail(.write, ENOSPC)
        cache.put("k", bytes(100))
        _ = try cache.statistics()
        disk.fail(.write, nil)
        // The clock stands still: nobody else would try so soon.
        let lost = try XCTUnwrap(failure { try cache.flush() })
        XCTAssertEqual(lost.code, .diskFull)
        XCTAssertTrue(lost.message.contains("was not stored"), lost.message)
        XCTAssertEqual(log.kinds, [.unwritable, .writable])
        XCTAssertEqual(code { try cache.flush() }, .ok)
        XCTAssertTrue(cache.put("k", bytes(100)))
        XCTAssertEqual(code { try cache.flush() }, .ok)
        XCTAssertEqual(cache.wait("k")?.bytes, bytes(100))
        cache.close()
    }

    /// However often it is asked, it does not come back later for that.
    func testFlushesDoNotPutOffTheNextAttempt() throws {
        let disk = FailingDisk()
        tuning.disk = disk
        let cache = try open()
        disk.fail(.write, EIO)
        cache.put("k", bytes(100))
        for _ in 0..<10 { XCTAssertEqual(code { try cache.flush() }, .diskFailed) }
        disk.fail(.write, nil)
        clock.advance(seconds: 1)
        cache.put("k", bytes(100))
        _ = try cache.statistics()
        XCTAssertEqual(log.kinds, [.unwritable, .writable])
        XCTAssertEqual(code { try cache.flush() }, .diskFailed, "what came last was lost")
        XCTAssertEqual(code { try cache.flush() }, .ok)
        cache.close()
    }

    // MARK: A burst onto a full disk

    func testWhatWasWrittenBeforeTheDiskWasFullIsStored() throws {
        for step in [FailingDisk.Step.create, .write, .close] {
            let disk = FailingDisk()
            tuning.disk = disk
            let cache = try open()
            cache.put("a", bytes(100))
            cache.put("b", bytes(100))
            _ = try cache.statistics()
            disk.fail(step, ENOSPC)
            cache.put("c", bytes(100))
            XCTAssertEqual(code { try cache.flush() }, .diskFull, "\(step)")
            XCTAssertEqual(cache.wait("a")?.bytes, bytes(100), "\(step)")
            XCTAssertEqual(cache.wait("b")?.bytes, bytes(100), "\(step)")
            XCTAssertNil(cache.wait("c"), "\(step)")
            XCTAssertEqual(try cache.statistics().notStored, 1, "\(step)")
            XCTAssertEqual(files.count, 2, "\(step)")
            XCTAssertEqual(temporaries, [], "\(step)")
            cache.close()
            removeFolder(path)
        }
    }

    /// The bodies have filled the disk, and their rows have no room: some of them go for the others.
    func testABurstOntoASmallDiskStoresWhatFits() throws {
        mkdir(path, 0o700)
        guard mount("tmpfs", path, "tmpfs", 0, "size=640k,mode=700") == 0 else {
            throw XCTSkip("this machine cannot mount a file system")
        }
        defer { umount(path) }
        let cache = try open()
        let head = response([HeaderField("x", String(repeating: "x", count: 20_000))])
        for number in 0..<60 { cache.put("k\(number)", bytes(20_000), head) }
        XCTAssertEqual(code { try cache.flush() }, .diskFull)
        let entries = try cache.statistics().entries
        XCTAssertGreaterThan(entries, 2)
        XCTAssertEqual(Int64(files.count), Int64(entries))
        XCTAssertEqual(cache.wait("k0")?.bytes, bytes(20_000))
        XCTAssertEqual(log.kinds.first, .unwritable)
        XCTAssertEqual(cache.disk?.withState { $0.queued }, QueuedMemory(), "what was given up holds no memory")
        cache.close()
    }
}
