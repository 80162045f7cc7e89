import XCTest

@testable import ImgdlCore

final class LockTests: XCTestCase {
    func testExcludes() throws {
        let lock = Lock()
        var count = 0
        let threads = try (0..<4).map { _ in
            try ImgdlCore.Thread.start(name: "count") {
                for _ in 0..<10_000 { lock.withLock { count += 1 } }
            }
        }
        for thread in threads { thread.join() }
        XCTAssertEqual(count, 40_000)
    }

    func testPassesResultAndTypedError() {
        let lock = Lock()
        XCTAssertEqual(lock.withLock { 7 }, 7)
        do throws(Failure) {
            try lock.withLock { () throws(Failure) in throw Failure(.internal, "thrown") }
        } catch {
            XCTAssertEqual(error.code, .internal)
        }
        XCTAssertEqual(lock.withLock { 8 }, 8, "the lock is free after a throw")
    }

    func testAWaitEndsAtItsDeadline() {
        let lock = Lock()
        let condition = Condition(lock)
        let clock = MonotonicClock()
        lock.withLock {
            XCTAssertFalse(condition.wait(until: clock.now().advanced(byMilliseconds: -1)))
            let deadline = clock.now().advanced(byMilliseconds: 20)
            while condition.wait(until: deadline) {}
            XCTAssertGreaterThanOrEqual(clock.now(), deadline)
        }
    }
}
