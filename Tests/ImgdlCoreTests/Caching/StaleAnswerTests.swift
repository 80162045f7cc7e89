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

    /// Mode only takes whatever is there.
    func testModeOnly() {
        for response in ["", ", must-revalidate", ", no-cache", ", stale-if-error=1"] {
            for asked in ["x", "no-cache", "max-age=0", "min-fresh=60", "max-stale=1"] {
                XCTAssertTrue(decide(response, asked, .only).isStaleAnswer, response + asked)
            }
        }
    }
}
