import XCTest

@testable import ImgdlCore

/// How stale an answer may be, whatever allows it: one bound for all of them.
final class StaleLimitTests: CacheTestCase {
    private func cached(_ control: String) -> StoredResponse? {
        stored([("Cache-Control", control), ("ETag", "\"a\"")])
    }

    private func decide(
        _ control: String, _ limit: StaleLimit, with asked: String = "x", mode: CacheMode = .use, after seconds: Int64
    ) -> CacheDecision {
        decision(
            cached(control), to: request([("Cache-Control", asked)], mode: mode, staleLimit: limit), after: seconds)
    }

    /// Ten seconds fresh, then ten more as the limit says.
    func testItBoundsWhatAnswersAtOnce() {
        let limit = StaleLimit(seconds: 10)
        let cases: [(control: String, asked: String, mode: CacheMode)] = [
            ("max-age=10", "max-stale", .use), ("max-age=10", "max-stale=99", .use),
            ("max-age=10, stale-while-revalidate=99", "x", .use), ("max-age=10", "x", .only),
            ("max-age=10, must-revalidate", "x", .only), ("max-age=10", "only-if-cached, max-stale", .use),
        ]
        for (control, asked, mode) in cases {
            for seconds: Int64 in [10, 20] {
                let allowed = decide(control, limit, with: asked, mode: mode, after: seconds)
                guard case .answer(_, _, .stale, _) = allowed else { return XCTFail("\(asked) \(seconds)") }
            }
            for (limit, seconds) in [(limit, 21), (.never, 10), (StaleLimit(seconds: 0), 11)] as [(StaleLimit, Int64)] {
                let refused = decide(control, limit, with: asked, mode: mode, after: seconds)
                XCTAssertTrue(refused.asksServer || refused == .unavailable, "\(control) \(asked) \(mode)")
            }
            XCTAssertTrue(
                decide(control, .never, with: asked, mode: mode, after: 9).isHit, "what is fresh is not stale")
        }
    }

    func testTheNarrowerOfTwoBoundsHolds() {
        XCTAssertTrue(decide("max-age=10", StaleLimit(seconds: 99), with: "max-stale=5", after: 16).asksServer)
        let refused = decide("max-age=10, stale-while-revalidate=5", StaleLimit(seconds: 99), after: 15)
        XCTAssertTrue(refused.asksServer)
    }

    func testItBoundsWhatStandsIn() {
        let limit = StaleLimit(seconds: 10)
        XCTAssertEqual(decide("max-age=10", limit, after: 15).stale, .whenUnreachable(until: start + 20))
        XCTAssertEqual(decide("max-age=10", limit, after: 20).stale, .whenUnreachable(until: start + 20))
        XCTAssertEqual(decide("max-age=10", limit, after: 21).stale, .never)
        XCTAssertEqual(decide("max-age=10", .never, after: 10).stale, .never)
        XCTAssertEqual(decide("max-age=10, stale-if-error=99", limit, after: 15).stale, .onError(until: start + 20))
        XCTAssertEqual(decide("max-age=10, stale-if-error=5", limit, after: 15).stale, .onError(until: start + 15))
        XCTAssertEqual(decide("max-age=10, stale-if-error=99", limit, after: 21).stale, .never)
        XCTAssertEqual(decide("max-age=10, stale-if-error=99", .never, after: 15).stale, .never)
    }

    /// What is to be validated before each use is stale from the moment on that it was made.
    func testNoCacheIsStaleAtOnce() {
        for seconds: Int64 in [0, 5] {
            let only = decide("max-age=10, no-cache", StaleLimit(seconds: 5), mode: .only, after: seconds)
            XCTAssertTrue(only.isStaleAnswer)
            XCTAssertEqual(decide("max-age=10, no-cache", .never, mode: .only, after: seconds), .unavailable)
        }
        XCTAssertEqual(decide("max-age=10, no-cache", StaleLimit(seconds: 5), mode: .only, after: 6), .unavailable)
    }

    /// Numbers from outside, at the ends of what there is.
    func testNumbersWithoutRoom() {
        for limit in [StaleLimit(seconds: .max), StaleLimit(seconds: .max - 1), StaleLimit(seconds: -1), .none, .never]
        {
            for time: Int64 in [.min, -1, 0, .max] {
                for staleness: Int64 in [0, 1, .max] {
                    if limit.allows(staleness) { XCTAssertGreaterThanOrEqual(limit.end(staleness, time), time) }
                }
            }
        }
        XCTAssertTrue(StaleLimit.none.allows(.max))
        XCTAssertFalse(StaleLimit.never.allows(0))
        XCTAssertTrue(StaleLimit(seconds: 0).allows(0))
    }
}
