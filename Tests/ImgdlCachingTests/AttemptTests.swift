import XCTest

@testable import ImgdlCore

/// The response that is told belongs to the body that is given, whatever became of what was tried before.
final class AttemptTests: CachingTestCase {
    /// The number of the request, from 1 on: counted where it is answered.
    private let requests = RequestCount()
    private let bytes = [UInt8]((0..<2500).map { UInt8(truncatingIfNeeded: $0 * 7) })

    private func retrying(_ options: inout SubscriberOptions) {
        options.retry.count = 1
        options.retry.base = 0
    }

    private func reply(_ number: String, _ body: [UInt8]? = nil, status: Int32 = 200) -> Reply {
        Reply(status, [("X-Attempt", number)], body ?? bytes)
    }

    private func check(_ heard: Heard, _ responses: Int, _ attempt: String, _ body: [UInt8]) throws {
        let result = try end(heard)
        XCTAssertEqual(result.bytes, body)
        XCTAssertEqual(result.field("X-Attempt"), attempt)
        XCTAssertEqual(heard.response?.head.fields.first(named: "X-Attempt"), attempt)
        XCTAssertEqual(heard.log.filter { $0.hasPrefix("response") }.count, responses, "\(heard.log)")
    }

    /// The first attempt breaks off in its body, without a cache and with one that continues nothing.
    func testARetrysResponseIsTold() throws {
        for mode in [CacheMode.off, .use] {
            let before = network.count
            network.answers { _ in nil }
            let heard = try start("/a", mode, retrying)
            try network.exchange(before).answer(reply("1").cut(after: 1500))
            let second = try network.exchange(before + 1)
            second.connect()
            second.head(200, [HeaderField("X-Attempt", "2"), HeaderField("Content-Length", "3")], length: 3)
            // One who comes now hears of this attempt alone.
            let late = try start("/a", mode)
            second.body([7, 8, 9])
            second.finish()
            try check(heard, 2, "2", [7, 8, 9])
            try check(late, 1, "2", [7, 8, 9])
        }
    }

    /// What was kept from being sent was asked for when it is sent: its answer is no older, and what was removed before is not
    /// stored after that.
    func testWhatBeginsAnewIsAskedForThen() throws {
        network.answers { _ in nil }
        let heard = try start("/a")
        let exchange = try network.exchange(0)
        clock.pass(seconds: 10)
        store.remove(key: "https://a.example/a")
        clock.pass(seconds: 1)
        exchange.beginAnew()
        exchange.answer(Reply(200, [("Cache-Control", "max-age=8")], bytes))
        XCTAssertEqual(try end(heard).bytes, bytes)
        let hit = try get("/a")
        XCTAssertEqual(hit.bytes, bytes)
        XCTAssertEqual(hit.outcome, .hit)
        XCTAssertEqual(network.count, 1)
    }

    /// A response that is only waited out is not told.
    func testWhatIsWaitedOutIsNotTold() throws {
        network.answers { [self] _ in requests.next() == 1 ? reply("1", status: 503) : reply("2") }
        let heard = try start("/a", .off, retrying)
        try check(heard, 1, "2", bytes)
    }

    /// The rest that was asked for is another body's: it is fetched from the beginning, and only that is told.
    func testABodyThatIsBegunAnew() throws {
        let validators = [("ETag", "\"1\""), ("X-Attempt", "1")]
        network.answers { [bytes] _ in Reply(200, validators, bytes).cut(after: 1500) }
        XCTAssertEqual(try get("/a").code, .truncated)
        network.answers { [self] request in
            guard request.fields.first(named: "Range") != nil else { return reply("3") }
            return Reply(206, [("ETag", "\"2\""), ("X-Attempt", "2"), ("Content-Range", "bytes 1500-2499/2500")], [1])
        }
        let heard = try start("/a")
        try check(heard, 1, "3", bytes)
    }

    /// The rest breaks off, too: what was told of both is told again with the third.
    func testAResumedAttemptThatBreaksOffAgain() throws {
        network.answers { [self] request in
            let tag = ("ETag", "\"1\"")
            let attempt = ("X-Attempt", "\(requests.next())")
            guard let range = request.fields.first(named: "Range") else {
                return Reply(200, [tag, attempt], bytes).cut(after: 1000)
            }
            let start = range == "bytes=1000-" ? 1000 : 2000
            let content = ("Content-Range", "bytes \(start)-2499/2500")
            let rest = Reply(206, [tag, attempt, content], Array(bytes[start...]))
            return start == 1000 ? rest.cut(after: 1000) : rest
        }
        let heard = try start("/a") {
            $0.retry.count = 2
            $0.retry.base = 0
        }
        try check(heard, 3, "3", bytes)
        XCTAssertEqual(heard.response?.head.outcome, .resumed)
    }

    func testAChallengesAnswerIsNotThatOfTheCredentials() throws {
        network.answers { [self] request in
            request.credential == nil ? reply("1", [1], status: 401) : reply("2")
        }
        let hooks = TestHooks([.authenticate])
        hooks.credential = { _ in .replaced(Credential(user: "u", password: "p")) }
        let heard = try start("/a", .off, hooks: hooks)
        try check(heard, 1, "2", bytes)
    }

    /// What is stale stands in for a second attempt that reaches nobody.
    func testAStandInsResponseIsTold() throws {
        network.answers { [self] _ in Reply(200, [("X-Attempt", "0"), ("Cache-Control", "max-age=10")], bytes) }
        _ = try get("/a")
        clock.pass(seconds: 20)
        network.answers { [self] _ in requests.next() == 1 ? reply("1").cut(after: 10) : .failed(.connectFailed) }
        let heard = try start("/a", .use, retrying)
        try check(heard, 2, "0", bytes)
        XCTAssertEqual(heard.response?.head.outcome, .stale)
    }

    /// A slow listener who has not heard of the first attempt hears of none of its header and pictures.
    func testWhatWaitsOfAnEarlierAttemptIsNotTold() {
        var pending = PendingEvents.nothing
        let head = ResponseHead(status: 200, httpVersion: 11, fields: [], contentLength: nil, isEncoded: false)
        let response = Response(url: testURL("https://a.example/a"), head: head, hops: [])
        let header = ImageHeader(format: .png, width: 1, height: 1, hasAlpha: false, isProgressive: false)
        _ = pending.add(.response(response, ImgdlCore.Progress()))
        _ = pending.add(.header(header, ImgdlCore.Progress()))
        _ = pending.add(.response(response, ImgdlCore.Progress()))
        guard let first = pending.takeFirst(), case .event(let event) = consume first, case .response = event
        else { return XCTFail("no response") }
        XCTAssertTrue(pending.isEmpty)
    }
}

/// Of one server, on the engine's thread.
private final class RequestCount: @unchecked Sendable {
    private var count = 0

    func next() -> Int {
        count += 1
        return count
    }
}
