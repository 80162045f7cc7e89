import XCTest

@testable import ImgdlCore

/// RFC 9110 section 5.6.7: three formats, and nothing else.
final class HTTPDateTests: XCTestCase {
    private let example: Int64 = 784_111_777
    /// 2026-11-21.
    private let wallTime: Int64 = 1_795_219_200

    private func seconds(_ text: String) -> Int64? { HTTPDate.seconds(text, wallTime: wallTime) }

    func testTheThreeFormats() {
        XCTAssertEqual(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), example)
        XCTAssertEqual(seconds("Sunday, 06-Nov-94 08:49:37 GMT"), example)
        XCTAssertEqual(seconds("Sun Nov  6 08:49:37 1994"), example)
        XCTAssertEqual(seconds(" \tSun, 06 Nov 1994 08:49:37 GMT "), example, "space around a value is not part of it")
    }

    func testTheCalendar() {
        for (text, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
            ("Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_800), ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799), ("Mon, 01 Jan 0001 00:00:00 GMT", -62_135_596_800),
            ("Tue, 19 Jan 2038 03:14:08 GMT", 2_147_483_648),
        ] as [(String, Int64)] {
            XCTAssertEqual(seconds(text), expected, text)
        }
        XCTAssertEqual(seconds("Sat, 31 Dec 2016 23:59:60 GMT"), 1_483_228_799, "a leap second")
        XCTAssertEqual(seconds("Mon Nov 16 08:49:37 2026"), 1_794_818_977)
        XCTAssertEqual(seconds("Mon, 06 Nov 1994 08:49:37 GMT"), 784_111_777, "the weekday says nothing more")
    }

    /// A year of two digits that seems to be more than 50 years ahead is in the past.
    func testYearsOfTwoDigits() {
        XCTAssertEqual(seconds("Saturday, 21-Nov-26 00:00:00 GMT"), wallTime)
        XCTAssertEqual(seconds("Sunday, 01-Nov-76 00:00:00 GMT"), 3_371_414_400)
        XCTAssertEqual(seconds("Tuesday, 01-Nov-77 00:00:00 GMT"), 247_190_400)
        XCTAssertEqual(
            HTTPDate.seconds("Wednesday, 01-Jan-10 00:00:00 GMT", wallTime: 4_070_908_800), 4_417_977_600,
            "near the end of a century the next one is meant")
    }

    /// A clock that was never set, and times that somebody made up: two digits are a year of 1970 and after.
    func testYearsByAnyClock() {
        for (clock, expected) in [
            (Int64.min, 784_111_777), (-1, 784_111_777), (0, 784_111_777), (1 << 40, 253239727777),
            (Int64.max, 253239727777),
        ] as [(Int64, Int64)] {
            let date = HTTPDate.seconds("Sunday, 06-Nov-94 08:49:37 GMT", wallTime: clock)
            XCTAssertEqual(date, expected, "\(clock)")
        }
    }

    func testWhatIsNoDate() {
        for text in [
            "", " ", "0", "now", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 gmt", "sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT",
            "Xxx, 06 Nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT", "Sun,06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
            "Mon, 31 Nov 1994 08:49:37 GMT", "Wed, 29 Feb 2023 00:00:00 GMT", "Mon, 29 Feb 1900 00:00:00 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT+1", "Sun, 06 Nov 1994 08:49:37 GMT x", "Sun, 06-Nov-94 08:49:37 GMT",
            "Sunday, 06 Nov 1994 08:49:37 GMT", "Sun Nov 6 08:49:37 1994", "Sun Nov 06 08:49:37 94",
            "Sat, 01 Jan 0000 00:00:00 GMT", "1994-11-06T08:49:37Z", "+Sun, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov ١٩٩٤ 08:49:37 GMT",
        ] {
            XCTAssertNil(seconds(text), text)
        }
    }

    func testAnyPrefixAndAnyChangedByteIsHandled() {
        let date = Array("Sun, 06 Nov 1994 08:49:37 GMT".utf8)
        for length in date.indices {
            XCTAssertNil(seconds(String(decoding: date.prefix(length), as: UTF8.self)), "\(length)")
            for byte: UInt8 in [0, 0x20, 0x39, 0x41, 0x7A, 0xFF] where byte != date[length] {
                var changed = date
                changed[length] = byte
                _ = seconds(String(decoding: changed, as: UTF8.self))
            }
        }
    }
}
