import ImgdlCache
import XCTest

@testable import ImgdlCore

/// Issue 20: an answer that another has overtaken on its way is given to who asked, and to nobody else.
final class LateAnswerTests: CachingTestCase {
    private func reply(_ version: String, seconds: String) -> Reply {
        let fields = [("Cache-Control", "max-age=60"), ("Date", "Fri, 15 Jan 2027 07:59:\(seconds) GMT")]
        return Reply(200, fields + [("X-Version", version)], Array(version.utf8))
    }

    /// The newer one is in the index alone when the older one comes.
    func testAnOlderAnswerIsNotServedFromMemory() throws {
        try openAnew(onDisk: true, memory: 32 << 20)
        network.answers { _ in nil }
        let slow = try start("/a", .reload)
        let first = try network.exchange(0)
        let fast = try start("/a", .reload, fields: [HeaderField("X-Request-Id", "2")])
        try network.exchange(1).answer(reply("newer", seconds: "30"))
        XCTAssertEqual(try end(fast).bytes, Array("newer".utf8))
        try store.cache.flush()
        store.cache.releaseMemory()
        first.answer(reply("older", seconds: "20"))
        XCTAssertEqual(try end(slow).bytes, Array("older".utf8), "who asked gets it")
        for mode in [CacheMode.use, .only, .use] {
            XCTAssertEqual(try get("/a", mode).field("X-Version"), "newer")
        }
        XCTAssertEqual(network.count, 2)
    }

    /// The disk has the older one when memory lets go of the newer one.
    func testAnOlderAnswerOnABrokenDiskIsNotFreshOnceMemoryHasLetTheNewerOneGo() throws {
        let fresh = [("Cache-Control", "max-age=1000")]
        let disk = BrokenDisk()
        try openAnew(onDisk: true, memory: 32 << 20, disk)
        network.answers { _ in Reply(200, fresh, [1]) }
        _ = try get("/a")
        try store.cache.flush()
        disk.breakDown()
        _ = try get("/other")
        XCTAssertThrowsError(try store.cache.flush()) { XCTAssertEqual(($0 as? Failure)?.code, .diskFull) }
        clock.pass(seconds: 1)
        network.answers { _ in Reply(200, fresh, [2]) }
        XCTAssertEqual(try get("/a", .reload).bytes, [2])
        XCTAssertEqual(try get("/a").bytes, [2], "memory has it")
        XCTAssertEqual(network.count, 3)
        store.cache.releaseMemory()
        XCTAssertEqual(try get("/a", .only).bytes, [1], "the disk has it")
        XCTAssertEqual(try get("/a", .only).outcome, .stale)
        XCTAssertEqual(try get("/a").bytes, [2])
        XCTAssertEqual(network.count, 4, "its server is asked")
    }

    /// Both within one second, whatever Date says: the reload is asked for once the head of the other has come, and ends first.
    func testAReloadIsNotLostWithinOneSecond() throws {
        for date in [30, 29] {
            for onDisk in [false, true] {
                for memory in [0, 32 << 20] as [Int64] where onDisk || memory > 0 {
                    let name = "\(date), \(onDisk), \(memory)"
                    try openAnew(onDisk: onDisk, memory: memory)
                    network.answers { _ in nil }
                    let before = network.count
                    let slow = try start("/a", .reload)
                    let first = try network.exchange(before)
                    let older = reply("older", seconds: "30")
                    first.connect()
                    first.head(200, older.fields, length: 5)
                    first.body(Array(older.body.prefix(1)))
                    XCTAssertTrue(slow.waitForEvent("progress 1/5"))
                    clock.pass(microseconds: 1)
                    let reload = try start("/a", .reload, fields: [HeaderField("X-Request-Id", "2")])
                    try network.exchange(before + 1).answer(reply("newer", seconds: "\(date)"))
                    XCTAssertEqual(try end(reload).bytes, Array("newer".utf8))
                    first.body(Array(older.body.dropFirst()))
                    first.finish()
                    XCTAssertEqual(try end(slow).bytes, older.body, "\(name): who asked gets it")
                    for flushes in [false, true] {
                        if flushes { try store.cache.flush() }
                        XCTAssertEqual(try get("/a", .only).field("X-Version"), "newer", name)
                    }
                }
            }
        }
    }

    /// The same by a validation, which is asked for after the other's head has come.
    func testAValidationIsNotLostWithinOneSecond() throws {
        for onDisk in [false, true] {
            try openAnew(onDisk: onDisk, memory: 32 << 20)
            var stored = reply("older", seconds: "30")
            stored.fields.append(HeaderField("ETag", "\"1\""))
            network.answers { _ in stored }
            _ = try get("/a")
            network.answers { _ in nil }
            let before = network.count
            let slow = try start("/a", .reload)
            let first = try network.exchange(before)
            first.connect()
            first.head(200, stored.fields, length: 5)
            first.body(Array(stored.body.prefix(1)))
            XCTAssertTrue(slow.waitForEvent("progress 1/5"))
            clock.pass(microseconds: 1)
            let validated = try start("/a", .refresh)
            var answer = reply("newer", seconds: "30")
            (answer.status, answer.body) = (304, [])
            answer.fields.append(HeaderField("ETag", "\"1\""))
            try network.exchange(before + 1).answer(answer)
            XCTAssertEqual(try end(validated).outcome, .validated)
            first.body(Array(stored.body.dropFirst()))
            first.finish()
            _ = try end(slow)
            XCTAssertEqual(try get("/a", .only).field("X-Version"), "newer")
        }
    }

    /// It was found before it was removed: what goes on from it is not stored.
    func testABeginningThatWasRemovedIsNotStoredAgain() throws {
        let key = testURL("https://a.example/a").cacheKey
        let whole = [UInt8](repeating: 7, count: 20_000)
        let fields = [("ETag", "\"1\""), ("Cache-Control", "max-age=60")]
        network.answers { request in
            guard request.fields.first(named: "Range") != nil else {
                return Reply(200, fields, whole).cut(after: 17_000)
            }
            return Reply(206, fields + [("Content-Range", "bytes 17000-19999/20000")], Array(whole[17_000...]))
        }
        for removes in [false, true] {
            try openAnew(onDisk: true, memory: 32 << 20)
            XCTAssertEqual(try get("/a").code, .truncated)
            let cache = store.cache
            // First it is looked for what it waits for, then for its bytes.
            store.interrupt { if removes, $0?.body.isEmpty == false { cache.remove(key: key) } }
            let resumed = try get("/a")
            XCTAssertEqual(resumed.outcome, .resumed)
            XCTAssertEqual(resumed.bytes, whole, "who asked gets it")
            XCTAssertEqual(try get("/a", .only).code, removes ? .notCached : .ok)
        }
    }
}
