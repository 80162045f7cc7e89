import ImgdlCore
import XCTest

@testable import ImgdlTransport

final class URLParserTests: XCTestCase {
    func testCanonicalForms() throws {
        let table: [(String, String)] = [
            ("HTTP://EXAMPLE.com:80", "http://example.com/"),
            ("https://ex.com:443/a/../b/./c?x=1#f", "https://ex.com/b/c?x=1"),
            ("https://ex.com:80/", "https://ex.com:80/"),
            ("http://h?x", "http://h/?x"),
            ("http://h#f", "http://h/"),
            ("http://h/?", "http://h/"),
            ("http://h/a b", "http://h/a%20b"),
            ("http://h/a?b c", "http://h/a?b%20c"),
            ("http://h/ü?q=ü+x", "http://h/%C3%BC?q=%C3%BC+x"),
            ("http://h/%7e%7E/%2f%2F", "http://h/%7e%7E/%2f%2F"),
            ("http://h/a|b\"<>`{}'", "http://h/a|b%22%3C%3E%60%7B%7D'"),
            ("http://h/a?b/../c", "http://h/a?b/../c"),
            ("http://h/a//b/..", "http://h/a//"),
            ("http://[::1]:8080/x", "http://[::1]:8080/x"),
            ("http://[FE80::1%25eth0]/", "http://[fe80::1%25eth0]/"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://a_b.example/", "http://a_b.example/"),
            ("http://u:p@h/x", "http://h/x"),
            ("http://h:/", "http://h/"),
            ("http://h?a/b", "http://h/?a/b"),
        ]
        for (text, canonical) in table {
            XCTAssertEqual(try URLParser.parse(text).canonical, canonical, text)
        }
    }

    func testWhatIsAnAddressAsCurlWritesIt() {
        for host in ["0.0.0.0", "127.0.0.1", "255.255.255.255"] { XCTAssertTrue(URLText.isIPv4(host), host) }
        for host in [
            "", "1", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "1..2.3", "1.2.3.", ".1.2.3", "1.2.3.x", "1.2.3.4.",
            "::1",
        ] {
            XCTAssertFalse(URLText.isIPv4(host), host)
        }
    }

    func testCanonicalFormIsAFixedPoint() throws {
        for text in ["HTTP://EXAMPLE.com:80/ü b?ö", "http://[fe80::1%25eth0]:81/", "http://bücher.example/%20?%zz"] {
            let once = try URLParser.parse(text)
            XCTAssertEqual(try URLParser.parse(once.canonical).canonical, once.canonical)
        }
    }

    func testParts() throws {
        let url = try URLParser.parse("HTTPS://me%40x:p%3Aw@Example.COM:8443/p?a=1&b=2")
        XCTAssertEqual(url.scheme, "https")
        XCTAssertEqual(url.host, "example.com")
        XCTAssertEqual(url.port, 8443)
        XCTAssertEqual(url.user, "me@x")
        XCTAssertEqual(url.password, "p:w")
        XCTAssertEqual(url.canonical, "https://example.com:8443/p?a=1&b=2")
        XCTAssertEqual(url.redacted, "https://example.com:8443/p?a=…&b=…")
        let plain = try URLParser.parse("http://[::1]/")
        XCTAssertEqual(plain.host, "::1")
        XCTAssertEqual(plain.port, 80)
        XCTAssertNil(plain.user)
        XCTAssertNil(plain.password)
    }

    func testInternationalNamesNeedNoLocaleOfTheHost() throws {
        XCTAssertEqual(try URLParser.parse("http://BÜCHER.example/").canonical, "http://xn--bcher-kva.example/")
        XCTAssertEqual(try URLParser.parse("http://例え.jp:81/").host, "xn--r8jz45g.jp")
    }

    func testRefusals() {
        let table: [(String, ErrorCode)] = [
            ("", .invalidURL), (" http://h/", .invalidURL), ("http://h/ ", .invalidURL), ("h/x", .invalidURL),
            ("//h/x", .invalidURL), ("http:x", .invalidURL), ("http://", .invalidURL), ("http://h:99999/", .invalidURL),
            ("http://h:0/", .invalidURL), ("http://./", .invalidURL), ("http://../", .invalidURL),
            ("http://h:80x/", .invalidURL), ("http://h\\x/", .invalidURL),
            ("http://h h/", .invalidURL), ("http://h/\u{1}", .invalidURL), ("http://h/\u{0}x", .invalidURL),
            ("http://h/\r\nx", .invalidURL), ("http://h/\t", .invalidURL), ("http://h/\u{7F}", .invalidURL),
            ("http://u%0d:p@h/", .invalidURL), ("http://u:p%00@h/", .invalidURL), ("http://u:%ff@h/", .invalidURL),
            ("http://%00/", .invalidURL), ("localhost:8080/x", .invalidURL), ("htt p://x", .invalidURL),
            ("ftp://h/", .unsupportedScheme), ("file:///etc/passwd", .unsupportedScheme),
            ("data:image/png;base64,AA", .unsupportedScheme), ("httpx://h", .unsupportedScheme),
            ("javascript:alert(1)", .unsupportedScheme),
        ]
        for (text, code) in table {
            XCTAssertThrowsError(try URLParser.parse(text), text.debugDescription) { error in
                let failure = error as! Failure
                XCTAssertEqual(failure.code, code, text.debugDescription)
                XCTAssertFalse(failure.message.isEmpty)
            }
        }
    }

    /// curl's own words are for who knows its source.
    func testRefusalsSayWhatToLookAt() {
        let table = [
            ("h/x", "it does not begin with a scheme, such as https://"),
            ("htt p://x", "it does not begin with a scheme, such as https://"),
            ("http://", "it has no host"), ("http://./", "its host is not one that a server can have"),
            ("http://[::1/", "what stands in brackets is no IPv6 address"),
            ("http://[::g]/", "what stands in brackets is no IPv6 address"),
            ("http://h:99999/", "its port is not a number from 1 to 65535"),
            ("http://h:80x/", "its port is not a number from 1 to 65535"),
            ("http://h:0/", "the port is 0"),
            ("http://u%0d:p@h/", "it has a percent-encoding that may not be there"),
        ]
        for (text, words) in table {
            let message = refusal { () throws(Failure) in try URLParser.parse(text) }?.message ?? ""
            XCTAssertEqual(message, "not a URL that can be requested: \(words)", text)
        }
    }

    /// Each of these names one server to us or to curl, and another one, or none, to a browser or another parser.
    func testWhereParsersDifferAboutTheServer() throws {
        let backslash = [
            "http://a\\@b/", "http://a\\b/", "http://a.test\\.b.test/", "http://u\\:p@a/", "http://u:p\\@a/",
            "http://a:80\\/", "http://\\a/", "http://a\\", "https://a\\?x", "https://a\\#@b/", "http:\\\\a/",
            "http:/\\a/", "http:\\/a/", "http:///\\a", "HTTP:\\a",
        ]
        let slashes = [
            "http:/a", "http:///a", "http:////a", "https:/a/b", "https:///a/b", "HTTP:/a", "http:a", "http:", "http:?a",
            "http:/u:p@a/", "http:/\(String(repeating: "/", count: 1000))a",
        ]
        let references = [("\\\\a/b", true), ("/\\a/b", true), ("\\/a/b", true), ("//a\\@b/", true), ("///a/b", false)]
        for base in try ["http://base/c/d", "https://base/c/d?e"].map({ try URLParser.parse($0) }) {
            for (text, hasBackslash) in references + backslash.map({ ($0, true) }) + slashes.map({ ($0, false) }) {
                let failures =
                    [refusal { () throws(Failure) in try URLParser.resolve(text, against: base) }]
                    + (URLText.scheme(of: text) == nil
                        ? [] : [refusal { () throws(Failure) in try URLParser.parse(text) }])
                for failure in failures {
                    XCTAssertEqual(failure?.code, .invalidURL, text)
                    let cause = hasBackslash ? "has a backslash in it" : "where two belong"
                    XCTAssertTrue(failure?.message.contains(cause) ?? false, "\(text): \(failure?.message ?? "")")
                }
            }
        }
        for (text, words) in [("http:a", "is no slash"), ("http:/a", "is one slash"), ("http:///a", "are 3 slashes")] {
            let failure = refusal { () throws(Failure) in try URLParser.parse(text) }
            XCTAssertEqual(failure?.message.contains(words), true, failure?.message ?? text)
        }
        // Encoded in the host it is one, too; anywhere else it is a character like any other.
        XCTAssertEqual(refusal { () throws(Failure) in try URLParser.parse("http://a%5Cb/") }?.code, .invalidURL)
        XCTAssertEqual(try URLParser.parse("http://d%5Cu:p@a/b\\c?d\\e").canonical, "http://a/b\\c?d\\e")
        XCTAssertEqual(try URLParser.parse("http://d%5Cu:p@a/").user, "d\\u")
        let base = try URLParser.parse("http://a/b/c")
        let paths = [("d\\e", "http://a/b/d\\e"), ("\\d", "http://a/b/\\d"), ("?//\\d", "http://a/b/c?//\\d")]
        for (text, canonical) in paths {
            XCTAssertEqual(try URLParser.resolve(text, against: base).canonical, canonical)
        }
    }

    private func refusal(_ parse: () throws(Failure) -> ParsedURL) -> Failure? {
        do throws(Failure) {
            _ = try parse()
            return nil
        } catch {
            return error
        }
    }

    func testThePortZeroIsNamed() {
        let own = URLSchemes(allowsFiles: false, allowsData: false) { $0 == "app" }
        for text in ["http://h:0/", "https://h:00/", "app://h:0/"] {
            XCTAssertThrowsError(try URLParser.parse(text, own), text) { error in
                let message = (error as! Failure).message
                XCTAssertTrue(message.contains("the port") && message.hasSuffix("is 0"), message)
            }
        }
    }

    func testAnUnsupportedSchemeIsNamed() {
        XCTAssertThrowsError(try URLParser.parse("FTP://user:secret@h/")) { error in
            let message = (error as! Failure).message
            XCTAssertTrue(message.contains("“ftp”"), message)
            XCTAssertFalse(message.contains("secret"))
        }
    }

    func testRedaction() throws {
        let table = [
            ("http://u:p@h/p", "http://h/p"), ("http://h/?a=1&b=&c", "http://h/?a=…&b=&…"),
            ("http://h/?eyJhbGci", "http://h/?…"), ("http://h/?a=b=c&&d=e", "http://h/?a=…&&d=…"),
        ]
        for (text, redacted) in table { XCTAssertEqual(try URLParser.parse(text).redacted, redacted) }
    }

    /// A scheme that stands twice, and a URL in another one's path: they parse, and the password is a part of the path.
    func testNoPasswordIsShownOfAURLInAPath() throws {
        let table = [
            ("http://http://me:hun@h/x", "http://http//h/x"), ("https://HTTP://me:hun@h:1", "https://http//h:1"),
            ("http://https//me:hun@h/x", "http://https//h/x"), ("http://http:/me:hun@h/x", "http://http/h/x"),
            ("http://http://me:hu/n@h/x", "http://http//h/x"), ("http://http://me:hu?n@h/x", "http://http//h/x"),
            ("http://http://me:hun#n@h/x", "http://http//…"), ("http://http://me:hun%40h/x", "http://http//h/x"),
            ("http://http://me@h/x", "http://http//h/x"), ("http://ftp://me:hun@h/x", "http://ftp//h/x"),
            ("http://x://me:hun@h/x", "http://x//h/x"), ("http://x://me:hu/n@h/x", "http://x//h/x"),
            ("http://http://http://me:hun@h/x", "http://http//h/x"),
            ("http://me:hun@http://me:hun@h/x", "http://http//h/x"),
            ("http://http:///me:hun@h/x?a=b", "http://http///h/x?a=…"),
            ("http://p/http://me:hun@h/x", "http://p/http://h/x"), ("http://p/a/http:/me@h/x", "http://p/a/http:/h/x"),
            ("http://p/app://me@h/x?y", "http://p/app://h/x?…"), ("http://p//me:hun@h/x", "http://p//h/x"),
            ("http://p/http://me:hun#n@h/", "http://p/http://…"),
            ("http://p/http:me:hun@h/x", "http://p/http:h/x"), ("http://p/https://me:hu/n@h/x", "http://p/https://h/x"),
            ("http://p/http%3A%2F%2Fme%3Ahun%40h%2Fx", "http://p/http%3A%2F%2Fh%2Fx"),
            ("http://p/http://me:h@un@h/http://me:hun@i/", "http://p/http://h/http://i/"),
            ("http://p/?http://me:hun@h/?a=b", "http://p/?…"),
            ("http://p/?http://me%3Ahun%40h/?a=b&c=d", "http://p/?…&c=…"),
        ]
        for (text, redacted) in table {
            let url = try URLParser.parse(text)
            XCTAssertEqual(url.redacted, redacted, text)
            let failure = Failure(.connectFailed, "no")
            let message = failure.message(about: url, redirectedTo: nil, showsWholeURL: !text.contains("?http"))
            for secret in ["me", "hu"] { XCTAssertFalse(message.contains(secret), message) }
            let next = try URLParser.parse("http://next/")
            let led = failure.message(about: next, redirectedTo: url, showsWholeURL: false)
            XCTAssertEqual(led, "http://next/, redirected to \(redacted): no")
        }
    }

    /// Names of files and of users' pages have one, and ports and addresses colons.
    func testAnAtSignInAPathIsShown() throws {
        for text in [
            "http://h/a@2x.png", "http://h/@me/a.png", "http://h:1/a@2x.png", "http://h:1//b@2x.png",
            "http://h//b%402x.png", "http://h:1//a:b/c@2x.png", "http://h//a@2x:3/b",
            "http://h/a:b@2x.png", "http://h/a:b/c@2x.png", "http://user:1234/hunter2@host/x",
            "http://p/http://h/a@2x.png", "http://p/http://h:80/a@2x.png", "http://p/http://[::1]:80/a@2x.png",
            "http://[::1]:8080/a@2x.png", "http://p/http:/h/a@2x.png", "http://http.example//a@2x.png",
        ] {
            XCTAssertEqual(try URLParser.parse(text).redacted, text)
        }
        let schemes = URLSchemes(allowsFiles: true, allowsData: true) { $0 == "app" }
        for text in ["file:///a:b/c@2x.png", "file:///a/b@2x.png", "app:big:a/b@2x.png", "app://h/a:b@2x.png"] {
            XCTAssertEqual(try URLParser.parse(text, schemes).redacted, text)
        }
        XCTAssertEqual(try URLParser.parse("app:///me:hun@h/x", schemes).redacted, "app:///h/x")
        XCTAssertEqual(try URLParser.parse("app:me:hun@h/x", schemes).redacted, "app:h/x")
    }

    /// A refused URL or reference shows neither the user nor the password.
    func testARefusalShowsNothingOfAUser() throws {
        let base = try URLParser.parse("http://a/b")
        for text in [
            "http:///me:hun@h/x", "http:/me:hun@h/x", "http:me:hun@h/x", "me:hun@h/x", "//me:hun@h:x/",
            "http://me:hu/n@h/x", "me:123@h/x", "hun:me@h", "me:hu/n@h", "me:hu%40h", "ftp://me:hun@h/",
            "http://me:hun@h:99999/", "http://me:hun@", "me:hu?n@h", "http://me:hu#n@h",
            "http:\\\\me:hun@h/", "http://me:hun@[::1/", "http://me:hu n@h/x\u{1}", " http://me:hun@h/",
        ] {
            for parse in [{ try URLParser.parse(text) }, { try URLParser.resolve(text, against: base) }] {
                do { _ = try parse() } catch let failure as Failure {
                    for secret in ["me:", "“me”", "hu"] {
                        XCTAssertFalse(failure.message.contains(secret), failure.message)
                    }
                }
            }
        }
        for text in ["me:hun@h/x", "hun:me@h", "http:///me:hun@h/x", "ftp://me:hun@h/"] {
            XCTAssertThrowsError(try URLParser.parse(text), text)
        }
    }

    /// RFC 3986 section 5.4.1, and the abnormal cases of 5.4.2 that concern http.
    func testReferences() throws {
        let base = try URLParser.parse("http://a/b/c/d;p?q")
        let table: [(String, String)] = [
            ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
            ("//g", "http://g/"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"), ("g#s", "http://a/b/c/g"), ("g?y#s", "http://a/b/c/g?y"),
            (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"), ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"), ("../", "http://a/b/"),
            ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"), ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"), ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/"),
            ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"), ("g?y/./x", "http://a/b/c/g?y/./x"),
            ("g?y/../x", "http://a/b/c/g?y/../x"), ("HTTPS://B/x y", "https://b/x%20y"),
            ("//B:81/é", "http://b:81/%C3%A9"), ("./g:1", "http://a/b/c/g:1"), ("1:1", "http://a/b/c/1:1"),
            ("/g:1", "http://a/g:1"), ("?g:1", "http://a/b/c/d;p?g:1"),
            (" /g h?i j ", "http://a/g%20h?i%20j"), ("g?u=http://x/y", "http://a/b/c/g?u=http://x/y"),
            ("//bücher.example", "http://xn--bcher-kva.example/"),
            // No scheme begins with a digit: this is a path, and encoded like any other.
            ("0://é \"/f", "http://a/b/c/0://%C3%A9%20%22/f"),
        ]
        for (reference, canonical) in table {
            XCTAssertEqual(try URLParser.resolve(reference, against: base).canonical, canonical, reference)
        }
    }

    /// Longer ones are no names of DNS: nothing is looked up, and curl is asked for nothing.
    func testHostNamesOfMoreThan253Bytes() throws {
        let longest = String(repeating: "a.", count: 126) + "a"
        let base = try URLParser.parse("http://a/")
        for host in [longest, longest + ".", longest.uppercased()] {
            XCTAssertNoThrow(try URLParser.parse("http://\(host)/"), host)
            XCTAssertNoThrow(try URLParser.resolve("//\(host)/", against: base), host)
        }
        for host in [longest + "a", longest + "a.", String(repeating: "ä.", count: 126) + "a"] {
            XCTAssertThrowsError(try URLParser.parse("http://\(host)/")) { error in
                XCTAssertEqual((error as! Failure).code, .invalidURL, host)
            }
            for reference in ["//\(host)/", "https://u:p@\(host):444/x"] {
                XCTAssertThrowsError(try URLParser.resolve(reference, against: base)) { error in
                    XCTAssertEqual((error as! Failure).code, .invalidURL, reference)
                }
            }
        }
        XCTAssertThrowsError(try URLParser.parse("http://\(longest)a/")) { error in
            XCTAssertTrue((error as! Failure).message.contains("253 bytes"), (error as! Failure).message)
        }
    }

    func testReferencesToTheSameAuthorityKeepItsCredentials() throws {
        let base = try URLParser.parse("http://u%3A:p%20@a/b")
        XCTAssertEqual(try URLParser.resolve("/c", against: base).user, "u:")
        XCTAssertEqual(try URLParser.resolve("c", against: base).password, "p ")
        XCTAssertNil(try URLParser.resolve("//a/c", against: base).user)
        XCTAssertNil(try URLParser.resolve("http://other/", against: base).password)
        XCTAssertEqual(try URLParser.resolve("http://v:w@other/", against: base).user, "v")
    }

    func testReferencesObeyTheSameRules() throws {
        let base = try URLParser.parse("https://a/b")
        for (reference, code) in [
            ("ftp://a/", ErrorCode.unsupportedScheme), ("javascript:alert(1)", .unsupportedScheme),
            ("javascript:1", .unsupportedScheme), ("localhost:8080/a", .unsupportedScheme), ("http:80/a", .invalidURL),
            ("data:,x", .unsupportedScheme), ("/a\r\nb", .invalidURL), ("http://h:99999/", .invalidURL),
        ] {
            XCTAssertThrowsError(try URLParser.resolve(reference, against: base)) { error in
                XCTAssertEqual((error as! Failure).code, code, reference)
            }
        }
    }

    /// What a server takes for a host is a scheme to everybody else, which it is told of.
    func testAHostForAScheme() throws {
        let base = try URLParser.parse("https://a/b")
        let hint = "; if it is a host, the server left out http:// before it"
        for (reference, ending) in [
            ("localhost:8080", hint), ("Pictures.Example:80/a", hint), ("localhost:80?a", hint),
            ("localhost:80#a", hint),
            ("ftp://a/", ""), ("mailto:a@b.example", ""), ("localhost:", ""), ("urn:1x", ""),
        ] {
            XCTAssertThrowsError(try URLParser.resolve(reference, against: base)) { error in
                let scheme = reference.prefix { $0 != ":" }.lowercased()
                let message = "the scheme “\(scheme)” is not supported here\(ending)"
                XCTAssertEqual((error as! Failure).message, message, reference)
            }
        }
    }
}
