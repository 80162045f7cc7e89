import XCTest

@testable import ImgdlCore

final class OutstandingTests: XCTestCase {
    private var downloader: Downloader!
    private var recipient: Recipient!
    private var outstanding: Outstanding { downloader.outstanding }
    private var later: Instant { MonotonicClock().now().advanced(byMilliseconds: 20_000) }

    override func setUpWithError() throws {
        let factory = StillTransportFactory()
        let ports = DownloaderPorts(codec: NoCodec(), clock: MonotonicClock()) {
            (configuration, _, events) throws(Failure) in try factory.make(configuration, events)
        }
        downloader = try Downloader(
            DownloaderConfiguration(userAgent: "test"), ports: ports, executor: InlineExecutor.shared)
        recipient = Recipient(downloader, executor: nil, sink: nil)
    }

    override func tearDown() { downloader.destroy() }

    /// One that the engine never hears of.
    private func accepted() -> Subscription {
        let template = RequestTemplate(
            options: Boxed(wrappedValue: SubscriberOptions()), profile: TransferRequest.Profile(), recipient: recipient)
        let subscription = Subscription(
            id: 1, url: testURL("http://a.example/"), template, on: nil, userData: nil,
            submitted: Instant(nanoseconds: 0))
        outstanding.accept(subscription)
        return subscription
    }

    func testCountsAndTellsHowOneEnded() throws {
        let (first, second) = (accepted(), accepted())
        XCTAssertEqual(outstanding.count, 2)
        XCTAssertNil(outstanding.result(of: first))
        first.end(Failure(.cancelled, "cancelled"))
        XCTAssertEqual(outstanding.count, 1)
        XCTAssertEqual(outstanding.result(of: first)?.code, .cancelled)
        XCTAssertNil(outstanding.result(of: second))
        second.end(nil)
        XCTAssertEqual(outstanding.count, 0)
        try outstanding.waitUntilNone(until: later)
    }

    func testAWaitForOneThatHasEndedReturnsAtOnce() throws {
        let subscription = accepted()
        subscription.end(nil)
        try outstanding.wait(for: subscription, until: Instant(nanoseconds: 0))
    }

    func testAWaitEndsWhenItsTimeIsOver() {
        let subscription = accepted()
        for _ in 0..<2 {
            XCTAssertThrowsError(try outstanding.wait(for: subscription, until: Instant(nanoseconds: 0))) {
                XCTAssertEqual(($0 as? Failure)?.code, .waitTimeout)
            }
        }
        XCTAssertThrowsError(try outstanding.waitUntilNone(until: Instant(nanoseconds: 0))) {
            XCTAssertEqual(($0 as? Failure)?.code, .waitTimeout)
        }
        subscription.end(nil)
    }

    func testEndsOfOthersEndNoWait() {
        let awaited = accepted()
        for _ in 0..<10 { accepted().end(nil) }
        XCTAssertThrowsError(try outstanding.wait(for: awaited, until: Instant(nanoseconds: 0)))
        awaited.end(nil)
        XCTAssertNoThrow(try outstanding.wait(for: awaited, until: later))
    }

    func testThreadsOfTheLibraryDoNotWait() throws {
        let subscription = accepted()
        let lock = Lock()
        var codes: [ErrorCode] = []
        let thread = try ImgdlCore.Thread.start(name: "waits") { [outstanding] in
            let one = code { () throws(Failure) in try outstanding.wait(for: subscription, until: nil) }
            let all = code { () throws(Failure) in try outstanding.waitUntilNone(until: nil) }
            lock.withLock { codes = [one, all] }
        }
        thread.join()
        XCTAssertEqual(codes, [.wouldDeadlock, .wouldDeadlock])
        subscription.end(nil)
    }

    /// Several wait for the same, each for its own, and for all: whatever comes first, nobody sleeps on.
    func testNoEndIsMissed() throws {
        for _ in 0..<300 {
            let subscriptions = (0..<4).map { _ in accepted() }
            let left = Counter(subscriptions.count * 2 + 1)
            for subscription in subscriptions {
                for _ in 0..<2 {
                    startHostThread { [outstanding, later] in
                        let end = code { () throws(Failure) in
                            try outstanding.wait(for: subscription, until: later)
                        }
                        XCTAssertEqual(end, .ok)
                        XCTAssertNotNil(outstanding.result(of: subscription))
                        left.count()
                    }
                }
            }
            startHostThread { [outstanding, later] in
                XCTAssertEqual(code { () throws(Failure) in try outstanding.waitUntilNone(until: later) }, .ok)
                left.count()
            }
            for subscription in subscriptions { subscription.end(nil) }
            XCTAssertTrue(left.waitForNone(until: later))
        }
    }
}

private func code(_ body: () throws(Failure) -> Void) -> ErrorCode {
    do throws(Failure) { try body() } catch { return error.code }
    return .ok
}

/// Threads of the library may not wait, so the test needs others.
private func startHostThread(_ body: @escaping @Sendable () -> Void) { Foundation.Thread.detachNewThread(body) }

private final class Counter: @unchecked Sendable {
    private let lock = Lock()
    private let changed: Condition
    private var left: Int

    init(_ left: Int) {
        self.left = left
        changed = Condition(lock)
    }

    func count() {
        lock.withLock {
            left -= 1
            changed.signal()
        }
    }

    func waitForNone(until deadline: Instant) -> Bool {
        lock.withLock {
            while left > 0 { if !changed.wait(until: deadline) { return false } }
            return true
        }
    }
}
