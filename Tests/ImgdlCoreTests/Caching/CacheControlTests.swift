import XCTest

@testable import ImgdlCore

/// RFC 9111 sections 1.2.2, 5.2 and 5.2.3; RFC 9110 sections 5.6.1 to 5.6.4.
final class CacheControlTests: XCTestCase {
    private func control(_ lines: String...) -> CacheControl {
        CacheControl(lines.map { HeaderField("cache-control", $0) })
    }

    func testSeconds() {
        for (text, expected) in [
            ("max-age=3600", .of(3600)), ("MaX-aGe=3600", .of(3600)), ("max-age=003600", .of(3600)),
            ("max-age=0", .of(0)),
            // "recipients ought to accept both forms" (5.2).
            ("max-age=\"3600\"", .of(3600)), ("max-age=\"36\\00\"", .of(3600)),
            // "the cache MUST consider the value to be 2147483648 (2^31)" (1.2.2).
            ("max-age=2147483647", .of(2_147_483_647)), ("max-age=2147483648", .of(1 << 31)),
            ("max-age=99999999999", .of(1 << 31)), ("max-age=99999999999999999999999999", .of(1 << 31)),
            ("", .absent), ("foobar", .absent), (",,;,", .absent), ("x-max-age=1", .absent), ("max-agent=1", .absent),
            // "invalid freshness information" (4.2.1).
            ("max-age", .invalid), ("max-age=", .invalid), ("max-age=-1", .invalid), ("max-age=a1", .invalid),
            ("max-age=1a", .invalid), ("max-age=3600.0", .invalid), ("max-age='3600'", .invalid),
            ("max-age= 1", .invalid),
            ("max-age =1", .invalid), ("max-age=\"1", .invalid), ("max-age=\"\"", .invalid), ("max-age=1;x", .invalid),
            ("max-age=1 2", .invalid), ("max-age=\" 1\"", .invalid), ("max-age=\"1\"x", .invalid),
            // "When there is more than one value present for a given directive" (4.2.1).
            ("max-age=1, max-age=1", .of(1)), ("max-age=1, max-age=2", .invalid), ("max-age=2, max-age=1", .invalid),
            ("max-age=2, max-age=x", .invalid), ("max-age=x, max-age=2", .invalid),
        ] as [(String, CacheControl.Seconds)] {
            XCTAssertEqual(control(text).maxAge, expected, text)
        }
        XCTAssertEqual(control("max-age=1", "max-age=2").maxAge, .invalid, "several lines are one list")
    }

    /// Section 5.2: "Cache directives are identified by a token, to be compared case-insensitively, and have an
    /// optional argument". Section 5.2.3: "A cache MUST ignore unrecognized cache directives."
    func testListsAndUnknownDirectives() {
        let odd = control(" ,, No-Store\t,foo=bar, x=\"a, max-age=9, \\\" immutable\" , max-age=5 ,must-revalidate,, ")
        XCTAssertTrue(odd.noStore && odd.mustRevalidate)
        XCTAssertFalse(odd.immutable, "it is within a quoted string")
        XCTAssertEqual(odd.maxAge, .of(5))
        for text in ["extension=\"max-age=100\", max-age=1", "max-age=1, extension=\"max-age=100\""] {
            XCTAssertEqual(control(text).maxAge, .of(1), text)
        }
        XCTAssertTrue(control("x=\"never ends, no-store").noStore, "an open quote hides nothing")
        XCTAssertTrue(control("&&&, =, \"no-cache\", ü=1, no-store").noStore)
        XCTAssertFalse(control("\"no-cache\"").noCache)
        XCTAssertTrue(control("no-store=x").noStore, "an argument where none is defined")
        XCTAssertTrue(control("must-revalidate;x").mustRevalidate)
        XCTAssertFalse(CacheControl([]).isPresent)
        XCTAssertTrue(control("").isPresent)
    }

    func testEveryDirective() {
        let all = control(
            "max-stale=1, min-fresh=2, stale-while-revalidate=3, stale-if-error=4, no-cache, must-understand, public,"
                + " private, immutable, only-if-cached, s-maxage=5, proxy-revalidate, no-transform")
        XCTAssertEqual([all.maxStale, all.minFresh], [.of(1), .of(2)])
        XCTAssertEqual([all.staleWhileRevalidate, all.staleIfError], [.of(3), .of(4)])
        XCTAssertTrue(all.noCache && all.mustUnderstand && all.isPublic && all.isPrivate && all.immutable)
        XCTAssertTrue(all.onlyIfCached)
        XCTAssertEqual(all.maxAge, .absent)
        XCTAssertEqual(control("max-stale").maxStale, .of(1 << 31), "5.2.1.2: a stale response of any age")
    }

    /// Section 5.2.2.4: "Field names are case-insensitive."
    func testNoCacheWithNames() {
        XCTAssertEqual(control("no-cache=\"Set-Cookie, B\"").noCacheFields, ["set-cookie", "b"])
        XCTAssertEqual(control("no-cache=A", "no-cache=\"b\"").noCacheFields, ["a", "b"])
        XCTAssertFalse(control("no-cache=\"a\"").noCache)
        for text in ["no-cache", "no-cache=", "no-cache=\"\"", "no-cache=\"a b\"", "no-cache=\"a, ü\"", "no-cache =a"] {
            XCTAssertTrue(control(text).noCache, text)
        }
        let both = control("no-cache=\"a\", no-cache")
        XCTAssertTrue(both.noCache, "the more restrictive one counts")
    }

    /// It may be part of the string: what opens a response to others has to be beyond doubt, what closes it has not.
    func testPublicBesideAStringThatNeverEnds() {
        for value in ["max-age=9, x=\"a, public", "public, x=\"a", "x=\"a, public, y=b"] {
            var control = CacheControl()
            control.add(value)
            XCTAssertFalse(control.isForAll, value)
        }
        var control = CacheControl()
        control.add("x=\"a, no-store, private")
        XCTAssertTrue(control.noStore && control.isPrivate)
        for values in [
            ["max-age=9, x=\"a", "public", "b\""], ["max-age=9, x=\"a", "public"], ["public", "max-age=9, x=\"a"],
        ] {
            control = CacheControl()
            for value in values { control.add(value) }
            XCTAssertFalse(control.isForAll, "\(values) are one list")
        }
    }

    /// It has none.
    func testPublicWithAnArgument() {
        for value in ["public;x", "public=1", "public=\"x\"", "public x"] {
            var control = CacheControl()
            control.add(value)
            XCTAssertFalse(control.isForAll, value)
        }
    }
}
