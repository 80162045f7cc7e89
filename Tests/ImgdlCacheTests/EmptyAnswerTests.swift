import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Headers, rows and empty answers count: here there is nothing else.
final class EmptyAnswerTests: StoreTestCase {
    /// Of an answer without fields and without a body under a key of five letters.
    private let cost = StorageCost.row(response(), key: "10000")

    /// So many that the folder would hold more than is allowed if rows cost nothing, or less than they take.
    func testTheFolderNeverTakesMoreThanIsAllowedForAnswersWithoutABody() throws {
        configuration.maximumBytes = 1_000_000
        let cache = try open()
        var most: Int64 = 0
        for round in 10..<70 {
            for number in 0..<1_000 { XCTAssertTrue(cache.put("\(round * 1_000 + number)", [])) }
            clock.advance(seconds: 1)
            try cache.flush()
            most = max(most, bytesOnDisk(path))
        }
        XCTAssertLessThanOrEqual(most, 1_100_000 + 8 << 20)
        let statistics = try cache.statistics()
        XCTAssertEqual(statistics.stored, 60_000)
        XCTAssertLessThanOrEqual(statistics.bytes, 1_000_000)
        XCTAssertEqual(statistics.bytes, statistics.entries * cost)
        XCTAssertGreaterThan(statistics.entries, 500_000 / cost)
        XCTAssertNotNil(cache.wait("69999"), "the newest stay")
        XCTAssertNil(cache.wait("10000"))
        cache.close()
        XCTAssertLessThanOrEqual(bytesOnDisk(path), 1_100_000 + 8 << 20)
    }
}
