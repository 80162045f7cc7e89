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

    /// A server's redirect may be long: each part of it is looked at once. Four times the length take four times as long, and
    /// not sixteen times.
    func testLongPathsAreReadOnce() {
        for part in ["/a", "//a", "//a:b@c", "//a:b", "/http:a", "/http://a:b", "/%40", "//@", "/http:", "/:", "//[a"] {
            for scheme in ["http://h", "http://http", "own:x"] {
                // Another guest of the machine may take time that counts as the thread's own: the least of some tries.
                let long = (0..<3).map { _ in redactionTime(scheme, part, 20_000) }.min() ?? .infinity
                let short = (0..<3).map { _ in redactionTime(scheme, part, 5_000) }.min() ?? 1
                XCTAssertLessThan(long / short, 8, "\(scheme) \(part)")
            }
        }
    }

    /// Of CPU, for a URL of so many bytes.
    private func redactionTime(_ scheme: String, _ part: String, _ length: Int) -> Double {
        let url = Array((scheme + String(repeating: part, count: length / part.utf8.count)).utf8)
        let begin = ThreadClock.now()
        let redacted = url.withUnsafeBufferPointer(UserRedaction.redacted)
        let time = ThreadClock.now() - begin
        XCTAssertLessThanOrEqual(redacted?.utf8.count ?? 0, url.count + 3, "\(scheme) \(part)")
        return Double(max(1, time))
    }
}
