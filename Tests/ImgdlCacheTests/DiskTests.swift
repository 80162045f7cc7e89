import CStore
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Issue 5, the store: what was stored is given, whole, or not at all.
final class DiskTests: StoreTestCase {
    func testGivesWhatWasStoredAtOnceAndAfterTheFlushAndInTheNextProcess() throws {
        let content = bytes(100_000)
        let fields = [
            HeaderField("Content-Type", "image/png"), HeaderField("X-Odd", "ü, \"a\""), HeaderField("X-Odd", ""),
        ]
        var stored = response(
            fields, varying: [VaryingField(name: "accept", value: nil), VaryingField(name: "dpr", value: "2")])
        stored.isUndecodable = true
        stored.overtakenTime = 1_700_000_007
        var cache = try open()
        XCTAssertNil(cache.wait("k"))
        XCTAssertTrue(cache.put("k", content, stored))
        let early = try XCTUnwrap(cache.wait("k"))
        XCTAssertEqual(early.bytes, content)
        XCTAssertEqual(files, [], "others do not see it yet")
        try cache.flush()
        XCTAssertEqual(files.count, 1)
        XCTAssertEqual(temporaries, [])
        let found = try XCTUnwrap(cache.wait("k"))
        XCTAssertEqual(found.bytes, content)
        XCTAssertEqual(found.entry.id, early.entry.id)
        var expected = stored
        expected.bodyLength = 100_000
        XCTAssertEqual(found.entry.response, expected)
        cache.close()
        cache = try open()
        let again = try XCTUnwrap(cache.wait("k"))
        XCTAssertEqual(again.bytes, content)
        XCTAssertEqual(again.entry.id, found.entry.id)
        XCTAssertEqual(again.entry.response, expected)
        let statistics = try cache.statistics()
        XCTAssertEqual(statistics.entries, 1)
        XCTAssertEqual(statistics.bytes, 102_400 + StorageCost.row(expected, key: "k"))
        XCTAssertTrue(statistics.isWritable)
        XCTAssertEqual(log.all, [])
        cache.close()
    }

    /// What waits is answered in groups, so that who asks is woken once: each in its turn, and none is forgotten.
    func testAnswersEveryLookUpOfMany() throws {
        let cache = try open()
        for number in 0..<20 { cache.put("k\(number)", bytes(100 + number)) }
        try cache.flush()
        let lock = Lock()
        let changed = Condition(lock)
        nonisolated(unsafe) var mayGoOn = false
        nonisolated(unsafe) var answers: [(Int, Int?)] = []
        for number in 0..<40 {
            cache.find(
                "k\(number)",
                choose: { _ in
                    // The reading thread stands still until all have asked.
                    lock.withLock { while !mayGoOn { changed.wait() } }
                    return .entry(0, withBody: true)
                },
                completion: { found in
                    lock.withLock {
                        answers.append((number, found?.bytes.count))
                        changed.broadcast()
                    }
                })
        }
        lock.withLock {
            mayGoOn = true
            changed.broadcast()
            while answers.count < 40 { changed.wait() }
        }
        XCTAssertEqual(answers.map(\.0), Array(0..<40))
        XCTAssertEqual(answers.map(\.1), (0..<40).map { $0 < 20 ? 100 + $0 : nil })
        cache.close()
    }

    func testClosingWritesWhatIsLeft() throws {
        var cache = try open()
        cache.put("k", bytes(10))
        cache.close()
        cache = try open()
        XCTAssertEqual(cache.wait("k")?.bytes, bytes(10))
        XCTAssertEqual(Folder.names(in: "\(path)/writers-1").count, 1, "a writer's folder goes with it")
        cache.close()
        XCTAssertEqual(Folder.names(in: "\(path)/writers-1"), [])
        XCTAssertNil(cache.wait("k"))
        XCTAssertNil(cache.write("k", response()))
        XCTAssertThrowsError(try cache.flush()) { XCTAssertEqual(($0 as? Failure)?.code, .shutDown) }
        cache.close()
    }

    func testTheFolderIsForThisUserAlone() throws {
        let cache = try open()
        cache.put("k", bytes(10))
        try cache.flush()
        for (name, mode) in [
            (path, 0o700), (path + "/bodies-1", 0o700), (files[0], 0o600), (path + "/lock-1", 0o600),
            (path + "/key", 0o600),
        ] {
            var status = stat()
            XCTAssertEqual(stat(name, &status), 0)
            XCTAssertEqual(Int(status.st_mode) & 0o777, mode, name)
        }
        cache.close()
    }

    func testAnEmptyBodyNeedsNoFile() throws {
        let cache = try open()
        cache.put("k", [])
        try cache.flush()
        let found = try XCTUnwrap(cache.wait("k"))
        XCTAssertEqual(found.bytes, [])
        XCTAssertEqual(files, [])
        cache.close()
    }

    func testWhatIsAbandonedLeavesNothing() throws {
        let cache = try open()
        var writer = try XCTUnwrap(cache.write("k", response()))
        writer.append(slices(bytes(1000)))
        writer.abandon()
        writer.finish(response())
        writer = try XCTUnwrap(cache.write("k", response()))
        writer.append(slices(bytes(1000)))
        // Let go of without an end.
        writer = try XCTUnwrap(cache.write("k", response()))
        try cache.flush()
        XCTAssertNil(cache.wait("k"))
        XCTAssertEqual(temporaries, [])
        XCTAssertEqual(files, [])
        writer.abandon()
        cache.close()
    }

    func testTheLaterTakesThePlaceOfTheEarlierWithTheSameVaryingFields() throws {
        let cache = try open()
        let german = [VaryingField(name: "accept-language", value: "de")]
        let english = [VaryingField(name: "accept-language", value: "en")]
        cache.put("k", bytes(10, seed: 1), response(at: 1, varying: german))
        try cache.flush()
        cache.put("k", bytes(10, seed: 2), response(at: 2, varying: english))
        cache.put("k", bytes(10, seed: 3), response(at: 3, varying: german))
        for _ in 0..<2 {
            let newest = try XCTUnwrap(
                cache.wait("k") { entries in
                    XCTAssertEqual(entries.map(\.response.responseTime), [3, 2])
                    return .entry(0, withBody: true)
                })
            XCTAssertEqual(newest.bytes, bytes(10, seed: 3))
            try cache.flush()
        }
        XCTAssertEqual(files.count, 2, "the file of what was replaced goes, too")
        XCTAssertEqual(try cache.statistics().entries, 2)
        cache.close()
    }

    func testTheBeginningOfABodyReplacesNoWholeOne() throws {
        let cache = try open()
        cache.put("k", bytes(10), response(at: 1))
        let beginning = response(at: 2, extent: .beginning(total: 30))
        cache.put("k", bytes(20), beginning, keeps: true)
        try cache.flush()
        XCTAssertNil(
            cache.wait("k") { entries in
                XCTAssertEqual(entries.map(\.response.extent), [.beginning(total: 30), .whole])
                return .nothing
            })
        var statistics = try cache.statistics()
        let cost = 4_096 + StorageCost.row(beginning, key: "k")
        XCTAssertEqual(
            [statistics.entries, statistics.partialEntries, statistics.bytes, statistics.partialBytes],
            [2, 1, 2 * cost, cost])
        cache.put("k", bytes(30), response(at: 3))
        try cache.flush()
        statistics = try cache.statistics()
        XCTAssertEqual(
            [statistics.entries, statistics.partialEntries, statistics.bytes, statistics.partialBytes], [1, 0, cost, 0])
        cache.close()
    }

    func testAnUpdateChangesTheFieldsAndNotTheBody() throws {
        var cache = try open()
        cache.put("k", bytes(10), response(at: 1))
        let id = try XCTUnwrap(cache.wait("k")).entry.id
        cache.update(id, response([HeaderField("Age", "0")], at: 2))
        for step in 0..<3 {
            let found = try XCTUnwrap(cache.wait("k"))
            XCTAssertEqual(found.entry.id, id)
            XCTAssertEqual(found.bytes, bytes(10))
            XCTAssertEqual(found.entry.response.responseTime, 2, "step \(step)")
            XCTAssertEqual(found.entry.response.bodyLength, 10)
            if step == 0 { try cache.flush() }
            if step == 1 {
                cache.close()
                cache = try open()
            }
        }
        cache.close()
    }

    func testWhatIsRemovedIsGoneAtOnce() throws {
        let cache = try open()
        cache.put("a", bytes(10))
        cache.put("b", bytes(10))
        try cache.flush()
        cache.put("b", bytes(20), response(at: 200, varying: [VaryingField(name: "x", value: "1")]))
        cache.remove(key: "b")
        let id = try XCTUnwrap(cache.wait("a")).entry.id
        cache.remove(id)
        XCTAssertNil(cache.wait("a"))
        XCTAssertNil(cache.wait("b"))
        try cache.flush()
        XCTAssertNil(cache.wait("a"))
        XCTAssertNil(cache.wait("b"))
        XCTAssertEqual(files, [])
        XCTAssertEqual(try cache.statistics().entries, 0)
        XCTAssertEqual(try cache.statistics().damaged, 0)
        cache.close()
    }

    func testClearLeavesNothingAndGoesOn() throws {
        let cache = try open()
        for i in 0..<700 { cache.put("k\(i)", bytes(10)) }
        try cache.flush()
        cache.put("late", bytes(10))
        try cache.clear()
        XCTAssertEqual(files, [])
        XCTAssertEqual(temporaries, [])
        XCTAssertEqual(try cache.statistics().entries, 0)
        XCTAssertNil(cache.wait("k1"))
        XCTAssertNil(cache.wait("late"))
        cache.put("k1", bytes(10))
        try cache.flush()
        XCTAssertNotNil(cache.wait("k1"))
        cache.close()
    }

    func testQueryTellsTheNewest() throws {
        let cache = try open()
        XCTAssertNil(try cache.query("k"))
        cache.put("k", bytes(10), response(at: 7))
        XCTAssertEqual(try cache.query("k")?.response.bodyLength, 10)
        try cache.flush()
        clock.advance(seconds: 10)
        let id = try XCTUnwrap(cache.query("k")).id
        cache.use(id)
        let found = try XCTUnwrap(cache.query("k"))
        XCTAssertEqual(found.response.responseTime, 7)
        XCTAssertEqual(found.storedTime, 1_700_000_000)
        XCTAssertEqual(found.usedTime, 1_700_000_010)
        cache.close()
    }

    /// Memory alone has it, and answers with it.
    func testQueryTellsWhatTheDiskCouldNotTake() throws {
        configuration.maximumBytes = 100_000
        configuration.maximumMemoryBytes = 1 << 20
        let cache = try open()
        cache.put("k", bytes(200_000), response(at: 7))
        try cache.flush()
        XCTAssertEqual(try cache.statistics().notStored, 1)
        XCTAssertNotNil(cache.findInMemory("k") { _ in .entry(0, withBody: true) })
        XCTAssertEqual(try cache.query("k")?.response.bodyLength, 200_000)
        try cache.removeAndWait(key: "k")
        XCTAssertNil(try cache.query("k"))
        cache.close()
    }

    func testAFullQueueGivesUpTheWriteAndNotTheCaller() throws {
        tuning.queueBytes = 2_500
        let cache = try open()
        let writer = try XCTUnwrap(cache.write("k", response()))
        writer.append(slices(bytes(2_501)))
        writer.append(slices(bytes(10)))
        writer.finish(response())
        try cache.flush()
        XCTAssertNil(cache.wait("k"))
        XCTAssertEqual(temporaries, [])
        cache.put("small", bytes(400))
        XCTAssertEqual(cache.wait("small")?.bytes, bytes(400))
        cache.close()
    }

    /// Each piece takes memory of its own while it waits: 85 MB for a megabyte of single bytes.
    func testPiecesInTheQueueAreCounted() throws {
        tuning.queueBytes = 2_500
        let cache = try open()
        let writer = try XCTUnwrap(cache.write("k", response()))
        writer.append((0..<100).flatMap { _ in slices(bytes(1)) })
        writer.finish(response())
        try cache.flush()
        XCTAssertNil(cache.wait("k"))
        cache.put("small", bytes(400))
        XCTAssertEqual(cache.wait("small")?.bytes, bytes(400), "what was counted is given back")
        cache.close()
    }

    func testALookUpWithoutBodyReadsNone() throws {
        let cache = try open()
        cache.put("k", bytes(10))
        try cache.flush()
        unlink(files[0])
        let found = try XCTUnwrap(cache.wait("k") { _ in .entry(0, withBody: false) })
        XCTAssertEqual(found.entry.response.bodyLength, 10)
        XCTAssertTrue(found.body.isEmpty)
        cache.close()
    }

    func testBodiesOfSomeMegabytesComeBackInSlices() throws {
        let cache = try open()
        let content = bytes((3 << 20) + 5)
        cache.put("k", content)
        try cache.flush()
        XCTAssertEqual(cache.wait("k")?.bytes, content)
        cache.close()
    }

    func testWhatWasReadIsRememberedInMemory() throws {
        configuration.maximumMemoryBytes = 1 << 20
        let cache = try open()
        cache.put("k", bytes(1000))
        XCTAssertEqual(cache.findInMemory("k") { _ in .entry(0, withBody: true) }?.bytes, bytes(1000))
        cache.close()
        let next = try open()
        XCTAssertNil(next.findInMemory("k") { _ in .entry(0, withBody: true) })
        XCTAssertEqual(next.wait("k")?.bytes, bytes(1000))
        XCTAssertEqual(next.findInMemory("k") { _ in .entry(0, withBody: true) }?.bytes, bytes(1000))
        next.remove(key: "k")
        XCTAssertNil(next.findInMemory("k") { _ in .entry(0, withBody: true) })
        XCTAssertNil(next.wait("k"))
        next.close()
    }

    func testThreadsOfTheCacheDoNotWaitForIt() throws {
        let cache = try open()
        nonisolated(unsafe) var codes: [ErrorCode?] = []
        _ = cache.wait("k") { _ in .nothing }
        let lock = Lock()
        let done = Condition(lock)
        cache.find("k", choose: { _ in .nothing }) { [cache] _ in
            let calls: [() throws -> Void] = [
                { try cache.flush() }, { try cache.clear() }, { _ = try cache.query("k") },
                { _ = try cache.statistics() },
                { try cache.removeOlder(than: 1) }, { try cache.removeAndWait(key: "k") },
            ]
            lock.withLock {
                for call in calls {
                    do {
                        try call()
                        codes.append(nil)
                    } catch { codes.append((error as? Failure)?.code) }
                }
                done.signal()
            }
        }
        lock.withLock { while codes.count < 6 { done.wait() } }
        XCTAssertEqual(codes, Array(repeating: .wouldDeadlock, count: 6))
        cache.close()
    }
}
