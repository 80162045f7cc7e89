import CacheTesting
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Another program keeps a transaction open that reads: the log cannot be emptied meanwhile. It stays within its bound, nobody
/// waits for that program, and what is promised is done or is an error.
final class ReaderTests: StoreTestCase {
    private static let mostLogBytes: Int64 = 5 << 20
    private var mostSeen: Int64 = 0

    private func code(_ body: () throws -> Void) -> ErrorCode {
        do {
            try body()
            return .ok
        } catch { return (error as? Failure)?.code ?? .internal }
    }

    private func milliseconds(_ body: () throws -> Void) rethrows -> Int64 {
        let start = MonotonicClock().now()
        try body()
        return (MonotonicClock().now().nanoseconds - start.nanoseconds) / 1_000_000
    }

    private func measureLog() { mostSeen = max(mostSeen, bytesOnDisk(path + "/index-1.sqlite-wal")) }

    /// Reads until it is closed.
    private func read() throws -> Database {
        let other = try Database(path + "/index-1.sqlite", busyMilliseconds: 1_000)
        try other.execute("BEGIN; SELECT count(*) FROM entries")
        return other
    }

    private let long = String(repeating: "x", count: 20_000)

    /// More than the log takes.
    private func storeMuch(in cache: Cache) throws {
        for number in 0..<600 {
            cache.put("much\(number)", [], response([HeaderField("X", long)]))
            if number % 20 == 0 {
                _ = code { try cache.flush() }
                measureLog()
            }
        }
        _ = code { try cache.flush() }
        measureLog()
    }

    func testTheLogStaysWithinItsBoundAndStoringGoesOnWhenTheReaderIsGone() throws {
        let cache = try open()
        cache.put("a", bytes(100))
        try cache.flush()
        var other: Database? = try read()
        try storeMuch(in: cache)
        XCTAssertLessThanOrEqual(mostSeen, Self.mostLogBytes)
        XCTAssertGreaterThan(try cache.statistics().notStored, 0)
        XCTAssertTrue(log.kinds.allSatisfy { $0 == .notStored }, "\(log.all)")
        XCTAssertTrue(log.all.contains { $0.message.contains("another program reads the index") }, "\(log.all)")
        XCTAssertEqual(cache.wait("a")?.bytes, bytes(100))
        cache.put("b", bytes(100))
        XCTAssertThrowsError(try cache.flush(), "it was not stored") {
            let message = ($0 as? Failure)?.message ?? ""
            XCTAssertTrue(message.hasPrefix("what is stored is safe now; since the last flush"), message)
            XCTAssertEqual(($0 as? Failure)?.code, .cacheBusy)
        }
        XCTAssertNil(cache.wait("b"))
        XCTAssertEqual(code { try cache.flush() }, .ok, "said once")
        other = nil
        cache.put("b", bytes(100))
        XCTAssertEqual(code { try cache.flush() }, .ok)
        XCTAssertEqual(cache.wait("b")?.bytes, bytes(100))
        XCTAssertNil(other)
        cache.close()
        measureLog()
        XCTAssertLessThanOrEqual(mostSeen, Self.mostLogBytes)
    }

    /// Rows that take many pages each may go in one transaction as others do.
    func testTheLogStaysWithinItsBoundWhereLongRowsGo() throws {
        let long = String(repeating: "x", count: 200_000)
        let calls: [(String, (Cache) throws -> Void)] = [
            ("clear", { try $0.clear() }), ("remove_older", { try $0.removeOlder(than: 5) }),
            ("remove", { cache in for number in 0..<150 { try cache.removeAndWait(key: "much\(number)") } }),
        ]
        for (words, call) in calls {
            let cache = try open()
            for number in 0..<150 {
                cache.put("much\(number)", [], response([HeaderField("X", long)]))
                if number % 10 == 9 { try cache.flush() }
            }
            clock.advance(seconds: 10)
            let other = try read()
            let answer = code { try call(cache) }
            XCTAssertTrue([.ok, .cacheBusy].contains(answer), words)
            XCTAssertLessThanOrEqual(bytesOnDisk(path + "/index-1.sqlite-wal"), Self.mostLogBytes, words)
            XCTAssertNil(cache.wait("much0"), words)
            withExtendedLifetime(other) {}
            cache.close()
            removeFolder(path)
        }
    }

    /// Removals write as many pages as what is stored.
    func testATransactionEndsWithItsRoom() {
        var outcome = DiskWriter.Outcome()
        for number in 1..<StorageLog.Room.most.changes {
            outcome.removal.add(EntryID(rawValue: Int64(number)), CheckedNumber(0))
        }
        XCTAssertFalse(outcome.fills(.most))
        outcome.changes = 1
        XCTAssertTrue(outcome.fills(.most))
        XCTAssertTrue(DiskWriter.Outcome(rowBytes: StorageLog.Room.most.rowBytes).fills(.most))
    }

    func testNobodyWaitsForTheReader() throws {
        let cache = try open()
        for number in 0..<200 { cache.put("k\(number)", bytes(100)) }
        try cache.flush()
        let ids = try (0..<200).map { try XCTUnwrap(cache.wait("k\($0)")).entry.id }
        let other = try read()
        try storeMuch(in: cache)
        for id in ids.dropFirst(2) { cache.update(id, response([HeaderField("X", long)], at: 200)) }
        XCTAssertLessThan(milliseconds { XCTAssertEqual(cache.wait("k0")?.bytes, bytes(100)) }, 1_000)
        XCTAssertLessThan(milliseconds { _ = code { try cache.removeAndWait(key: "k1") } }, 3_000)
        XCTAssertNil(cache.wait("k1"))
        XCTAssertLessThan(milliseconds { _ = code { try cache.flush() } }, 3_000)
        for id in ids.dropFirst(2) { cache.update(id, response([HeaderField("X", long)], at: 300)) }
        XCTAssertLessThan(milliseconds { cache.close() }, 4_000)
        measureLog()
        XCTAssertLessThanOrEqual(mostSeen, Self.mostLogBytes)
        withExtendedLifetime(other) {}
    }

    /// Removals have room in the log longer than bodies have; then they are errors, and done once there is room again.
    func testRemovalsAreDoneOrErrors() throws {
        var cache = try open()
        for number in 0..<3_000 { cache.put("k\(number)", number < 1_000 ? bytes(10) : []) }
        try cache.flush()
        var other: Database? = try read()
        try storeMuch(in: cache)
        clock.advance(seconds: 10)
        XCTAssertEqual(code { try cache.removeAndWait(key: "k0") }, .ok)
        XCTAssertEqual(try entries("k0"), 0)
        var codes: Set<ErrorCode> = []
        var refused: [Int] = []
        for number in 1..<1_000 {
            let code = code { try cache.removeAndWait(key: "k\(number)") }
            codes.insert(code)
            XCTAssertNil(cache.wait("k\(number)"))
            if code == .ok { XCTAssertEqual(try entries("k\(number)"), 0) } else { refused.append(number) }
        }
        measureLog()
        XCTAssertEqual(codes, [.ok, .cacheBusy])
        XCTAssertEqual(code { try cache.clear() }, .cacheBusy)
        XCTAssertEqual(code { try cache.removeOlder(than: 5) }, .cacheBusy)
        XCTAssertNil(cache.wait("k999"))
        XCTAssertGreaterThan(try entries("k2999"), 0)
        measureLog()
        XCTAssertLessThanOrEqual(mostSeen, Self.mostLogBytes)
        other = nil
        XCTAssertEqual(code { try cache.flush() }, .ok)
        for number in refused { XCTAssertEqual(try entries("k\(number)"), 0) }
        XCTAssertEqual(try cache.statistics().entries, 0, "it was to be cleared")
        XCTAssertEqual(code { try cache.clear() }, .ok)
        XCTAssertNil(other)
        cache.close()
        cache = try open()
        XCTAssertNil(cache.wait("k2999"))
        cache.close()
    }

    /// As a connection sees it that begins now.
    private func entries(_ key: String) throws -> Int64 {
        let other = try Database(path + "/index-1.sqlite", busyMilliseconds: 1_000)
        return try other.integer("SELECT count(*) FROM entries WHERE key = '\(key)'")
    }

    /// The next program may not serve it.
    func testWhatIsRemovedStaysRemovedWhenTheCacheIsClosed() throws {
        var cache = try open()
        for number in 0..<1_000 { cache.put("k\(number)", bytes(10)) }
        try cache.flush()
        let other = try read()
        try storeMuch(in: cache)
        for number in 0..<900 { cache.remove(key: "k\(number)") }
        XCTAssertLessThan(milliseconds { cache.close() }, 4_000)
        measureLog()
        XCTAssertLessThanOrEqual(mostSeen, Self.mostLogBytes)
        // What announces removals is about some seconds.
        unlink(path + "/changes-1")
        cache = try open()
        for number in 0..<900 { XCTAssertNil(cache.wait("k\(number)")) }
        for number in 900..<1_000 { XCTAssertEqual(cache.wait("k\(number)")?.bytes, bytes(10)) }
        cache.close()
        withExtendedLifetime(other) {}
    }

    /// Several wait at the same time: each for the time that it was promised, not for that of those before it, too.
    func testManyWhoWaitForAWriterWaitAtTheSameTime() throws {
        tuning.busyMilliseconds = 1000
        let cache = try open()
        for number in 0..<200 { cache.put("k\(number)", bytes(100)) }
        try cache.flush()
        try cache.finishBackgroundWork()
        let ids = try (0..<200).map { try XCTUnwrap(cache.wait("k\($0)")).entry.id }
        let other = try Database(path + "/index-1.sqlite", busyMilliseconds: 1_000)
        try other.execute("BEGIN IMMEDIATE")
        for id in ids { cache.update(id, response([HeaderField("X", long)], at: 200)) }
        clock.advance(seconds: 10)
        let calls: [@Sendable () throws -> Void] = [
            { try cache.flush() }, { try cache.removeAndWait(key: "k1") }, { try cache.removeOlder(than: 0) },
            { try cache.clear() },
        ]
        let lock = Lock()
        nonisolated(unsafe) var codes: [ErrorCode] = []
        let duration = try milliseconds {
            let threads = try (0..<20).map { number in
                try ImgdlCore.Thread.start(name: "waiting") {
                    var code = ErrorCode.ok
                    do { try calls[number % 4]() } catch { code = (error as? Failure)?.code ?? .internal }
                    lock.withLock { codes.append(code) }
                }
            }
            for thread in threads { thread.join() }
        }
        XCTAssertEqual(codes, [ErrorCode](repeating: .cacheBusy, count: 20))
        XCTAssertLessThan(duration, 10_000, "one after another it would be 20 s")
        XCTAssertLessThan(milliseconds { cache.close() }, 10_000)
        try other.execute("ROLLBACK")
    }
}
