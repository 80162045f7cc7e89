import CacheTesting
import Glibc
import ImgdlCore
import Synchronization
import XCTest

@testable import ImgdlCache

/// Issue 20: other programs that are in the way are waited for once, and by nobody who looks up.
final class PatienceTests: StoreTestCase {
    private func milliseconds(_ body: () throws -> Void) rethrows -> Int64 {
        let start = MonotonicClock().now()
        try body()
        return (MonotonicClock().now().nanoseconds - start.nanoseconds) / 1_000_000
    }

    private func code(_ body: () throws -> Void) -> ErrorCode {
        do {
            try body()
            return .ok
        } catch { return (error as? Failure)?.code ?? .internal }
    }

    /// As by a program that was stopped while it had it.
    func testLookUpsDoNotWaitForALock() throws {
        for name in ["lock-1", "opening-1"] {
            let cache = try open()
            for number in 0..<5 { cache.put("k\(number)", bytes(100)) }
            try cache.flush()
            XCTAssertNotNil(cache.wait("k0"))
            let lock = try XCTUnwrap(FileLock.waiting("\(path)/\(name)", .exclusive, milliseconds: 1_000))
            let time = milliseconds { for number in 0..<5 { XCTAssertNotNil(cache.wait("k\(number)"), name) } }
            XCTAssertLessThan(time, 1_000, name)
            withExtendedLifetime(lock) {}
            cache.close()
        }
    }

    /// The first of them waits a little, the others not at all; nothing is found, and all is found again afterwards.
    func testLookUpsWhileTheIndexIsMoved() throws {
        let cache = try open()
        cache.put("k", bytes(100))
        try cache.flush()
        try cache.disk?.onWriter { $0.reopen() }
        var lock = try FileLock.waiting(path + "/opening-1", .exclusive, milliseconds: 1_000)
        XCTAssertNotNil(lock)
        let time = milliseconds { for _ in 0..<20 { XCTAssertNil(cache.wait("k")) } }
        XCTAssertLessThan(time, 1_000)
        lock = nil
        XCTAssertNotNil(cache.wait("k"))
        cache.close()
    }

    func testClosingDoesNotWaitForACallThatWaits() throws {
        let cache = try open()
        cache.put("k", bytes(100))
        try cache.flush()
        try cache.finishBackgroundWork()
        let other = try Database(path + "/index-1.sqlite", busyMilliseconds: 1_000)
        try other.execute("BEGIN IMMEDIATE")
        clock.advance(seconds: 10)
        let begun = expectation(description: "the call has begun")
        let calling = try ImgdlCore.Thread.start(name: "calling") {
            begun.fulfill()
            XCTAssertNotEqual(self.code { try cache.removeOlder(than: 0) }, .ok)
        }
        wait(for: [begun], timeout: 20)
        // The call may wait for five seconds.
        XCTAssertLessThan(milliseconds { cache.close() }, 3_500)
        calling.join()
        try other.execute("ROLLBACK")
    }

    /// Its time is over when its turn comes, and another index has the name: it says that it has done nothing.
    func testACallWhoseTimeIsOverTellsNoLie() throws {
        tuning.busyMilliseconds = 0
        let cache = try open()
        cache.put("old", bytes(10))
        try cache.flush()
        try cache.finishBackgroundWork()
        for end in ["", "-wal", "-shm"] { rename(path + "/index-1.sqlite" + end, path + "/x" + end) }
        let other = try open()
        other.put("other", bytes(10))
        try other.flush()
        clock.advance(seconds: 10)
        XCTAssertEqual(code { try cache.removeOlder(than: 5) }, .cacheBusy)
        XCTAssertNotNil(other.wait("other"))
        other.close()
        cache.close()
    }

    /// They are tried together, and now and then.
    func testManyRemovalsWhileOthersWrite() throws {
        tuning.batchMilliseconds = 500
        tuning.busyMilliseconds = 500
        let cache = try open()
        cache.put("k", bytes(10))
        try cache.flush()
        let other = try Database(path + "/index-1.sqlite", busyMilliseconds: 1_000)
        try other.execute("BEGIN IMMEDIATE")
        for number in 0..<5_000 { cache.remove(EntryID(rawValue: Int64(number))) }
        let time = try milliseconds { _ = try cache.disk?.onWriter { _ in } }
        XCTAssertLessThan(time, 3_000, "each of 5,000 would take longer")
        try other.execute("ROLLBACK")
        try cache.flush()
        XCTAssertEqual(cache.disk?.withState { $0.queued }, QueuedMemory())
        cache.close()
    }

    /// The disk counts as failed, and works again when the other program has done.
    func testAWriterThatNeverEndsIsNotWaitedForWithoutEnd() throws {
        tuning.batchMilliseconds = 10
        tuning.busyMilliseconds = 100
        tuning.failingMilliseconds = 300
        let cache = try open()
        cache.put("k", bytes(100))
        try cache.flush()
        let other = try Database(path + "/index-1.sqlite", busyMilliseconds: 100)
        try other.execute("BEGIN IMMEDIATE")
        cache.put("lost", bytes(100))
        let time = milliseconds {
            XCTAssertTrue(log.wait(for: .unwritable))
        }
        XCTAssertEqual(log.kinds.first, .unwritable)
        XCTAssertGreaterThanOrEqual(time, 400)
        try other.execute("ROLLBACK")
        try cache.disk?.onWriter { $0.tryAgain() }
        cache.put("k2", bytes(100))
        XCTAssertEqual(code { try cache.flush() }, .cacheBusy, "what was lost is told once")
        try cache.flush()
        XCTAssertNotNil(cache.wait("k2"))
        XCTAssertTrue(try cache.statistics().isWritable)
        cache.close()
    }

    /// One that was waited for long ago does not count for the next one.
    func testPatienceBeginsAnewWithEachWriter() throws {
        tuning.busyMilliseconds = 50
        tuning.failingMilliseconds = 200
        let cache = try open()
        try cache.flush()
        let other = try Database(path + "/index-1.sqlite", busyMilliseconds: 100)
        for round in 0..<2 {
            try other.execute("BEGIN IMMEDIATE")
            cache.put("k\(round)", bytes(100))
            try cache.disk?.onWriter { writer in
                if case .othersWrite = writer.commit() { return }
                XCTFail("round \(round): the other one writes")
            }
            try other.execute("ROLLBACK")
            try cache.flush()
            try cache.disk?.onWriter { XCTAssertNil($0.patienceEnd, "round \(round)") }
        }
        XCTAssertEqual(log.kinds, [])
        XCTAssertNotNil(cache.wait("k0"))
        XCTAssertNotNil(cache.wait("k1"))
        cache.close()
    }

    /// Evicting goes on when others have written, and takes no more than there is too much of.
    func testEvictionGoesOn() throws {
        var cache = try open()
        for number in 0..<200 {
            cache.put("k\(number)", bytes(50_000))
            if number % 20 == 19 { try cache.flush() }
        }
        cache.close()
        configuration.maximumBytes = 4 << 20
        cache = try open()
        try cache.disk?.onWriter { _ in }
        let other = try Database(path + "/index-1.sqlite", busyMilliseconds: 100)
        // Whether or not it has begun.
        try other.execute("BEGIN IMMEDIATE")
        try cache.finishBackgroundWork()
        try other.execute("ROLLBACK")
        try cache.finishBackgroundWork()
        let bytes = try cache.statistics().bytes
        XCTAssertLessThanOrEqual(bytes, 4 << 20)
        XCTAssertGreaterThan(bytes, 3 << 20, "so much may stay")
        cache.close()
    }

    /// What SQLite locks while a connection empties the log, as another program does that has many bodies to store.
    private final class EmptyingLock {
        private let descriptor: Int32

        init?(_ path: String) {
            descriptor = Glibc.open(path + "/index-1.sqlite-shm", O_RDWR | O_CLOEXEC)
            // Of the file, and not of the process, so that it is in the cache's way.
            guard descriptor >= 0, set(F_WRLCK) else { return nil }
        }

        private func set(_ type: Int32) -> Bool {
            var lock = flock()
            lock.l_type = Int16(type)
            lock.l_whence = Int16(SEEK_SET)
            // The second of its locks, behind the two copies of its header.
            lock.l_start = 121
            lock.l_len = 1
            return fcntl(descriptor, 37 /* F_OFD_SETLK */, &lock) == 0
        }

        func unlock() { XCTAssertTrue(set(F_UNLCK)) }
        /// Closing it would let go of the cache's locks, too.
        func close() { Glibc.close(descriptor) }
    }

    /// Issue 20: with several programs that store at full speed this was "another program reads it for so long", and what came
    /// was not stored.
    func testWhoEmptiesTheLogIsNoReader() throws {
        tuning.busyMilliseconds = 300
        let cache = try open()
        cache.put("first", bytes(10))
        try cache.flush()
        try cache.finishBackgroundWork()
        let lock = try XCTUnwrap(EmptyingLock(path))
        let long = response([HeaderField("X-Long", String(repeating: "x", count: 60_000))])
        var count = 0
        while bytesOnDisk("\(path)/index-1.sqlite-wal") <= StorageLog.usualBytes, count < 200 {
            cache.put("k\(count)", bytes(10), long)
            try cache.flush()
            count += 1
        }
        XCTAssertLessThan(count, 200)
        cache.put("next", bytes(10), long)
        XCTAssertThrowsError(try cache.flush()) { error in
            let failure = error as? Failure
            XCTAssertEqual(failure?.code, .cacheBusy)
            XCTAssertTrue(failure?.message.hasSuffix(DatabaseError.busyWords) ?? false, failure?.message ?? "")
        }
        XCTAssertEqual(try cache.statistics().notStored, 0)
        lock.unlock()
        try cache.flush()
        XCTAssertNotNil(cache.wait("next"))
        XCTAssertEqual(try cache.statistics().stored, Int64(count) + 2)
        XCTAssertEqual(log.kinds, [])
        cache.close()
        lock.close()
    }

    /// A call that waits has time for others after each change that it makes, however much came before.
    func testTimeForOthersBeginsAnewWithEachChange() throws {
        tuning.busyMilliseconds = 60_000
        let cache = try open()
        cache.put("k", bytes(10))
        try cache.disk?.onWriter { writer in
            writer.lastChange = nil
            writer.waiting(until: MonotonicClock().now()) {
                XCTAssertFalse(writer.isPatient, "others have had their time")
                XCTAssertNil(writer.writeBatch())
                XCTAssertTrue(writer.isPatient, "they let it write a moment ago")
            }
            let past = MonotonicClock().now()
            writer.lastChange = past.advanced(byMilliseconds: -60_000)
            writer.waiting(until: past) { XCTAssertFalse(writer.isPatient, "nobody has let it write for a minute") }
        }
        cache.close()
    }

    /// Of several programs that store at full speed one was faster again and again, and the others stored nothing for seconds.
    func testOthersWaitForWhoWasTooLateAndNotForEver() throws {
        let cache = try open()
        cache.put("k", bytes(10))
        try cache.flush()
        let late = try WriterTurn(path + "/turn-1")
        let soon = { MonotonicClock().now().advanced(byMilliseconds: 20) }
        XCTAssertTrue(late.take(until: soon()))
        let other = try WriterTurn(path + "/turn-1")
        XCTAssertFalse(other.take(until: soon()), "one after the other")
        cache.put("k2", bytes(10))
        XCTAssertEqual(code { try cache.flush() }, .ok, "it does not wait without end")
        try cache.disk?.onWriter { writer in
            // It holds it and does nothing: it is not waited for again and again.
            let time = self.milliseconds {
                for _ in 0..<20 {
                    writer.turn?.waitForOthers(until: MonotonicClock().now().advanced(byMilliseconds: 200))
                }
            }
            XCTAssertLessThan(time, 2_000)
        }
        // Who is not passed over goes first.
        let hasGone = Atomic(false)
        let waiter = Atomic(0)
        let waiting = try ImgdlCore.Thread.start(name: "waiting") {
            waiter.store(numberOfThread(), ordering: .sequentiallyConsistent)
            other.waitForOthers(until: MonotonicClock().now().advanced(byMilliseconds: 20_000))
            XCTAssertTrue(hasGone.load(ordering: .sequentiallyConsistent), "it was not let go first")
        }
        while waiter.load(ordering: .sequentiallyConsistent) == 0 { sched_yield() }
        // If it did not wait, it would have gone on to its end instead.
        waitUntilAsleep(thread: waiter.load(ordering: .sequentiallyConsistent))
        hasGone.store(true, ordering: .sequentiallyConsistent)
        late.letGo()
        waiting.join()
        XCTAssertTrue(other.take(until: soon()))
        other.letGo()
        cache.close()
    }
}
