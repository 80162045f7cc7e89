import XCTest

@testable import ImgdlCore

/// Numbers from outside are computed with, whatever they are: no result is wrong, and none traps.
final class CheckedNumberTests: XCTestCase {
    private let edges: [Int64] = [
        .min, .min + 1, -1 << 53, -2, -1, 0, 1, 2, 9, 1 << 31, 1 << 32, 1 << 53, .max / 2 + 1, .max - 1, .max,
    ]

    func testResultsAreExactOrNil() {
        for left in edges {
            for right in edges {
                let (a, b) = (CheckedNumber(left), CheckedNumber(right))
                let wide = (Int128(left), Int128(right))
                XCTAssertEqual(a + b, exactly(wide.0 + wide.1), "\(left) + \(right)")
                XCTAssertEqual(a - b, exactly(wide.0 - wide.1), "\(left) - \(right)")
                XCTAssertEqual(a * b, exactly(wide.0 * wide.1), "\(left) * \(right)")
                XCTAssertEqual(a < b, left < right)
            }
        }
    }

    private func exactly(_ value: Int128) -> CheckedNumber? { Int64(exactly: value).map { CheckedNumber($0) } }

    func testNilStaysNil() {
        let none = CheckedNumber(Int64.max) + 1
        XCTAssertNil(none)
        XCTAssertNil(none - CheckedNumber(Int64.max))
        XCTAssertNil(none * 0)
        XCTAssertNil(0 - none)
    }

    func testDigits() {
        for (text, value) in [
            ("0", 0), ("007", 7), ("9223372036854775807", .max), ("9223372036854775808", nil), ("", nil), ("-1", nil),
            ("+1", nil), (" 1", nil), ("1 ", nil), ("1e3", nil), ("0x1", nil), ("١", nil), ("1\u{301}", nil),
            ("99999999999999999999", nil), (String(repeating: "0", count: 1_000) + "5", 5),
            (String(repeating: "9", count: 1_000), nil),
        ] as [(String, Int64?)] {
            XCTAssertEqual(CheckedNumber(digits: text), value.map { CheckedNumber($0) }, text)
        }
    }

    func testBounds() {
        XCTAssertEqual(CheckedNumber(5).within(0..<6), 5)
        XCTAssertNil(CheckedNumber(6).within(0..<6))
        XCTAssertNil(CheckedNumber(0).within(0..<0))
        XCTAssertEqual(CheckedNumber(Int64.max).within(0...Int64.max), .max)
        XCTAssertNil(CheckedNumber(-1).within(0...Int64.max))
        XCTAssertEqual(CheckedNumber(Int64.max).clamped(to: 0...9), 9)
        XCTAssertEqual(CheckedNumber(Int64.min).clamped(to: 0...9), 0)
        XCTAssertNil(CheckedNumber(UInt64.max))
        XCTAssertEqual(CheckedNumber(UInt64(1) << 40), 1_099_511_627_776)
    }

    func testCountsHaveBounds() {
        for value in edges {
            for most in [Int.min, -1, 0, 1, 9, .max] {
                let expected = (0...Int64.max).contains(value) && value <= most ? Int(value) : nil
                XCTAssertEqual(CheckedNumber(value).count(upTo: most), expected, "\(value) up to \(most)")
            }
        }
    }

    func testMultiplesAboveAreExactOrNil() {
        for value in edges {
            for step in [.min, -1, 0, 1, 2, 3, 4, 1 << 32, .max] as [Int64] {
                let wide = (Int128(value), Int128(step))
                let beyond = step > 0 ? ((wide.0 % wide.1) + wide.1) % wide.1 : 0
                let expected = step > 0 ? exactly(beyond > 0 ? wide.0 - beyond + wide.1 : wide.0) : nil
                XCTAssertEqual(CheckedNumber(value).roundedUp(to: step), expected, "\(value) to \(step)")
            }
        }
    }

    func testBytes() {
        let bytes: [UInt8] = [0x81, 2, 3, 4, 5, 6, 7, 8, 0xFF]
        bytes.withUnsafeBytes { bytes in
            func big(_ offset: CheckedNumber?, _ count: Int) -> CheckedNumber? {
                CheckedNumber(bigEndian: bytes, at: offset, count: count)
            }
            func little(_ offset: CheckedNumber?, _ count: Int) -> CheckedNumber? {
                CheckedNumber(littleEndian: bytes, at: offset, count: count)
            }
            XCTAssertEqual(big(0, 1), 0x81)
            XCTAssertEqual(big(1, 3), 0x020304)
            XCTAssertEqual(little(1, 3), 0x040302)
            XCTAssertEqual(big(0, 4), 0x8102_0304)
            XCTAssertEqual(little(5, 4), 0xFF08_0706)
            XCTAssertEqual(big(1, 8), 0x0203_0405_0607_08FF)
            XCTAssertEqual(little(0, 8), 0x0807_0605_0403_0281)
            XCTAssertNil(big(0, 8), "above what 64 bits with a sign hold")
            XCTAssertNil(little(1, 8))
            for count in [Int.min, -1, 0, 9, .max] { XCTAssertNil(big(0, count), "\(count) bytes") }
            for offset in [.min, -1, 6, 9, .max] as [Int64] { XCTAssertNil(little(CheckedNumber(offset), 4)) }
            XCTAssertNil(big(nil, 1))
            let none = UnsafeRawBufferPointer(start: nil, count: 0)
            XCTAssertNil(CheckedNumber(bigEndian: none, at: 0, count: 1))
        }
    }
}
