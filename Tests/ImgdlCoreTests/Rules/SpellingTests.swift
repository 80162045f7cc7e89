import XCTest

@testable import ImgdlCore

/// Requests that say the same in the same security context share what runs and what failed, however they are spelled.
final class SpellingTests: XCTestCase {
    private typealias Pair = (name: String, one: TransferRequest, other: TransferRequest)

    private func request(
        _ fields: [(String, String)] = [], user: String? = nil, identity: RequestIdentity = RequestIdentity()
    ) -> TransferRequest {
        TransferRequest(
            url: testURL("https://a.example/a", user: user), fields: fields.map { HeaderField($0.0, $0.1) },
            identity: identity)
    }

    private func request(trusting change: (inout TLSOptions) -> Void) -> TransferRequest {
        var tls = TLSOptions()
        change(&tls)
        return request(identity: RequestIdentity(trust: RequestTrust(tls: tls)))
    }

    /// As a file is read for one request, and then for the next.
    private func contents() -> FileContents {
        FileContents(taking: .allocate(byteCount: 1, alignment: 1), count: 1, digest: [1])
    }

    private var equal: [Pair] {
        let user = RequestIdentity(credential: Credential(user: "u", password: ""))
        return [
            ("the order of names", request([("Accept", "a"), ("X", "1")]), request([("X", "1"), ("Accept", "a")])),
            ("the order of the caller's own", request([("X", "1"), ("Y", "1")]), request([("Y", "1"), ("X", "1")])),
            ("letters of a name", request([("ACCEPT", "a")]), request([("Accept", "a")])),
            ("letters of the caller's own", request([("x-KEY", "1")]), request([("X-Key", "1")])),
            ("letters of Authorization", request([("authorization", "1")]), request([("Authorization", "1")])),
            ("letters of Cookie", request([("cookie", "a=1")]), request([("Cookie", "a=1")])),
            ("the order of Cookie", request([("Cookie", "a"), ("X", "1")]), request([("X", "1"), ("Cookie", "a")])),
            (
                "lines of one name apart", request([("X", "1"), ("X", "2"), ("Y", "1")]),
                request([("X", "1"), ("Y", "1"), ("X", "2")])
            ),
            ("a user in the URL", request(user: "u", identity: user), request(identity: user)),
            (
                "the file read twice", request { $0.certificate = contents() }, request { $0.certificate = contents() }
            ),
        ]
    }

    private var different: [Pair] {
        [
            ("the order of lines", request([("X", "1"), ("X", "2")]), request([("X", "2"), ("X", "1")])),
            ("lines of Accept", request([("Accept", "a"), ("Accept", "b")]), request([("Accept", "a, b")])),
            ("spaces of a value", request([("X", "1,2")]), request([("X", "1, 2")])),
            ("spaces of Accept", request([("Accept", "a,b")]), request([("Accept", "a, b")])),
            ("User-Agent", request([("User-Agent", "a")]), request([("User-Agent", "b")])),
            ("X-Request-ID", request([("X-Request-ID", "a")]), request()),
            ("Range", request([("Range", "bytes=1-")]), request()),
            ("a value's letters", request([("X-Key", "a")]), request([("X-Key", "A")])),
            ("a user", request(identity: RequestIdentity(credential: Credential(user: "", password: ""))), request()),
            ("method", request(), TransferRequest(url: testURL("https://a.example/a"), method: "HEAD")),
            ("another URL", request(), TransferRequest(url: testURL("https://a.example/A"))),
            ("redirects", request(), TransferRequest(url: testURL("https://a.example/a"), followsRedirects: false)),
            ("downgrade", request(), TransferRequest(url: testURL("https://a.example/a"), allowsDowngrade: true)),
        ]
    }

    func testEqualOnesShareATransfer() {
        for pair in equal {
            var play = Play()
            let one = play.submit(pair.one)
            XCTAssertEqual(play.submit(pair.other).transfer, one.transfer, pair.name)
            XCTAssertEqual(play.takeStarts().count, 1, pair.name)
        }
    }

    func testOthersDoNot() {
        for pair in different {
            var play = Play()
            let one = play.submit(pair.one)
            XCTAssertNotEqual(play.submit(pair.other).transfer, one.transfer, pair.name)
            XCTAssertEqual(play.takeStarts().count, 2, pair.name)
        }
    }

    private func isAskedAgain(_ pair: Pair) -> Bool {
        var play = Play { $0.failureLifetime = 1_000 }
        let one = play.submit(pair.one)
        play.failed(one.transfer, Failure(.tlsCertificate, "expired"))
        play.skip()
        _ = play.submit(pair.other)
        return play.takeStarts().count == 1
    }

    func testEqualOnesShareAFailure() { for pair in equal { XCTAssertFalse(isAskedAgain(pair), pair.name) } }

    func testOthersAreAsked() { for pair in different { XCTAssertTrue(isAskedAgain(pair), pair.name) } }

    /// What may come of an answer, beside what is asked for.
    func testWhatIsToBecomeOfTheAnswerIsCompared() {
        let url = testURL("https://a.example/a")
        let others = [
            TransferRequest(url: url, cacheMode: .use),
            TransferRequest(url: url, staleLimit: StaleLimit(seconds: 1)),
            TransferRequest(url: url, hooks: SilentHooks(.modifyRequest)),
            TransferRequest(url: url, identity: RequestIdentity(usesCookies: true)),
        ]
        for other in others { XCTAssertNotEqual(other, TransferRequest(url: url)) }
    }

    /// The jar has its say at each redirect and each attempt, and besides what the caller has given.
    func testTheJarIsComparedAsLongAsATransferRuns() {
        let jar = RequestIdentity(usesCookies: true)
        func asked(_ own: [(String, String)], _ line: String) -> TransferRequest {
            request(own, identity: jar).asked(with: Array("Cookie: \(line)".utf8))
        }
        XCTAssertEqual(asked([], "a=1"), asked([], "a=1"))
        XCTAssertEqual(asked([("cookie", "b=1")], "b=1; a=1"), asked([("Cookie", "b=1")], "b=1; a=1"))
        XCTAssertNotEqual(asked([], "a=1"), asked([], "a=2"))
        XCTAssertNotEqual(asked([], "a=1"), request([("Cookie", "a=1")]))
        XCTAssertNotEqual(asked([], "b=1; a=1"), asked([("Cookie", "b=1")], "b=1; a=1"))
    }
}
