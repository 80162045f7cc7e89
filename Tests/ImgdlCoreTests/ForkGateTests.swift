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

    /// The other thread may run: where a processor is hard to come by not for long, as each yield gives a whole turn away.
    private func giveWay() {
        let end = MonotonicClock().now().advanced(byMilliseconds: 1)
        for _ in 0..<100 where MonotonicClock().now() < end { sched_yield() }
    }

    private func whileForking(_ body: () -> Void) {
        system_fork_approach()
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
                giveWay()
                XCTAssertEqual(counter.value.load(ordering: .sequentiallyConsistent), count)
            }
        }
        counter.isOver.store(true, ordering: .relaxed)
        thread.join()
    }

    /// False where the lock is not to be had: a second is long for who has it and works.
    private func signal(_ condition: Condition, _ lock: Lock) -> Bool {
        var deadline = timespec()
        clock_gettime(CLOCK_REALTIME, &deadline)
        deadline.tv_sec += 1
        guard pthread_mutex_timedlock(lock.mutex, &deadline) == 0 else { return false }
        condition.signal()
        pthread_mutex_unlock(lock.mutex)
        return true
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
        // It has the lock until it waits for the first time: from then on each signal finds it.
        counter.awaitMore(than: 0)
        for _ in 0..<100 {
            var count = 0
            var isLockFree = true
            lock.withLock { condition.signal() }
            whileForking {
                count = counter.value.load(ordering: .sequentiallyConsistent)
                for _ in 0..<100 where isLockFree { isLockFree = signal(condition, lock) }
                giveWay()
                XCTAssertEqual(counter.value.load(ordering: .sequentiallyConsistent), count, "it works during a fork")
            }
            XCTAssertTrue(isLockFree, "it was woken, and had the lock while it waited for the end of the fork")
            counter.awaitMore(than: count)
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
                giveWay()
                XCTAssertEqual(counter.value.load(ordering: .sequentiallyConsistent), count)
            }
        }
        counter.isOver.store(true, ordering: .relaxed)
        thread.join()
    }

    /// One second for all of them, where a disk stands still, for one.
    func testForksThatWaitForOneAnotherLosePatienceTogether() throws {
        let counter = Counter()
        var ends: [Int32] = [0, 0]
        XCTAssertEqual(pipe(&ends), 0)
        let (reading, writing) = (ends[0], ends[1])
        let thread = try ImgdlCore.Thread.start(name: "works") {
            counter.value.add(1, ordering: .sequentiallyConsistent)
            // As a disk that stands still holds it up, until the other end is closed.
            var byte: UInt8 = 0
            _ = read(reading, &byte, 1)
        }
        counter.awaitMore(than: 0)
        let clock = MonotonicClock()
        let begun = clock.now()
        // Threads of the host's: the library's would wait for the first fork's end before they begin.
        let forks = (0..<8).map { _ in
            var fork = pthread_t()
            let status = pthread_create(
                &fork, nil,
                { _ in
                    system_fork_approach()
                    system_fork_prepare()
                    system_fork_parent()
                    return nil
                }, nil)
            XCTAssertEqual(status, 0)
            return fork
        }
        for fork in forks { pthread_join(fork, nil) }
        XCTAssertLessThan(clock.now().milliseconds(since: begun), 5_000, "each has waited for a second of its own")
        XCTAssertGreaterThanOrEqual(clock.now().milliseconds(since: begun), 1_000)
        close(writing)
        thread.join()
        close(reading)
    }

    /// It has locks, and a child that is forked then may find them taken for ever: it computes for longer than a fork has
    /// patience with who stands still, as whoever reads certificates does on a busy machine.
    func testWhoComputesIsWaitedForBeyondThePatience() throws { try awaitWhoComputes() }

    /// Threads that are gone have had the same place in the gate's table.
    func testWhoComputesIsKnownHoweverManyThreadsThereWere() throws {
        try awaitWhoComputes {
            for _ in 0..<300 { try ImgdlCore.Thread.start(name: "short") {}.join() }
        }
    }

    private func awaitWhoComputes(_ meanwhile: () throws -> Void = {}) throws {
        let counter = Counter()
        let thread = try ImgdlCore.Thread.start(name: "computes (") {
            counter.value.add(1, ordering: .sequentiallyConsistent)
            let end = MonotonicClock().now().advanced(byMilliseconds: 3_000)
            while MonotonicClock().now() < end {}
            counter.value.add(1, ordering: .sequentiallyConsistent)
        }
        counter.awaitMore(than: 0)
        try meanwhile()
        whileForking {
            XCTAssertEqual(counter.value.load(ordering: .sequentiallyConsistent), 2, "it is in the middle of its work")
        }
        thread.join()
    }

    /// It may compute for ever: a fork is not held up for that long.
    func testWhoDoesNotComeToAnEndIsNotWaitedForForEver() throws {
        let counter = Counter()
        let thread = try ImgdlCore.Thread.start(name: "computes (") {
            counter.value.add(1, ordering: .sequentiallyConsistent)
            while !counter.isOver.load(ordering: .relaxed) {}
        }
        counter.awaitMore(than: 0)
        let begun = MonotonicClock().now()
        whileForking {
            let waited = MonotonicClock().now().milliseconds(since: begun)
            XCTAssertTrue((4_500..<20_000).contains(waited), "\(waited) ms")
            counter.isOver.store(true, ordering: .relaxed)
        }
        thread.join()
    }

    /// Here a signal's handler holds the forking thread up for longer than its patience, as SIGSTOP, a debugger or a paused
    /// machine do: the one at work has had no time, either.
    func testTimeInWhichNothingRanDoesNotCount() throws {
        let isForkNear = Atomic<Bool>(false)
        heldUp.store(false, ordering: .relaxed)
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { _ in
            usleep(1_200_000)
            heldUp.store(true, ordering: .sequentiallyConsistent)
        }
        var before = sigaction()
        sigaction(SIGUSR2, &action, &before)
        defer { sigaction(SIGUSR2, &before, nil) }
        let counter = Counter()
        let forking = pthread_self()
        let thread = try ImgdlCore.Thread.start(name: "works") {
            counter.value.add(1, ordering: .sequentiallyConsistent)
            while !isForkNear.load(ordering: .sequentiallyConsistent) { sched_yield() }
            let begun = MonotonicClock().now().advanced(byMilliseconds: 10)
            while MonotonicClock().now() < begun { sched_yield() }
            pthread_kill(forking, SIGUSR2)
            while !heldUp.load(ordering: .sequentiallyConsistent) { sched_yield() }
            let end = MonotonicClock().now().advanced(byMilliseconds: 20)
            while MonotonicClock().now() < end { sched_yield() }
            counter.value.add(1, ordering: .sequentiallyConsistent)
        }
        counter.awaitMore(than: 0)
        isForkNear.store(true, ordering: .sequentiallyConsistent)
        whileForking {
            XCTAssertEqual(counter.value.load(ordering: .sequentiallyConsistent), 2, "it is in the middle of its work")
        }
        thread.join()
    }
}

/// The handler of the signal has returned.
private let heldUp = Atomic<Bool>(false)
