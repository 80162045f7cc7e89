import XCTest

@testable import ImgdlCore

/// When a batch's requests are begun, and that its counts add up (features F1–F5, R09).
final class BatchRulesTests: XCTestCase {
    /// Requests begin in order: those before it have begun.
    private var next = 0

    private func begin(_ rules: inout BatchRules) -> Range<Int> {
        let first = next
        while rules.begin() { next += 1 }
        return first..<next
    }

    func testF2_FewAtATimeInOrder() {
        var rules = BatchRules(count: 5, width: 2)
        XCTAssertEqual(begin(&rules), 0..<2)
        rules.ended(1, .ok)
        XCTAssertEqual(begin(&rules), 2..<3)
        rules.ended(0, .connectionLost)
        rules.ended(2, .ok)
        XCTAssertEqual(begin(&rules), 3..<5)
        rules.ended(4, .cancelled)
        rules.ended(3, .ok)
        XCTAssertTrue(begin(&rules).isEmpty)
        XCTAssertEqual([rules.progress.finished, rules.progress.failed, rules.progress.cancelled], [5, 1, 1])
        XCTAssertTrue(rules.progress.isFinished)
    }

    func testF1_AnEmptyListIsFinished() {
        var rules = BatchRules(count: 0, width: 3)
        XCTAssertTrue(rules.progress.isFinished)
        XCTAssertTrue(begin(&rules).isEmpty)
    }

    func testR09_PausedNothingIsBegun() {
        var rules = BatchRules(count: 3, width: 1)
        rules.setPaused(true)
        XCTAssertTrue(begin(&rules).isEmpty)
        rules.setPaused(false)
        XCTAssertEqual(begin(&rules), 0..<1)
        rules.setPaused(true)
        rules.ended(0, .ok)
        XCTAssertTrue(begin(&rules).isEmpty)
        rules.setPaused(false)
        XCTAssertEqual(begin(&rules), 1..<2)
    }

    func testF5_CancelSaysOnceThatSomeHaveNotBegun() {
        var rules = BatchRules(count: 5, width: 2)
        _ = begin(&rules)
        XCTAssertTrue(rules.cancelWaiting())
        XCTAssertFalse(rules.cancelWaiting())
        rules.ended(3, .cancelled)
        XCTAssertTrue(begin(&rules).isEmpty, "a place that was never taken is not free")
        for index in [0, 1, 2, 4] { rules.ended(index, .cancelled) }
        XCTAssertTrue(begin(&rules).isEmpty)
        XCTAssertEqual(rules.progress.cancelled, 5)
        XCTAssertTrue(rules.progress.isFinished)
    }

    func testRandomPlayEndsEachOnce() {
        for seed in 1...300 as ClosedRange<UInt64> {
            var random = SeededGenerator(seed)
            let count = Int.random(in: 0...40, using: &random)
            let width = Int.random(in: 1...5, using: &random)
            var rules = BatchRules(count: count, width: width)
            next = 0
            var running: Set<Int> = []
            var owed: [Int] = []
            var ended: Set<Int> = []
            var isPaused = false
            var steps = 0
            while !rules.progress.isFinished {
                steps += 1
                XCTAssertLessThan(steps, 10_000, "seed \(seed) hangs")
                if steps >= 10_000 { return }
                for index in begin(&rules) {
                    XCTAssertFalse(isPaused)
                    XCTAssertTrue(running.insert(index).inserted && !ended.contains(index))
                }
                XCTAssertLessThanOrEqual(running.count, width)
                switch Int.random(in: 0..<20, using: &random) {
                case 0:
                    isPaused.toggle()
                    rules.setPaused(isPaused)
                case 1 where count > 30: if rules.cancelWaiting() { owed += next..<count }
                default:
                    let candidates = Array(running).sorted() + owed
                    guard let index = candidates.randomElement(using: &random) else {
                        isPaused = false
                        rules.setPaused(false)
                        continue
                    }
                    running.remove(index)
                    owed.removeAll { $0 == index }
                    XCTAssertTrue(ended.insert(index).inserted)
                    let codes: [ErrorCode] = [.ok, .cancelled, .truncated]
                    rules.ended(index, codes.randomElement(using: &random)!)
                }
            }
            XCTAssertEqual(ended.count, count)
            XCTAssertLessThanOrEqual(rules.progress.failed + rules.progress.cancelled, count)
        }
    }
}
