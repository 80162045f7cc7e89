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
}
