import XCTest

@testable import ImgdlTransport

/// Search in texts, in place of the standard library's own, which is not linked.
final class StringSearchTests: XCTestCase {
    private func found(_ text: String, _ wanted: String) -> String? {
        let range: Range<String.Index>? = text.firstRange(of: wanted)
        return range.map { "\(text[..<$0.lowerBound])|\(text[$0])|\(text[$0.upperBound...])" }
    }

    func testFirstRange() {
        XCTAssertEqual(found("http://a://b", "://"), "http|://|a://b")
        XCTAssertEqual(found("aab", "ab"), "a|ab|", "what begins like it is passed over")
        XCTAssertEqual(found("ab", "ab"), "|ab|")
        XCTAssertEqual(found("größe", "ö"), "gr|ö|ße")
        XCTAssertNil(found("ab", "abc"))
        XCTAssertNil(found("", "a"))
        XCTAssertNil(found("a", ""), "an empty text is nowhere")
    }

    func testReplacing() {
        func replaced(_ text: String, _ wanted: String, _ replacement: String) -> String {
            text.replacing(wanted, with: replacement)
        }
        XCTAssertEqual(replaced("%2e%2e/a", "%2e", "."), "../a")
        XCTAssertEqual(replaced("aaa", "aa", "b"), "ba", "what was replaced is not looked at again")
        XCTAssertEqual(replaced("x=secret&y=secret", "secret", "…"), "x=…&y=…")
        XCTAssertEqual(replaced("nothing", "secret", "…"), "nothing")
        XCTAssertEqual(replaced("all", "all", ""), "")
        XCTAssertEqual(replaced("all", "", "…"), "all")
        // Byte by byte: a character that goes on behind a secret does not hide it.
        XCTAssertEqual(replaced("secret\u{301}", "secret", "…"), "…\u{301}")
    }
}
