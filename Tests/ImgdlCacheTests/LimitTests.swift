import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Issue 5: eviction by recency to nine tenths, age, the limit of beginnings.
final class LimitTests: StoreTestCase {
    func testTheOnesUsedLongestAgoGoUntilNineTenthsAreLeft() throws {
        configuration.maximumBytes = 100_000
        let cache = try open()
        for i in 0..<100 {
            cache.put("k\(i)", bytes(1_000))
            clock.advance(seconds: 1)
        }
        try cache.flush()
        try cache.finishBackgroundWork()
        XCTAssertEqual(try cache.statistics().bytes, 100_000, "exactly full is not too full")
        cache.use(try XCTUnwrap(cache.wait("k0")).entry.id)
        clock.advance(seconds: 1)
        cache.put("k100", bytes(1_000))
        try cache.flush()
        try cache.finishBackgroundWork()
        let statistics = try cache.statistics()
        XCTAssertEqual(statistics.bytes, 90_000)
        XCTAssertEqual(statistics.entries, 90)
        XCTAssertEqual(statistics.evicted, 11)
        XCTAssertEqual(files.count, 90)
        XCTAssertNotNil(cache.wait("k0"), "it was used")
        XCTAssertNil(cache.wait("k1"))
        XCTAssertNil(cache.wait("k11"))
        XCTAssertNotNil(cache.wait("k12"))
        cache.close()
    }

    func testWhatIsLargerThanTheWholeCacheIsNotStored() throws {
        configuration.maximumBytes = 1_000
        let cache = try open()
        cache.put("small", bytes(500))
        cache.put("large", bytes(1_001))
        try cache.flush()
        try cache.finishBackgroundWork()
        XCTAssertNil(cache.wait("large"))
        XCTAssertNotNil(cache.wait("small"))
        cache.close()
    }

    func testBeginningsHaveALimitOfTheirOwn() throws {
        configuration.maximumPartialBytes = 10_000
        let cache = try open()
        cache.put("whole", bytes(50_000))
        for i in 0..<11 {
            clock.advance(seconds: 1)
            cache.put("k\(i)", bytes(1_000), response(extent: .beginning(total: 2_000)), keeps: true)
        }
        cache.put("huge", bytes(10_001), response(extent: .beginning(total: nil)), keeps: true)
        try cache.flush()
        try cache.finishBackgroundWork()
        let statistics = try cache.statistics()
        XCTAssertEqual(statistics.partialBytes, 9_000)
        XCTAssertEqual(statistics.partialEntries, 9)
        XCTAssertEqual(statistics.entries, 10)
        XCTAssertNil(cache.wait("k1"))
        XCTAssertNotNil(cache.wait("k2"))
        XCTAssertNil(cache.wait("huge"))
        XCTAssertNotNil(cache.wait("whole"))
        cache.close()
    }

    func testWhatWasNotUsedForTooLongIsAsGoodAsGoneAndRemovedLater() throws {
        configuration.maximumAge = 60
        configuration.maximumMemoryBytes = 1 << 20
        let cache = try open()
        cache.put("a", bytes(10))
        cache.put("b", bytes(10))
        try cache.flush()
        clock.advance(seconds: 50)
        cache.use(try XCTUnwrap(cache.wait("b")).entry.id)
        clock.advance(seconds: 11)
        XCTAssertNil(cache.findInMemory("a") { _ in .entry(0, withBody: true) })
        XCTAssertNil(cache.wait("a"))
        XCTAssertNotNil(cache.wait("b"))
        XCTAssertNotNil(cache.findInMemory("b") { _ in .entry(0, withBody: true) })
        try cache.flush()
        clock.advance(seconds: 600)
        cache.put("c", bytes(10))
        try cache.flush()
        try cache.finishBackgroundWork()
        XCTAssertEqual(try cache.statistics().entries, 1)
        XCTAssertEqual(files.count, 1)
        cache.close()
    }

    /// What is answered from memory counts as used on the disk, too, though it is told once for each second.
    func testTheDiskHearsOfUsesOfWhatIsInMemory() throws {
        configuration.maximumBytes = 100_000
        configuration.maximumMemoryBytes = 1 << 20
        let first = try open()
        for i in 0..<100 {
            first.put("k\(i)", bytes(1_000))
            clock.advance(seconds: 1)
        }
        try first.flush()
        first.close()
        let second = try open()
        let id = try XCTUnwrap(second.wait("k0")).entry.id
        XCTAssertNotNil(second.findInMemory("k0") { _ in .entry(0, withBody: true) })
        // In the second in which it came into memory.
        for _ in 0..<2 { second.use(id) }
        second.put("k100", bytes(1_000))
        try second.flush()
        try second.finishBackgroundWork()
        second.close()
        let third = try open()
        XCTAssertNotNil(third.wait("k0"), "it was used")
        XCTAssertNil(third.wait("k1"))
    }

    func testRemoveOlderAsksForTheLastUse() throws {
        for directory in [path, nil] {
            configuration.directory = directory
            configuration.maximumMemoryBytes = 1 << 20
            let cache = try open()
            cache.put("a", bytes(10))
            cache.put("b", bytes(10))
            clock.advance(seconds: 100)
            cache.use(try XCTUnwrap(cache.wait("b")).entry.id)
            try cache.removeOlder(than: 50)
            XCTAssertNil(cache.wait("a"))
            XCTAssertNotNil(cache.wait("b"))
            try cache.removeOlder(than: .max)
            XCTAssertNotNil(cache.wait("b"))
            clock.advance(seconds: 1)
            try cache.removeOlder(than: 0)
            XCTAssertNil(cache.wait("b"))
            cache.close()
        }
    }

    func testManyVariantsOfOneKeyAreLimited() throws {
        let cache = try open()
        for i in 0..<40 {
            cache.put("k", bytes(10), response(varying: [VaryingField(name: "a", value: "\(i)")]))
            clock.advance(seconds: 1)
        }
        try cache.flush()
        XCTAssertEqual(try cache.statistics().entries, Int64(Index.maximumVariants))
        cache.close()
    }
}
