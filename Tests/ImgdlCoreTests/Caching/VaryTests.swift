import XCTest

@testable import ImgdlCore

/// RFC 9111 section 4.1: the secondary key.
final class VaryTests: CacheTestCase {
    private func answers(_ vary: [String], _ first: Fields, _ second: Fields) -> Bool {
        let fields = [("Cache-Control", "max-age=60")] + vary.map { ("Vary", $0) }
        return decision(stored(fields, to: request(first)), with: second).isHit
    }

    /// "the cache MUST NOT use that stored response without revalidation unless all the presented request header fields
    /// nominated by that Vary field value match those fields in the original request".
    func testMatching() {
        let three = [("Foo", "1"), ("Bar", "abc"), ("Baz", "789")]
        XCTAssertTrue(answers(["Foo"], [("Foo", "1")], [("foo", "1")]))
        XCTAssertTrue(answers(["FOO"], [("Foo", "1"), ("Referer", "2")], [("Foo", "1"), ("Referer", "3")]))
        XCTAssertFalse(answers(["Foo"], [("Foo", "1")], [("Foo", "2")]))
        XCTAssertFalse(answers(["Foo"], [("Foo", "a")], [("Foo", "A")]), "nothing is known about its case")
        XCTAssertFalse(answers(["Referer"], [("Referer", "\u{E9}")], [("Referer", "e\u{301}")]), "other bytes")
        for vary in [["Foo, Bar, Baz"], ["Foo", "Bar,Baz"], [" foo ,, BAR\t", "", "baz, Foo"]] {
            XCTAssertTrue(answers(vary, three, three.reversed()))
            XCTAssertFalse(answers(vary, three, [("Foo", "1"), ("Baz", "789"), ("Bar", "abcde")]))
            XCTAssertFalse(answers(vary, three, []))
            XCTAssertTrue(answers(vary, [("Foo", "1"), ("Baz", "7")], [("Foo", "1"), ("Baz", "7")]))
        }
        XCTAssertTrue(answers([""], [("Accept", "1")], []))
        XCTAssertFalse(answers([""], [("Foo", "1")], []), "nobody knows what a server makes of it")
    }

    /// "If … a header field is absent from a request, it can only match another request if it is also absent there."
    func testAbsence() {
        XCTAssertFalse(answers(["Foo"], [], [("Foo", "1")]))
        XCTAssertFalse(answers(["Foo"], [("Foo", "1")], []))
        XCTAssertFalse(answers(["Foo"], [("Foo", "")], []))
        XCTAssertTrue(answers(["Foo"], [], []))
    }

    /// "A stored response with a Vary header field value containing a member "*" always fails to match." What is no
    /// field name cannot be compared either.
    func testStar() {
        for vary in [
            ["*"], ["*, *"], ["*", "*"], [", *"], ["", "*"], ["*, Foo"], ["Foo, *"], ["Foo bar"], ["ü"], ["a;b"],
        ] {
            XCTAssertFalse(answers(vary, [("Foo", "1")], [("Foo", "1")]), "\(vary)")
        }
    }

    /// "adding or removing whitespace, where allowed …; combining multiple header field lines with the same field name;
    /// normalizing both header field values in a way that is known to have identical semantics".
    func testNormalization() {
        for (first, second) in [
            (["1, 2"], ["1", "2"]), (["1,2"], [" 1, 2 "]), (["1,\t2"], ["1 ,2,"]), (["\"a, b\""], [" \"a, b\""]),
        ] {
            let (old, new) = (first.map { ("Accept", $0) }, second.map { ("Accept", $0) })
            XCTAssertTrue(answers(["Accept"], old, new), "\(first) \(second)")
        }
        for (first, second) in [("1, 2", "2, 1"), ("\"a, b\"", "\"a,b\""), ("1 2", "12"), ("1,2", "12")] {
            XCTAssertFalse(answers(["Accept"], [("Accept", first)], [("Accept", second)]), "\(first) \(second)")
        }
        for name in ["Accept-Language", "Accept-Encoding", "Accept-Charset"] {
            for (first, second) in [
                ("en, de", "de, en"), ("en, de", "eN, De"), ("en, de", " en ,   de"), ("en;q=0.5,de", "de, en ; q=0.5"),
            ] {
                XCTAssertTrue(answers([name], [(name, first)], [(name, second)]), "\(name) \(first) \(second)")
            }
            XCTAssertFalse(answers([name], [(name, "en, de;q=0.5")], [(name, "en;q=0.5, de")]))
        }
    }

    /// Nobody knows whether a comma parts members or belongs to a key: such fields are the same as they are written.
    func testWhatNobodyKnowsCountsAsItIsWritten() {
        for (first, second) in [
            (["a, b"], ["a,,b"]), (["k=1,2"], ["k=1,,2"]), (["a,b"], ["a, b"]), (["a", "b"], ["a, b"]),
            (["a", "b"], ["b", "a"]), (["a,"], ["a"]), ([","], [""]), (["a, b"], ["a b"]),
        ] {
            for vary in [[], ["Foo"]] {
                let (old, new) = (first.map { ("Foo", $0) }, second.map { ("Foo", $0) })
                XCTAssertFalse(answers(vary, old, new), "\(first) \(second)")
                XCTAssertTrue(answers(vary, old, old))
                XCTAssertTrue(answers(vary, new, new))
            }
        }
    }

    /// What a transport makes of a jar is compared, too.
    func testCookies() {
        let fields = [("Cache-Control", "max-age=60, public"), ("Vary", "Cookie, Accept")]
        let entry = stored(fields, to: request(cookies: "a=b"))
        XCTAssertTrue(decision(entry, to: request(cookies: "a=b")).isHit)
        XCTAssertTrue(decision(entry, to: request(cookies: "a=c")).asksServer)
        XCTAssertTrue(decision(entry).asksServer)
        // The transport's Accept-Encoding is always the same; one that a caller sets is not.
        let encoded = stored([("Cache-Control", "max-age=60"), ("Vary", "Accept-Encoding")])
        XCTAssertTrue(decision(encoded).isHit)
        XCTAssertTrue(decision(encoded, with: [("Accept-Encoding", "identity")]).asksServer)
    }

    func testSecretsAreComparedButNotKept() {
        for name in [
            "Cookie", "Authorization", "Proxy-Authorization", "X-Api-Key", "X-Token", "Host", "Origin", "Foo",
        ] {
            let fields = [("Cache-Control", "max-age=60"), ("Vary", name)]
            let entry = stored(fields, to: request([(name, "sesame")]))
            XCTAssertTrue(decision(entry, with: [(name, "sesame")]).isHit)
            XCTAssertTrue(decision(entry, with: [(name, "Sesame")]).asksServer)
            XCTAssertFalse("\(entry?.varying ?? [])".contains("sesame"))
        }
    }

    func testTheChoiceDoesNotDependOnTheOrderInWhichTheyLie() {
        let asked = request([("Accept", "1")]), vary = ("Vary", "Accept")
        let stale = stored([("Cache-Control", "max-age=1"), ("Date", date(-50)), vary], to: asked)
        let fresh = stored([("Cache-Control", "max-age=600"), ("Date", date(0))])
        let older = stored([("Cache-Control", "max-age=600"), ("Date", date(-99)), vary], to: asked)
        for order in [[stale, fresh, older], [fresh, older, stale], [older, stale, fresh], [fresh, stale, older]] {
            let chosen = decision(order[0], order[1], order[2], to: asked).index
            XCTAssertEqual(chosen, order.firstIndex(of: fresh))
        }
    }

    /// Section 4: "When more than one suitable response is stored, a cache MUST use the most recent one (as determined
    /// by the Date header field)."
    func testTheMostRecentIsUsed() {
        func entry(_ age: Int64, _ fields: Fields = []) -> StoredResponse? {
            stored([("Cache-Control", "max-age=600"), ("Date", date(-age))] + fields)
        }
        XCTAssertEqual(decision(entry(5), entry(3), entry(4)).index, 1)
        XCTAssertEqual(decision(entry(3), entry(3)).index, 0)
        let unmatched = stored([("Cache-Control", "max-age=600"), ("Vary", "Foo")], to: request([("Foo", "1")]))
        XCTAssertEqual(decision(unmatched, entry(9)).index, 1)
        let stale = stored([("Cache-Control", "max-age=1"), ("Date", date(-2)), ("ETag", "\"b\"")])
        XCTAssertEqual(decision(entry(9), stale).index, 1, "the most recent one, though another is fresh")
    }

    /// "When a cache has multiple stored responses for a target URI and one or more omits the Vary header field, the
    /// cache SHOULD choose the most recent … stored response with a valid Vary field value."
    func testOneWithoutVaryComesLast() {
        let fresh = ("Cache-Control", "max-age=600")
        let varying = stored([fresh, ("Date", date(-50)), ("Vary", "Accept")], to: request([("Accept", "1")]))
        let omitting = stored([fresh, ("Date", date(0))])
        XCTAssertEqual(decision(omitting, varying, with: [("Accept", "1")]).index, 1)
        XCTAssertEqual(decision(varying, omitting, with: [("Accept", "1")]).index, 0)
        XCTAssertEqual(decision(varying, omitting, with: [("Accept", "2")]).index, 1)
    }

    /// Each request would go to the server, and nothing of what comes would ever be used.
    func testAFreshOneWithoutVaryComesBeforeAStaleOlderOne() {
        let vary = ("Vary", "Accept")
        let stale = stored([("Cache-Control", "max-age=1"), ("Date", date(-50)), vary], to: request([("Accept", "1")]))
        let fresh = stored([("Cache-Control", "max-age=600"), ("Date", date(0))])
        XCTAssertEqual(decision(stale, fresh, with: [("Accept", "1")]).index, 1)
        XCTAssertEqual(decision(fresh, stale, with: [("Accept", "1")]).index, 0)
        let older = stored([("Cache-Control", "max-age=600"), ("Date", date(-99))])
        XCTAssertEqual(decision(older, stale, with: [("Accept", "1")]).index, 1)
    }

    /// Section 4: "When more than one suitable response is stored, a cache MUST use the most recent one".
    func testAPartHasNoVary() {
        let fresh = ("Cache-Control", "max-age=600")
        let fields = [fresh, ("Date", date(-50)), ("Content-Range", "bytes 0-9/100")]
        let part = stored(fields, status: 206, to: request([("Range", "bytes=0-9")]), length: 10)
        XCTAssertNotNil(part)
        let whole = stored([fresh, ("Date", date(0))])
        for asked in ["bytes=0-4", "bytes=0-9"] {
            XCTAssertEqual(decision(part, whole, with: [("Range", asked)]).index, 1)
            XCTAssertEqual(decision(whole, part, with: [("Range", asked)]).index, 0)
        }
        let newer = stored(
            [fresh, ("Date", date(9)), fields[2]], status: 206, to: request([("Range", "bytes=0-9")]), length: 10)
        XCTAssertEqual(decision(whole, newer, with: [("Range", "bytes=0-4")]).index, 1)
    }
}
