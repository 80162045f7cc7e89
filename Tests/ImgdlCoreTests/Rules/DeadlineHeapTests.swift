import XCTest

@testable import ImgdlCore

final class DeadlineHeapTests: XCTestCase {
    private func at(_ nanoseconds: Int64) -> Instant { Instant(nanoseconds: nanoseconds) }

    func testPopsWhatIsDueInOrder() {
        var heap = DeadlineHeap<String>()
        XCTAssertNil(heap.earliest)
        XCTAssertNil(heap.popDue(at(100)))
        for (time, name) in [(30, "c"), (10, "a"), (20, "b")] as [(Int64, String)] {
            heap.insert(at(time), name)
        }
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
                switch Int.random(in: 0..<7, using: &random) {
                case 0..<4:
                    let value = Int64.random(in: 0..<100, using: &random)
                    heap.insert(at(value), value)
                    model.append(value)
                default:
                    let now = Int64.random(in: 0..<100, using: &random)
                    model.sort()
                    let due = model.first.flatMap { $0 <= now ? $0 : nil }
                    XCTAssertEqual(heap.popDue(at(now)), due, "seed \(seed)")
                    if due != nil { model.removeFirst() }
                }
                XCTAssertEqual(heap.count, model.count)
                XCTAssertEqual(heap.earliest, model.min().map(at))
            }
        }
    }

    /// Of 10 000 downloads with a timeout of an hour that took a moment, nothing is left behind for an hour.
    func testLeftoversAreThrownOut() {
        var heap = DeadlineHeap<Int>()
        var live: Set<Int> = []
        for number in 0..<10_000 {
            live.insert(number)
            if number >= 100 { live.remove(number - 100) }
            if heap.isCrowded { heap.compact { live.contains($0) } }
            heap.insert(at(Int64((number * 7919) % 10_007)), number)
            XCTAssertLessThanOrEqual(heap.count, 2 * live.count + 64)
        }
        var popped: [Int] = []
        while let number = heap.popDue(at(.max)) { popped.append(number) }
        XCTAssertTrue(live.isSubset(of: popped), "what is live is kept")
        let times = popped.map { ($0 * 7919) % 10_007 }
        XCTAssertEqual(times, times.sorted())
    }
}
