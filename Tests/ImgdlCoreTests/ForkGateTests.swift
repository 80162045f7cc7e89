import CSystem
import Glibc
import Synchronization
import XCTest

@testable import ImgdlCore

/// What happens between the two calls that fork() makes of its handlers.
final class ForkGateTests: XCTestCase {
    private final class Counter: Sendable {
        let value = Atomic<Int>(0)
        let isOver = Atomic<Bool>(false)

        func awaitMore(than count: Int) {
            while value.load(ordering: .sequentiallyConsistent) <= count { sched_yield() }
        }
    }

    private func whileForking(_ body: () -> Void) {
        system_fork_prepare()
        body()
        system_fork_parent()
    }

    func testAThreadAtWorkStandsStillWhereItLetsAForkPass() throws {
        let counter = Counter()
        let thread = try ImgdlCore.Thread.start(name: "works") {
            while !counter.isOver.load(ordering: .relaxed) {
                counter.value.add(1, ordering: .sequentiallyConsistent)
                ImgdlCore.Thread.letForkPass()
            }
        }
        for _ in 0..<100 {
            counter.awaitMore(than: counter.value.load(ordering: .sequentiallyConsistent))
            whileForking {
                let count = counter.value.load(ordering: .sequentiallyConsistent)
                for _ in 0..<100 { sched_yield() }
                XCTAssertEqual(counter.value.load(ordering: .sequentiallyConsistent), count)
            }
        }
        counter.isOver.store(true, ordering: .relaxed)
        thread.join()
    }

    /// fork() would wait for who works and wants that lock.
    func testWhoWaitsForAForkHasNoLock() throws {
        let lock = Lock()
        let condition = Condition(lock)
        let counter = Counter()
        let thread = try ImgdlCore.Thread.start(name: "waits") {
            lock.withLock {
                while !counter.isOver.load(ordering: .relaxed) {
                    counter.value.add(1, ordering: .sequentiallyConsistent)
                    condition.wait()
                }
            }
        }
        for _ in 0..<100 {
            let before = counter.value.load(ordering: .sequentiallyConsistent)
            lock.withLock { condition.signal() }
            counter.awaitMore(than: max(0, before - 1))
            whileForking {
                for _ in 0..<100 {
                    lock.withLock { condition.signal() }
                    sched_yield()
                }
            }
        }
        lock.withLock {
            counter.isOver.store(true, ordering: .relaxed)
            condition.signal()
        }
        thread.join()
    }

    func testACallOfTheHostsIsWaitedForButNotItsRest() throws {
        let counter = Counter()
        let thread = try ImgdlCore.Thread.start(name: "host") {
            ImgdlCore.Thread.resting {
                // As on a thread of the host's that calls the library again and again.
                while !counter.isOver.load(ordering: .relaxed) {
                    ImgdlCore.Thread.working {
                        counter.value.add(1, ordering: .sequentiallyConsistent)
                        for _ in 0..<10 { sched_yield() }
                        counter.value.add(1, ordering: .sequentiallyConsistent)
                    }
                }
            }
        }
        for _ in 0..<100 {
            counter.awaitMore(than: counter.value.load(ordering: .sequentiallyConsistent))
            whileForking {
                let count = counter.value.load(ordering: .sequentiallyConsistent)
                XCTAssertEqual(count % 2, 0, "it is in the middle of a call")
                for _ in 0..<100 { sched_yield() }
                XCTAssertEqual(counter.value.load(ordering: .sequentiallyConsistent), count)
            }
        }
        counter.isOver.store(true, ordering: .relaxed)
        thread.join()
    }
}
