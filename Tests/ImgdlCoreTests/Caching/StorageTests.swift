import XCTest

@testable import ImgdlCore

/// Issue 20: what is kept is counted as what it takes, and room is granted before anything is written.
final class StorageTests: XCTestCase {
    private func response(_ fields: [HeaderField], varying: [VaryingField] = []) -> StoredResponse {
        StoredResponse(
            status: 200, httpVersion: 11, fields: fields, requestTime: 0, responseTime: 0, varying: varying,
            context: .blank)
    }

    func testBodiesAreCountedInBlocks() {
        let cases: [(Int64, Int64)] = [(0, 0), (1, 4096), (4096, 4096), (4097, 8192), (100_000, 102_400), (-1, 0)]
        for (length, bytes) in cases { XCTAssertEqual(StorageCost.file(length), bytes, "\(length)") }
        XCTAssertGreaterThan(StorageCost.file(.max), 1 << 60)
    }

    func testFieldsVariantsAndKeysAreCounted() {
        let empty = response([])
        let long = String(repeating: "x", count: 500)
        for full in [response([HeaderField("A", long)]), response([], varying: [VaryingField(name: "a", value: long)])]
        {
            XCTAssertGreaterThanOrEqual(StorageCost.row(full, key: "") - StorageCost.row(empty, key: ""), 501)
            XCTAssertGreaterThanOrEqual(StorageCost.memory(full, key: "") - StorageCost.memory(empty, key: ""), 501)
        }
        XCTAssertGreaterThanOrEqual(StorageCost.row(empty, key: long) - StorageCost.row(empty, key: ""), 500)
        XCTAssertGreaterThan(StorageCost.row(empty, key: ""), 200, "no entry is free of charge")
        XCTAssertGreaterThan(StorageCost.memory(empty, key: ""), 500)
        let pages = StorageCost.row(response([HeaderField("A", long + long + long)]), key: "")
        XCTAssertEqual(pages, 4096, "a row that shares its page with no other")
    }

    func testWhatIsWrittenIsTakenFromWhatWasGranted() {
        var ledger = StorageLedger()
        XCTAssertFalse(ledger.take(1))
        ledger.grant(100)
        XCTAssertTrue(ledger.take(60))
        XCTAssertFalse(ledger.take(41))
        XCTAssertTrue(ledger.take(40))
        ledger.giveBack(40)
        XCTAssertEqual([ledger.granted, ledger.held, ledger.free], [100, 60, 40])
        ledger.giveBack(60)
        ledger.grant(0)
        XCTAssertEqual([ledger.granted, ledger.held], [0, 0], "the index counts it")
        XCTAssertEqual(ledger.free, 0)
        XCTAssertTrue(ledger.takeUngranted(50, beside: 0), "one body")
        XCTAssertTrue(ledger.takeUngranted(50, beside: 50), "more of it")
        XCTAssertFalse(ledger.takeUngranted(1, beside: 0), "another one")
        XCTAssertEqual([ledger.granted, ledger.held], [100, 100])
    }

    func testRoomIsMadeByEvictingAndNeverBeyondTheLimit() {
        let use = { (entries: Int64, reserved: Int64) in StorageUse(entries: entries, reserved: reserved) }
        XCTAssertEqual(use(500, 100).admission(of: 50, wanting: 200, within: 1_000), .granted(200))
        XCTAssertEqual(use(900, 100).admission(of: 50, wanting: 200, within: 1_000), .evict(200))
        XCTAssertEqual(use(850, 100).admission(of: 50, wanting: 200, within: 1_000), .granted(50), "nothing has to go")
        XCTAssertEqual(use(0, 900).admission(of: 50, wanting: 200, within: 1_000), .granted(100), "what there is")
        XCTAssertEqual(use(100, 900).admission(of: 100, wanting: 200, within: 1_000), .evict(100))
        XCTAssertEqual(use(900, 100).admission(of: 901, wanting: 901, within: 1_000), .refused)
        XCTAssertEqual(use(0, 2_000).admission(of: 1, wanting: 1, within: 1_000), .refused)
        XCTAssertEqual(
            use(5_000, 0).admission(of: 1, wanting: 1, within: 1_000), .evict(4_001), "a lower limit than before")
    }

    func testTheIndexCountsWhereItIsLargerThanItsRows() {
        let allowance = StorageUse.indexAllowance
        XCTAssertEqual(StorageUse(entries: 500, rows: 200, index: 200 + allowance).total, 500)
        XCTAssertEqual(StorageUse(entries: 500, rows: 200, index: 300 + allowance, others: 7).total, 607)
    }

    func testForgedCountsNeverTrap() {
        for number: Int64 in [.min, -1, 0, 1 << 60, .max] {
            let use = StorageUse(entries: number, rows: number, reserved: number, index: number, others: number)
            for maximum: Int64 in [0, 1, 1 << 40, .max] {
                let admission = use.admission(
                    of: 1, wanting: StorageUse.portion(of: maximum), within: maximum)
                if maximum == 0 { XCTAssertEqual(admission, .refused) }
            }
        }
    }

    /// Any number of writers, of which some are killed: what lies in the folder never exceeds the limit.
    func testManyWritersStayWithinTheLimit() {
        let maximum: Int64 = 1_000_000
        var ledgers = [StorageLedger](repeating: StorageLedger(), count: 5)
        var reserved = [Int64](repeating: 0, count: 5)
        var waiting = [[Int64]](repeating: [], count: 5)
        var entries: [Int64] = []
        var onDisk: Int64 = 0
        var most: Int64 = 0
        var admitted = 0
        var random = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            let writer = Int.random(in: 0..<5, using: &random)
            switch Int.random(in: 0..<20, using: &random) {
            case 0:  // The index takes over what waits.
                for bytes in waiting[writer] { ledgers[writer].giveBack(bytes) }
                entries += waiting[writer]
                waiting[writer] = []
                ledgers[writer].grant(0)
                reserved[writer] = ledgers[writer].granted
            case 1:  // Killed: another one removes its files, and then gives its reservation back.
                onDisk -= waiting[writer].reduce(0, +)
                waiting[writer] = []
                ledgers[writer] = StorageLedger()
                reserved[writer] = 0
            default:
                let bytes = StorageCost.file(.random(in: 1...200_000, using: &random))
                while !ledgers[writer].take(bytes) {
                    let use = StorageUse(
                        entries: entries.reduce(0, +), reserved: reserved.reduce(0, +) - ledgers[writer].free)
                    switch use.admission(of: bytes, wanting: StorageUse.portion(of: maximum), within: maximum) {
                    case .granted(let granted):
                        ledgers[writer].grant(granted)
                        reserved[writer] = ledgers[writer].granted
                        continue
                    case .evict(let excess):
                        var gone: Int64 = 0
                        while gone < excess, !entries.isEmpty { gone += entries.removeFirst() }
                        XCTAssertGreaterThan(gone, 0)
                        onDisk -= gone
                        continue
                    case .refused: break
                    }
                    break
                }
                // What was not granted is not written.
                guard ledgers[writer].held > waiting[writer].reduce(0, +) else { continue }
                waiting[writer].append(bytes)
                onDisk += bytes
                admitted += 1
            }
            most = max(most, onDisk)
            XCTAssertLessThanOrEqual(onDisk, maximum)
        }
        XCTAssertGreaterThan(most, maximum / 2)
        XCTAssertGreaterThan(admitted, 1_000)
    }

    func testLossesAreToldTogetherAndOnceASecond() {
        var losses = StorageLosses()
        XCTAssertNil(losses.due)
        losses.count(.behind)
        XCTAssertEqual(losses.due, Instant(nanoseconds: 0), "the first at once")
        let now = Instant(nanoseconds: 5_000_000_000)
        XCTAssertEqual(losses.tell(now), "1 answer was not stored: the disk takes answers slower than they come")
        XCTAssertNil(losses.due)
        losses.count(.noRoom)
        losses.count(.behind)
        losses.count(.failure)
        XCTAssertEqual(losses.due, now.advanced(byMilliseconds: 1_000))
        XCTAssertEqual(
            losses.tell(now),
            "2 answers were not stored: the disk takes them slower than they come; there is no room for them within max_bytes"
        )
        XCTAssertNil(losses.tell(now))
        XCTAssertEqual(losses.total, 4)
        for (cause, reason) in [
            (StorageLosses.Cause.noRoom, "there is no room for it within max_bytes"),
            (.closed, "the cache was closed before it was written"),
        ] {
            losses.count(cause)
            XCTAssertEqual(losses.tell(now), "1 answer was not stored: \(reason)")
        }
    }
}
