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
    private func accepted() -> RequestEnd {
        let template = RequestTemplate(
            options: Boxed(wrappedValue: SubscriberOptions()), profile: TransferRequest.Profile(), recipient: recipient)
        let subscription = Subscription(
            id: 1, url: testURL("http://a.example/"), template, on: nil, userData: nil,
            submitted: Instant(nanoseconds: 0))
        return outstanding.accept(subscription)
    }

    func testCountsAndTellsHowOneEnded() throws {
        let firstEnd = accepted()
        let secondEnd = accepted()
        let (first, second) = (firstEnd.subscription, secondEnd.subscription)
        XCTAssertEqual(outstanding.count, 2)
        XCTAssertNil(outstanding.result(of: first))
        firstEnd.post(Failure(.cancelled, "cancelled"))
        XCTAssertEqual(outstanding.count, 1)
        XCTAssertEqual(outstanding.result(of: first)?.code, .cancelled)
        XCTAssertNil(outstanding.result(of: second))
        secondEnd.post(nil)
        XCTAssertEqual(outstanding.count, 0)
        try outstanding.waitUntilNone(until: later)
    }

    func testAWaitForOneThatHasEndedReturnsAtOnce() throws {
        let end = accepted()
        let subscription = end.subscription
        end.post(nil)
        try outstanding.wait(for: subscription, until: Instant(nanoseconds: 0))
    }

    func testAWaitEndsWhenItsTimeIsOver() {
        let end = accepted()
        for _ in 0..<2 {
            let subscription = end.subscription
            XCTAssertThrowsError(try outstanding.wait(for: subscription, until: Instant(nanoseconds: 0))) {
                XCTAssertEqual(($0 as? Failure)?.code, .waitTimeout)
            }
        }
        XCTAssertThrowsError(try outstanding.waitUntilNone(until: Instant(nanoseconds: 0))) {
            XCTAssertEqual(($0 as? Failure)?.code, .waitTimeout)
        }
        end.post(nil)
    }

    func testEndsOfOthersEndNoWait() {
        let end = accepted()
        let awaited = end.subscription
        for _ in 0..<10 { accepted().post(nil) }
        XCTAssertThrowsError(try outstanding.wait(for: awaited, until: Instant(nanoseconds: 0)))
        end.post(nil)
        XCTAssertNoThrow(try outstanding.wait(for: awaited, until: later))
    }

    func testThreadsOfTheLibraryDoNotWait() throws {
        let end = accepted()
        let subscription = end.subscription
        let lock = Lock()
        var codes: [ErrorCode] = []
        let thread = try ImgdlCore.Thread.start(name: "waits") { [outstanding] in
            let one = code { () throws(Failure) in try outstanding.wait(for: subscription, until: nil) }
            let all = code { () throws(Failure) in try outstanding.waitUntilNone(until: nil) }
            lock.withLock { codes = [one, all] }
        }
        thread.join()
        XCTAssertEqual(codes, [.wouldDeadlock, .wouldDeadlock])
        end.post(nil)
    }

    /// Several wait for the same, each for its own, and for all: whatever comes first, nobody sleeps on.
    func testNoEndIsMissed() throws {
        for _ in 0..<300 {
            var ends = Queue<RequestEnd>()
            for _ in 0..<4 { ends.append(accepted()) }
            let left = Counter(ends.count * 2 + 1)
            for _ in 0..<ends.count {
                let end = ends.removeFirst()
                let subscription = end.subscription
                ends.append(end)
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
            while let end = ends.popFirst() { end.post(nil) }
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
