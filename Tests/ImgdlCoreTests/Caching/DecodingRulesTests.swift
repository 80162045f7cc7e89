import XCTest

@testable import ImgdlCore

/// What a decoder's failure says of the body that is stored.
final class DecodingRulesTests: CacheTestCase {
    private func consequence(
        _ code: ErrorCode, _ outcome: CacheOutcome = .network, hooks: HookKinds = [],
        _ change: (inout DecodeOptions) -> Void = { _ in }
    ) -> DecodingRules.Consequence {
        var options = DecodeOptions()
        change(&options)
        return DecodingRules.consequence(of: Failure(code, "no"), options, hooks, outcome: outcome)
    }

    func testVerdictsAboutTheBytes() {
        for code in [ErrorCode.badImageData, .truncated] {
            for outcome in [CacheOutcome.network, .hit, .stale] {
                XCTAssertEqual(consequence(code, outcome), .validate)
            }
            for outcome in [CacheOutcome.validated, .resumed] { XCTAssertEqual(consequence(code, outcome), .remove) }
        }
    }

    /// One request's limits, or this machine, spoil nothing for others.
    func testWhatIsAboutTheRequestAlone() {
        let codes: [ErrorCode] = [
            .pixelLimit, .frameLimit, .scanLimit, .sizeLimit, .animationLimit, .metadataLimit, .memoryLimit,
            .decodeTimeout, .outOfMemory, .cancelled, .bodyLimit,
        ]
        for code in codes { XCTAssertEqual(consequence(code), .none) }
        XCTAssertEqual(consequence(.badImageData, hooks: .transformBody), .none, "a hook made what was decoded")
        XCTAssertEqual(consequence(.badImageData, hooks: .modifyRequest), .validate)
        XCTAssertEqual(consequence(.badImageData) { $0.coder = 7 }, .none, "the request chose who decodes")
        XCTAssertEqual(consequence(.badImageData) { $0.requiresAnimation = true }, .none, "others take a still picture")
    }

    /// Neither fresh nor a stand-in, whatever would allow it; a program that asks for what is stored alone gets it.
    func testWhatCouldNotBeDecodedIsValidated() {
        var body = stored([
            ("Cache-Control", "max-age=60, stale-while-revalidate=99, stale-if-error=99"), ("ETag", "\"a\""),
        ])
        body?.isUndecodable = true
        let validated = CacheDecision.validate(
            index: 0, adding: [HeaderField("If-None-Match", "\"a\"")], stale: .never)
        XCTAssertEqual(decision(body, after: 1), validated)
        XCTAssertEqual(decision(body, after: 70), validated)
        XCTAssertEqual(decision(body, with: [("Cache-Control", "max-stale")], after: 1), validated)
        XCTAssertTrue(decision(body, to: request(mode: .only), after: 1).isStaleAnswer)
        XCTAssertEqual(decision(body, to: request(mode: .only, staleLimit: .never), after: 1), .unavailable)
        var unmarked = stored([("Cache-Control", "max-age=60")])
        unmarked?.isUndecodable = true
        XCTAssertEqual(decision(unmarked, after: 1), .forward(adding: [], stores: true))
    }

    func testOnlyTheServersWordForItsBodyMakesItGoodAgain() throws {
        var body = try XCTUnwrap(stored([("Cache-Control", "max-age=60"), ("ETag", "\"a\"")]))
        body.isUndecodable = true
        let confirmed = CacheRules.validated(
            body, by: response([("ETag", "\"a\"")], status: 304), for: request(), requestTime: start,
            responseTime: start)
        XCTAssertEqual(confirmed?.response.isUndecodable, false)
        let head = CacheRules.validated(
            body, by: response([("ETag", "\"a\"")]), for: request(), requestTime: start, responseTime: start)
        XCTAssertEqual(head?.response.isUndecodable, true, "a HEAD's answer is about no body")
    }
}
