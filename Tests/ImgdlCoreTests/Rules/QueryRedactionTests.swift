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
            ("http://h/?u:p@i=a&b=c", "http://h/?…&b=…"), ("http://h/?a%40b=c", "http://h/?…"),
            ("http://h/?a=b@c&d%4=e", "http://h/?a=…&d%4=…"),
        ] {
            var text = text
            XCTAssertEqual(text.withUTF8(QueryRedaction.redacted), shown, text)
        }
    }
}
