import XCTest

@testable import ImgdlCore

/// Features D13, B21: decoding has a fixed number of threads, and the highest priority goes first.
final class WorkerPoolTests: XCTestCase {
    private final class Gate: @unchecked Sendable {
        private let lock = Lock()
        private lazy var changed = Condition(lock)
        private var isOpen = false
        private var inside = 0
        private(set) var most = 0
        private(set) var order: [Int] = []

        init() { _ = changed }

        func pass(_ number: Int) {
            lock.withLock {
                order.append(number)
                inside += 1
                most = max(most, inside)
                changed.broadcast()
                while !isOpen { changed.wait() }
                inside -= 1
                changed.broadcast()
            }
        }

        func open() {
            lock.withLock {
                isOpen = true
                changed.broadcast()
            }
        }

        func wait(_ condition: (Gate) -> Bool) {
            lock.withLock { while !condition(self) { changed.wait() } }
        }

        /// False: that many have not come in time.
        func waitUntilHeld(_ count: Int) -> Bool {
            let limit = MonotonicClock().now().advanced(byMilliseconds: 20_000)
            return lock.withLock {
                while order.count < count { if !changed.wait(until: limit) { return false } }
                return true
            }
        }

        func isDone(_ count: Int) -> Bool { order.count == count && inside == 0 }
    }

    func testNeverMoreThanItsWidthAtOnce() {
        let pool = WorkerPool(width: 3)
        let gate = Gate()
        for number in 0..<100 { XCTAssertTrue(pool.submit(.normal) { gate.pass(number) }) }
        gate.wait { $0.order.count == 3 }
        gate.open()
        gate.wait { $0.isDone(100) }
        XCTAssertLessThanOrEqual(gate.most, 3)
        pool.close()
    }

    /// A thread that is idle still, but has been given something, does nothing else meanwhile.
    func testWhatComesTogetherIsDoneAtOnce() {
        for _ in 0..<200 {
            let pool = WorkerPool(width: 2)
            let (first, gate) = (Gate(), Gate())
            first.open()
            XCTAssertTrue(pool.submit(.normal) { first.pass(0) })
            first.wait { $0.isDone(1) }
            for number in 0..<2 { XCTAssertTrue(pool.submit(.normal) { gate.pass(number) }) }
            let areBothHeld = gate.waitUntilHeld(2)
            gate.open()
            gate.wait { $0.isDone(2) }
            pool.close()
            guard areBothHeld else { return XCTFail("one waits for the other, though there may be two threads") }
        }
    }

    func testTheHighestPriorityGoesFirstThenTheOldest() {
        let pool = WorkerPool(width: 1)
        let gate = Gate()
        XCTAssertTrue(pool.submit(.low) { gate.pass(0) })
        gate.wait { $0.order.count == 1 }
        for (number, priority) in [(1, Priority.low), (2, .normal), (3, .high), (4, .normal), (5, .high)] {
            XCTAssertTrue(pool.submit(priority) { gate.pass(number) })
        }
        gate.open()
        gate.wait { $0.isDone(6) }
        XCTAssertEqual(gate.order, [0, 3, 5, 2, 4, 1])
        pool.close()
    }

    func testOfEqualsWhatGoesOnComesBeforeWhatBegins() {
        let pool = WorkerPool(width: 1)
        let gate = Gate()
        XCTAssertTrue(pool.submit(.low) { gate.pass(0) })
        gate.wait { $0.order.count == 1 }
        for (number, priority, goesOn) in [
            (1, Priority.normal, false), (2, .normal, true), (3, .low, true), (4, .high, false), (5, .normal, true),
        ] {
            XCTAssertTrue(pool.submit(priority, goesOn: goesOn) { gate.pass(number) })
        }
        gate.open()
        gate.wait { $0.isDone(6) }
        XCTAssertEqual(gate.order, [0, 4, 2, 5, 1, 3])
        pool.close()
    }
}
