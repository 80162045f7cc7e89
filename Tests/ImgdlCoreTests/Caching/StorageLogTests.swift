import XCTest

@testable import ImgdlCore

final class StorageLogTests: XCTestCase {
    /// Each transaction that may begin ends within the bound: a change writes four pages at most, a row its own bytes and a page.
    func testWhatBeginsHasRoom() {
        let table: [(StorageLog.Purpose, Int64, StorageLog.Room?)] = [
            (.adding, 0, .init(changes: 128, rowBytes: 512 << 10)),
            (.adding, 3 << 20, .init(changes: 128, rowBytes: 512 << 10)), (.adding, 3 << 20 + 1, nil),
            (.changing, 3 << 20, .init(changes: 128, rowBytes: 512 << 10)),
            (.changing, 3 << 20 + 1, .init(changes: 32, rowBytes: 128 << 10)),
            (.changing, 4 << 20, .init(changes: 32, rowBytes: 128 << 10)), (.changing, 4 << 20 + 1, nil),
            (.changing, .max, nil),
        ]
        for (purpose, length, room) in table {
            XCTAssertEqual(StorageLog.room(for: purpose, length: length), room, "\(purpose) \(length)")
        }
    }

    private func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

    /// Two seconds in all, whoever waits: afterwards nobody does, until the log was emptied or nothing was tried for ten.
    func testOthersAreWaitedForOnce() {
        var emptying = StorageLog.Emptying()
        XCTAssertEqual(emptying.end(now: at(1_000)), at(3_000))
        emptying.failed(since: at(1_000), now: at(1_100))
        emptying.failed(since: at(1_000), now: at(3_000))
        XCTAssertEqual(emptying.end(now: at(3_000)), at(3_000))
        emptying.failed(since: at(12_999), now: at(12_999))
        XCTAssertEqual(emptying.end(now: at(22_998)), at(3_000), "it is there still")
        XCTAssertEqual(emptying.end(now: at(22_999)), at(24_999), "nobody knows who is there now")
        emptying.failed(since: at(22_999), now: at(23_000))
        XCTAssertEqual(emptying.end(now: at(23_000)), at(24_999))
        emptying.succeeded()
        XCTAssertEqual(emptying.end(now: at(23_001)), at(25_001))
    }

    /// Not who was in the way for a moment, however often.
    func testWhoReadsForLong() {
        var emptying = StorageLog.Emptying()
        XCTAssertFalse(emptying.isReadForLong(now: at(0)))
        emptying.failed(since: at(1_000), now: at(1_100))
        emptying.failed(since: at(1_000), now: at(2_999))
        XCTAssertFalse(emptying.isReadForLong(now: at(3_500)), "nobody has seen it for two seconds")
        emptying.failed(since: at(3_500), now: at(3_500))
        XCTAssertTrue(emptying.isReadForLong(now: at(3_500)))
        XCTAssertTrue(emptying.isReadForLong(now: at(13_499)))
        XCTAssertFalse(emptying.isReadForLong(now: at(13_500)), "nobody knows who is there now")
        emptying.succeeded()
        emptying.failed(since: at(13_600), now: at(13_700))
        XCTAssertFalse(emptying.isReadForLong(now: at(13_700)))
    }
}
