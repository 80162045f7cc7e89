import XCTest

@testable import ImgdlCore

/// Features B14, I30.
final class RetryRulesTests: XCTestCase {
    func testWhatMayPass() {
        for code in ErrorCode.allCases where code != .invalidStatus {
            let isTransient = [
                .connectFailed, .connectionLost, .resolveFailed, .truncated, .connectTimeout, .idleTimeout,
            ].contains(code)
            XCTAssertEqual(RetryRules.isTransient(Failure(code, "")), isTransient, "\(code)")
        }
        for status: Int32 in 100...999 {
            let isTransient =
                [408, 429].contains(status) || ((500...599).contains(status) && ![501, 505].contains(status))
            XCTAssertEqual(
                RetryRules.isTransient(Failure(.invalidStatus, "", status: status)), isTransient, "\(status)")
        }
        XCTAssertFalse(RetryRules.isTransient(Failure(.invalidContentType, "", status: 503)))
    }

    func testWhatMayBeSentTwice() {
        for method in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"] { XCTAssertTrue(RetryRules.isIdempotent(method)) }
        for method in ["POST", "PATCH", "CONNECT", "get", ""] { XCTAssertFalse(RetryRules.isIdempotent(method)) }
    }

    func testWhatMayBeSentAgainUnasked() {
        let idempotent = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"]
        let others = ["POST", "PATCH", "LOOK", "get", ""]
        // Each method, over HTTP/1.1 and over HTTP/2.
        let table: [RetryRules.Loss: (idempotent: [Bool], others: [Bool])] = [
            .refused: ([true, true], [true, true]), .lost: ([true, true], [false, false]),
            .repeated: ([true, true], [false, true]),
        ]
        for loss in RetryRules.Loss.allCases {
            for (methods, may) in [(idempotent, table[loss]!.idempotent), (others, table[loss]!.others)] {
                for method in methods {
                    for (isHTTP2, may) in zip([false, true], may) {
                        func maySendAgain(hasAnswer: Bool) -> Bool {
                            RetryRules.maySendAgain(method, inHTTP2: isHTTP2, after: loss, hasAnswer: hasAnswer)
                        }
                        XCTAssertEqual(maySendAgain(hasAnswer: false), may, "\(method), \(loss), \(isHTTP2)")
                        XCTAssertFalse(maySendAgain(hasAnswer: true), "\(method), \(loss), \(isHTTP2)")
                    }
                }
            }
        }
    }

    func testTheLongestWaitDoublesUpToTheMaximum() {
        var policy = RetryPolicy()
        policy.base = 100
        policy.maximum = 700
        XCTAssertEqual((1...5).map { RetryRules.longestWait(policy, attempt: $0) }, [100, 200, 400, 700, 700])
        XCTAssertEqual(RetryRules.longestWait(policy, attempt: .max), 700)
        policy.base = .max
        policy.maximum = .max
        XCTAssertEqual(RetryRules.longestWait(policy, attempt: 2), .max)
        policy.base = 0
        XCTAssertEqual(RetryRules.longestWait(policy, attempt: 9), 0)
    }

    func testRetryAfter() {
        func after(_ value: String?, status: Int32 = 503, wallTime: Int64 = 784_111_770) -> Int64? {
            let fields = value.map { [HeaderField("retry-after", $0)] } ?? []
            let head = ResponseHead(
                status: status, httpVersion: 11, fields: fields, contentLength: nil, isEncoded: false)
            return RetryRules.retryAfter(head, wallTime: wallTime)
        }
        XCTAssertEqual(after("2"), 2_000)
        XCTAssertEqual(after("0"), 0)
        XCTAssertEqual(after("2", status: 429), 2_000)
        XCTAssertNil(after("2", status: 200))
        XCTAssertNil(after(nil))
        XCTAssertEqual(after("Sun, 06 Nov 1994 08:49:37 GMT"), 7_000)
        XCTAssertEqual(after("Sun, 06 Nov 1994 08:49:37 GMT", wallTime: 1_795_219_200), 0, "it is over")
        XCTAssertEqual(after("99999999999999999999"), .max)
        XCTAssertEqual(after("9223372036854775807"), .max)
        XCTAssertEqual(after("9223372036854775"), 9_223_372_036_854_775_000)
        XCTAssertEqual(after("9223372036854776"), .max, "milliseconds that have no room")
        XCTAssertEqual(after("Sun, 06 Nov 1994 08:49:37 GMT", wallTime: .max), 0)
        XCTAssertNil(after("Sun, 06 Nov 1994 08:49:37 GMT", wallTime: .min), "no clock")
        for value in ["", "-1", "+1", "1.5", "1 s", "soon", "٣"] { XCTAssertNil(after(value), value) }
    }

    func testTheGeneratorIsTheSameForOneSeed() {
        var (a, b, c) = (SmallGenerator(seed: 1), SmallGenerator(seed: 1), SmallGenerator(seed: 2))
        let values = (0..<8).map { _ in a.next() }
        XCTAssertEqual(values, (0..<8).map { _ in b.next() })
        XCTAssertNotEqual(values, (0..<8).map { _ in c.next() })
        XCTAssertEqual(Set(values).count, 8)
    }
}
