import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Issue 5: eviction by recency to nine tenths, age, the limit of beginnings.
final class LimitTests: StoreTestCase {
    /// Nanoseconds that this thread has worked.
    private func ownProcessorTime() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Of a body of 1,000 bytes without fields under a key of some letters.
    private let cost = StorageCost.file(1_000) + StorageCost.row(response(), key: "k000")

    func testTheOnesUsedLongestAgoGoWhenThereIsNoMoreRoom() throws {
        configuration.maximumBytes = 100 * cost
        let cache = try open()
        for i in 100..<200 {
            cache.put("k\(i)", bytes(1_000))
            clock.advance(seconds: 1)
        }
        try cache.flush()
        try cache.finishBackgroundWork()
        XCTAssertEqual(try cache.statistics().bytes, 100 * cost, "exactly full is not too full")
        XCTAssertEqual(try cache.statistics().evicted, 0)
        cache.use(try XCTUnwrap(cache.wait("k100")).entry.id)
        clock.advance(seconds: 1)
        cache.put("k200", bytes(1_000))
        try cache.flush()
        let statistics = try cache.statistics()
        // As much as a writer asks for at a time.
        let gone = (StorageUse.portion(of: configuration.maximumBytes) + cost - 1) / cost
        XCTAssertEqual(statistics.evicted, gone)
        XCTAssertEqual(statistics.entries, 101 - gone)
        XCTAssertEqual(statistics.bytes, statistics.entries * cost)
        XCTAssertEqual(statistics.notStored, 0)
        XCTAssertEqual(files.count, Int(statistics.entries))
        XCTAssertNotNil(cache.wait("k100"), "it was used")
        XCTAssertNil(cache.wait("k101"))
        XCTAssertNil(cache.wait("k\(100 + gone)"))
        XCTAssertNotNil(cache.wait("k\(101 + gone)"))
        cache.close()
    }

    func testWhatIsLargerThanTheWholeCacheIsNotStored() throws {
        configuration.maximumBytes = 10 * cost
        let cache = try open()
        cache.put("small", bytes(500))
        cache.put("large", bytes(Int(10 * cost) + 1))
        try cache.flush()
        XCTAssertNil(cache.wait("large"))
        XCTAssertNotNil(cache.wait("small"), "nothing went for what does not fit anyway")
        XCTAssertEqual(try cache.statistics().notStored, 1)
        XCTAssertEqual(log.kinds, [.notStored])
        cache.close()
    }

    func testBeginningsHaveALimitOfTheirOwn() throws {
        configuration.maximumPartialBytes = 10 * cost
        let cache = try open()
        cache.put("whole", bytes(50_000))
        for i in 100..<111 {
            clock.advance(seconds: 1)
            cache.put("k\(i)", bytes(1_000), response(extent: .beginning(total: 2_000)), keeps: true)
        }
        cache.put("huge", bytes(Int(10 * cost) + 1), response(extent: .beginning(total: nil)), keeps: true)
        try cache.flush()
        try cache.finishBackgroundWork()
        let statistics = try cache.statistics()
        XCTAssertEqual(statistics.partialBytes, 9 * cost)
        XCTAssertEqual(statistics.partialEntries, 9)
        XCTAssertEqual(statistics.entries, 10)
        XCTAssertNil(cache.wait("k101"))
        XCTAssertNotNil(cache.wait("k102"))
        XCTAssertNil(cache.wait("huge"))
        XCTAssertNotNil(cache.wait("whole"))
        cache.close()
    }

    /// Issue 20: 1 MB was allowed, and 167 MB of headers lay there.
    func testFieldsAndKeysCountWithoutABody() throws {
        configuration.maximumBytes = 1_000_000
        let cache = try open()
        let long = String(repeating: "x", count: 50_000)
        for i in 0..<100 {
            cache.put("k\(i)", [], response([HeaderField("X", long)]))
            cache.put("k\(i)-\(long)", [])
            clock.advance(seconds: 1)
        }
        try cache.flush()
        let statistics = try cache.statistics()
        XCTAssertEqual(statistics.stored, 200)
        XCTAssertLessThanOrEqual(statistics.bytes, 1_000_000)
        XCTAssertLessThanOrEqual(statistics.entries, 20)
        XCTAssertGreaterThan(statistics.entries, 10)
        XCTAssertNotNil(cache.wait("k99"))
        cache.close()
        XCTAssertLessThan(bytesOnDisk(path), 1_100_000 + 8 << 20)
    }

    /// What validations add counts, too, and goes for what else is there.
    func testUpdatesCount() throws {
        configuration.maximumBytes = 1_000_000
        let cache = try open()
        let long = String(repeating: "x", count: 100_000)
        for i in 0..<20 {
            cache.put("k\(i)", [])
            try cache.flush()
            clock.advance(seconds: 1)
            let id = try XCTUnwrap(cache.wait("k\(i)")).entry.id
            cache.update(id, response([HeaderField("X", long)], at: 200))
            try cache.flush()
        }
        let statistics = try cache.statistics()
        XCTAssertLessThanOrEqual(statistics.bytes, 1_000_000)
        XCTAssertGreaterThan(statistics.bytes, 500_000)
        XCTAssertEqual(cache.wait("k19")?.entry.response.responseTime, 200)
        XCTAssertNil(cache.wait("k0"))
        cache.close()
    }

    /// Issue 20: what lies in the folder, by its blocks, at every step of bodies that come together.
    func testTheFolderNeverTakesMoreThanIsAllowed() throws {
        configuration.maximumBytes = 2_000_000
        let cache = try open()
        var most: Int64 = 0
        for round in 0..<30 {
            let writers = (0..<4).compactMap { cache.write("k\(round)-\($0)", response()) }
            for _ in 0..<4 {
                for writer in writers { writer.append(slices(bytes(50_000))) }
                try cache.disk?.onWriter { _ in }
                most = max(most, bytesOnDisk(path))
            }
            for (number, writer) in writers.enumerated() {
                if number == 0 { writer.abandon() } else { writer.finish(response()) }
            }
        }
        try cache.flush()
        let statistics = try cache.statistics()
        XCTAssertEqual(statistics.stored + statistics.notStored, 90)
        XCTAssertGreaterThan(statistics.stored, 87)
        XCTAssertGreaterThan(most, 1_000_000)
        // Folders, index and log.
        XCTAssertLessThanOrEqual(most, 2_000_000 + 8 << 20)
        XCTAssertLessThanOrEqual(bodyBytes(path), 2_000_000)
        cache.close()
    }

    /// Bodies that the index before knew lie there until they are looked for: nothing is given room before that.
    func testBodiesOfAnIndexThatIsReplacedHaveNoRoomBesideNewOnes() throws {
        configuration.maximumBytes = 1_000_000
        let before = try open()
        for number in 0..<80 { before.put("old\(number)", bytes(10_000)) }
        try before.flush()
        before.close()
        XCTAssertGreaterThan(bodyBytes(path), 800_000)
        write(bytes(20_000), to: path + "/index-1.sqlite")
        unlink(path + "/index-1.sqlite-wal")
        let body = slices(bytes(900_000))
        let cache = try open()
        // Before there is time to look.
        let writer = try XCTUnwrap(cache.write("new", response()))
        writer.append(body)
        try cache.disk?.onWriter { _ in }
        XCTAssertLessThanOrEqual(bodyBytes(path), 1_000_000)
        writer.finish(response())
        try cache.flush()
        XCTAssertEqual(try cache.statistics().stored, 1)
        XCTAssertLessThanOrEqual(bodyBytes(path), 1_000_000)
        cache.close()
    }

    /// Bodies that all have begun have room for a part of them, and none evicts another that is being written.
    func testBodiesThatDoNotFitTogetherAreCountedAndLeaveNothing() throws {
        configuration.maximumBytes = 1_000_000
        let cache = try open()
        let writers = (0..<8).compactMap { cache.write("k\($0)", response()) }
        for _ in 0..<3 { for writer in writers { writer.append(slices(bytes(100_000))) } }
        try cache.disk?.onWriter { _ in }
        XCTAssertLessThanOrEqual(bodyBytes(path), 1_000_000)
        for writer in writers { writer.finish(response()) }
        try cache.flush()
        let statistics = try cache.statistics()
        XCTAssertEqual(statistics.stored + statistics.notStored, 8)
        XCTAssertGreaterThan(statistics.stored, 0)
        XCTAssertGreaterThan(statistics.notStored, 0)
        XCTAssertEqual(temporaries, [])
        XCTAssertEqual(files.count, Int(statistics.entries))
        let events = log.all
        XCTAssertEqual(Set(events.map(\.kind)), [.notStored])
        XCTAssertTrue(events[0].message.contains("no room"), events[0].message)
        cache.close()
    }

    /// Two programs with one folder: what either is writing counts for both.
    func testWritersShareOneLimit() throws {
        configuration.maximumBytes = 1_000_000
        let caches = try [open(), open(), open()]
        for round in 0..<40 {
            let writers = caches.enumerated().compactMap { $1.write("k\(round)-\($0)", response()) }
            for _ in 0..<2 {
                for writer in writers { writer.append(slices(bytes(50_000))) }
                for cache in caches { try cache.disk?.onWriter { _ in } }
                XCTAssertLessThanOrEqual(bodyBytes(path), 1_000_000)
            }
            for writer in writers { writer.finish(response()) }
        }
        for cache in caches { try cache.flush() }
        let statistics = try caches.map { try $0.statistics() }
        XCTAssertEqual(statistics.reduce(0) { $0 + $1.stored + $1.notStored }, 120)
        for each in statistics { XCTAssertGreaterThan(each.stored, 20) }
        for cache in caches { cache.close() }
    }

    /// What a process had been granted that was killed is somebody else's once its files are gone.
    func testWhatADeadWriterHadIsGivenBack() throws {
        configuration.maximumBytes = 1_000_000
        var cache = try open()
        cache.put("k", bytes(1_000))
        try cache.flush()
        cache.close()
        let index = try Index.openForReading("\(path)/index-1.sqlite")
        try index.database.execute(
            "PRAGMA query_only = OFF; INSERT INTO writers VALUES ('dead', 900000), ('gone', 50000)")
        XCTAssertEqual(mkdir("\(path)/writers-1/dead", 0o700), 0)
        write(bytes(800_000), to: "\(path)/writers-1/dead/0000000000000001")
        cache = try open()
        cache.put("other", bytes(300_000))
        try cache.flush()
        XCTAssertLessThanOrEqual(bodyBytes(path), 1_000_000, "its files take their place until they are removed")
        try cache.finishBackgroundWork()
        XCTAssertEqual(temporaries, [])
        cache.put("large", bytes(900_000))
        try cache.flush()
        XCTAssertNotNil(cache.wait("large"))
        cache.close()
    }

    func testTotalsAreRecountedWhenThereIsTimeAndByClear() throws {
        let cache = try open()
        cache.put("k000", bytes(1_000))
        try cache.flush()
        try cache.finishBackgroundWork()
        let forge = { [path] in
            let index = try Index.openForReading("\(path)/index-1.sqlite")
            try index.database.execute("PRAGMA query_only = OFF; UPDATE totals SET entries = 77, bytes = 123456789")
        }
        try forge()
        XCTAssertEqual(try cache.statistics().bytes, 3 * 123_456_789)
        clock.advance(seconds: 3_600)
        try cache.finishBackgroundWork()
        XCTAssertEqual(try cache.statistics().bytes, cost)
        XCTAssertEqual(try cache.statistics().entries, 1)
        try forge()
        try cache.clear()
        XCTAssertEqual(try cache.statistics().bytes, 0)
        XCTAssertEqual(try cache.statistics().entries, 0)
        cache.close()
    }

    /// Forged totals must not keep everything from being stored.
    func testWrongTotalsAreRecountedBeforeAnythingIsRefused() throws {
        configuration.maximumBytes = 1_000_000
        let cache = try open()
        cache.put("a", bytes(1_000))
        try cache.flush()
        let index = try Index.openForReading("\(path)/index-1.sqlite")
        try index.database.execute(
            "PRAGMA query_only = OFF; UPDATE totals SET bytes = 9000000; INSERT INTO writers VALUES ('gone', 9000000)")
        cache.put("b", bytes(1_000))
        try cache.flush()
        XCTAssertNotNil(cache.wait("b"))
        cache.close()
    }

    /// Rows that have gone leave room in the file of the index, which the disk gets back.
    func testTheIndexBecomesSmallerAgain() throws {
        configuration.maximumBytes = 20_000_000
        let cache = try open()
        let long = String(repeating: "x", count: 100_000)
        for i in 0..<150 { cache.put("k\(i)", [], response([HeaderField("X", long)])) }
        try cache.flush()
        XCTAssertGreaterThan(bytesOnDisk(path), 12_000_000)
        for i in 0..<190 {
            cache.put("b\(i)", bytes(100_000, seed: UInt64(i)))
            try cache.flush()
        }
        XCTAssertGreaterThan(bodyBytes(path), 10_000_000)
        XCTAssertLessThanOrEqual(bytesOnDisk(path), 20_000_000 + 8 << 20)
        cache.close()
        XCTAssertLessThanOrEqual(bytesOnDisk(path), 20_000_000 + 3 << 20)
    }

    /// Issue 20: "10,000 answers a second of 1 KB are stored or counted". They come as fast as that, by the clock.
    func testEachOfTenThousandAnswersASecondIsStoredOrCounted() throws {
        tuning = CacheTuning()
        tuning.queueBytes = 1 << 20
        let cache = try open()
        let content = bytes(1_000)
        let begun = MonotonicClock().now()
        let before = ownProcessorTime()
        for moment in 0..<100 {
            // A hundred in each hundredth of a second; who is late does not wait.
            while MonotonicClock().now().milliseconds(since: begun) < moment * 10 { usleep(500) }
            for i in 0..<100 { XCTAssertTrue(cache.put("k\(moment)-\(i)", content)) }
        }
        XCTAssertLessThan(ownProcessorTime() - before, 1_000_000_000, "a second of work is the whole second")
        try cache.flush()
        let statistics = try cache.statistics()
        XCTAssertEqual(statistics.stored + statistics.notStored, 10_000)
        XCTAssertGreaterThan(statistics.stored, 100)
        XCTAssertEqual(statistics.unflushed, 0)
        XCTAssertEqual(log.kinds.contains(.notStored), statistics.notStored > 0)
        cache.close()
    }

    /// A crash loses the last second at most: what would wait for longer, while many wait, is not stored, but counted.
    func testWhatWaitsTooLongBehindOthersIsNotStored() throws {
        tuning.waitingMilliseconds = 0
        let cache = try open()
        let standing = try XCTUnwrap(cache.disk)
        let lock = Lock()
        let changed = Condition(lock)
        nonisolated(unsafe) var mayGoOn = false
        let begun = expectation(description: "the writer stands still")
        let thread = try Thread.start(name: "standing") {
            try? standing.onWriter { _ in
                begun.fulfill()
                lock.withLock { while !mayGoOn { changed.wait() } }
            }
        }
        wait(for: [begun], timeout: 20)
        // As header and documentation have it.
        XCTAssertEqual(CacheTuning().waitingMilliseconds, 300)
        let few = 256
        for i in 0..<few + 50 { cache.put("k\(i)", bytes(10)) }
        lock.withLock {
            mayGoOn = true
            changed.broadcast()
        }
        thread.join()
        try cache.flush()
        let statistics = try cache.statistics()
        XCTAssertEqual(statistics.notStored, 50)
        XCTAssertEqual(statistics.stored, Int64(few))
        XCTAssertEqual(log.kinds, [.notStored])
        let message = try XCTUnwrap(log.all.first).message
        XCTAssertTrue(
            message.hasSuffix("50 answers were not stored: the disk takes them slower than they come"), message)
        XCTAssertEqual(temporaries, [])
        XCTAssertNil(cache.wait("k49"))
        XCTAssertNotNil(cache.wait("k50"))
        cache.close()
    }

    /// Headers and removals wait as bodies do, and take memory meanwhile.
    func testWhatWaitsForTheWriterHasALimit() throws {
        tuning.queueBytes = 1 << 20
        tuning.removalBytes = 1 << 20
        let cache = try open()
        cache.put("before", bytes(10))
        try cache.flush()
        let id = try XCTUnwrap(cache.wait("before")).entry.id
        let lock = Lock()
        let changed = Condition(lock)
        nonisolated(unsafe) var mayGoOn = false
        let standing = try XCTUnwrap(cache.disk)
        let begun = expectation(description: "the writer stands still")
        let thread = try Thread.start(name: "standing") {
            try? standing.onWriter { _ in
                begun.fulfill()
                lock.withLock { while !mayGoOn { changed.wait() } }
            }
        }
        wait(for: [begun], timeout: 20)
        let long = [HeaderField("X", String(repeating: "x", count: 50_000))]
        for i in 0..<100 { cache.put("k\(i)", [], response(long)) }
        XCTAssertLessThanOrEqual(standing.withState { $0.queued.stores }, 1 << 20)
        for i in 0..<100_000 { cache.remove(key: "r\(i)") }
        cache.update(id, response(long, at: 300))
        XCTAssertLessThanOrEqual(standing.withState { $0.queued.stores }, 1 << 20)
        XCTAssertLessThanOrEqual(standing.withState { $0.queued.removals }, 1 << 20)
        XCTAssertLessThan(standing.withState { $0.commands.count }, 20_000)
        lock.withLock {
            mayGoOn = true
            changed.broadcast()
        }
        thread.join()
        try cache.flush()
        XCTAssertNil(cache.wait("before"), "removals that had no room remove everything")
        XCTAssertEqual(standing.withState { $0.queued }, QueuedMemory(), "what was counted is given back")
        XCTAssertGreaterThan(try cache.statistics().notStored, 50)
        cache.put("after", bytes(10))
        try cache.flush()
        XCTAssertNotNil(cache.wait("after"))
        cache.close()
    }

    func testWhatWasNotUsedForTooLongIsAsGoodAsGoneAndRemovedLater() throws {
        configuration.maximumAge = 60
        configuration.maximumMemoryBytes = 1 << 20
        let cache = try open()
        cache.put("a", bytes(10))
        cache.put("b", bytes(10))
        try cache.flush()
        clock.advance(seconds: 50)
        cache.use(try XCTUnwrap(cache.wait("b")).entry.id)
        // The disk learns of it behind the call; this clock would jump ahead of that.
        try cache.flush()
        clock.advance(seconds: 11)
        XCTAssertNil(cache.findInMemory("a") { _ in .entry(0, withBody: true) })
        XCTAssertNil(cache.wait("a"))
        XCTAssertNotNil(cache.wait("b"))
        XCTAssertNotNil(cache.findInMemory("b") { _ in .entry(0, withBody: true) })
        try cache.flush()
        clock.advance(seconds: 600)
        cache.put("c", bytes(10))
        try cache.flush()
        try cache.finishBackgroundWork()
        XCTAssertEqual(try cache.statistics().entries, 1)
        XCTAssertEqual(files.count, 1)
        cache.close()
    }

    /// What is answered from memory counts as used on the disk, too, though it is told once for each second.
    func testTheDiskHearsOfUsesOfWhatIsInMemory() throws {
        configuration.maximumBytes = 100 * cost
        configuration.maximumMemoryBytes = 1 << 20
        let first = try open()
        for i in 100..<200 {
            first.put("k\(i)", bytes(1_000))
            clock.advance(seconds: 1)
        }
        try first.flush()
        first.close()
        let second = try open()
        let id = try XCTUnwrap(second.wait("k100")).entry.id
        XCTAssertNotNil(second.findInMemory("k100") { _ in .entry(0, withBody: true) })
        // In the second in which it came into memory.
        for _ in 0..<2 { second.use(id) }
        second.put("k200", bytes(1_000))
        try second.flush()
        try second.finishBackgroundWork()
        second.close()
        let third = try open()
        XCTAssertNotNil(third.wait("k100"), "it was used")
        XCTAssertNil(third.wait("k101"))
    }

    func testRemoveOlderAsksForTheLastUse() throws {
        for directory in [path, nil] {
            configuration.directory = directory
            configuration.maximumMemoryBytes = 1 << 20
            let cache = try open()
            cache.put("a", bytes(10))
            cache.put("b", bytes(10))
            clock.advance(seconds: 100)
            cache.use(try XCTUnwrap(cache.wait("b")).entry.id)
            try cache.removeOlder(than: 50)
            XCTAssertNil(cache.wait("a"))
            XCTAssertNotNil(cache.wait("b"))
            try cache.removeOlder(than: .max)
            XCTAssertNotNil(cache.wait("b"))
            clock.advance(seconds: 1)
            try cache.removeOlder(than: 0)
            XCTAssertNil(cache.wait("b"))
            cache.close()
        }
    }

    func testManyVariantsOfOneKeyAreLimitedInEveryTier() throws {
        configuration.maximumMemoryBytes = 10 << 20
        configuration.maximumImageBytes = 10 << 20
        for directory in [path, nil] {
            configuration.directory = directory
            let cache = try open()
            for i in 0..<100 {
                cache.put("k", bytes(10), response(varying: [VaryingField(name: "a", value: "\(i)")]))
                clock.advance(seconds: 1)
                nonisolated(unsafe) var seen = 0
                _ = cache.wait("k") { entries in
                    seen = entries.count
                    return .nothing
                }
                // As header and documentation have it.
                XCTAssertLessThanOrEqual(seen, 32)
                XCTAssertGreaterThan(seen, min(i, 31))
            }
            try cache.flush()
            let statistics = try cache.statistics()
            XCTAssertEqual(statistics.memoryEntries, 32)
            if directory != nil { XCTAssertEqual(statistics.entries, 32) }
            cache.close()
        }
    }
}
