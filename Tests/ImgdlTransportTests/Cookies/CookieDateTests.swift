import XCTest

@testable import ImgdlTransport

/// RFC 6265bis section 5.1.1: dates as servers write them.
final class CookieDateTests: XCTestCase {
    private func seconds(_ text: String) -> Int64? { CookieDate.seconds(Array(text.utf8)[...]) }

    func testDates() {
        let table: [(String, Int64?)] = [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("06 nov 1994 08:49:37", 784_111_777),
            ("1994 NOVEMBER 6 8:49:37", 784_111_777),
            ("08:49:37 94 Nov 6", nil),
            ("08:49:37 6 94 Nov", 784_111_777),
            ("Sun, 06 Nov 1994 08:49:37 PST", 784_111_777),
            ("Sun,06_Nov;94\t08:49:37", 784_111_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Wed, 31 Dec 69 23:59:59", 3_155_759_999),
            ("Thu, 01 Jan 70 00:00:00", 0),
            ("01 Jan 1601 00:00:00", -11_644_473_600),
            ("31 Dec 1600 23:59:59", nil),
            ("31 Dec 9999 23:59:59", 253_402_300_799),
            ("29 Feb 2024 00:00:00", 1_709_164_800),
            ("29 Feb 2023 00:00:00", nil),
            ("31 Apr 2023 00:00:00", nil),
            ("00 Jan 2023 00:00:00", nil),
            ("32 Jan 2023 00:00:00", nil),
            ("06 Nov 1994 24:00:00", nil),
            ("06 Nov 1994 23:60:00", nil),
            ("06 Nov 1994 23:59:60", nil),
            ("06 Nov 1994 08:49", nil),
            ("06 Nov 1994 08:49:037", nil),
            ("06 Nov 08:49:37", nil),
            ("06 1994 08:49:37", nil),
            ("06 Nov 994 08:49:37", nil),
            ("06 Nov 19940 08:49:37", nil),
            ("06th November 1994AD 08:49:37Z", 784_111_777),
            ("99999999999999999999 06 Nov 99999999999999999999 1994 08:49:37", 784_111_777),
            ("99999999999999999999:99999999999999999999:99999999999999999999", nil),
            ("", nil), ("-1", nil), ("0", nil), (";;;", nil), ("\u{FF}", nil),
        ]
        for (text, expected) in table { XCTAssertEqual(seconds(text), expected, text) }
    }
}
