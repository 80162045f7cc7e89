import ImgdlCore
import XCTest

@testable import ImgdlTransport

/// URLs of the host's own schemes, file: and data: (features T32, R18, L1).
final class SchemeURLTests: XCTestCase {
    private let all = URLSchemes(allowsFiles: true, allowsData: true) { $0 == "app" || $0 == "own+v1.0" }

    private func check(_ table: [(String, String)], file: StaticString = #filePath, line: UInt = #line) {
        for (text, canonical) in table {
            do {
                let url = try URLParser.parse(text, all)
                XCTAssertEqual(url.canonical, canonical, file: file, line: line)
                XCTAssertEqual(try URLParser.parse(url.canonical, all).canonical, canonical, file: file, line: line)
            } catch {
                XCTFail("\(text): \(error)", file: file, line: line)
            }
        }
    }

    private func checkRefused(
        _ texts: [String], _ code: ErrorCode, _ schemes: URLSchemes, file: StaticString = #filePath, line: UInt = #line
    ) {
        for text in texts {
            XCTAssertThrowsError(try URLParser.parse(text, schemes), text, file: file, line: line) { error in
                XCTAssertEqual((error as? Failure)?.code, code, text, file: file, line: line)
            }
        }
    }

    /// Nothing of the web's rules: hosts are no IPv4 addresses, keep their case, and may be missing.
    func testOwnSchemes() {
        check([
            ("APP://1/x", "app://1/x"), ("app:///x/y", "app:///x/y"), ("app:/x", "app:/x"), ("app:x y", "app:x%20y"),
            ("app:123", "app:123"), ("app://Res/../x", "app://Res/../x"), ("app://h:81?a=b#f", "app://h:81?a=b"),
            ("app://u:p@h/", "app://h/"), ("app://[::1]:5/", "app://[::1]:5/"), ("app://h/x?", "app://h/x"),
            ("app:", "app:"), ("own+v1.0:ü?ö", "own+v1.0:%C3%BC?%C3%B6"), ("app://h:/", "app://h/"),
        ])
        checkRefused(
            [
                "app://h:0/", "app://h:x/", "app://h:99999/", "app://[::1/", "app://%zz@h/", "app://%00@h/",
                "app://[[h]/", "app://h]/", "app://a[h/", "app://a\\b/", "app://a\\@b/",
                "app:\u{1}", " app:x",
            ],
            .invalidURL, all)
        checkRefused(["other:x", "app2:x"], .unsupportedScheme, all)
    }

    func testPartsOfOwnSchemes() throws {
        let url = try URLParser.parse("app://me%40x:p%3Aw@Host:8443/p?a=1&b", all)
        XCTAssertEqual(url.scheme, "app")
        XCTAssertEqual(url.host, "Host")
        XCTAssertEqual(url.port, 8443)
        XCTAssertEqual(url.user, "me@x")
        XCTAssertEqual(url.password, "p:w")
        XCTAssertEqual(url.redacted, "app://Host:8443/p?a=…&…")
    }

    func testFiles() throws {
        check([
            ("file:///a/b", "file:///a/b"), ("FILE:/a b", "file:///a%20b"),
            ("file://LocalHost/ü?q#f", "file:///%C3%BC"),
            ("file:////a", "file:////a"),
        ])
        checkRefused(
            ["file:", "file://", "file:a", "file://host/a", "file:///%00", "file:///%", "file:///%4", "file:///%zz"],
            .invalidURL, all)
        let url = try URLParser.parse("file:///%ff%2Fa", all)
        XCTAssertEqual(FileURL.path(of: url), [0x2F, -1, 0x2F, 0x61, 0], "not UTF-8, and a slash")
    }

    func testData() throws {
        let table: [(String, String, String)] = [
            ("data:,A%20b+c", "text/plain;charset=US-ASCII", "A b+c"), ("DATA:text/html,<p>#f", "text/html", "<p>"),
            ("data:;charset=utf-8,ü", "text/plain;charset=utf-8", "ü"), ("data:image/x;base64,QUJD", "image/x", "ABC"),
            ("data:;BASE64,QUI=", "text/plain;charset=US-ASCII", "AB"),
            ("data:;base64,QQ==", "text/plain;charset=US-ASCII", "A"),
            ("data:a/b;c=d; base64,Q U%0AI", "a/b;c=d", "AB"), ("data:,", "text/plain;charset=US-ASCII", ""),
            ("data:a/b,1,2;base64,3", "a/b", "1,2;base64,3"),
        ]
        for (text, type, body) in table {
            let data = try DataURL(try URLParser.parse(text, all))
            XCTAssertEqual(data.mediaType, type, text)
            XCTAssertEqual(String(decoding: data.bytes, as: UTF8.self), body, text)
        }
        checkRefused(
            [
                "data:", "data:image/png", "data:;base64,A", "data:;base64,AA=A", "data:;base64,A===",
                "data:;base64,A-_A",
                "data:,%", "data:,%g0",
            ], .invalidURL, all)
        XCTAssertEqual(
            try URLParser.parse("data:image/png;base64,c2VjcmV0", all).redacted, "data:image/png;base64,…")
    }

    func testWithoutLeaveNothingButTheWeb() {
        checkRefused(["file:///a", "data:,x", "app://x"], .unsupportedScheme, .web)
    }

    /// A server must not choose from what the host loads.
    func testReferencesLeadToTheWebAlone() throws {
        let base = try URLParser.parse("app://h/x", all)
        XCTAssertEqual(try URLParser.resolve("https://B/x", against: base).canonical, "https://b/x")
        for reference in ["y", "/y", "app://h/y", "file:///y", "data:,y", "//h/y", ""] {
            XCTAssertThrowsError(try URLParser.resolve(reference, against: base), reference) { error in
                XCTAssertEqual((error as? Failure)?.code, .unsupportedScheme, reference)
            }
        }
    }
}
