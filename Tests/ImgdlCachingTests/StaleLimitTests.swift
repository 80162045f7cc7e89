import XCTest

@testable import ImgdlCore

/// How stale an answer of the cache may be, end to end; the rule has tests of its own.
final class StaleLimitTests: CachingTestCase {
    private func serve(_ control: String) {
        network.answers { _ in Reply(200, [("ETag", "\"1\""), ("Cache-Control", control)], [1, 2, 3]) }
    }

    private func ask(_ mode: CacheMode = .use, fields: [HeaderField] = [], _ limit: StaleLimit) throws -> Ended {
        try end(try start("/a", mode, fields: fields, staleLimit: limit))
    }

    /// A server that cannot be reached, or answers with an error; what asks for the cache alone; what is stale at once.
    func testEveryStaleAnswerIsBounded() throws {
        let cases: [(control: String, reply: Reply, mode: CacheMode, fields: [HeaderField])] = [
            ("max-age=10", .failed(.connectFailed), .use, []), ("max-age=10", .failed(.connectFailed), .only, []),
            ("max-age=10, stale-if-error=999", .failed(.resolveFailed), .use, []),
            ("max-age=10", .failed(.flood), .use, []),
            ("max-age=10, stale-if-error=999", Reply(503), .use, []),
            ("max-age=10, stale-while-revalidate=999", .failed(.connectFailed), .use, []),
            ("max-age=10", .failed(.connectFailed), .use, [HeaderField("Cache-Control", "max-stale=999")]),
        ]
        for (number, (control, reply, mode, fields)) in cases.enumerated() {
            serve(control)
            XCTAssertEqual(try ask(.reload, .none).code, .ok)
            network.answers { _ in reply }
            clock.pass(seconds: 15)
            for limit in [StaleLimit.none, StaleLimit(seconds: 5)] {
                let stale = try ask(mode, fields: fields, limit)
                XCTAssertEqual(stale.outcome, .stale, "\(number)")
                XCTAssertEqual(stale.bytes, [1, 2, 3], "\(number)")
            }
            for limit in [StaleLimit.never, StaleLimit(seconds: 4)] {
                let refused = try ask(mode, fields: fields, limit)
                let expected: ErrorCode =
                    mode == .only ? .notCached : reply.failure ?? .invalidStatus
                XCTAssertEqual(refused.code, expected, "\(number)")
            }
        }
    }

    /// Whoever wants nothing stale does not join who takes it.
    func testRequestsWithOtherLimitsShareNothing() throws {
        network.answers { _ in nil }
        let heard = [try start("/a"), try start("/a", staleLimit: .never), try start("/a", staleLimit: .never)]
        for number in 0..<2 { try network.exchange(number).answer(Reply(200, [], [UInt8(number)])) }
        let results = try heard.map { try end($0).bytes }
        XCTAssertEqual(results[1], results[2])
        XCTAssertNotEqual(results[0], results[1])
        XCTAssertEqual(network.count, 2)
    }

    /// Errors are kept where they are asked to be bodies; who does not take them hears so from the cache.
    func testAnErrorThatIsAskedForIsKept() throws {
        network.answers { _ in Reply(404, [("Cache-Control", "max-age=60")], [4, 0, 4]) }
        XCTAssertEqual(try get("/a").code, .invalidStatus)
        XCTAssertEqual(try get("/a").code, .invalidStatus)
        XCTAssertEqual(network.count, 2, "what nobody takes is not kept")
        for change in [
            { $0.acceptsAnyStatus = true }, { $0.validation.statuses = [StatusRange(first: 404, last: 404)] },
        ]
            as [(inout SubscriberOptions) -> Void]
        {
            let before = network.count
            XCTAssertEqual(try get("/a", .reload, change).outcome, .network)
            let kept = try get("/a", .use, change)
            XCTAssertEqual(kept.outcome, .hit)
            XCTAssertEqual(kept.status, 404)
            XCTAssertEqual(kept.bytes, [4, 0, 4])
            let refused = try get("/a")
            XCTAssertEqual(refused.code, .invalidStatus)
            XCTAssertEqual(refused.outcome, .hit)
            XCTAssertEqual(network.count, before + 1)
            clock.pass(seconds: 61)
            XCTAssertEqual(try get("/a", .use, change).outcome, .network)
        }
    }
}
