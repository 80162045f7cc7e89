import XCTest

@testable import ImgdlCore

/// Requests that a batch holds back, on the roads on which none of them is begun: each has its end, once.
final class HeldRequestTests: XCTestCase {
    private var downloader: Downloader!
    private let listener = Listener()

    override func setUpWithError() throws {
        let factory = StillTransportFactory()
        let ports = DownloaderPorts(codec: NoCodec(), clock: MonotonicClock()) {
            (configuration, _, events) throws(Failure) in try factory.make(configuration, events)
        }
        downloader = try Downloader(
            DownloaderConfiguration(userAgent: "test"), ports: ports, executor: InlineExecutor.shared)
    }

    override func tearDown() { downloader.destroy() }

    private var template: RequestTemplate {
        RequestTemplate(
            options: Boxed(wrappedValue: SubscriberOptions()), profile: TransferRequest.Profile(),
            recipient: Recipient(downloader, executor: nil, sink: listener))
    }

    private func held(_ count: Int) -> Queue<RequestEnd> {
        var ends = Queue<RequestEnd>()
        for number in 0..<count {
            ends.append(
                downloader.outstanding.hold(
                    Subscription(
                        id: UInt64(number + 1), url: testURL("http://a.example/\(number)"), template, on: nil,
                        userData: nil, submitted: Instant(nanoseconds: 0))))
        }
        return ends
    }

    private func prefetch(_ count: Int, _ sink: Steps, _ willStart: (Batch) -> Void) throws(Failure) {
        let requests = (0..<count).map { number in
            BatchRequest(url: testURL("http://a.example/\(number)"), template, pumped: nil, userData: nil)
        }
        try downloader.prefetch(
            requests, width: 2, executor: nil, sink: sink, willHold: { _ in }, willStart: willStart)
    }

    private func ended(failed: Int = 0, cancelled: Int = 0) -> BatchProgress {
        var progress = BatchProgress(total: 5)
        (progress.finished, progress.failed, progress.cancelled) = (5, failed, cancelled)
        return progress
    }

    /// Between the look whether requests are taken and the first of a batch, another thread may end the session.
    func testABatchWhoseRequestsAreRefusedOneByOne() throws {
        let sink = Steps()
        try prefetch(5, sink) { [downloader] _ in _ = downloader?.mailbox.invalidate(cancelling: false) }
        try downloader.waitUntilIdle(milliseconds: 20_000)
        XCTAssertEqual(listener.codes, [ErrorCode](repeating: .invalidOperation, count: 5))
        XCTAssertEqual(listener.closed, 5)
        XCTAssertEqual(sink.last, ended(failed: 5))
        XCTAssertEqual(sink.closed, 1)
    }

    /// Before its first request is begun: there is nothing to cancel in the engine.
    func testABatchThatIsCancelledBeforeItBegins() throws {
        let sink = Steps()
        try prefetch(5, sink) {
            $0.cancel()
            $0.cancel()
        }
        try downloader.waitUntilIdle(milliseconds: 20_000)
        XCTAssertEqual(listener.codes, [ErrorCode](repeating: .cancelled, count: 5))
        XCTAssertEqual(listener.closed, 5)
        XCTAssertEqual(sink.last, ended(cancelled: 5))
        XCTAssertEqual(sink.closed, 1)
    }

    func testOneThatIsRefusedIsStillHeld() throws {
        downloader.invalidate(cancels: false)
        var ends = held(1)
        var held = ends.popFirst()
        XCTAssertThrowsError(try downloader.accept(&held)) {
            XCTAssertEqual(($0 as? Failure)?.code, .invalidOperation)
        }
        XCTAssertEqual(downloader.currentCount, 0)
        guard let end = held.take() else { return XCTFail("it is gone") }
        end.post(Failure(.cancelled, "cancelled"))
        XCTAssertEqual(listener.codes, [.cancelled])
    }

    /// The engine's last turn: a message that came when it had taken its last ones.
    func testThoseThatComeTooLateForTheEngineEndInItsLastTurn() throws {
        downloader.destroy()
        var messages = Queue<Message>()
        messages.append(.end(UnsubmittedRequests(held(3), Failure(.cancelled, "cancelled"))))
        downloader.engine.settle(messages, isExiting: false)
        XCTAssertEqual(listener.codes, [.cancelled, .cancelled, .cancelled])
        XCTAssertEqual(listener.closed, 3)
    }

    /// A batch on another thread may hear of the end after the engine's thread has gone.
    func testThoseThatComeAfterTheEngineEndOnTheCallersThread() throws {
        downloader.destroy()
        downloader.end(held(3), Failure(.cancelled, "cancelled"))
        XCTAssertEqual(listener.codes, [.cancelled, .cancelled, .cancelled])
        XCTAssertEqual(listener.closed, 3)
        try downloader.waitUntilIdle(milliseconds: 0)
    }

    /// Nothing is told any more, and nothing traps.
    func testWhatIsLeftWhenTheProcessExitsHasNoEnd() throws {
        downloader.destroy()
        var messages = Queue<Message>()
        messages.append(.end(UnsubmittedRequests(held(3), nil)))
        var one = held(1)
        messages.append(.submit(one.removeFirst()))
        downloader.engine.settle(messages, isExiting: true)
        XCTAssertEqual(listener.codes, [])
        XCTAssertEqual(listener.closed, 0)
    }
}

private final class Listener: EventSink, @unchecked Sendable {
    private let lock = Lock()
    private var told: [ErrorCode] = []
    private var closings = 0

    var codes: [ErrorCode] { lock.withLock { told } }
    var closed: Int { lock.withLock { closings } }

    func deliver(_ event: DownloadEvent, of subscription: Subscription) -> Bool { true }

    func deliver(_ terminal: DownloadResult, of subscription: Subscription) -> Bool {
        lock.withLock { told.append(terminal.code) }
        return true
    }

    func close(_ subscription: Subscription) { lock.withLock { closings += 1 } }
}

private final class Steps: BatchSink, @unchecked Sendable {
    private let lock = Lock()
    private var latest: BatchProgress?
    private var closings = 0

    var last: BatchProgress? { lock.withLock { latest } }
    var closed: Int { lock.withLock { closings } }

    func deliver(_ progress: BatchProgress) -> Bool {
        lock.withLock { latest = progress }
        return true
    }

    func close() { lock.withLock { closings += 1 } }
}
