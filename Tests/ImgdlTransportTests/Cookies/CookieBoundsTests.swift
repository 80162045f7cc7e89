import XCTest

@testable import ImgdlTransport

/// Servers that set as many cookies as they can: what a jar holds, which go first (RFC 6265bis section 5.7), and what that
/// costs, in cookies that were looked at.
final class CookieBoundsTests: XCTestCase {
    private let now: Int64 = 1_800_000_000
    private var store = CookieStore()

    override func setUp() { store = CookieStore() }

    /// An answer for each 50 of them.
    private func flood(_ count: Int, attributes: String = "", at time: Int64 = 0, from url: (Int) -> String) {
        for start in stride(from: 0, to: count, by: 50) {
            store.receive(
                (start..<min(start + 50, count)).map { Array("\($0)flood=1\(attributes)".utf8) },
                from: CookieRequest(text: url(start / 50)), now: now + time)
        }
    }

    private func receive(_ url: String, _ fields: String..., at time: Int64 = 0) {
        store.receive(fields.map { Array($0.utf8) }, from: CookieRequest(text: url), now: now + time)
    }

    private func sent(_ url: String, at time: Int64 = 0) -> String? {
        store.field(for: CookieRequest(text: url), now: now + time).map { String(decoding: $0, as: UTF8.self) }
    }

    private func steps(_ body: () -> Void) -> Int {
        let before = store.steps
        body()
        return store.steps - before
    }

    // MARK: Attacks

    func testManyOfOneHost() {
        receive("http://other.example/", "mine=1")
        flood(18_000) { _ in "http://evil.example/" }
        XCTAssertEqual(store.count, 181)
        XCTAssertEqual(sent("http://other.example/"), "mine=1")
        XCTAssertEqual(store.cookies().last?.name, Array("17999flood".utf8))
    }

    func testManyOfSubdomains() {
        receive("http://other.example/", "mine=1")
        flood(18_000) { "http://a\($0).evil.example/" }
        XCTAssertEqual(store.count, 181)
        flood(1_000, attributes: "; Domain=evil.co.uk") { "https://a\($0).evil.co.uk/\($0)/" }
        flood(500) { "http://\($0).\($0).evil.co.uk/" }
        XCTAssertEqual(store.count, 361)
        XCTAssertEqual(sent("http://other.example/"), "mine=1")
    }

    func testManyDomains() {
        flood(18_000) { "http://evil\($0).example/" }
        XCTAssertEqual(store.count, 3_000)
        XCTAssertEqual(store.cookies().first?.name, Array("15000flood".utf8), "the newest are kept")
        receive("http://other.example/", "mine=1")
        XCTAssertEqual(sent("http://other.example/"), "mine=1")
        XCTAssertEqual(store.count, 3_000)
    }

    func testManyOfADomainThatNobodyRegistered() {
        flood(1_000) { _ in "http://github.io/" }
        flood(1_000) { _ in "http://localhost/" }
        flood(1_000) { _ in "http://127.0.0.1/" }
        flood(1_000) { _ in "http://[::1]/" }
        XCTAssertEqual(store.count, 4 * 180)
    }

    // MARK: The order

    func testWhatHasNotBeenUsedGoesFirst() {
        receive("http://a.example/", "first=1; Path=/first")
        receive("http://a.example/", "second=1; Path=/second")
        flood(178) { _ in "http://a.example/" }
        XCTAssertEqual(sent("http://a.example/first")?.hasPrefix("first=1; 0flood"), true)
        receive("http://a.example/", "third=1; Path=/third")
        XCTAssertEqual(store.count, 180)
        XCTAssertEqual(sent("http://a.example/first")?.hasPrefix("first=1; "), true)
        XCTAssertEqual(sent("http://a.example/second")?.hasPrefix("0flood=1; "), true)
    }

    func testUsedDomainsOutliveTheOthers() {
        receive("http://mine.example/", "mine=1")
        for round in 0..<40 {
            flood(500) { "http://evil\(round)-\($0).example/" }
            XCTAssertEqual(sent("http://mine.example/"), "mine=1")
        }
        XCTAssertEqual(store.count, 3_000)
    }

    func testInsecureOnesDoNotDriveSecureOnesOut() {
        receive("https://example.com/", "safe=1; Secure", "plain=1")
        flood(1_000) { "http://a\($0).example.com/" }
        XCTAssertEqual(sent("https://example.com/"), "safe=1")
        XCTAssertEqual(store.count, 180)
        // Where all are secure there is no place for another.
        flood(180, attributes: "; Secure; Path=/s") { _ in "https://example.com/" }
        receive("https://example.com/", "safe=1; Secure")
        receive("http://example.com/", "late=1")
        XCTAssertNil(sent("http://example.com/"))
        XCTAssertEqual(sent("https://example.com/"), "safe=1")
        receive("https://example.com/", "late=1; Secure")
        XCTAssertEqual(sent("https://example.com/"), "safe=1; late=1")
        XCTAssertEqual(store.count, 180)
    }

    func testExpiredOnesGoFirst() {
        receive("http://old.example/", "old=1")
        flood(2_999, attributes: "; Max-Age=10") { "http://a\($0).example/" }
        XCTAssertEqual(store.count, 3_000)
        receive("http://new.example/", "new=1", at: 10)
        XCTAssertEqual(store.count, 2)
        XCTAssertEqual(sent("http://old.example/"), "old=1")
        flood(179, attributes: "; Max-Age=10") { _ in "http://old.example/" }
        receive("http://old.example/", "more=1", at: 10)
        XCTAssertEqual(sent("http://old.example/", at: 10), "old=1; more=1")
    }

    // MARK: What it costs

    func testAFullJarCostsNoMoreThanAnEmptyOne() {
        func cost() -> Int {
            steps {
                flood(50, attributes: "; Max-Age=100") { _ in "http://mine.example/" }
                XCTAssertNotNil(sent("http://mine.example/"))
                XCTAssertNil(sent("http://nobody.example/"))
            }
        }
        let alone = cost()
        store = CookieStore()
        flood(18_000) { "http://evil\($0).example/" }
        XCTAssertEqual(cost(), alone)
    }

    func testAnAnswerOfAFloodedDomainIsBounded() {
        flood(1_000) { _ in "http://evil.example/" }
        // Each of 50 may look at all of the domain three times: what has expired, what it replaces, what goes.
        XCTAssertLessThanOrEqual(steps { flood(50) { _ in "http://evil.example/new" } }, 50 * 3 * 181)
        XCTAssertLessThanOrEqual(steps { XCTAssertNotNil(sent("http://evil.example/")) }, 2 * 180)
    }

    /// Whoever sets cookies of one second has the whole jar looked through once in a second, and not with each of them.
    func testExpiryIsLookedForOnceInASecond() {
        flood(3_000) { "http://a\($0).example/" }
        flood(50, attributes: "; Max-Age=1") { _ in "http://evil.example/" }
        let sweep = steps { receive("http://b.example/", "b=1", at: 1) }
        XCTAssertLessThanOrEqual(sweep, 3_100)
        let later = steps { for index in 0..<100 { receive("http://c\(index).example/", "c=1; Max-Age=1", at: 1) } }
        XCTAssertLessThanOrEqual(later, 100)
    }
}
