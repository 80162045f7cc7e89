import XCTest

@testable import ImgdlCore

final class QueryRedactionTests: XCTestCase {
    func testValuesAreLeftOutAndNamesAreNot() {
        for (text, shown) in [
            ("", ""), ("http://h/p", "http://h/p"), ("http://h/a=b&c", "http://h/a=b&c"), ("http://h/?", "http://h/?"),
            ("http://h/?a=1&token=x", "http://h/?a=…&token=…"), ("http://h/?a=", "http://h/?a="),
            ("http://h/?token", "http://h/?…"), ("http://h/?&", "http://h/?&"), ("http://h/?a&&b", "http://h/?…&&…"),
            ("http://h/?a=b=c&=d", "http://h/?a=…&=…"), ("http://h/?a=b?c=d", "http://h/?a=…"),
            ("http://h/ä?ö=ü&ß", "http://h/ä?ö=…&…"), ("http://h/?a=\u{301}b", "http://h/?a=…"),
        ] {
            var text = text
            XCTAssertEqual(text.withUTF8(QueryRedaction.redacted), shown, text)
        }
    }

    /// However it is said what to leave out.
    func testURLsThatShowTheSameAreEqual() {
        func url(_ redacted: String?) -> ParsedURL {
            ParsedURL(
                canonical: "http://h/?a=b", scheme: "http", host: "h", port: 80, user: nil, password: nil,
                redacted: redacted)
        }
        XCTAssertEqual(url(nil).redacted, "http://h/?a=…")
        XCTAssertEqual(url(nil), url("http://h/?a=…"))
        XCTAssertNotEqual(url(nil), url("http://h/?…"))
        XCTAssertNotEqual(url(nil), url("http://h/?a=b"))
    }
}
