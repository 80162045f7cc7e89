import XCTest

@testable import ImgdlCore

/// Bodies that broke off are continued (features B11, R01, R33, I31, I33): the right bytes or a typed error, and no
/// retry.
final class ResumeTests: CachingTestCase {
    private let bytes = [UInt8]((0..<10_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
    private let kept = 6_000

    private var fields: [(String, String)] { [("ETag", "\"1\""), ("Accept-Ranges", "bytes")] }

    /// The first answer breaks off after six tenths.
    private func breakOff(_ fields: [(String, String)]? = nil) throws {
        network.answers { [bytes, kept] _ in Reply(200, fields ?? self.fields, bytes).cut(after: kept) }
        XCTAssertEqual(try get("/a").code, .truncated)
        XCTAssertEqual(network.count, 1)
    }

    private func rest(_ fields: [(String, String)]? = nil, range: String? = nil, from: Int = 6_000) -> Reply {
        var fields = fields ?? self.fields
        fields.append(("Content-Range", range ?? "bytes 6000-9999/10000"))
        return Reply(206, fields, Array(bytes[from...]))
    }

    func testASecondTryAsksForTheRest() throws {
        try breakOff()
        network.answers { _ in self.rest() }
        let heard = try start("/a")
        let result = try end(heard)
        XCTAssertEqual(network.last.fields.first(named: "Range"), "bytes=6000-")
        XCTAssertEqual(network.last.fields.first(named: "If-Range"), "\"1\"")
        XCTAssertEqual(result.bytes, bytes)
        XCTAssertEqual(result.outcome, .resumed)
        XCTAssertEqual(result.response?.head.status, 200)
        XCTAssertEqual(result.field("Content-Length"), "10000")
        XCTAssertNil(result.field("Content-Range"))
        XCTAssertEqual(network.count, 2)
        XCTAssertTrue(heard.log.contains("progress 6000/10000"), "what is kept comes first")
        XCTAssertEqual(heard.log.last { $0.hasPrefix("progress") }, "progress 10000/10000")
        // It is whole now.
        XCTAssertEqual(try get("/a", .only).bytes, bytes)
    }

    func testWhatWasCancelledIsContinued() throws {
        network.answers { _ in nil }
        let cancelled = try start("/a")
        let exchange = try network.exchange(0)
        exchange.connect()
        exchange.head(200, fields.map { HeaderField($0.0, $0.1) }, length: 10_000)
        exchange.body(Array(bytes.prefix(kept)))
        // The engine has the bytes when it is asked for this.
        network.answers { request in request.url.canonical.hasSuffix("/b") ? Reply(200, [], [1]) : self.rest() }
        _ = try get("/b")
        downloader.cancel(cancelled.subscription)
        XCTAssertEqual(try end(cancelled).code, .cancelled)
        let result = try get("/a")
        XCTAssertEqual(result.bytes, bytes)
        XCTAssertEqual(result.outcome, .resumed)
    }

    /// Features B14: the attempts of one transfer too.
    func testARetryAsksForTheRest() throws {
        var count = 0
        network.answers { [bytes, kept] _ in
            count += 1
            return count == 1 ? Reply(200, self.fields, bytes).cut(after: kept) : self.rest()
        }
        let result = try get("/a") {
            $0.retry.count = 1
            $0.retry.base = 0
        }
        XCTAssertEqual(result.bytes, bytes)
        XCTAssertEqual(result.outcome, .resumed)
        XCTAssertEqual(result.metrics.retries, 1)
        XCTAssertEqual(network.last.fields.first(named: "Range"), "bytes=6000-")
    }

    /// Each of these ends with the whole body from the server, with one more request at most.
    func testAnswersThatDoNotContinue() throws {
        let changed = [("ETag", "\"2\""), ("Accept-Ranges", "bytes")]
        let answers: [(String, Reply, Int)] = [
            ("a 200, as of a server that knows no ranges", Reply(200, fields, bytes), 1),
            ("changed", Reply(200, changed, bytes), 1),
            ("If-Range ignored: another tag", rest(changed), 2),
            ("a weak tag", rest([("ETag", "W/\"1\"")]), 2),
            ("no tag", rest([]), 2),
            ("wrong offset", rest(range: "bytes 5999-9999/10000", from: 5_999), 2),
            ("wrong total", rest(range: "bytes 6000-9999/10001"), 2),
            ("no Content-Range", Reply(206, fields, Array(bytes[kept...])), 2),
            ("304", Reply(304, fields), 2),
            ("416", Reply(416, [("Content-Range", "bytes */10000")], [1]), 2),
            ("412", Reply(412), 2),
        ]
        for (index, (what, reply, requests)) in answers.enumerated() {
            let path = "/\(index)"
            network.answers { [bytes, kept] _ in Reply(200, self.fields, bytes).cut(after: kept) }
            XCTAssertEqual(try get(path).code, .truncated)
            let before = network.count
            network.answers { [bytes] request in
                request.fields.first(named: "Range") == nil ? Reply(200, self.fields, bytes) : reply
            }
            let result = try get(path)
            XCTAssertEqual(result.bytes, bytes, what)
            XCTAssertEqual(result.outcome, .network, what)
            XCTAssertEqual(result.metrics.retries, 0, what)
            XCTAssertEqual(network.count - before, requests, what)
            XCTAssertEqual(try get(path, .only).bytes, bytes, what)
        }
    }

    /// The rest breaks off, too: more is kept.
    func testAShortRestIsTruncatedAndContinued() throws {
        try breakOff()
        network.answers { _ in self.rest().cut(after: 2_000) }
        XCTAssertEqual(try get("/a").code, .truncated)
        network.answers { _ in self.rest(range: "bytes 8000-9999/10000", from: 8_000) }
        XCTAssertEqual(try get("/a").bytes, bytes)
        XCTAssertEqual(network.last.fields.first(named: "Range"), "bytes=8000-")
        XCTAssertEqual(network.count, 3)
    }

    /// Without Content-Length nobody but Content-Range says how much is to come.
    func testAShortRestWithoutLengthIsTruncated() throws {
        try breakOff()
        network.answers { _ in
            var reply = self.rest().withoutLength()
            reply.body = Array(reply.body.prefix(2_000))
            return reply
        }
        XCTAssertEqual(try get("/a").code, .truncated)
        XCTAssertEqual(try get("/a", .only).code, .notCached)
        network.answers { _ in
            var reply = self.rest(range: "bytes 8000-9999/10000", from: 8_000).withoutLength()
            reply.body.append(0)
            return reply
        }
        XCTAssertEqual(try get("/a").code, .protocolError)
        XCTAssertEqual(try get("/a", .only).code, .notCached)
    }

    func testWhatCannotBeVerifiedIsNotKept() throws {
        let heads: [(String, [(String, String)])] = [
            ("weak tag", [("ETag", "W/\"1\"")]), ("no validator", []),
            ("Accept-Ranges: none", [("ETag", "\"1\""), ("Accept-Ranges", "none")]),
            ("no-store", [("ETag", "\"1\""), ("Cache-Control", "no-store")]),
        ]
        for (what, fields) in heads {
            try breakOffOnce(what, fields)
            XCTAssertNil(network.last.fields.first(named: "Range"), what)
        }
    }

    private func breakOffOnce(_ what: String, _ fields: [(String, String)]) throws {
        let path = "/" + what.filter { $0 != " " }
        network.answers { [bytes, kept] _ in Reply(200, fields, bytes).cut(after: kept) }
        XCTAssertEqual(try get(path).code, .truncated, what)
        network.answers { [bytes] _ in Reply(200, fields, bytes) }
        XCTAssertEqual(try get(path).bytes, bytes, what)
    }

    func testAnErrorInPlaceOfTheRestKeepsWhatIsThere() throws {
        try breakOff()
        network.answers { _ in Reply(503) }
        XCTAssertEqual(try get("/a").code, .invalidStatus)
        network.answers { _ in self.rest() }
        XCTAssertEqual(try get("/a").outcome, .resumed)
    }

    /// The kept bytes are not held by what waits for a place.
    func testAResumptionWaitsForItsPlace() throws {
        try breakOff()
        try open { $0.limits.maximumConcurrent = 1 }
        network.answers { request in request.url.canonical.hasSuffix("/slow") ? nil : self.rest() }
        let slow = try start("/slow")
        let exchange = try network.exchange(1)
        let resumed = try start("/a")
        exchange.answer(Reply(200, [], [1]))
        try end(slow)
        XCTAssertEqual(try end(resumed).outcome, .resumed)
        XCTAssertEqual(resumed.result?.bytes, bytes)
    }

    // MARK: Nearly done (features R33)

    func testANearlyDoneTransferFinishesIntoTheCache() throws {
        for (isOn, received) in [(true, 9_900), (true, 1_000), (false, 9_900)] {
            try open { $0.finishesNearlyDone = isOn }
            let path = "/\(isOn)\(received)"
            let index = network.count
            network.answers { _ in nil }
            let heard = try start(path)
            let exchange = try network.exchange(index)
            exchange.connect()
            _ = try flush()
            clock.pass(milliseconds: 50)
            exchange.head(200, [HeaderField("Cache-Control", "max-age=60")], length: 10_000)
            _ = try flush()
            clock.pass(milliseconds: 100)
            exchange.body(Array(bytes.prefix(received)))
            _ = try flush()
            let before = network.cancelled
            downloader.cancel(heard.subscription)
            XCTAssertEqual(try end(heard).code, .cancelled)
            let finishes = isOn && received > 9_000
            exchange.body(Array(bytes[received...]))
            exchange.finish()
            _ = try flush()
            XCTAssertEqual(network.cancelled - before, finishes ? 0 : 1)
            XCTAssertEqual(try get(path, .only).code, finishes ? .ok : .notCached)
        }
    }

    /// Everything said before has come to the engine.
    private func flush() throws -> Ended { try get("/nothing", .only) }
}
