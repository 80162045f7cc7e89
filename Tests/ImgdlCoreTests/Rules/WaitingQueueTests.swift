import XCTest

@testable import ImgdlCore

final class WaitingQueueTests: XCTestCase {
    private func popAll(_ queue: inout WaitingQueue) -> [Int] {
        var slots: [Int] = []
        while let slot = queue.popFirst() { slots.append(slot) }
        return slots
    }

    func testFIFOServesInOrder() {
        var queue = WaitingQueue()
        for slot in [3, 1, 2] { queue.insert(slot, priority: .normal, order: .fifo) }
        XCTAssertEqual(queue.count, 3)
        XCTAssertEqual(popAll(&queue), [3, 1, 2])
        XCTAssertEqual(queue.count, 0)
    }

    func testLIFOServesTheLatestFirst() {
        var queue = WaitingQueue()
        for slot in [3, 1, 2] { queue.insert(slot, priority: .normal, order: .lifo) }
        XCTAssertEqual(popAll(&queue), [2, 1, 3])
    }

    func testPriorityGoesBeforeOrder() {
        for order in [ExecutionOrder.fifo, .lifo] {
            var queue = WaitingQueue()
            queue.insert(0, priority: .low, order: order)
            queue.insert(1, priority: .high, order: order)
            queue.insert(2, priority: .normal, order: order)
            queue.insert(3, priority: .high, order: order)
            XCTAssertEqual(popAll(&queue), order == .fifo ? [1, 3, 2, 0] : [3, 1, 2, 0])
        }
    }

    func testRemovesFromBothEndsAndTheMiddle() {
        for order in [ExecutionOrder.fifo, .lifo] {
            for removed in 0..<4 {
                var queue = WaitingQueue()
                for slot in 0..<4 { queue.insert(slot, priority: .low, order: order) }
                queue.remove(removed)
                queue.remove(removed)
                queue.remove(77)
                XCTAssertEqual(queue.count, 3)
                let rest = (0..<4).filter { $0 != removed }
                XCTAssertEqual(popAll(&queue), order == .fifo ? rest : rest.reversed())
            }
        }
    }

    func testASlotCanWaitAgain() {
        var queue = WaitingQueue()
        queue.insert(0, priority: .low, order: .fifo)
        queue.insert(1, priority: .low, order: .fifo)
        queue.remove(0)
        queue.insert(0, priority: .low, order: .fifo)
        XCTAssertEqual(popAll(&queue), [1, 0])
        queue.insert(0, priority: .high, order: .fifo)
        XCTAssertEqual(popAll(&queue), [0])
    }

    /// A change of order holds for what comes later; what waits keeps its place.
    func testOrderMayChangeInBetween() {
        var queue = WaitingQueue()
        queue.insert(0, priority: .normal, order: .fifo)
        queue.insert(1, priority: .normal, order: .fifo)
        queue.insert(2, priority: .normal, order: .lifo)
        queue.insert(3, priority: .normal, order: .fifo)
        XCTAssertEqual(popAll(&queue), [2, 0, 1, 3])
    }

    /// Against arrays that do the same slowly.
    func testRandomlyAgainstArrays() {
        for seed in 1...50 as ClosedRange<UInt64> {
            var random = SeededGenerator(seed)
            var queue = WaitingQueue()
            var model: [[Int]] = [[], [], []]
            for _ in 0..<400 {
                let slot = Int.random(in: 0..<20, using: &random)
                switch Int.random(in: 0..<5, using: &random) {
                case 0, 1:
                    guard !model.contains(where: { $0.contains(slot) }) else { continue }
                    let priority = Priority.allCases.randomElement(using: &random)!
                    let order = Bool.random(using: &random) ? ExecutionOrder.fifo : .lifo
                    queue.insert(slot, priority: priority, order: order)
                    model[priority.index].insert(slot, at: order == .fifo ? model[priority.index].count : 0)
                case 2, 3:
                    queue.remove(slot)
                    for list in model.indices { model[list].removeAll { $0 == slot } }
                default:
                    let list = [2, 1, 0].first { !model[$0].isEmpty }
                    XCTAssertEqual(queue.popFirst(), list.map { model[$0].removeFirst() }, "seed \(seed)")
                }
                XCTAssertEqual(queue.count, model.reduce(0) { $0 + $1.count }, "seed \(seed)")
            }
        }
    }

    /// Features I22, B12: 100 000 that wait cost no more than a few.
    func testRemovalDoesNotDependOnHowManyWait() {
        func time(_ count: Int) -> Int64 {
            var queue = WaitingQueue()
            for slot in 0..<count { queue.insert(slot, priority: .normal, order: .fifo) }
            let start = MonotonicClock().now()
            for step in 0..<20_000 {
                let slot = (step * 7919) % count
                queue.remove(slot)
                queue.insert(slot, priority: step % 2 == 0 ? .high : .normal, order: .lifo)
            }
            return MonotonicClock().now().nanoseconds - start.nanoseconds
        }
        let few = (0..<3).map { _ in time(1_000) }.min()!
        let many = (0..<3).map { _ in time(100_000) }.min()!
        XCTAssertLessThan(many, 20 * few, "100 times as many would be 100 times as slow, were it O(n)")
    }
}
