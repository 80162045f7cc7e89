import XCTest

@testable import ImgdlCore

final class ObjectTableTests: XCTestCase {
    private final class Held {
        let number: Int

        init(_ number: Int) { self.number = number }
    }

    func testObjectsAreFoundByTheirSlots() {
        var table = ObjectTable<Held>()
        XCTAssertNil(table[0])
        XCTAssertNil(table.take(0))
        for slot in [3, 200, 0] { table.put(Held(slot), at: slot) }
        XCTAssertEqual([0, 3, 200].map { table[$0]?.number }, [0, 3, 200])
        XCTAssertEqual(table.look(at: 200) { $0.number }, 200)
        for slot in [1, 199, 201] {
            XCTAssertFalse(table.isTaken(slot))
            XCTAssertNil(table.look(at: slot) { $0.number })
            XCTAssertNil(table.take(slot))
        }
        XCTAssertEqual(table.take(3)?.number, 3)
        XCTAssertFalse(table.isTaken(3))
        table.put(Held(4), at: 3)
        XCTAssertEqual(table[3]?.number, 4, "a slot is used again")
    }

    func testItHoldsWhatIsInItAndNothingElse() {
        weak var taken: Held?
        weak var left: Held?
        weak var kept: Held?
        var outside: Held?
        do {
            var table = ObjectTable<Held>()
            do {
                let (first, second) = (Held(1), Held(2))
                (taken, left) = (first, second)
                table.put(first, at: 0)
                table.put(second, at: 1)
                table.put(Held(3), at: 2)
            }
            XCTAssertNotNil(taken)
            table.take(0)
            XCTAssertNil(taken)
            outside = table.take(2)
            kept = outside
            XCTAssertNotNil(left)
        }
        XCTAssertNil(left, "it goes with the table")
        XCTAssertEqual(kept?.number, 3, "whoever has taken it keeps it")
        outside = nil
        XCTAssertNil(kept)
    }
}
