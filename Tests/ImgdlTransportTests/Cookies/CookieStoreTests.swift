import XCTest

@testable import ImgdlTransport

/// RFC 6265bis sections 5.7 and 5.8: which cookies a request gets.
final class CookieStoreTests: XCTestCase {
    private let now: Int64 = 1_800_000_000
    private var store = CookieStore()

    override func setUp() { store = CookieStore() }

    private func receive(_ url: String, _ fields: String..., at time: Int64 = 0) {
        store.receive(fields.map { Array($0.utf8) }, from: CookieRequest(text: url), now: now + time)
    }

    private func sent(_ url: String, at time: Int64 = 0) -> String? {
        store.field(for: CookieRequest(text: url), now: now + time).map { String(decoding: $0, as: UTF8.self) }
    }

    func testWhoGetsThem() {
        receive("http://example.com/a/b", "host=1", "all=2; Domain=example.com; Path=/")
        receive("https://example.com/a/b", "safe=3; Secure; Path=/")
        let table = [
            ("http://example.com/a/c", "host=1; all=2"), ("http://example.com/a", "host=1; all=2"),
            ("http://example.com/a/", "host=1; all=2"), ("http://example.com/ab", "all=2"),
            ("http://example.com/", "all=2"), ("http://example.com:8080/a?b", "host=1; all=2"),
            ("http://www.example.com/a/b", "all=2"), ("http://a.b.example.com/", "all=2"),
            ("https://example.com/", "all=2; safe=3"), ("https://www.example.com/a", "all=2"),
            ("http://badexample.com/a", nil), ("http://com/", nil), ("http://example.com.evil.org/", nil),
            ("http://example.org/a", nil), ("http://example.com./a", nil),
        ]
        for (url, expected) in table { XCTAssertEqual(sent(url), expected, url) }
    }

    func testPartitionsHaveTheirOwn() {
        func request(_ partition: String) -> CookieRequest {
            CookieRequest(try! URLParser.parse("http://example.com/"), partition: partition)
        }
        func sent(_ partition: String) -> String? {
            store.field(for: request(partition), now: now).map { String(decoding: $0, as: UTF8.self) }
        }
        for partition in ["", "a", "b"] {
            store.receive([Array("id=\(partition); Domain=example.com".utf8)], from: request(partition), now: now)
        }
        store.receive([Array("id=; Max-Age=0; Domain=example.com".utf8)], from: request("b"), now: now)
        XCTAssertEqual(["", "a", "b", "c"].map(sent), ["id=", "id=a", nil, nil])
        XCTAssertEqual(store.cookies(of: "a").map(\.value), [Array("a".utf8)])
        XCTAssertEqual(store.cookies().map(\.value), [[]])
    }

    func testOrder() {
        receive("http://a.example/", "one=1", "two=2; Path=/a/b", "three=3", "four=4; Path=/a", "five=5; Path=/a/b")
        XCTAssertEqual(sent("http://a.example/a/b"), "two=2; five=5; four=4; one=1; three=3")
        receive("http://a.example/", "one=new")
        XCTAssertEqual(sent("http://a.example/"), "one=new; three=3", "it is as old as it was")
        receive("http://a.example/", "one=; Max-Age=0")
        receive("http://a.example/", "one=newer")
        XCTAssertEqual(sent("http://a.example/"), "three=3; one=newer")
    }

    func testNamelessOnes() {
        receive("http://a.example/", "=x", "y", "z=")
        XCTAssertEqual(sent("http://a.example/"), "y; z=", "of those without a name there is one")
    }

    func testSameNamesOfOtherPlaces() {
        receive("http://a.b.example/x/y", "n=host", "n=domain; Domain=a.b.example", "n=above; Domain=b.example")
        receive("http://a.b.example/x/y", "n=root; Path=/", "n=host2")
        XCTAssertEqual(sent("http://a.b.example/x/y"), "n=host2; n=domain; n=above; n=root")
        XCTAssertEqual(store.count, 4)
    }

    func testEnds() {
        receive("http://a.example/", "a=1; Max-Age=10", "b=2; Expires=Fri, 15 Jan 2027 08:00:20 GMT", "c=3")
        XCTAssertEqual(sent("http://a.example/", at: 9), "a=1; b=2; c=3")
        XCTAssertEqual(sent("http://a.example/", at: 10), "b=2; c=3")
        XCTAssertEqual(sent("http://a.example/", at: 19), "b=2; c=3")
        XCTAssertEqual(sent("http://a.example/", at: 20), "c=3")
        XCTAssertEqual(store.count, 1)
        receive("http://a.example/", "c=3; Expires=Thu, 01 Jan 1970 00:00:00 GMT")
        XCTAssertNil(sent("http://a.example/"))
        receive("http://a.example/", "d=4; Max-Age=0")
        XCTAssertEqual(store.count, 0)
        receive("http://a.example/", "e=5; Max-Age=99999999999999999999")
        XCTAssertNotNil(sent("http://a.example/", at: 400 * 86_400 - 1))
        XCTAssertNil(sent("http://a.example/", at: 400 * 86_400))
    }

    /// What came safely is neither replaced nor deleted nor shadowed by what comes in the clear.
    func testSecureOnesStay() {
        receive("https://a.example.com/", "n=safe; Secure; Domain=example.com; Path=/x")
        for field in [
            "n=1; Domain=example.com; Path=/x", "n=1; Path=/x", "n=1; Domain=a.example.com; Path=/x/y",
            "n=; Domain=example.com; Path=/x; Max-Age=0",
        ] {
            receive("http://a.example.com/x/y", field)
            XCTAssertEqual(sent("https://a.example.com/x/y"), "n=safe", field)
        }
        receive("http://a.example.com/x", "n=root; Path=/", "m=other; Path=/x")
        XCTAssertEqual(sent("https://a.example.com/x"), "n=safe; m=other; n=root", "where it does not stand in front")
        receive("https://a.example.com/x", "n=plain; Domain=example.com; Path=/x")
        XCTAssertEqual(sent("http://a.example.com/x"), "n=plain; m=other; n=root", "safely it may")
    }

    func testAddresses() {
        receive("http://127.0.0.1/", "a=1", "b=2; Domain=127.0.0.1", "c=3; Domain=0.0.1")
        XCTAssertEqual(sent("http://127.0.0.1:81/"), "a=1; b=2")
        XCTAssertNil(sent("http://1.127.0.0.1/"))
        receive("http://[::1]/", "a=6")
        XCTAssertEqual(sent("http://[::1]:81/"), "a=6")
    }

    func testPublicSuffixes() {
        receive("http://github.io/", "a=1; Domain=github.io")
        XCTAssertEqual(sent("http://github.io/"), "a=1")
        XCTAssertNil(sent("http://a.github.io/"))
        let list = PublicSuffixes.system
        XCTAssertEqual(list.registrableDomain(of: "a.b.example.co.uk"), "example.co.uk")
        XCTAssertEqual(list.registrableDomain(of: "a.example.com."), "example.com")
        XCTAssertEqual(list.registrableDomain(of: "a.xn--85x722f.com.cn"), "xn--85x722f.com.cn")
        for name in ["com", "co.uk", "localhost", "", "."] { XCTAssertNil(list.registrableDomain(of: name), name) }
    }

    // MARK: The field

    func testTheFieldIsBounded() {
        let value = String(repeating: "v", count: 4_000)
        receive("http://a.example/", "a=\(value)", "b=\(value)", "c=\(value)", "d=1")
        XCTAssertEqual(sent("http://a.example/"), "a=\(value); b=\(value)")
        let request = CookieRequest(text: "http://a.example/")
        for given in [1, 4_000, 4_175, 4_176, 4_177, 8_190, 100_000] {
            let field = store.field(for: request, besides: given, now: now)
            XCTAssertLessThanOrEqual(field.map { 8 + given + $0.count } ?? 0, 8_190)
            XCTAssertEqual(field != nil, given <= 8_190 - 8 - 4_004, "\(given)")
            XCTAssertTrue(field?.starts(with: "; a=".utf8) ?? true)
        }
    }

    func testFieldsOfOneAnswerAreBounded() {
        let fields = (0..<1_000).map { Array("n\($0)=1".utf8) }
        store.receive(fields, from: CookieRequest(text: "http://a.example/"), now: now)
        XCTAssertEqual(store.count, 50)
        XCTAssertEqual(store.cookies().last?.name, Array("n49".utf8))
    }
}

extension CookieRequest {
    init(text: String) { self.init(try! URLParser.parse(text)) }
}
