import XCTest

@testable import ImgdlCore

final class PrintableTextTests: XCTestCase {
    func testWhatIsTooLongIsCutOff() {
        for (text, bytes, expected) in [
            ("abc", 3, "abc"), ("abcd", 3, "abc…"), ("aéb", 2, "a…"), ("aéb", 3, "aé…"), ("", 0, ""), ("é", 1, "…"),
            ("🙂", 3, "…"),
        ] {
            XCTAssertEqual(PrintableText.shortened(text, to: bytes), expected)
        }
        let long = testURL("https://a.example/" + String(repeating: "x", count: 70_000))
        let message = Failure(.internal, String(repeating: "y", count: 70_000)).message(about: long)
        XCTAssertLessThan(message.utf8.count, 4_096)
        XCTAssertTrue(message.hasPrefix("https://a.example/xxx"))
        XCTAssertTrue(message.hasSuffix("yyy…"))
        let other = testURL("https://b.example/" + String(repeating: "x", count: 70_000))
        let two = Failure(.internal, String(repeating: "y", count: 70_000)).message(about: long, redirectedTo: other)
        XCTAssertLessThan(two.utf8.count, 4_096)
        XCTAssertTrue(two.hasPrefix("https://a.example/xxx") && two.hasSuffix("yyy…"))
        XCTAssertTrue(two.contains("xxx…, redirected to https://b.example/xxx"))
    }

    func testControlCharactersAreEscaped() {
        let table: [(String, String)] = [
            ("", ""), ("the server answered 404", "the server answered 404"), ("ünï “…” 例え", "ünï “…” 例え"),
            ("a\r\nb", "a\\x0d\\x0ab"), ("\u{1b}[2J\u{7}\u{0}\u{7f}", "\\x1b[2J\\x07\\x00\\x7f"),
            ("\u{9b}2J", "\\u009b2J"), ("\u{202e}gpj\u{2066}", "\\u202egpj\\u2066"),
            ("a\u{2028}b\u{2029}", "a\\u2028b\\u2029"),
            ("\u{feff}\u{200e}\u{200f}\u{61c}", "\\ufeff\\u200e\\u200f\\u061c"),
            ("e\u{301}\u{1}", "e\u{301}\\x01"),
        ]
        for (text, escaped) in table {
            XCTAssertEqual(PrintableText.escaped(text), escaped)
            XCTAssertEqual(PrintableText.escaped(escaped), escaped)
        }
    }

    func testMessagesAreEscapedAndTheirURLsShownAsAskedFor() {
        let url = ParsedURL(
            canonical: "http://h/?a=b", scheme: "http", host: "h", port: 80, user: nil, password: nil,
            redacted: "http://h/?a=…")
        let failure = Failure(.protocolError, "it said “\u{1b}c”")
        XCTAssertEqual(failure.message(about: url), "http://h/?a=…: it said “\\x1bc”")
        XCTAssertEqual(failure.message(about: url, showsWholeURL: true), "http://h/?a=b: it said “\\x1bc”")
        let first = testURL("http://a.example/")
        XCTAssertEqual(
            failure.message(about: first, redirectedTo: url),
            "http://a.example/, redirected to http://h/?a=…: it said “\\x1bc”")
        XCTAssertEqual(
            failure.message(about: first, redirectedTo: url, showsWholeURL: true),
            "http://a.example/, redirected to http://h/?a=b: it said “\\x1bc”")
        XCTAssertEqual(failure.message(about: url, redirectedTo: url), failure.message(about: url))
    }
}
