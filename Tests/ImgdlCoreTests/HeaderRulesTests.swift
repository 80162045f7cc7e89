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
            XCTAssertTrue(failure.message.contains("“X\\x0d\\x0aY”"), failure.message)
        }
        XCTAssertNoThrow(try HeaderRules.check(HeaderField("Accept", "image/*")))
    }

    func testMethods() {
        XCTAssertNoThrow(try HeaderRules.checkMethod("PROPFIND"))
        XCTAssertThrowsError(try HeaderRules.checkMethod("GET /")) { error in
            XCTAssertEqual((error as! Failure).code, .invalidHeader)
        }
        XCTAssertThrowsError(try HeaderRules.checkMethod(""))
        XCTAssertThrowsError(try HeaderRules.checkMethod("CONNECT")) { error in
            XCTAssertEqual((error as! Failure).code, .invalidHeader)
        }
    }

    /// Fields that frame a request or are for its connection alone, in every spelling that some server takes for them.
    func testWhatIsTheLibrarysOwn() {
        let names = [
            "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "TE", "Trailer", "Expect", "Keep-Alive",
            "Proxy-Connection", "HTTP2-Settings",
        ]
        XCTAssertEqual(Set(HeaderRules.reserved.map(\.name)), Set(names.map { $0.lowercased() }))
        for name in names {
            let capital = name.uppercased()
            let spellings = [name, name.lowercased(), capital, capital.replacing("-", with: "_")]
            for spelling in spellings {
                for value in ["", "5", "chunked", "close"] {
                    let failure = refusal([HeaderField("A", "b"), HeaderField(spelling, value)])
                    XCTAssertEqual(failure?.code, .invalidHeader, spelling)
                    XCTAssertTrue(failure?.message.contains("“\(spelling)” is the library's own: it ") ?? false)
                }
            }
            // No name at all, and so refused with or without this rule.
            for spelling in ["\(name) ", " \(name)", "\(name)\t", "\(name):", "\(name)\u{0}", "\(name)\r\nX"] {
                XCTAssertEqual(refusal([HeaderField(spelling, "5")])?.code, .invalidHeader, spelling.debugDescription)
            }
            XCTAssertNil(refusal([HeaderField("X-\(name)", "5"), HeaderField("\(name)-X", "5")]))
        }
    }

    func testASecondHost() {
        XCTAssertNil(refusal([HeaderField("Host", "a.test"), HeaderField("X-Host", "b.test")]))
        for name in ["Host", "host", "HOST"] {
            let failure = refusal([HeaderField("Host", "a.test"), HeaderField(name, "a.test")])
            XCTAssertEqual(failure?.code, .invalidHeader)
            XCTAssertEqual(failure?.message, "the header field “Host” is given twice")
        }
    }

    func testAHostIsOneWithOrWithoutAPort() {
        for host in [
            "a", "a.example", "A-b_c.example.", "127.0.0.1", "a:0", "a:65535", "[::1]", "[::ffff:1.2.3.4]:443", " a\t",
            "xn--bcher-kva.example:8080", "~a",
        ] {
            XCTAssertNil(refusal([HeaderField("Host", host)]), host)
        }
        for host in [
            "", " ", "a b", "a,b", "evil/path", "user@evil", "a:", ":80", "a:b", "a:80:80", "a:65536", "a:-1", "::1",
            "[::1", "::1]", "[]", "[a]", "[::1]x", "[::1]:", "a?b", "a#b", "a%20b", "b\u{FC}cher", "a;b", "a\\b",
            "a:99999999999999999999",
        ] {
            for name in ["Host", "HOST"] {
                XCTAssertEqual(refusal([HeaderField(name, host)])?.code, .invalidHeader, host)
            }
        }
    }

    private func refusal(_ fields: [HeaderField]) -> Failure? {
        do throws(Failure) {
            try HeaderRules.checkRequest(fields)
            return nil
        } catch {
            return error
        }
    }
}
