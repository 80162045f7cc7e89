import XCTest

@testable import ImgdlCore

/// docs/caching.md, "Stale answers": each case of the table, and with what it does not hold.
final class StaleAnswerTests: CacheTestCase {
    /// Ten seconds after it has outlived its freshness.
    private func decide(_ response: String, _ asked: String = "x", _ mode: CacheMode = .use) -> CacheDecision {
        decision(
            stored([("Cache-Control", "max-age=10" + response), ("ETag", "\"a\"")]),
            to: request([("Cache-Control", asked)], mode: mode), after: 20)
    }

    func testMaxStaleOfTheRequest() {
        for asked in ["max-stale", "max-stale=10", "max-stale, max-age=20"] {
            XCTAssertTrue(decide("", asked).isStaleAnswer, asked)
            for response in [", must-revalidate", ", no-cache"] {
                XCTAssertTrue(decide(response, asked).asksServer, asked + response)
            }
            XCTAssertTrue(decide("", asked, .refresh).asksServer, asked)
        }
        for asked in [
            "max-stale=9", "max-stale, no-cache", "max-stale, min-fresh=0", "max-stale, max-age=19",
        ] { XCTAssertTrue(decide("", asked).asksServer, asked) }
    }

    func testStaleWhileRevalidateOfTheResponse() {
        let window = ", stale-while-revalidate=11"
        XCTAssertNotNil(decide(window).revalidates)
        for response in [", stale-while-revalidate=10", window + ", must-revalidate", window + ", no-cache"] {
            XCTAssertTrue(decide(response).asksServer, response)
        }
        for asked in ["no-cache", "max-age=60", "min-fresh=0"] {
            XCTAssertTrue(decide(window, asked).asksServer, asked)
        }
        XCTAssertTrue(decide(window, "x", .refresh).asksServer)
    }

    /// Of a server that cannot be reached, or fails with stale-if-error.
    func testInPlaceOfAnError() {
        let bounded = StaleUse.onError(until: start + 60)
        for (response, expected) in [("", .whenUnreachable(until: .max)), (", stale-if-error=50", bounded)] {
            XCTAssertEqual(decide(response).stale, expected, response)
            for more in [", must-revalidate", ", no-cache"] {
                XCTAssertEqual(decide(response + more).stale, .never, response + more)
            }
            for asked in ["no-cache", "max-age=19", "min-fresh=0", "max-age=19, max-stale", "max-stale, min-fresh=0"] {
                XCTAssertEqual(decide(response, asked).stale, .never, response + asked)
            }
            XCTAssertEqual(decide(response, "x", .refresh).stale, .never, response)
        }
        XCTAssertEqual(decide("", "stale-if-error=50").stale, bounded, "of the request")
    }

    func testWhichFailuresSayThatAServerCannotBeReached() {
        let unreachable: [ErrorCode] = [
            .resolveFailed, .connectFailed, .connectionLost, .connectTimeout, .idleTimeout, .proxyFailed, .flood,
        ]
        for code in ErrorCode.allCases {
            XCTAssertEqual(CacheUse.isUnreachable(code), unreachable.contains(code), "\(code)")
        }
    }

    /// In place of an error a GET of the whole alone has what is stored.
    func testNotForAPartNorForConditions() {
        let stored = stored([("Cache-Control", "max-age=10"), ("ETag", "\"a\"")])
        let asked = [
            request(method: "HEAD"), request([("Range", "bytes=0-9")]), request([("If-None-Match", "\"b\"")]),
            request([("If-Modified-Since", date(0))]),
        ]
        for asked in asked {
            let decision = decision(stored, to: asked, after: 20)
            XCTAssertTrue(decision.asksServer, "\(asked.method) \(asked.fields)")
            XCTAssertNil(decision.stale, "\(asked.method) \(asked.fields)")
        }
    }

    /// Whatever is stored, fresh or stale, and whatever else is asked for.
    func testWhatNothingStoredAnswers() {
        for seconds: Int64 in [5, 20] {
            let stored = stored([("Cache-Control", "max-age=10, stale-while-revalidate=60"), ("ETag", "\"a\"")])
            for fields in [
                [("Cache-Control", "no-store, max-stale")], [("Cache-Control", "max-stale"), ("If-Match", "\"a\"")],
                [("Cache-Control", "max-stale"), ("If-Unmodified-Since", date(0))],
            ] {
                XCTAssertTrue(decision(stored, with: fields, after: seconds).asksServer, "\(fields)")
                let unasked = decision(stored, with: fields, mode: .only, after: seconds)
                XCTAssertFalse(unasked.isHit || unasked.isStaleAnswer || unasked.asksServer, "\(fields)")
            }
            let reload = decision(stored, with: [("Cache-Control", "max-stale")], mode: .reload, after: seconds)
            XCTAssertTrue(reload.asksServer)
            XCTAssertNil(reload.stale)
        }
    }

    /// Mode only takes whatever is there.
    func testModeOnly() {
        for response in ["", ", must-revalidate", ", no-cache", ", stale-if-error=1"] {
            for asked in ["x", "no-cache", "max-age=0", "min-fresh=60", "max-stale=1"] {
                XCTAssertTrue(decide(response, asked, .only).isStaleAnswer, response + asked)
            }
        }
    }
}
