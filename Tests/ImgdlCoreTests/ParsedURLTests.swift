import XCTest

@testable import ImgdlCore

/// A URL whose text is inside it.
final class ParsedURLTests: XCTestCase {
    func testTextsOfAnyLengthComeBackAsTheyWere() {
        for length in 0..<200 {
            let text = String(repeating: "ä", count: length / 3) + String(repeating: "a", count: length)
            let url = ParsedURL(
                canonical: text, scheme: "app", host: "h", port: 1, user: nil, password: nil, redacted: text)
            XCTAssertEqual(url.canonical, text)
            XCTAssertEqual(url.redacted, text)
            XCTAssertEqual(Failure(.cancelled, "cancelled").message(about: url), text + ": cancelled")
        }
    }

    func testWhatIsLeftOutOfOneURLMakesItAnother() {
        func url(_ text: String, user: String? = nil, redacted: String? = nil, port: UInt16 = 1) -> ParsedURL {
            ParsedURL(
                canonical: text, scheme: "app", host: "h", port: port, user: user, password: nil,
                redacted: redacted ?? text)
        }
        let plain = url("app://h/a?b=c")
        XCTAssertEqual(plain, url("app://h/a?b=c"))
        XCTAssertEqual(plain.hash, url("app://h/a?b=c").hash)
        for other in [
            url("app://h/a?b=d"), url("app://h/a?b="), url("app://h/a?b=c", user: "u"), url("app://h/a?b=c", port: 2),
            url("app://h/a?b=c", redacted: "app://h/a?b=…"),
        ] {
            XCTAssertNotEqual(plain, other)
        }
        let signed = url("app://h/a?b=c", redacted: "app://h/a?b=…")
        XCTAssertEqual(signed.canonical, "app://h/a?b=c")
        XCTAssertEqual(Failure(.cancelled, "cancelled").message(about: signed), "app://h/a?b=…: cancelled")
    }
}
