import XCTest

@testable import ImgdlCore

final class SlotTableTests: XCTestCase {
    func testKeysFindTheirValues() {
        var table = SlotTable<String>()
        let a = table.insert("a")
        let b = table.insert("b")
        XCTAssertNotEqual(a, b)
        XCTAssertEqual(table.get(a), "a")
        XCTAssertEqual(table[b], "b")
        table[a] += "!"
        XCTAssertEqual(table.get(a), "a!")
        XCTAssertEqual(table.count, 2)
        XCTAssertEqual(table.keys, [a, b])
    }

    func testARemovedKeyIsNeverValidAgain() {
        var table = SlotTable<Int>()
        var old: [UInt64] = []
        for value in 0..<100 {
            let key = table.insert(value)
            XCTAssertFalse(old.contains(key))
            for stale in old {
                XCTAssertFalse(table.contains(stale))
                XCTAssertNil(table.get(stale))
                XCTAssertNil(table.remove(stale))
            }
            XCTAssertEqual(table.remove(key), value)
            old.append(key)
        }
        XCTAssertEqual(table.count, 0)
        XCTAssertEqual(table.keys, [])
        XCTAssertEqual(Set(old.map(SlotTable<Int>.slot)), [0], "the slot is used again")
    }

    func testNoKeyIsZeroAndForeignKeysAreUnknown() {
        var table = SlotTable<Int>()
        XCTAssertNotEqual(table.insert(1), 0)
        for foreign: UInt64 in [0, 1, .max, 1 << 32 | 1, 2 << 32] { XCTAssertFalse(table.contains(foreign)) }
    }

    func testASlotWithoutGenerationsLeftIsNotUsedAgain() {
        var table = SlotTable<Int>(firstGeneration: .max - 2)
        let first = table.insert(1)
        table.remove(first)
        let last = table.insert(2)
        XCTAssertEqual(SlotTable<Int>.slot(first), SlotTable<Int>.slot(last))
        table.remove(last)
        let next = table.insert(3)
        XCTAssertNotEqual(SlotTable<Int>.slot(last), SlotTable<Int>.slot(next))
        XCTAssertFalse(table.contains(first) || table.contains(last))
        XCTAssertNil(table.remove(last))
        XCTAssertEqual(table.keys, [next])
    }

    /// A hundred thousand at once are some time over; what they needed is not kept, and their keys stay invalid.
    func testACrowdsRoomIsGivenBack() {
        var table = SlotTable<Int>()
        var old: [UInt64] = []
        for round in 0..<3 {
            let keys = (0..<5_000).map { table.insert($0 + round) }
            XCTAssertEqual(Set(keys).union(old).count, 5_000 * (round + 1), "each key is a new one")
            XCTAssertFalse(old.contains { table.contains($0) })
            for key in keys.shuffled().dropLast() { table.remove(key) }
            XCTAssertGreaterThanOrEqual(table.room, 5_000)
            XCTAssertNotNil(table.keys.first.flatMap { table.remove($0) })
            XCTAssertEqual(table.room, 0)
            old += keys
        }
        XCTAssertFalse(old.contains { table.contains($0) || table.isTaken(SlotTable<Int>.slot($0)) })
        let few = (0..<10).map { table.insert($0) }
        for key in few { table.remove(key) }
        XCTAssertGreaterThan(table.room, 0, "room for a few is kept")
    }

    /// Where a slot has no generations left, none is given back: it would come back with old ones.
    func testACrowdWithASlotThatIsUsedUpKeepsItsRoom() {
        var table = SlotTable<Int>(firstGeneration: .max - 2)
        let first = table.insert(0)
        table.remove(first)
        let last = table.insert(0)
        let others = (0..<5_000).map { table.insert($0) }
        table.remove(last)
        for key in others { table.remove(key) }
        XCTAssertEqual(table.count, 0)
        XCTAssertGreaterThan(table.room, 5_000)
        let next = (0..<5_001).map { table.insert($0) }
        XCTAssertTrue(Set(next).isDisjoint(with: others + [first, last]))
    }

    /// Whoever still knows the slot of one that has ended, when a crowd's room has been given back, asks for nothing.
    func testSlotsOfACrowdThatIsOverAreNobodys() {
        var downloads = Downloads()
        let now = Instant(nanoseconds: 0)
        let slots = (0..<3_000).map { number in
            let request = TransferRequest(url: testURL("https://a.example/\(number)"))
            let options = Boxed(wrappedValue: SubscriberOptions())
            return SlotTable<Subscriber>.slot(downloads.submit(request, options, now).subscriber)
        }
        XCTAssertNotNil(downloads.subscriber(at: slots[2_999]))
        downloads.cancelAll(now)
        XCTAssertEqual(slots.compactMap { downloads.subscriber(at: $0) }, [])
    }
}
