import XCTest

@testable import ImgdlTransport

/// Netscape's format: what is read, what is passed over, and what is written.
final class CookieFileTests: XCTestCase {
    private let now: Int64 = 1_800_000_000

    private func cookies(_ lines: String...) -> [Cookie] {
        Array(CookieFile.cookies(Array("# Netscape HTTP Cookie File\n\(lines.joined(separator: "\n"))\n".utf8)))
    }

    private func restored(_ lines: [String]) -> CookieStore {
        var store = CookieStore()
        for cookie in CookieFile.cookies(Array(lines.joined(separator: "\n").utf8)) { store.restore(cookie, now: now) }
        return store
    }

    private func sent(_ store: CookieStore, _ url: String) -> String? {
        var store = store
        return store.field(for: CookieRequest(text: url), now: now).map { String(decoding: $0, as: UTF8.self) }
    }

    func testLines() throws {
        let found = cookies(
            "# comment", "", ".Example.com\tTRUE\t/a\tTRUE\t1900000000\tname\tvalue",
            "#HttpOnly_www.example.com\tFALSE\t/\tFALSE\t0\tname\tv=w; x\r",
            "www.example.com\tfalse\t/\tfalse\t0\tempty")
        XCTAssertEqual(found.count, 3)
        XCTAssertEqual(
            found.first,
            Cookie(
                name: Array("name".utf8), value: Array("value".utf8), domain: "example.com", isHostOnly: false,
                path: Array("/a".utf8), isSecure: true, expiry: 1_900_000_000))
        XCTAssertEqual(found[1].isHTTPOnly, true)
        XCTAssertEqual(found[1].value, Array("v=w; x".utf8))
        XCTAssertNil(found[1].expiry)
        XCTAssertEqual(found[2].value, [])
    }

    func testBadLinesArePassedOver() {
        let good = "www.example.com\tFALSE\t/\tFALSE\t0\tgood\t1"
        for bad in [
            "www.example.com", "www.example.com\tFALSE\t/\tFALSE\t0", good + "\t2", "\tFALSE\t/\tFALSE\t0\ta\t1",
            ".\tTRUE\t/\tFALSE\t0\ta\t1", "..example.com\tTRUE\t/\tFALSE\t0\ta\t1",
            "www.example.com\tmaybe\t/\tFALSE\t0\ta\t1",
            "www.example.com\tFALSE\t/\t1\t0\ta\t1", "www.example.com\tFALSE\t/\tFALSE\t-1\ta\t1",
            "www.example.com\tFALSE\t/\tFALSE\tsoon\ta\t1", "www example.com\tFALSE\t/\tFALSE\t0\ta\t1",
            "wéw.example.com\tFALSE\t/\tFALSE\t0\ta\t1",
            String(repeating: "w", count: 256) + "\tFALSE\t/\tFALSE\t0\ta\t1",
            "www.example.com\tFALSE\t/\tFALSE\t0\ta\t" + String(repeating: "v", count: 10_000),
            "Set-Cookie: a=1; Domain=www.example.com", "\u{0}\u{1}\u{2}",
        ] { XCTAssertEqual(cookies(bad, good).map(\.name), [Array("good".utf8)], bad) }
    }

    /// Files are no way around what servers may not do.
    func testForgedOnes() {
        let lines = [
            ".com\tTRUE\t/\tFALSE\t0\tsuffix\t1", ".github.io\tTRUE\t/\tFALSE\t0\tsuffix\t2",
            "a.example\tFALSE\t/\tFALSE\t0\tcontrol\t\u{1}", "a.example\tFALSE\t/\tFALSE\t0\t__Secure-a\t1",
            "a.example\tFALSE\t/\tFALSE\t0\t\t", "a.example\tFALSE\tx\tFALSE\t0\tpath\t1",
            "a.example\tFALSE\t/\tFALSE\t1799999999\texpired\t1",
            "a.example\tFALSE\t/\tFALSE\t99999999999999999999999\tlate\t1",
            ".127.0.0.1\tTRUE\t/\tFALSE\t0\taddress\t1",
            "a.example\tFALSE\t/\tFALSE\t0\tlong\t" + String(repeating: "v", count: 4_093),
        ]
        let store = restored(lines)
        XCTAssertEqual(sent(store, "http://a.example/"), "late=1")
        XCTAssertEqual(store.cookies().first { $0.name == Array("late".utf8) }?.expiry, now + Cookie.maximumAge)
        XCTAssertNil(sent(store, "http://example.com/"))
        XCTAssertNil(sent(store, "http://a.github.io/"))
        XCTAssertEqual(sent(store, "http://github.io/"), "suffix=2", "of that host alone")
        XCTAssertEqual(sent(store, "http://127.0.0.1/"), "address=1")
        XCTAssertNil(sent(store, "http://1.127.0.0.1/"))
    }

    func testHugeFilesAreBounded() {
        let lines = (0..<20_000).map { "a\($0).example\tFALSE\t/\tFALSE\t0\tn\t1" }
        XCTAssertEqual(restored(lines).count, CookieStore.maximumCookies)
        XCTAssertEqual(restored((0..<2_000).map { "\($0).evil.example\tFALSE\t/\tFALSE\t0\tn\t1" }).count, 180)
        // Of the largest as many are read as a jar holds.
        let value = String(repeating: "v", count: Cookie.maximumPairBytes - 4)
        let path = "/" + String(repeating: "p", count: Cookie.maximumAttributeBytes - 1)
        let label = String(repeating: "d", count: 60)
        var store = CookieStore()
        for index in 0..<10 {
            let host = "\(label).\(label).\(label).d\(index).example"
            let request = CookieRequest(host: host, path: [0x2F], isSecure: true)
            let attributes = "Path=\(path); Secure; HttpOnly; Max-Age=9999999; Domain=\(host)"
            let field = "n\(String(index + 100).suffix(3))=\(value); \(attributes)"
            store.receive([Array(field.utf8)], from: request, now: now)
        }
        XCTAssertEqual(store.count, 10)
        let bytes = CookieFile.bytes(store.cookies())
        XCTAssertLessThanOrEqual(bytes.count / 10 * CookieStore.maximumCookies, CookieFile.maximumBytes)
        XCTAssertEqual(Array(CookieFile.cookies(bytes)), store.cookies())
    }

    func testWhatIsWrittenIsReadAgain() {
        var store = CookieStore()
        let fields = [
            "a=1", "b=2; Domain=example.com; Path=/x", "c=3; Secure; HttpOnly; Max-Age=100", "=nameless", "empty=",
            "eq=a=b", "__Host-h=1; Secure; Path=/", "bytes=é",
        ]
        store.receive(fields.map { Array($0.utf8) }, from: CookieRequest(text: "https://www.example.com/x/y"), now: now)
        XCTAssertEqual(store.count, fields.count)
        var again = CookieStore()
        for cookie in CookieFile.cookies(CookieFile.bytes(store.cookies())) { again.restore(cookie, now: now) }
        XCTAssertEqual(again.cookies(), store.cookies())
        XCTAssertEqual(sent(again, "https://www.example.com/x"), sent(store, "https://www.example.com/x"))
    }

    /// As curl writes it.
    func testTheText() {
        let cookie = Cookie(
            name: Array("n".utf8), value: Array("v".utf8), domain: "example.com", isHostOnly: false,
            path: Array("/p".utf8), isSecure: true, isHTTPOnly: true, expiry: 5)
        var other = cookie
        (other.isHostOnly, other.isSecure, other.isHTTPOnly, other.expiry) = (true, false, false, nil)
        XCTAssertEqual(
            String(decoding: CookieFile.bytes([cookie, other]), as: UTF8.self),
            "# Netscape HTTP Cookie File\n#HttpOnly_.example.com\tTRUE\t/p\tTRUE\t5\tn\tv\n"
                + "example.com\tFALSE\t/p\tFALSE\t0\tn\tv\n")
        XCTAssertTrue(CookieFile.isOne(CookieFile.bytes([])))
    }

    /// Whatever stands before the first cookie, as other programs and people write it.
    func testWhatIsOne() {
        let (header, line) = ("# Netscape HTTP Cookie File\n", "a.example\tFALSE\t/\tFALSE\t0\tn\t1\n")
        let mark = "\u{FEFF}"
        for text in [
            header, header + line, "# HTTP Cookie File\n" + line, "# HTTP cookie file.\n" + line, line,
            "# exported for Ada\n" + header + line, "\n" + header + line, "\r\n \t\r\n" + header + line,
            "# no header\n\n# at all\n" + line, mark + header + line, mark + line, "#HttpOnly_" + line,
            line.replacingOccurrences(of: "\n", with: "\r\n"), "a.example\tFALSE\t/\tFALSE\t1\texpired\t1\n" + line,
            header + "of no cookie\n" + line, "a.example\tfalse\t/\tTRUE\t-1\tnext\t1\n" + line,
            String(repeating: "# many\n\n", count: 20_000) + line,
        ] {
            XCTAssertTrue(CookieFile.isOne(Array(text.utf8)), String(text.prefix(60)))
            let read = CookieFile.cookies(Array(text.utf8)).filter { $0.name == Array("n".utf8) }
            XCTAssertEqual(read.count, text == header ? 0 : 1, String(text.prefix(60)))
        }
        for text in ["", "\n", " \n\t\r\n", mark] { XCTAssertTrue(CookieFile.isOne(Array(text.utf8)), text) }
        for text in [
            "Dear reader", "Dear reader\n" + header + line, "# my notes\n", "#!/bin/sh\nrm\n" + line, "{}\n" + line,
            "a.example\tFALSE\t/\n" + line, "a\tb\tc\td\te\tf\tg\n", "\u{0}\n" + line,
            String(repeating: "x\t", count: 1_000_000), String(repeating: "x", count: 20_000) + line,
        ] { XCTAssertFalse(CookieFile.isOne(Array(text.utf8)), String(text.prefix(60))) }
    }

    /// The jar's own bounds decide what is kept of a long file, and not how much else is in it.
    func testTheWholeFileIsRead() {
        let (good, late) = ("a.example\tFALSE\t/\tFALSE\t0\tgood\t1\n", "a.example\tFALSE\t/\tFALSE\t0\tlate\t2\n")
        for filler in ["# x\n", "\n", "b.example\tFALSE\t/\tFALSE\t1\texpired\t1\n", "of no cookie\n"] {
            let text = good + String(repeating: filler, count: 15_000) + late
            XCTAssertEqual(sent(restored([text]), "http://a.example/"), "good=1; late=2", filler)
        }
        let many = (0..<5_000).map { "a\($0).example\tFALSE\t/\tFALSE\t0\tn\t\($0)" }
        let store = restored(many)
        XCTAssertEqual(store.count, CookieStore.maximumCookies)
        XCTAssertEqual(sent(store, "http://a4999.example/"), "n=4999", "the last ones are kept")
        XCTAssertNil(sent(store, "http://a0.example/"))
    }
}
