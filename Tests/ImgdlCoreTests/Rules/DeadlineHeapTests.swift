import XCTest

@testable import ImgdlCore

final class DeadlineHeapTests: XCTestCase {
    private func at(_ nanoseconds: Int64) -> Instant { Instant(nanoseconds: nanoseconds) }

    func testPopsWhatIsDueInOrder() {
        var heap = DeadlineHeap<String>()
        XCTAssertNil(heap.earliest)
        XCTAssertNil(heap.popDue(at(100)))
        heap.insert(at(30), "c")
        heap.insert(at(10), "a")
        heap.insert(at(20), "b")
        XCTAssertEqual(heap.earliest, at(10))
        XCTAssertNil(heap.popDue(at(9)))
        XCTAssertEqual(heap.popDue(at(20)), "a")
        XCTAssertEqual(heap.popDue(at(20)), "b", "due means at its moment, not after it")
        XCTAssertNil(heap.popDue(at(29)))
        XCTAssertEqual(heap.popDue(at(30)), "c")
        XCTAssertEqual(heap.count, 0)
    }

    func testRandomlyAgainstASortedArray() {
        for seed in 1...30 as ClosedRange<UInt64> {
            var random = SeededGenerator(seed)
            var heap = DeadlineHeap<Int64>()
            var model: [Int64] = []
            for _ in 0..<500 {
                switch Int.random(in: 0..<8, using: &random) {
                case 0..<4:
                    let value = Int64.random(in: 0..<100, using: &random)
                    heap.insert(at(value), value)
                    model.append(value)
                case 4..<7:
                    let now = Int64.random(in: 0..<100, using: &random)
                    model.sort()
                    let due = model.first.flatMap { $0 <= now ? $0 : nil }
                    XCTAssertEqual(heap.popDue(at(now)), due, "seed \(seed)")
                    if due != nil { model.removeFirst() }
                default:
                    let kept = Int64.random(in: 2..<5, using: &random)
                    heap.compact { $0 % kept != 0 }
                    model.removeAll { $0 % kept == 0 }
                }
                XCTAssertEqual(heap.count, model.count)
                XCTAssertEqual(heap.earliest, model.min().map(at))
            }
        }
    }
}
