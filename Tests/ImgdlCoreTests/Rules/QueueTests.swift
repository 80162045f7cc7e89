import XCTest

@testable import ImgdlCore

final class QueueTests: XCTestCase {
    func testGivesInTheOrderInWhichItWasGiven() {
        var queue = Queue<Int>()
        var added = 0
        var taken = 0
        // Grows, shrinks, and is empty now and then.
        for (adds, takes) in [(3, 1), (0, 5), (200, 100), (1, 70), (50, 200), (1_000, 999), (5, 6), (1, 1)] {
            queue.append(contentsOf: added..<added + adds)
            added += adds
            for _ in 0..<takes {
                guard let next = queue.popFirst() else {
                    XCTAssertEqual(taken, added)
                    break
                }
                XCTAssertEqual(next, taken)
                taken += 1
            }
            XCTAssertEqual(queue.count, added - taken)
            XCTAssertEqual(queue.isEmpty, added == taken)
        }
        XCTAssertNil(queue.popFirst())
    }

    func testLetsGoOfWhatWasTaken() {
        final class Held {}
        var queue = Queue<Held>()
        weak var first: Held?
        do {
            let held = Held()
            first = held
            queue.append(held)
            queue.append(Held())
        }
        XCTAssertNotNil(first)
        _ = queue.popFirst()
        XCTAssertNil(first)
    }
}
