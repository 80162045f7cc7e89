import ImgdlCore
import XCTest

@testable import ImgdlTransport

/// What is taken for plain is what curl's parser makes of it.
final class PlainURLTests: XCTestCase {
    func testPlainOnesNeedNoParser() throws {
        for text in [
            "http://h/", "https://images.example.com/a/b-c_d~e.jpg", "https://ex.com/a%20b/%2F/c@2x.png",
            "https://ex.com/a?size=1&token=secret", "http://a-1.b/x?a/../b?c", "http://localhost/a:b;c=d,e!$'()*+",
            "http://h:8080/a", "https://h:80/", "http://h:443/", "http://h:65535/", "http://1.2.3.4/a",
            "https://127.0.0.1:1/", "http://0.0.0.0/", "http://255.255.255.255/",
        ] {
            let plain = try XCTUnwrap(PlainURL.parse(text), text)
            XCTAssertEqual(plain, try URLParser.parseAny(text), text)
        }
        XCTAssertEqual(PlainURL.parse("http://h/?token=secret")?.redacted, "http://h/?token=…")
    }

    func testTheOriginBeforeIsUsedAgain() throws {
        let url = "http://images.example.com/a?b=c"
        let first = try XCTUnwrap(PlainURL.parse(url))
        XCTAssertTrue(PlainURL.parse(url, lastOrigin: first.origin)?.origin === first.origin)
        for other in [
            "https://images.example.com/a", "http://images.example.com:8080/a", "http://images.example.co/a",
            "http://images.example.com.org/a", "http://images.example.org/a", "http://images.example.coma/a", "http://h/",
        ] {
            let parsed = try XCTUnwrap(PlainURL.parse(other, lastOrigin: first.origin))
            XCTAssertFalse(parsed.origin === first.origin)
            XCTAssertEqual(parsed, try URLParser.parseAny(other))
            XCTAssertEqual(PlainURL.parse(url, lastOrigin: parsed.origin), first)
        }
        for none in ["http://images.example.com", "http://images.example.com@h/", "http://images.example.com/./a", ""] {
            XCTAssertNil(PlainURL.parse(none, lastOrigin: first.origin), none)
        }
        // One that was not looked for fits nothing.
        let unknown = ParsedURL.Origin(scheme: "http", host: "", port: 80)
        XCTAssertEqual(PlainURL.parse(url, lastOrigin: unknown), first)
    }

    func testOthersAreLeftToTheParser() {
        for text in [
            "", "http", "http://", "http:///", "http://h", "HTTP://h/", "http://H/", "http://0x7f.1/", "http://1/",
            "http://1.2.3/", "http://1.2.3.4.5/", "http://1.2.3.256/", "http://01.2.3.4/", "http://1.2.3.4./",
            "http://1.2.3.a/", "http://1a/", "http://h:/", "http://h:0/", "http://h:080/", "http://h:65536/",
            "http://h:99999999999999999999/", "http://h:1",
            "http://h:8a/", "http://h:-1/", "https://h:443/", "http://1.2.3.4:80/", "http://:1/", "http://-h:1:2/",
            "http://h:80/", "http://u@h/", "http://u:p@h/", "http://h./", "http://a..b/", "http://.h/", "http://a_b/",
            "http://h/#f", "http://h/?", "http://h?x", "http://h/./a", "http://h/a/..", "http://h/%2e%2E/a",
            "http://h/.a",
            "http://h/a b", "http://h/ü", "http://bücher.example/", "http://h/a\\b", "http://h/a|b", "http://[::1]/",
            "http://%68/", "ftp://h/", "httpx://h/", "http:/h/", " http://h/", "http://h/\u{7f}", "http://h/\u{0}",
        ] {
            XCTAssertNil(PlainURL.parse(text), text)
        }
    }

    /// Pieces that matter to a parser, put together at random.
    func testWhatIsPlainIsWhatCurlMakesOfIt() throws {
        let pieces = [
            "http", "https", "HTTP", "://", ":", "/", "//", "h", "example", ".", "..", "com", "1", "80", ":443", "0x7f",
            "-",
            "_", "%", "%2e", "%2F", "%41", "?", "&", "=", "a=b", "#", "@", ";", " ", "ü", "~", "!", "$", "'", "(", "*",
            "+", ",", "[",
            "|", "\\",
        ]
        var random = SmallGenerator(seed: 6)
        var plainCount = 0
        for _ in 0..<40_000 {
            let isLikely = random.next() % 4 != 0
            let beginnings = ["http://h/", "https://a.example.com/", "http://ex", "http://1.2.3"]
            var text = isLikely ? beginnings[Int(random.next() % 4)] : ""
            for _ in 0...(random.next() % 8) { text += pieces[Int(random.next() % UInt64(pieces.count))] }
            guard let plain = PlainURL.parse(text) else { continue }
            plainCount += 1
            XCTAssertEqual(plain, try URLParser.parseAny(text), text)
        }
        XCTAssertGreaterThan(plainCount, 3_000)
    }
}
