import XCTest

@testable import ImgdlCore

/// What is known of URLs parsed before (features T06: a scheme that is registered or taken out counts at once).
final class ParsedURLCacheTests: XCTestCase {
    private func url(_ text: String) -> ParsedURL {
        ParsedURL(canonical: text, scheme: "app", host: "", port: 0, user: nil, password: nil, redacted: text)
    }

    func testARepeatedURLIsParsedOnce() throws {
        let cache = ParsedURLCache()
        _ = try cache.url("app:x") { url($0) }
        XCTAssertEqual(try cache.url("app:x") { _ in url("app:again") }.canonical, "app:x")
    }

    /// Swift takes them for equal, and to a server they are two files, two users or two hosts.
    func testURLsThatOnlyLookAlikeAreTwo() throws {
        for (one, other) in [("app:caf\u{E9}", "app:cafe\u{301}"), ("app://\u{212A}@h", "app://K@h")] {
            let cache = ParsedURLCache()
            XCTAssertEqual(one, other)
            _ = try cache.url(one) { url($0) }
            XCTAssertEqual(Array(try cache.url(other) { url($0) }.canonical.utf8), Array(other.utf8))
        }
    }

    func testTheLastOneIsKnownByItsBytesUntilItIsForgotten() throws {
        let cache = ParsedURLCache()
        func last(_ text: String) -> String? {
            Array(text.utf8).withUnsafeBufferPointer { cache.lastURL($0)?.canonical }
        }
        XCTAssertNil(last("app:x"))
        _ = try cache.url("app:x") { url($0) }
        _ = try cache.url("app:y") { url($0) }
        XCTAssertNil(last("app:x"))
        XCTAssertNil(last(""))
        XCTAssertEqual(last("app:y"), "app:y")
        _ = try cache.url("app:x") { url($0) }
        XCTAssertEqual(last("app:x"), "app:x")
        cache.forgetAll()
        XCTAssertNil(last("app:x"))
    }

    func testWhatIsForgottenIsParsedAgain() throws {
        let cache = ParsedURLCache()
        _ = try cache.url("app:x") { url($0) }
        cache.forgetAll()
        XCTAssertEqual(try cache.url("app:x") { _ in url("app:again") }.canonical, "app:again")
    }

    func testWhatWasBeingParsedMeanwhileIsNotKept() throws {
        let cache = ParsedURLCache()
        _ = try cache.url("app:x") { text in
            cache.forgetAll()
            return url(text)
        }
        XCTAssertEqual(try cache.url("app:x") { _ in url("app:again") }.canonical, "app:again")
    }

    /// One that is used all the time is parsed once, however many others come and go.
    func testWhatIsAskedForAgainIsNotParsedAgain() throws {
        let cache = ParsedURLCache()
        for number in 0..<3000 {
            XCTAssertEqual(try cache.url("app:x") { _ in url("app:x\(number)") }.canonical, "app:x0")
            _ = try cache.url("app:y\(number)") { url($0) }
        }
    }

    func testLongOnesAreNotKept() throws {
        let cache = ParsedURLCache()
        let long = "data:," + String(repeating: "x", count: 5000)
        _ = try cache.url(long) { url($0) }
        XCTAssertEqual(try cache.url(long) { _ in url("data:,again") }.canonical, "data:,again")
    }

    func testNamesOfSchemes() {
        XCTAssertEqual(SchemeName.canonical("Own+v1.0-x"), "own+v1.0-x")
        for text in ["", "1a", "+a", "a b", "a:", "ä", "a/b", String(repeating: "a", count: 41)] {
            XCTAssertNil(SchemeName.canonical(text), text)
        }
    }
}
