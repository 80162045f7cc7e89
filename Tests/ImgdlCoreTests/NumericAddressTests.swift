import XCTest

@testable import ImgdlCore

/// The address among what is measured of a transfer (features B24).
final class NumericAddressTests: XCTestCase {
    func testKeepsItsText() {
        for text in ["127.0.0.1", "::1", "2001:db8:85a3:8d3:1319:8a2e:255.255.255.255"] {
            let address = text.withCString { NumericAddress($0) }
            XCTAssertEqual(address.text, text)
            XCTAssertFalse(address.isEmpty)
            XCTAssertEqual(address, NumericAddress(stringLiteral: text))
            XCTAssertNotEqual(address, "192.0.2.1")
        }
        XCTAssertTrue(NumericAddress().isEmpty)
        XCTAssertEqual(NumericAddress(), "")
    }

    func testOfALongerTextItKeepsTheBeginning() {
        let text = String(repeating: "1234567890", count: 6)
        XCTAssertEqual(NumericAddress(stringLiteral: text).text, String(text.prefix(47)))
    }
}
