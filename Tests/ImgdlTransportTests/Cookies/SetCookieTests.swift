import XCTest

@testable import ImgdlTransport

/// RFC 6265bis section 5.6: what a Set-Cookie field says, and what becomes of it.
final class SetCookieTests: XCTestCase {
    private let now: Int64 = 1_800_000_000

    private func parsed(_ text: String) -> SetCookie? { SetCookie(Array(text.utf8)) }

    /// Of "https://www.example.com/a/b".
    private func cookie(_ text: String, host: String = "www.example.com", isSecure: Bool = true) -> Cookie? {
        let request = CookieRequest(host: host, path: Array("/a/b".utf8), isSecure: isSecure)
        let domain = request.isAddress ? nil : PublicSuffixes.system.registrableDomain(of: host)
        return parsed(text)?.cookie(for: request, registrableDomain: domain, now: now)
    }

    func testNamesAndValues() {
        let table: [(String, String?)] = [
            ("a=b", "a=b"), (" a \t=\t b ; Path=/", "a=b"), ("a=b=c", "a=b=c"), ("a=\"b c\"", "a=\"b c\""),
            ("a=", "a="), ("=b", "b"), ("b", "b"), ("=b=c", "b=c"), ("a=b,c=d", "a=b,c=d"), ("a=;b=c", "a="),
            ("", nil), (";a=b", nil), ("=", nil), (" = ; Path=/", nil),
            ("a=b\u{1}", nil), ("a\u{0}=b", nil), ("a=b; Path=/\u{7F}", nil), ("a=b\r\nX: y", nil),
            ("a=é", "a=é"),
        ]
        for (text, pair) in table {
            let found = parsed(text).map { $0.name.isEmpty ? $0.value : $0.name + [0x3D] + $0.value }
            XCTAssertEqual(found, pair.map { Array($0.utf8) }, text)
        }
        XCTAssertEqual(SetCookie([0x61, 0x3D, 0xFF, 0xFE])?.value, [0xFF, 0xFE], "bytes that are no text")
        XCTAssertNil(cookie("a=b\tc"), "no file could hold it")
    }

    func testSizes() {
        XCTAssertNotNil(parsed("a=" + String(repeating: "b", count: 4095)))
        XCTAssertNil(parsed("a=" + String(repeating: "b", count: 4096)))
        XCTAssertNil(parsed(String(repeating: "b", count: 4097)))
        let long = "/" + String(repeating: "p", count: 1023)
        XCTAssertEqual(cookie("a=b; Path=\(long)").map(\.path), Array(long.utf8))
        XCTAssertEqual(cookie("a=b; Path=\(long)p").map(\.path), Array("/a".utf8), "passed over")
        XCTAssertEqual(parsed("a=b; Path=/x; Path=\(long)p")?.path, Array("/x".utf8))
        let deep = CookieRequest(host: "a.example", path: Array("\(long)pp/x".utf8), isSecure: true)
        XCTAssertNil(parsed("a=b")?.cookie(for: deep, registrableDomain: nil, now: now), "a path from the URL, too")
    }

    func testAges() {
        let most = Cookie.maximumAge
        let table: [(String, Int64?)] = [
            ("", nil), ("Max-Age=5", now + 5), ("MAX-AGE = 5 ", now + 5), ("Max-Age=0", now), ("Max-Age=-1", now),
            ("Max-Age=-99999999999999999999", now), ("Max-Age=99999999999999999999999", now + most),
            ("Max-Age=34560001", now + most), ("Max-Age=5.5", nil), ("Max-Age=+5", nil), ("Max-Age=-", nil),
            ("Max-Age=", nil), ("Max-Age=5; Max-Age=7", now + 7), ("Max-Age=5; Max-Age=x", now + 5),
            ("Expires=Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Expires=31 Dec 9999 23:59:59", now + most),
            ("Expires=tomorrow", nil), ("Max-Age=5; Expires=Sun, 06 Nov 1994 08:49:37 GMT", now + 5),
            ("Max-Age=x; Expires=Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Expires=01 Jan 1601 00:00:00", -11_644_473_600),
        ]
        for (attributes, expiry) in table {
            XCTAssertEqual(cookie("a=b; \(attributes)")?.expiry, expiry, attributes)
            XCTAssertNotNil(cookie("a=b; \(attributes)"), attributes)
        }
    }

    func testPaths() {
        let table = [
            ("", "/a"), ("Path", "/a"), ("Path=", "/a"), ("Path=x", "/a"), ("Path=/", "/"), ("Path=/c/", "/c/"),
            ("Path=/c; Path=", "/a"), ("path=/c; PATH=/d", "/d"), ("Path=\"/c\"", "/a"),
        ]
        for (attribute, path) in table {
            XCTAssertEqual(cookie("a=b; \(attribute)")?.path, Array(path.utf8), attribute)
        }
        let defaults = [("/", "/"), ("", "/"), ("/a", "/"), ("/a/", "/a"), ("/a/b/c", "/a/b"), ("x", "/")]
        for (path, expected) in defaults {
            let request = CookieRequest(host: "a.example", path: Array(path.utf8), isSecure: true)
            XCTAssertEqual(request.defaultPath, Array(expected.utf8), path)
        }
    }

    /// nil: refused. A dot in front: of the domain, and not of the host alone.
    func testDomains() {
        let table: [(String, String, String?)] = [
            ("www.example.com", "", "www.example.com"),
            ("www.example.com", "Domain", "www.example.com"),
            ("www.example.com", "Domain=", "www.example.com"),
            ("www.example.com", "Domain=example.com", ".example.com"),
            ("www.example.com", "Domain=.EXAMPLE.com", ".example.com"),
            ("www.example.com", "Domain=..example.com", nil),
            ("www.example.com", "Domain=www.example.com", ".www.example.com"),
            ("www.example.com", "Domain=a.www.example.com", nil),
            ("www.example.com", "Domain=xample.com", nil),
            ("www.example.com", "Domain=example.org", nil),
            ("www.example.com", "Domain=com", nil),
            ("www.example.com", "Domain=example.com.", nil),
            ("www.example.com", "Domain=éxample.com", nil),
            ("www.example.com", "Domain=example.org; Domain=", "www.example.com"),
            ("www.example.com", "Domain=example.com; Domain=example.org", nil),
            ("example.com.", "Domain=com.", nil),
            ("www.example.com.", "Domain=example.com.", ".example.com."),
            ("a.co.uk", "Domain=co.uk", nil),
            ("b.a.co.uk", "Domain=a.co.uk", ".a.co.uk"),
            ("co.uk", "Domain=co.uk", "co.uk"),
            ("github.io", "Domain=github.io", "github.io"),
            ("a.github.io", "Domain=github.io", nil),
            ("a.b.ck", "Domain=b.ck", nil),
            ("a.www.ck", "Domain=www.ck", ".www.ck"),
            ("localhost", "Domain=localhost", "localhost"),
            ("a.unheard-of", "Domain=unheard-of", nil),
            ("127.0.0.1", "Domain=127.0.0.1", "127.0.0.1"),
            ("127.0.0.1", "Domain=0.0.1", nil),
            ("127.0.0.1.", "Domain=0.0.1.", nil),
            ("::1", "Domain=::1", "::1"),
            ("::1", "Domain=1", nil),
        ]
        for (host, attribute, expected) in table {
            let found = cookie("a=b; \(attribute)", host: host).map { ($0.isHostOnly ? "" : ".") + $0.domain }
            XCTAssertEqual(found, expected, "\(host): \(attribute)")
        }
    }

    /// A domain that is no public suffix, above a host whose public suffix is longer.
    func testDomainsAboveAPublicSuffix() {
        let host = "a.eu-west-1.compute.amazonaws.com"
        XCTAssertNotNil(cookie("a=b", host: host))
        XCTAssertNil(cookie("a=b; Domain=amazonaws.com", host: host))
    }

    func testSecure() {
        XCTAssertEqual(cookie("a=b; SECURE; httponly=x; SameSite=None; Other; =;;")?.isSecure, true)
        XCTAssertEqual(cookie("a=b; HttpOnly")?.isHTTPOnly, true)
        XCTAssertNil(cookie("a=b; Secure", isSecure: false))
        XCTAssertNotNil(cookie("a=b", isSecure: false))
    }

    func testPrefixes() {
        let table = [
            ("__Secure-a=b; Secure", true), ("__Secure-a=b", false), ("__SECURE-a=b", false), ("__Secure=b", true),
            ("__Host-a=b; Secure; Path=/", true), ("__Host-a=b; Secure", false), ("__Host-a=b; Path=/", false),
            ("__hOST-a=b; Secure; Path=/c", false), ("__Host-a=b; Secure; Path=/; Domain=www.example.com", false),
            ("__Host-a=b; Secure; Path=/; Domain=", true),
            ("__Host-a; Secure; Path=/", false), ("=__Host-a=b; Secure; Path=/", false), ("=__secure-a", false),
        ]
        for (text, isKept) in table { XCTAssertEqual(cookie(text) != nil, isKept, text) }
        let root = CookieRequest(host: "a.example", path: [0x2F], isSecure: true)
        XCTAssertNil(parsed("__Host-a=b; Secure")?.cookie(for: root, registrableDomain: nil, now: now))
        XCTAssertNil(cookie("__Host-a=b; Secure; Path=/; Domain=127.0.0.1", host: "127.0.0.1"))
    }
}
