import XCTest

@testable import ImgdlCore

final class HeaderRulesTests: XCTestCase {
    func testTokens() {
        for token in ["a", "X-Request-Id", "!#$%&'*+-.^_`|~09AZaz", "GET"] {
            XCTAssertTrue(HeaderRules.isToken(token), token)
        }
        for text in ["", " ", "a b", "a:", "a\r\nb", "a\u{0}", "naïve", "(a)", "a/b", "\"a\"", "a\u{7F}", "a\t"] {
            XCTAssertFalse(HeaderRules.isToken(text), text)
        }
    }

    func testEveryByteOfAToken() {
        let separators = Set("\"(),/:;<=>?@[\\]{} ".unicodeScalars.map(\.value))
        for value in UInt32(0)...127 {
            let isToken = value > 0x20 && value < 0x7F && !separators.contains(value)
            XCTAssertEqual(HeaderRules.isToken(String(Unicode.Scalar(value)!)), isToken, "\(value)")
        }
    }

    func testValues() {
        for value in ["", "a", " a ", "a\tb", "image/*;q=0.8, */*", "ünïcode", "a: b"] {
            XCTAssertTrue(HeaderRules.isValue(value), value)
        }
        for value in ["a\r\nSet-Cookie: x", "a\n", "\r", "\u{0}", "a\u{1}", "\u{7F}"] {
            XCTAssertFalse(HeaderRules.isValue(value), value.debugDescription)
        }
    }

    func testARefusalNamesTheFieldButNotItsValue() {
        XCTAssertThrowsError(try HeaderRules.check(HeaderField("Authorization", "Bearer secret\r\nX: y"))) { error in
            let failure = error as! Failure
            XCTAssertEqual(failure.code, .invalidHeader)
            XCTAssertTrue(failure.message.contains("Authorization"))
            XCTAssertFalse(failure.message.contains("secret"))
        }
        XCTAssertThrowsError(try HeaderRules.check(HeaderField("X\r\nY", "z"))) { error in
            let failure = error as! Failure
            XCTAssertEqual(failure.code, .invalidHeader)
            XCTAssertFalse(failure.message.utf8.contains { $0 < 0x20 })
        }
        XCTAssertNoThrow(try HeaderRules.check(HeaderField("Accept", "image/*")))
    }

    func testMethods() {
        XCTAssertNoThrow(try HeaderRules.checkMethod("PROPFIND"))
        XCTAssertThrowsError(try HeaderRules.checkMethod("GET /")) { error in
            XCTAssertEqual((error as! Failure).code, .invalidHeader)
        }
        XCTAssertThrowsError(try HeaderRules.checkMethod(""))
    }
}
