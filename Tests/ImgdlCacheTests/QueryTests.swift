import CacheTesting
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// What a cache says of a URL is true of the newest answer, also where some were stored while the clock was ahead.
final class QueryTests: StoreTestCase {
    private let days: Int64 = 2 * 86_400

    private func variant(_ name: String, _ fields: [HeaderField] = []) -> StoredResponse {
        response(
            [HeaderField("Cache-Control", "max-age=60")] + fields, at: clock.wallTime(),
            varying: [VaryingField(name: "accept", value: name)])
    }

    private func whileAhead(_ body: () throws -> Void) rethrows {
        clock.advance(seconds: days)
        defer { clock.advance(seconds: -days) }
        try body()
    }

    private func name(_ found: CachedResponse?) -> String? { found?.response.varying.first?.value }

    private func freshness(_ found: CachedResponse?) -> Int64? {
        found.map { CacheRules.remainingFreshness(of: $0.response, wallTime: clock.wallTime()) }
    }

    /// In memory alone, on the disk alone, in both, and after a start.
    private func check(_ body: (Cache) throws -> Void, _ expect: (CachedResponse?, _ where: String) -> Void) throws {
        for (memory, hasDisk) in [(1 << 20, false), (0, true), (1 << 20, true)] as [(Int64, Bool)] {
            configuration.maximumMemoryBytes = memory
            configuration.directory = hasDisk ? path : nil
            var cache = try open()
            try body(cache)
            let place = "memory: \(memory > 0), disk: \(hasDisk)"
            expect(try cache.query("k"), place)
            if hasDisk {
                try cache.flush()
                expect(try cache.query("k"), "\(place), written")
                cache.close()
                cache = try open()
                expect(try cache.query("k"), "\(place), after a start")
            }
            try cache.clear()
            cache.close()
        }
    }

    func testWhatCameAfterTheClockWasPutRightIsNewer() throws {
        try check { cache in
            whileAhead { _ = cache.put("k", bytes(10), variant("before")) }
            cache.put("k", bytes(20), variant("now"))
        } _: { found, place in
            XCTAssertEqual(name(found), "now", place)
            XCTAssertEqual(freshness(found), 60, place)
        }
    }

    /// As on one machine, or where both have their time from one that was wrong.
    func testWhatCameAfterBothClocksWerePutRightTakesItsPlace() throws {
        for isOneQuestion in [true, false] {
            try check { cache in
                whileAhead {
                    let date = HeaderField("Date", HTTPDate.text(clock.wallTime() - 1))
                    _ = cache.put("k", bytes(10), variant(isOneQuestion ? "now" : "before", [date]))
                }
                cache.put("k", bytes(20), variant("now", [HeaderField("Date", HTTPDate.text(clock.wallTime()))]))
            } _: { found, place in
                XCTAssertEqual(name(found), "now", place)
                XCTAssertEqual(found?.response.bodyLength, 20, place)
                XCTAssertEqual(freshness(found), 60, place)
            }
        }
    }

    /// The server's own date tells, where there is one.
    func testWhatCameWhileTheClockWasAheadIsNewerWhereItsDateSaysSo() throws {
        let first = HeaderField("Date", HTTPDate.text(clock.wallTime() - 100))
        let second = HeaderField("Date", HTTPDate.text(clock.wallTime() - 50))
        try check { cache in
            cache.put("k", bytes(10), variant("first", [first]))
            whileAhead { _ = cache.put("k", bytes(20), variant("ahead", [second])) }
        } _: { found, place in
            XCTAssertEqual(name(found), "ahead", place)
            XCTAssertEqual(freshness(found), 0, "\(place): nobody knows how old it is")
        }
    }

    func testNothingIsOfTheFuture() throws {
        try check { cache in
            whileAhead { _ = cache.put("k", bytes(10), variant("ahead")) }
        } _: { found, place in
            XCTAssertEqual(name(found), "ahead", place)
            XCTAssertEqual(freshness(found), 0, place)
            XCTAssertEqual(found?.storedTime, clock.wallTime(), place)
            XCTAssertEqual(found?.usedTime, clock.wallTime(), place)
        }
    }

    /// What the disk could not take has taken the place of what it has.
    func testWhatIsInMemoryAloneIsNewer() throws {
        let disk = FailingDisk()
        tuning.disk = disk
        configuration.maximumMemoryBytes = 1 << 20
        let cache = try open()
        whileAhead { _ = cache.put("k", bytes(10), variant("same")) }
        try cache.flush()
        disk.fail(.write, ENOSPC)
        cache.put("x", bytes(10))
        XCTAssertThrowsError(try cache.flush())
        cache.put("k", bytes(20), variant("same"))
        XCTAssertEqual(try cache.query("k")?.response.bodyLength, 20)
        XCTAssertEqual(freshness(try cache.query("k")), 60)
        cache.close()
    }
}
