import XCTest

@testable import ImgdlCore

/// RFC 9110 section 15.4; features B17, I23, I24.
final class RedirectRulesTests: XCTestCase {
    private let first = testURL("https://a.example/1")

    private func decide(
        _ status: Int32, to location: Result<ParsedURL, Failure>?, hops: [ParsedURL]? = nil, method: String = "GET",
        sendsBody: Bool = false, latestCookie: Int? = nil, maximum: Int = 10, allowsDowngrade: Bool = false
    ) -> RedirectRules.Decision {
        RedirectRules.decide(
            status: status, location: location, hops: hops ?? [first], method: method, sendsBody: sendsBody,
            latestCookie: latestCookie, maximum: maximum, allowsDowngrade: allowsDowngrade)
    }

    private func refusal(_ decision: RedirectRules.Decision) -> Failure? {
        guard case .refuse(let failure) = decision else { return nil }
        return failure
    }

    func testWhatIsNoRedirect() {
        for status: Int32 in [200, 204, 206, 300, 304, 305, 306, 309, 400, 404, 500] {
            XCTAssertFalse(RedirectRules.isRedirect(status))
            XCTAssertEqual(decide(status, to: .success(testURL("https://a.example/2"))), .none)
        }
    }

    func testWhichMethodFollows() {
        let target = testURL("https://a.example/2")
        let table: [(status: Int32, method: String, next: String, keepsBody: Bool)] = [
            (301, "GET", "GET", true), (302, "GET", "GET", true), (303, "GET", "GET", true),
            (307, "GET", "GET", true), (308, "GET", "GET", true),
            (301, "HEAD", "HEAD", true), (302, "HEAD", "HEAD", true), (303, "HEAD", "HEAD", true),
            (307, "HEAD", "HEAD", true), (308, "HEAD", "HEAD", true),
            (301, "POST", "GET", false), (302, "POST", "GET", false), (303, "POST", "GET", false),
            (307, "POST", "POST", true), (308, "POST", "POST", true),
            (301, "PUT", "PUT", true), (302, "PUT", "PUT", true), (303, "PUT", "GET", false),
            (307, "PUT", "PUT", true), (308, "PUT", "PUT", true),
            (301, "DELETE", "DELETE", true), (303, "DELETE", "GET", false), (308, "DELETE", "DELETE", true),
        ]
        for (status, method, next, keepsBody) in table {
            for sendsBody in [true, false] {
                XCTAssertEqual(
                    decide(status, to: .success(target), method: method, sendsBody: sendsBody),
                    .follow(
                        Redirect(url: target, method: next, sendsBody: sendsBody && keepsBody, leavesOrigin: false)),
                    "\(status) \(method)")
            }
        }
    }

    func testLeavingTheOrigin() {
        let table: [(String, Bool)] = [
            ("https://a.example/2", false), ("https://a.example:443/2", false), ("https://b.example/1", true),
            ("https://a.example:444/1", true), ("https://sub.a.example/1", true),
        ]
        for (target, leaves) in table {
            guard case .follow(let redirect) = decide(302, to: .success(testURL(target))) else {
                XCTFail(target)
                continue
            }
            XCTAssertEqual(redirect.leavesOrigin, leaves, target)
        }
        let up = testURL("https://a.example/1")
        guard case .follow(let upgrade) = decide(301, to: .success(up), hops: [testURL("http://a.example/1")]) else {
            return XCTFail("http to https is followed")
        }
        XCTAssertTrue(upgrade.leavesOrigin, "another scheme is another origin")
    }

    /// B chose what is asked of A then, and would ask it in the caller's name.
    func testAnOriginThatWasLeftStaysLeft() {
        let table: [([String], String, Bool)] = [
            (["https://a.example/1", "https://a.example/2"], "https://a.example/3", false),
            (["https://a.example/1", "https://b.example/2"], "https://a.example/3", true),
            (["https://a.example/1", "https://b.example/2", "https://a.example/3"], "https://a.example/4", true),
            (["https://a.example/1", "https://a.example/2", "https://b.example/"], "https://a.example/4", true),
            (["http://a.example/1", "https://a.example/2"], "https://a.example/3", true),
            (["https://a.example/1", "https://a.example:444/2"], "https://a.example/3", true),
        ]
        for (hops, target, leaves) in table {
            let asked = hops.map { testURL($0) }
            guard case .follow(let redirect) = decide(302, to: .success(testURL(target)), hops: asked)
            else {
                XCTFail("\(hops) \(target)")
                continue
            }
            XCTAssertEqual(redirect.leavesOrigin, leaves, "\(hops) \(target)")
        }
    }

    func testTheLimit() {
        let hops = (1...3).map { testURL("https://a.example/\($0)") }
        let next = testURL("https://a.example/4")
        XCTAssertEqual(
            decide(302, to: .success(next), hops: hops, maximum: 3),
            .follow(Redirect(url: next, method: "GET", sendsBody: false, leavesOrigin: false)), "the third of three")
        XCTAssertEqual(
            decide(302, to: .success(next), hops: hops, maximum: 2),
            .refuse(
                Failure(
                    .tooManyRedirects, "more than 2 redirects: the next would lead to \(next.redacted)", status: 302)),
            "the third of two")
    }

    func testLoops() {
        XCTAssertEqual(
            decide(302, to: .success(first)),
            .refuse(
                Failure(
                    .tooManyRedirects, "a redirect loop: https://a.example/1 leads back to itself", status: 302)))
        let second = testURL("https://a.example/2")
        XCTAssertEqual(refusal(decide(301, to: .success(first), hops: [first, second]))?.code, .tooManyRedirects)
        XCTAssertEqual(
            decide(303, to: .success(first), method: "POST", sendsBody: true),
            .follow(Redirect(url: first, method: "GET", sendsBody: false, leavesOrigin: false)),
            "the result of a POST at the same address is no loop")
    }

    /// The same address with another cookie is another question.
    func testACookieMakesALoopAnotherRequest() {
        let hops = ["1", "2", "1", "3"].map { testURL("https://a.example/\($0)") }
        for (count, target, latestCookie, follows) in [
            (1, "1", nil, false), (1, "1", 0, true), (2, "1", 0, true), (2, "1", 1, true), (2, "2", 0, false),
            (2, "2", 1, true), (3, "1", 0, false), (3, "1", 1, false), (3, "1", 2, true), (4, "1", 3, true),
            (4, "2", 0, false), (4, "2", 2, true), (4, "3", 2, false), (4, "3", 3, true),
        ] as [(Int, String, Int?, Bool)] {
            let decision = decide(
                302, to: .success(testURL("https://a.example/\(target)")), hops: Array(hops.prefix(count)),
                latestCookie: latestCookie)
            let code = follows ? nil : ErrorCode.tooManyRedirects
            XCTAssertEqual(refusal(decision)?.code, code, "\(count) \(target) \(String(describing: latestCookie))")
        }
        XCTAssertEqual(
            refusal(decide(302, to: .success(first), hops: [first, first], latestCookie: 1, maximum: 1)),
            Failure(
                .tooManyRedirects, "more than 1 redirect: the next would lead to \(first.redacted)", status: 302),
            "a cookie each time")
    }

    /// Features T32: a server must not choose from what the host loads.
    func testNoOtherSchemeIsATarget() {
        for text in ["file:///etc/passwd", "data:,x", "app://h/x"] {
            let scheme = String(text.prefix { $0 != ":" })
            let target = ParsedURL(
                canonical: text, scheme: scheme, host: "", port: 0, user: nil, password: nil)
            XCTAssertEqual(refusal(decide(302, to: .success(target)))?.code, .redirectRefused, text)
        }
    }

    func testDowngrade() {
        let target = testURL("http://a.example/2?token=secret")
        let refused = refusal(decide(301, to: .success(target)))
        XCTAssertEqual(refused?.code, .redirectRefused)
        XCTAssertEqual(refused?.status, 301)
        XCTAssertFalse(refused?.message.contains("secret") ?? true)
        XCTAssertEqual(
            decide(301, to: .success(target), allowsDowngrade: true),
            .follow(Redirect(url: target, method: "GET", sendsBody: false, leavesOrigin: true)))
        guard case .follow = decide(301, to: .success(target), hops: [testURL("http://a.example/1")]) else {
            return XCTFail("http to http is no downgrade")
        }
        XCTAssertEqual(
            refusal(decide(301, to: .success(target), hops: [testURL("http://c.example/"), first]))?.code,
            .redirectRefused, "what counts is the hop that redirects")
    }

    func testNoUsableLocation() {
        XCTAssertEqual(
            decide(302, to: nil),
            .refuse(Failure(.redirectRefused, "the server answered 302 without a Location", status: 302)))
        XCTAssertEqual(
            decide(302, to: .failure(Failure(.invalidURL, "no host"))),
            .refuse(
                Failure(
                    .redirectRefused, "a redirect is not followed: its Location is malformed: no host", status: 302)))
        XCTAssertEqual(
            decide(302, to: .failure(Failure(.unsupportedScheme, "“ftp” is neither http nor https"))),
            .refuse(
                Failure(
                    .redirectRefused, "a redirect is not followed: “ftp” is neither http nor https", status: 302)))
    }
}

/// What the next hop is sent.
final class RedirectRequestTests: XCTestCase {
    private let fields = [
        HeaderField("Accept", "image/*"), HeaderField("authorization", "Basic secret"), HeaderField("Cookie", "c"),
        HeaderField("HOST", "h"), HeaderField("Proxy-Authorization", "p"), HeaderField("Content-Type", "text/plain"),
        HeaderField("Proxy_Authorization", "p"),
    ]

    private func next(_ redirect: Redirect, user: String? = nil, tls: TLSOptions = TLSOptions()) -> TransportRequest {
        var first = TransportRequest(
            url: testURL("https://a.example/1"), method: "POST", fields: fields, body: [1, 2, 3],
            maximumHeaderBytes: 77,
            identity: RequestIdentity(credential: user.map { Credential(user: $0, password: "") }, usesCookies: true))
        first.identity.trust.tls = tls
        return RedirectRules.request(for: redirect, of: first)
    }

    func testTheSameOriginSeesEverything() {
        let target = testURL("https://a.example/2")
        let request = next(Redirect(url: target, method: "POST", sendsBody: true, leavesOrigin: false), user: "u")
        XCTAssertEqual(request.fields, fields)
        XCTAssertEqual(request.body, [1, 2, 3])
        XCTAssertEqual(request.method, "POST")
        XCTAssertEqual(request.url.canonical, target.canonical)
        XCTAssertEqual(request.credential?.user, "u", "the credential of the first goes along")
        XCTAssertTrue(request.usesCookies)
        XCTAssertEqual(request.maximumHeaderBytes, 77)
    }

    func testAnotherOriginSeesNoSecret() {
        let target = testURL("https://b.example/2")
        let request = next(Redirect(url: target, method: "POST", sendsBody: true, leavesOrigin: true), user: "u")
        XCTAssertEqual(request.fields.map(\.name), ["Accept", "Content-Type"])
        XCTAssertNil(request.credential)
    }

    /// Nor that somebody has a certificate; whom the caller trusts stays.
    func testAnotherOriginSeesNoClientCertificate() {
        func contents(_ digest: UInt8) -> FileContents {
            FileContents(taking: .allocate(byteCount: 1, alignment: 1), count: 0, digest: [digest])
        }
        var tls = TLSOptions()
        tls.certificateAuthorities = "/authorities"
        tls.pinnedPublicKey = "sha256//A"
        tls.authorities = contents(1)
        var own = tls
        own.clientCertificate = "/certificate"
        own.clientKey = "/key"
        own.clientKeyPassword = "secret"
        own.certificate = contents(2)
        own.key = contents(3)
        for (target, leaves, expected) in [("https://a.example/2", false, own), ("https://b.example/2", true, tls)] {
            let redirect = Redirect(url: testURL(target), method: "GET", sendsBody: false, leavesOrigin: leaves)
            XCTAssertEqual(next(redirect, tls: own).tls, expected, target)
        }
    }

    func testWithoutABodyNothingIsSaidAboutOne() {
        let target = testURL("https://a.example/2", user: "v")
        let request = next(Redirect(url: target, method: "GET", sendsBody: false, leavesOrigin: false), user: "u")
        XCTAssertNil(request.body)
        XCTAssertFalse(request.fields.contains { $0.name == "Content-Type" })
        XCTAssertEqual(request.credential?.user, "v", "the Location's own user wins")
    }
}
