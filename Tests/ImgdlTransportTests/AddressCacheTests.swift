import ImgdlCore
import XCTest

@testable import ImgdlTransport

final class AddressCacheTests: XCTestCase {
    private func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

    private func found(_ address: String, for lifetime: Int64 = 1_000) -> AddressAnswer {
        AddressAnswer(addresses: [address], host: "h", lifetime: lifetime)
    }

    func testTheCacheIsBounded() {
        var cache = AddressCache(capacity: 2)
        for index in 0..<5 { cache.insert(found("\(index)"), for: "h\(index)", at: at(Int64(index))) }
        XCTAssertEqual(cache.count, 2)
        XCTAssertEqual(cache.answer(for: "h4", at: at(5)), .success(["4"]))
        XCTAssertNil(cache.answer(for: "h0", at: at(5)))
    }

    func testAnAnswerIsKeptForItsTime() {
        var cache = AddressCache(capacity: 2)
        cache.insert(found("a", for: 5_000), for: "h", at: at(0))
        XCTAssertEqual(cache.answer(for: "h", at: at(4_999)), .success(["a"]))
        XCTAssertNil(cache.answer(for: "h", at: at(5_000)))
        XCTAssertEqual(cache.count, 0)
    }

    func testTimesToLiveAreBetweenASecondAndFiveMinutes() {
        let table: [(Int32, Int64)] = [
            (0, 1_000), (-1, 1_000), (.min, 1_000), (1, 1_000), (2, 2_000), (300, 300_000), (301, 300_000),
            (.max, 300_000),
        ]
        for (seconds, expected) in table { XCTAssertEqual(AddressCache.lifetime(ofSeconds: seconds), expected) }
    }

    func testOnlyACertainAbsenceIsKeptAndBriefly() {
        var cache = AddressCache(capacity: 2)
        let absent = AddressAnswer(host: "h", cause: "no such name", isCertain: true)
        cache.insert(absent, for: "h", at: at(0))
        XCTAssertEqual(cache.answer(for: "h", at: at(999)), absent.result)
        XCTAssertNil(cache.answer(for: "h", at: at(1_000)))
        cache.insert(AddressAnswer(host: "h", cause: "no answer", isCertain: false), for: "h", at: at(0))
        XCTAssertEqual(cache.count, 0)
    }

    func testAddressesOfANameAreBoundedAndDifferent() {
        let many = AddressAnswer(addresses: (0..<4_000).map { "a\($0 / 2)" }, host: "h", lifetime: 1)
        XCTAssertEqual(many.result, .success((0..<32).map { "a\($0)" }))
        guard case .failure(let failure) = AddressAnswer(addresses: [], host: "h", lifetime: 1).result else {
            return XCTFail("found")
        }
        XCTAssertEqual(failure, Failure(.resolveFailed, "could not resolve host “h”: it has no address"))
    }
}
