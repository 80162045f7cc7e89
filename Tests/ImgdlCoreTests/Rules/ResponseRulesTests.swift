import XCTest

@testable import ImgdlCore

final class ResponseRulesTests: XCTestCase {
    private func failure(
        _ status: Int32, _ fields: [HeaderField] = []
    ) -> Failure? {
        let request = TransferRequest(
            url: testURL("https://a.example/1"), fields: fields)
        return ResponseRules.refusal(status: status, mediaType: "", SubscriberOptions(), request: request)
    }

    func testSuccess() {
        for status: Int32 in [200, 201, 203, 204, 206, 299] { XCTAssertNil(failure(status)) }
    }

    func testFailures() {
        XCTAssertEqual(failure(404), Failure(.invalidStatus, "the server answered 404 (not found)", status: 404))
        XCTAssertEqual(failure(599), Failure(.invalidStatus, "the server answered 599", status: 599))
        for status: Int32 in [0, 199, 300, 304, 400, 401, 403, 410, 416, 429, 500, 502, 503, 504, 999] {
            XCTAssertEqual(failure(status)?.code, .invalidStatus, "\(status)")
            XCTAssertEqual(failure(status)?.status, status)
        }
    }

    func testBasicThatIsWithheldIsNamed() {
        func withholds(
            _ challenges: String..., url: String = "http://a.example/1", status: Int32 = 401, allows: Bool = false,
            own: [HeaderField] = []
        ) -> Bool {
            let request = TransferRequest(
                url: testURL(url), fields: own, identity: RequestIdentity(allowsBasicOverHTTP: allows))
            let head = ResponseHead(
                status: status, httpVersion: 11, fields: challenges.map { HeaderField("www-authenticate", $0) },
                contentLength: nil, isEncoded: false)
            return ResponseRules.withholdsBasic(head, asked: testURL(url), request: request)
        }
        XCTAssertTrue(withholds("Basic realm=\"a, Digest\""))
        XCTAssertTrue(withholds("Negotiate, basic"))
        XCTAssertTrue(withholds("NTLM", "BASIC realm=x"))
        XCTAssertFalse(withholds("Basic realm=x, Digest realm=y, nonce=z"), "Digest is answered")
        XCTAssertFalse(withholds("Bearer"))
        XCTAssertFalse(withholds("Basic realm=x", url: "https://a.example/1"))
        XCTAssertFalse(withholds("Basic realm=x", status: 403))
        XCTAssertFalse(withholds("Basic realm=x", allows: true))
        XCTAssertFalse(withholds("Basic realm=x", own: [HeaderField("authorization", "Basic eDp5")]))
        let failure = ResponseRules.refusal(
            status: 401, mediaType: "", withholdsBasic: true, SubscriberOptions(),
            request: TransferRequest(url: testURL("http://a.example/1")))
        XCTAssertEqual(failure?.code, .invalidStatus)
        XCTAssertTrue(failure?.message.contains("BASIC_OVER_HTTP") == true)
    }

    /// Features B18, D8.
    func testNotModifiedIsTheAnswerToAValidator() {
        XCTAssertEqual(failure(304, [HeaderField("if-none-match", "\"1\"")])?.code, .notModified)
        XCTAssertEqual(failure(304, [HeaderField("If-Modified-Since", "today")])?.code, .notModified)
        XCTAssertEqual(failure(304, [HeaderField("If-Match", "\"1\"")])?.code, .invalidStatus)
        XCTAssertNil(failure(200, [HeaderField("If-None-Match", "\"1\"")]))
    }

    func testARedirectThatIsNotFollowedIsAnAnswerToWhoDoesNotDecode() {
        func accepts(_ status: Int32, follows: Bool = false, _ change: (inout SubscriberOptions) -> Void) -> Bool {
            var options = SubscriberOptions()
            change(&options)
            let request = TransferRequest(url: testURL("https://a.example/1"), followsRedirects: follows)
            return ResponseRules.accepts(status, options, request: request)
        }
        for status: Int32 in [301, 302, 303, 307, 308] {
            XCTAssertTrue(accepts(status) { $0.decode = nil })
            XCTAssertFalse(accepts(status) { _ in }, "an empty picture would say less than the status")
            let forPicture = accepts(status) {
                $0.decode = nil
                $0.isForPicture = true
            }
            XCTAssertFalse(forPicture, "what nobody decodes now is a picture for somebody later")
            XCTAssertFalse(accepts(status, follows: true) { $0.decode = nil })
        }
        XCTAssertFalse(accepts(404) { $0.decode = nil })
        XCTAssertTrue(accepts(404) { $0.acceptsAnyStatus = true })
    }

    /// Features I17.
    func testExpectedBytes() {
        func expected(_ length: Int64?, isEncoded: Bool) -> Int64 {
            ResponseRules.expectedBytes(
                ResponseHead(status: 200, httpVersion: 11, fields: [], contentLength: length, isEncoded: isEncoded))
        }
        XCTAssertEqual(expected(5, isEncoded: false), 5)
        XCTAssertEqual(expected(0, isEncoded: false), 0)
        XCTAssertEqual(expected(nil, isEncoded: false), -1)
        XCTAssertEqual(expected(5, isEncoded: true), -1)
    }

    func testAnEncodedBodyHasALimitOfItsOwn() {
        XCTAssertEqual(ResponseRules.encodedAllowance(0), 65536)
        XCTAssertEqual(ResponseRules.encodedAllowance(1 << 20), 1_048_576 + 131_072 + 65536)
        XCTAssertEqual(ResponseRules.encodedAllowance(.max), .max)
        XCTAssertEqual(
            ResponseRules.bodyLimit(9, encoded: 70_000),
            Failure(
                .bodyLimit,
                "the encoded body is larger (70000 bytes have come), the limit is 9 bytes, 65546 as it is encoded"))
    }

    func testTheBodyLimitSaysWhatWasHit() {
        XCTAssertEqual(
            ResponseRules.bodyLimit(9, announced: 10),
            Failure(.bodyLimit, "the server announces 10 bytes, the limit is 9 bytes"))
        XCTAssertEqual(
            ResponseRules.bodyLimit(9, announced: 5_000, isStored: true),
            Failure(.bodyLimit, "what is stored has 5000 bytes, the limit is 9 bytes"))
        XCTAssertEqual(
            ResponseRules.bodyLimit(9, announced: nil),
            Failure(.bodyLimit, "the body is larger, the limit is 9 bytes"))
    }
}
