import XCTest

@testable import ImgdlCore

/// RFC 9111 sections 3 and 3.1: which responses are stored, and what of them.
final class StoringTests: CacheTestCase {
    private let fresh = ("Cache-Control", "max-age=60")

    func testAPartOfACodedBodyIsNotStored() {
        var head = response([("Cache-Control", "max-age=60"), ("Content-Range", "bytes 4-9/10")], status: 206)
        let asked = request([("Range", "bytes=4-9")])
        XCTAssertNotNil(CacheRules.stored(asked, head, requestTime: start, responseTime: start))
        head.remainingCoding = "gzip"
        XCTAssertNil(CacheRules.stored(asked, head, requestTime: start, responseTime: start))
    }

    /// Section 3: "A cache MUST NOT store a response to a request unless: the request method is understood by the
    /// cache".
    func testAPartWithTwoRangesIsNotStored() {
        let fields = [("Cache-Control", "max-age=60"), ("Content-Range", "bytes 0-4/10")]
        let asked = request([("Range", "bytes=0-4")])
        XCTAssertNotNil(stored(fields, status: 206, to: asked, length: 5))
        for other in ["bytes 5-9/10", "bytes 0-4/10"] {
            XCTAssertNil(stored(fields + [("Content-Range", other)], status: 206, to: asked, length: 5), other)
        }
    }

    func testMethods() {
        for method in ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "M-SEARCH", "get"] {
            XCTAssertNil(stored([fresh], to: request(method: method)), method)
        }
        XCTAssertNotNil(stored([fresh]))
    }

    /// Section 3: "the response status code is final".
    func testStatusesThatAreNeverStored() {
        for status: Int32 in [100, 102, 103, 199, 206, 304, 401, 407, 412, 416] {
            XCTAssertNil(stored([("Cache-Control", "max-age=60, public")], status: status), "\(status)")
        }
        // RFC 6585: "Responses with the … status code MUST NOT be stored by a cache."
        for status: Int32 in [428, 429, 431, 511] {
            XCTAssertNil(stored([("Cache-Control", "max-age=60, public")], status: status), "\(status)")
        }
    }

    /// Section 3: "the response contains at least one of the following".
    func testWhatAllowsToStore() {
        for status: Int32 in [203, 204, 299, 301, 302, 303, 307, 308, 400, 404, 410, 499, 500, 502, 503, 504, 599] {
            for fields in [
                [fresh], [("Cache-Control", "public")], [("Cache-Control", "private")], [("Expires", date(9))],
                [("Cache-Control", "max-age=x")], [("Expires", "0")],
            ] {
                XCTAssertNotNil(stored(fields, status: status), "\(status) \(fields)")
            }
        }
        for status: Int32 in [201, 202, 299, 302, 303, 307, 400, 401, 403, 500, 502, 503, 504, 599] {
            XCTAssertNil(stored([("ETag", "\"a\""), ("Cache-Control", "s-maxage=60")], status: status), "\(status)")
        }
        XCTAssertNotNil(stored([]), "a 200 may always be stored")
        XCTAssertTrue(decision(stored([])).asksServer, "but is not fresh")
    }

    /// Section 3: "the no-store cache directive is not present in the response"; 5.2.2.5: "a cache MUST NOT store any
    /// part of either the immediate request or the response"; 5.2.1.5: of a request, "any response to it".
    func testNoStore() {
        for text in ["no-store", "No-StOrE", "max-age=10000, no-store", "public, no-store", "foo=\"x, no-store"] {
            XCTAssertNil(stored([("Cache-Control", text), ("Expires", date(9999))]), text)
        }
        XCTAssertNil(stored([fresh, ("Cache-Control", "no-store")]))
        XCTAssertNil(stored([fresh], to: request([("Cache-Control", "no-store")])))
        XCTAssertEqual(decision(with: [("Cache-Control", "no-store")]), .forward(adding: [], stores: false))
        XCTAssertEqual(
            decision(stored([fresh]), with: [("Cache-Control", "no-store")]), .forward(adding: [], stores: false))
    }

    /// 5.2.2.3: "A cache MUST NOT store a response containing the must-understand directive if it does not understand
    /// the status code", and "the cache SHOULD ignore the no-store directive" if it does.
    func testMustUnderstand() {
        let directives = ("Cache-Control", "max-age=60, no-store, must-understand")
        for status: Int32 in [200, 203, 204, 301, 302, 404, 410, 500, 503] {
            XCTAssertTrue(decision(stored([directives], status: status)).isHit, "\(status)")
        }
        for status: Int32 in [299, 499, 599, 418, 226] {
            XCTAssertNil(stored([directives], status: status), "\(status)")
            XCTAssertNil(stored([("Cache-Control", "max-age=60, must-understand")], status: status), "\(status)")
        }
    }

    func testModesAndTheDownloadersOwnSwitch() {
        XCTAssertNil(stored([fresh], to: request(mode: .off)))
        for mode in [CacheMode.use, .reload, .refresh] { XCTAssertNotNil(stored([fresh], to: request(mode: mode))) }
    }

    /// 3.1: "Caches MUST include all received response header fields — including unrecognized ones".
    func testAllFieldsAreStoredInTheirOrder() {
        let fields = [
            ("X-Unknown", "1"), ("Set-Cookie", "a=b"), ("Set-Cookie", "c=d"), ("Content-Encoding", "gzip"),
            ("Content-Range", "odd"), ("Content-Length", "5"), ("Date", date(0)), fresh, ("ETag", "\"x\""),
            ("Trailer", "X"),
        ]
        XCTAssertEqual(stored(fields)?.fields.lines, fields.map { "\($0.0): \($0.1)" })
    }

    /// 3.1: "The Connection header field and fields whose names are listed in it are required … to be removed"; "Header
    /// fields that are specific to the proxy that a cache uses when forwarding a request MUST NOT be stored".
    func testFieldsThatAreNotStored() {
        let kept = [fresh, ("Date", date(0)), ("C", "3")]
        let dropped = [
            ("Connection", "a, B"), ("connection", "close, x-hop"), ("A", "1"), ("b", "2"), ("X-Hop", "1"),
            ("Keep-Alive", "timeout=5"), ("Proxy-Authenticate", "Basic"), ("Proxy-Authentication-Info", "x"),
            ("Proxy-Authorization", "x"), ("Proxy-Connection", "close"), ("TE", "trailers"),
            ("Transfer-Encoding", "chunked"),
            ("Upgrade", "h2c"),
        ]
        XCTAssertEqual(stored(dropped + kept)?.fields.lines, kept.map { "\($0.0): \($0.1)" })
    }

    /// RFC 9110 section 6.6.1: "A recipient with a clock that receives a response message without a Date header field
    /// MUST record the time it was received and append a corresponding Date header field".
    func testADateIsAppended() {
        XCTAssertEqual(stored([fresh], at: 5)?.fields.lines, ["Cache-Control: max-age=60", "Date: \(date(5))"])
    }

    /// What another one's credentials fetched answers nobody else, unless the response is for all.
    func testCredentials() {
        let first = request([("Authorization", "Bearer one")])
        let second = request([("Authorization", "Bearer two")])
        let entry = stored([fresh], to: first)
        XCTAssertTrue(decision(entry, to: first).isHit, "a private cache may store it")
        let named = request(identity: RequestIdentity(credential: Credential(user: "u", password: "p")))
        for other in [second, request(), named, request(cookies: "a=b")] {
            XCTAssertEqual(decision(entry, to: other), .forward(adding: [], stores: true))
        }
        for directive in ["must-revalidate", "s-maxage=5", "private", "public, private"] {
            let own = stored([("Cache-Control", "max-age=60, \(directive)")], to: first)
            XCTAssertTrue(decision(own, to: first).isHit, directive)
            XCTAssertTrue(decision(own, to: second).asksServer, directive)
        }
        let shared = stored([("Cache-Control", "max-age=60, public")], to: first)
        for other in [first, second, request(), named, request(cookies: "a=b")] {
            XCTAssertTrue(decision(shared, to: other).isHit)
        }
        XCTAssertTrue(decision(stored([fresh]), to: first).asksServer, "nobody knows whether they get the same")
        XCTAssertFalse("\(String(describing: entry))".contains("one"), "the credential itself is not kept")
    }

    /// What anybody may have hands nobody's cookies on.
    func testCookiesOfOthers() {
        let setsCookie = ("Set-Cookie", "id=1")
        let shared = stored([("Cache-Control", "max-age=60, public"), setsCookie], to: request(cookies: "a=b"))
        XCTAssertNil(shared?.fields.first(named: "Set-Cookie"))
        let own = stored([fresh, setsCookie])
        XCTAssertEqual(own?.fields.first(named: "Set-Cookie"), "id=1")
    }

    func testCredentialsOfTheTransport() {
        func asked(_ user: String, _ password: String) -> CacheRequest {
            request(identity: RequestIdentity(credential: Credential(user: user, password: password)))
        }
        let entry = stored([fresh], to: asked("me", "secret"))
        XCTAssertTrue(decision(entry, to: asked("me", "secret")).isHit)
        for other in [asked("me", "other"), asked("you", "secret"), request()] {
            XCTAssertTrue(decision(entry, to: other).asksServer)
        }
        XCTAssertFalse("\(String(describing: entry))".contains("secret"))
        for name in ["Authorization", "Cookie"] {
            let varying = stored([("Cache-Control", "max-age=60, public"), ("Vary", name)], to: asked("me", "secret"))
            XCTAssertTrue(decision(varying, to: asked("me", "secret")).isHit)
            XCTAssertTrue(decision(varying, to: asked("you", "secret")).asksServer, "for all, but it varies")
        }
    }

    /// A redirect that was followed answers only those who follow it: nobody received its body.
    func testRedirects() {
        let moved = [fresh, ("Location", "/there")]
        for status: Int32 in [301, 302, 303, 307, 308] {
            let followed = stored(moved, status: status)
            XCTAssertEqual(followed?.extent, .headAlone)
            XCTAssertTrue(decision(followed).isHit)
            XCTAssertTrue(decision(followed, to: request(followsRedirects: false)).asksServer)
            let shown = stored(moved, status: status, to: request(followsRedirects: false))
            XCTAssertEqual(shown?.extent, .whole)
            XCTAssertTrue(decision(shown).isHit && decision(shown, to: request(followsRedirects: false)).isHit)
        }
        XCTAssertEqual(stored([fresh], status: 302)?.extent, .whole, "without Location nothing is followed")
        XCTAssertEqual(stored(moved, status: 201)?.extent, .whole)
    }

    /// 3.3: "A cache MUST NOT use an incomplete response to answer requests".
    func testAnIncompleteResponseAnswersNothing() {
        var part = stored([fresh])
        part?.extent = .beginning(total: 200)
        XCTAssertTrue(decision(part).asksServer)
        XCTAssertTrue(decision(part, with: [("Range", "bytes=0-10")]).asksServer)
        XCTAssertTrue(decision(part, to: request(method: "HEAD")).asksServer)
        XCTAssertEqual(decision(part, to: request(mode: .only)), .unavailable)
    }
}
