import ImgdlCore
import XCTest

@testable import ImgdlTransport

final class ThreadedResolverTests: XCTestCase {
    /// Answers when the test says so, and counts.
    private final class ScriptedLookup: @unchecked Sendable {
        private let lock = Lock()
        private let changed: Condition
        private var open: Set<String> = []
        private var asked: [String] = []

        init() { changed = Condition(lock) }

        func lookUp(_ host: String) -> Result<[String], Failure> {
            lock.withLock {
                asked.append(host)
                changed.broadcast()
                while host.hasPrefix("slow"), !open.contains(host) { changed.wait() }
            }
            if host.hasPrefix("bad") { return .failure(Failure(.resolveFailed, "no such host: \(host)")) }
            return .success(["192.0.2.1"])
        }

        func answer(_ host: String) {
            lock.withLock {
                open.insert(host)
                changed.broadcast()
            }
        }

        func count(_ host: String) -> Int { lock.withLock { asked.filter { $0 == host }.count } }

        func waitUntilAsked(_ count: Int) {
            let deadline = MonotonicClock().now().advanced(byMilliseconds: 20_000)
            lock.withLock {
                while asked.count < count { if !changed.wait(until: deadline) { return XCTFail("not asked") } }
            }
        }
    }

    private final class ManualClock: Clock, @unchecked Sendable {
        private let lock = Lock()
        private var time = Instant(nanoseconds: 1)

        func now() -> Instant { lock.withLock { time } }
        func wallTime() -> Int64 { 0 }
        func advance(milliseconds: Int64) { lock.withLock { time = time.advanced(byMilliseconds: milliseconds) } }
    }

    private final class Answers: @unchecked Sendable {
        private let lock = Lock()
        private let changed: Condition
        private var list: [Result<[String], Failure>] = []

        init() { changed = Condition(lock) }

        func add(_ answer: Result<[String], Failure>) {
            lock.withLock {
                list.append(answer)
                changed.broadcast()
            }
        }

        var count: Int { lock.withLock { list.count } }

        func wait(for count: Int) -> [Result<[String], Failure>] {
            let deadline = MonotonicClock().now().advanced(byMilliseconds: 20_000)
            return lock.withLock {
                while list.count < count {
                    if !changed.wait(until: deadline) {
                        XCTFail("no answer")
                        break
                    }
                }
                return list
            }
        }
    }

    private let script = ScriptedLookup()
    private let clock = ManualClock()
    private let answers = Answers()
    private var resolver: ThreadedResolver!

    override func setUp() { makeResolver() }

    override func tearDown() { resolver.close() }

    private func makeResolver(workers: Int = ThreadedResolver.maximumWorkers, capacity: Int = 256) {
        resolver?.close()
        resolver = ThreadedResolver(clock: clock, maximumWorkers: workers, cacheCapacity: capacity) { [script] in
            script.lookUp($0)
        }
    }

    @discardableResult
    private func ask(_ host: String) -> LookUpID? { resolver.resolve(host) { [answers] in answers.add($0) } }

    /// Whatever is on its way has come.
    private func settle() {
        let count = answers.count
        ask("settled-\(count)")
        _ = answers.wait(for: count + 1)
    }

    func testOneLookUpForAllThatWait() {
        for _ in 0..<50 { ask("slow") }
        script.waitUntilAsked(1)
        for _ in 0..<50 { ask("slow") }
        script.answer("slow")
        XCTAssertEqual(answers.wait(for: 100), Array(repeating: .success(["192.0.2.1"]), count: 100))
        XCTAssertEqual(script.count("slow"), 1)
    }

    func testASlowNameDoesNotHoldUpAnother() {
        ask("slow")
        ask("quick")
        XCTAssertEqual(answers.wait(for: 1), [.success(["192.0.2.1"])])
        script.answer("slow")
        _ = answers.wait(for: 2)
    }

    func testNamesWaitInOrderWhenAllWorkersAreBusy() {
        makeResolver(workers: 1)
        ask("slow")
        script.waitUntilAsked(1)
        ask("bad1")
        ask("a")
        XCTAssertEqual(script.count("a"), 0)
        script.answer("slow")
        XCTAssertEqual(
            answers.wait(for: 3),
            [.success(["192.0.2.1"]), .failure(Failure(.resolveFailed, "no such host: bad1")), .success(["192.0.2.1"])])
    }

    func testAnswersAreKeptForAMinuteAndFailuresNot() {
        ask("a")
        _ = answers.wait(for: 1)
        clock.advance(milliseconds: 59_999)
        ask("a")
        XCTAssertEqual(answers.wait(for: 2).count, 2)
        XCTAssertEqual(script.count("a"), 1)
        clock.advance(milliseconds: 1)
        ask("a")
        _ = answers.wait(for: 3)
        XCTAssertEqual(script.count("a"), 2)
        ask("bad")
        _ = answers.wait(for: 4)
        ask("bad")
        _ = answers.wait(for: 5)
        XCTAssertEqual(script.count("bad"), 2)
    }

    func testDeadNamesHoldUpNoOther() {
        let dead = (0..<ThreadedResolver.maximumWorkers - 1).map { "slow-\($0)" }
        for host in dead { ask(host) }
        script.waitUntilAsked(dead.count)
        ask("live")
        XCTAssertEqual(answers.wait(for: 1), [.success(["192.0.2.1"])])
        XCTAssertEqual(resolver.workerCount, ThreadedResolver.maximumWorkers)
        for host in dead { script.answer(host) }
        XCTAssertEqual(answers.wait(for: dead.count + 1).count, dead.count + 1)
    }

    func testThreadsThatAreNotNeededLeave() {
        let hosts = (0..<20).map { "slow-\($0)" }
        for host in hosts { ask(host) }
        script.waitUntilAsked(20)
        for host in hosts { script.answer(host) }
        _ = answers.wait(for: 20)
        while resolver.workerCount > 5 { settle() }
        settle()
    }

    func testAbandonedNamesLeaveTheLine() {
        makeResolver(workers: 1)
        ask("slow")
        script.waitUntilAsked(1)
        let abandoned = (0..<100).map { ask("a\($0)") }
        ask("b")
        for id in abandoned { resolver.abandon(id!) }
        script.answer("slow")
        XCTAssertEqual(answers.wait(for: 2).count, 2)
        XCTAssertEqual((0..<100).map { script.count("a\($0)") }.reduce(0, +), 0)
        XCTAssertEqual(answers.count, 2)
    }

    func testAnAbandonedLookUpIsAnsweredToWhoeverAsksNext() {
        let first = ask("slow")
        script.waitUntilAsked(1)
        resolver.abandon(first!)
        ask("slow")
        script.answer("slow")
        XCTAssertEqual(answers.wait(for: 1), [.success(["192.0.2.1"])])
        settle()
        XCTAssertEqual(answers.count, 2)
        XCTAssertEqual(script.count("slow"), 1)
    }

    func testCloseDoesNotWaitForTheKernel() {
        ask("slow")
        script.waitUntilAsked(1)
        ask("slow")
        resolver.close()
        for answer in answers.wait(for: 2) {
            guard case .failure(let failure) = answer else { return XCTFail("answered") }
            XCTAssertEqual(failure.code, .shutDown)
        }
        script.answer("slow")
        ask("later")
        guard case .failure(let failure)? = answers.wait(for: 3).last else { return XCTFail("answered") }
        XCTAssertEqual(failure.code, .shutDown)
        XCTAssertEqual(script.count("later"), 0)
    }

    func testACompletionMayAskAgainAndClose() {
        let resolver = resolver!
        _ = resolver.resolve("a") { [answers] _ in
            _ = resolver.resolve("b") { answer in
                resolver.close()
                answers.add(answer)
            }
        }
        XCTAssertEqual(answers.wait(for: 1), [.success(["192.0.2.1"])])
    }

    func testTheSystemsResolver() {
        XCTAssertEqual(try AddressLookup.getaddrinfo("127.0.0.1").get(), ["127.0.0.1"])
        guard case .failure(let failure) = AddressLookup.getaddrinfo("nosuch.invalid") else { return XCTFail("found") }
        XCTAssertEqual(failure.code, .resolveFailed)
        XCTAssertTrue(failure.message.hasPrefix("could not resolve host “nosuch.invalid”: "), failure.message)
    }
}
