import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Issue 20: a clock that ran ahead once does not keep what nobody uses.
final class RecencyTests: StoreTestCase {
    private func storeByAFastClock(_ key: String) throws {
        let cache = try open()
        clock.advance(seconds: 1_000_000)
        cache.put(key, bytes(1_000))
        try cache.flush()
        clock.advance(seconds: -1_000_000)
        cache.close()
    }

    func testWhatWasUsedInTheFutureIsEvictedInItsTurn() throws {
        try storeByAFastClock("future")
        configuration.maximumBytes = 10_000
        let cache = try open()
        XCTAssertEqual(try cache.query("future")?.usedTime, clock.wallTime(), "it counts as now")
        for number in 0..<30 {
            clock.advance(seconds: 1)
            cache.put("k\(number)", bytes(1_000))
            try cache.flush()
            try cache.finishBackgroundWork()
        }
        XCTAssertNil(cache.wait("future"))
        XCTAssertNotNil(cache.wait("k29"))
        cache.close()
    }

    func testWhatWasUsedInTheFutureGrowsOld() throws {
        try storeByAFastClock("future")
        let cache = try open()
        try cache.removeOlder(than: 10)
        XCTAssertNotNil(cache.wait("future"))
        clock.advance(seconds: 60)
        try cache.removeOlder(than: 10)
        XCTAssertNil(cache.wait("future"))
        cache.close()
    }

    /// More than one transaction takes.
    func testManyThatWereUsedInTheFutureGrowOldTogether() throws {
        var cache = try open()
        clock.advance(seconds: 1_000_000)
        for number in 0..<1_000 {
            cache.put("k\(number)", bytes(10))
            if number % 100 == 99 { try cache.flush() }
        }
        clock.advance(seconds: -1_000_000)
        cache.close()
        cache = try open()
        try cache.removeOlder(than: 10)
        XCTAssertEqual(try cache.statistics().entries, 1_000)
        clock.advance(seconds: 60)
        cache.put("young", bytes(10))
        try cache.removeOlder(than: 10)
        XCTAssertEqual(try cache.statistics().entries, 1)
        XCTAssertNotNil(cache.wait("young"))
        cache.close()
    }

    /// A use of what waits to be stored waits with it, and one that finds another program writing is told later.
    func testUsesAreNotLostOnTheirWay() throws {
        configuration.maximumMemoryBytes = 1 << 20
        let cache = try open()
        cache.put("old", bytes(10))
        try cache.flush()
        cache.put("first", bytes(10))
        try cache.disk?.onWriter { writer in
            XCTAssertFalse(writer.batch.isEmpty)
            cache.put("later", bytes(10))
            self.clock.advance(seconds: 100)
            let later = cache.findInMemory("later") { _ in .entry(0, withBody: true) }
            XCTAssertNotNil(later.map { cache.use($0.entry.id) })
            writer.commit()
            XCTAssertTrue(writer.batch.isEmpty)
        }
        try cache.flush()
        XCTAssertEqual(try cache.query("later")?.usedTime, clock.wallTime())

        let other = try Database(path + "/index-1.sqlite", busyMilliseconds: 1_000)
        try other.execute("BEGIN IMMEDIATE")
        clock.advance(seconds: 100)
        cache.use(try XCTUnwrap(cache.wait("old")).entry.id)
        try cache.disk?.onWriter { writer in
            guard case .othersWrite = writer.commit() else { return XCTFail("the other one writes") }
        }
        try other.execute("ROLLBACK")
        try cache.flush()
        XCTAssertEqual(try cache.query("old")?.usedTime, clock.wallTime())
        cache.close()
    }

    func testAUseNowTakesThePlaceOfOneInTheFuture() throws {
        try storeByAFastClock("future")
        let cache = try open()
        cache.use(try XCTUnwrap(cache.wait("future")).entry.id)
        try cache.flush()
        XCTAssertEqual(try cache.query("future")?.usedTime, clock.wallTime())
        let index = try Index.openForReading(path + "/index-1.sqlite")
        XCTAssertEqual(try index.database.integer("SELECT used FROM entries"), clock.wallTime())
        cache.close()
    }

    /// A machine without a battery begins in 1970.
    func testAClockThatStandsFarBackChangesNothing() throws {
        let cache = try open()
        cache.put("k", bytes(10))
        try cache.flush()
        let time = clock.wallTime()
        clock.advance(seconds: -time)
        try cache.removeOlder(than: 10)
        clock.advance(seconds: time)
        XCTAssertEqual(try cache.query("k")?.usedTime, time)
        cache.close()
    }

    func testMemoryForgetsWhatWasUsedInTheFuture() throws {
        configuration.directory = nil
        configuration.maximumAge = 60
        let cache = try open()
        clock.advance(seconds: 1_000_000)
        cache.put("k", bytes(10))
        clock.advance(seconds: -1_000_000)
        XCTAssertNotNil(cache.findInMemory("k") { _ in .entry(0, withBody: true) })
        clock.advance(seconds: 61)
        XCTAssertNil(cache.findInMemory("k") { _ in .entry(0, withBody: true) })
        cache.close()
    }
}
