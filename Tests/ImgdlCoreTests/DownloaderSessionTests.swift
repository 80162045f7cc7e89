import Dispatch
import XCTest

@testable import ImgdlCore

/// Features M4, M5, M9, C1, D7: a session ends and another begins on a living downloader, from any thread.
final class DownloaderSessionTests: XCTestCase {
    private let factory = StillTransportFactory()
    private var downloader: Downloader!

    override func setUpWithError() throws {
        let ports = DownloaderPorts(codec: NoCodec(), clock: MonotonicClock()) {
            [factory] (configuration, _, events) throws(Failure) in try factory.make(configuration, events)
        }
        downloader = try Downloader(configuration("first"), ports: ports, executor: nil)
    }

    override func tearDown() { downloader.destroy() }

    private func configuration(_ agent: String) -> DownloaderConfiguration { DownloaderConfiguration(userAgent: agent) }

    private func download(_ path: String) throws(Failure) -> Subscription { try downloader.download(path, .quiet) }

    private func code(_ body: () throws(Failure) -> Void) -> ErrorCode {
        do throws(Failure) { try body() } catch { return error.code }
        return .ok
    }

    private func end(_ subscription: Subscription) -> ErrorCode? {
        XCTAssertEqual(code { () throws(Failure) in try downloader.wait(for: subscription, milliseconds: 30_000) }, .ok)
        return downloader.result(of: subscription)?.code
    }

    func testAfterInvalidateRequestsAreRefused() throws {
        downloader.setMaximumConcurrent(1)
        let running = try download("running")
        let waiting = try download("waiting")
        downloader.invalidate(cancels: false)
        XCTAssertEqual(end(waiting), .invalidOperation)
        XCTAssertEqual(code { () throws(Failure) in _ = try download("late") }, .invalidOperation)
        XCTAssertEqual(downloader.currentCount, 1)
        downloader.invalidate(cancels: true)
        XCTAssertEqual(end(running), .cancelled)
        XCTAssertEqual(downloader.currentCount, 0)
    }

    func testReconfigureCancelsClosesAndGoesOn() throws {
        let running = try download("running")
        downloader.invalidate(cancels: false)
        downloader.setField("X-Kept", "1")
        var next = configuration("second")
        next.limits.maximumConcurrent = 3
        try downloader.reconfigure(next)
        XCTAssertEqual(downloader.maximumConcurrent, 3)
        XCTAssertEqual(downloader.field(named: "user-agent"), "second")
        XCTAssertEqual(downloader.field(named: "x-kept"), "1")
        XCTAssertNil(downloader.field(named: "X-None"))
        let later = try download("later")
        XCTAssertEqual(end(running), .cancelled)
        downloader.invalidate(cancels: true)
        XCTAssertEqual(end(later), .cancelled)
        XCTAssertEqual(factory.made, 2)
        XCTAssertEqual(factory.closed, [0])
        XCTAssertEqual(factory.starts, ["0 https://a.example/running", "1 https://a.example/later"])
    }

    func testAFailedReconfigureChangesNothing() throws {
        let running = try download("running")
        factory.refuses = true
        XCTAssertEqual(
            code { () throws(Failure) in try downloader.reconfigure(configuration("second")) }, .invalidOperation)
        XCTAssertEqual(downloader.field(named: "User-Agent"), "first")
        let other = try download("other")
        XCTAssertEqual(downloader.currentCount, 2)
        downloader.cancelAll()
        XCTAssertEqual(end(running), .cancelled)
        XCTAssertEqual(end(other), .cancelled)
    }

    func testAUserAgentThatWasSetStays() throws {
        downloader.setField("User-Agent", "own")
        try downloader.reconfigure(configuration("second"))
        XCTAssertEqual(downloader.field(named: "User-Agent"), "own")
    }

    func testNothingComesBackAfterAShutdown() {
        downloader.shutDown(cancelling: true, completion: nil)
        XCTAssertEqual(code { () throws(Failure) in try downloader.reconfigure(configuration("x")) }, .shutDown)
        downloader.invalidate(cancels: false)
        XCTAssertEqual(code { () throws(Failure) in _ = try download("late") }, .shutDown)
        // The first one's end is another thread's business, before or after.
        XCTAssertTrue(factory.closed.contains(factory.made - 1), "the transport that came too late is closed")
    }

    /// A downloader that ends is not held up by the background.
    func testAShutdownEndsTheBackground() throws {
        let running = try download("running")
        downloader.enterBackground(grace: nil)
        let waiting = try download("waiting")
        downloader.shutDown(cancelling: true, completion: nil)
        XCTAssertEqual(end(running), .cancelled)
        XCTAssertEqual(end(waiting), .cancelled)
    }

    func testSettingsCanBeAskedFor() {
        downloader.setSuspended(true)
        downloader.setMaximumPerHost(2)
        XCTAssertTrue(downloader.isSuspended)
        XCTAssertEqual(downloader.maximumPerHost, 2)
        downloader.setSuspended(false)
        XCTAssertFalse(downloader.isSuspended)
        XCTAssertEqual(downloader.memoryInUse, 0)
    }

    /// Parsing uses the transport of the moment from any thread.
    func testManyThreadsWhileTheSessionChanges() throws {
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for round in 0..<50 {
                if thread == 0 {
                    try? downloader.reconfigure(configuration("\(round)"))
                } else {
                    _ = try? download("\(thread)/\(round)")
                }
            }
        }
        downloader.invalidate(cancels: true)
        XCTAssertEqual(code { () throws(Failure) in try downloader.waitUntilIdle(milliseconds: 30_000) }, .ok)
        // Requests may have ended before the last sessions did: all is done when the engine's thread is gone.
        downloader.destroy()
        XCTAssertEqual(factory.closed.count, factory.made)
    }
}

/// Makes transports that carry nothing, and writes down what they were asked.
final class StillTransportFactory: @unchecked Sendable {
    private let lock = Lock()
    private var record = (made: 0, closed: [Int](), starts: [String](), refuses: false)

    var made: Int { lock.withLock { record.made } }
    var closed: [Int] { lock.withLock { record.closed } }
    var starts: [String] { lock.withLock { record.starts } }
    var refuses: Bool {
        get { lock.withLock { record.refuses } }
        set { lock.withLock { record.refuses = newValue } }
    }

    func make(_ configuration: TransportConfiguration, _ events: any TransportEvents) throws(Failure) -> any Transport {
        if refuses { throw Failure(.invalidOperation, "refused") }
        return StillTransport(
            self,
            lock.withLock {
                record.made += 1; return record.made - 1
            })
    }

    func close(_ number: Int) { lock.withLock { record.closed.append(number) } }
    func start(_ text: String) { lock.withLock { record.starts.append(text) } }
}

private final class StillTransport: Transport {
    private let factory: StillTransportFactory
    private let number: Int

    init(_ factory: StillTransportFactory, _ number: Int) {
        self.factory = factory
        self.number = number
    }

    func parse(_ url: String) throws(Failure) -> ParsedURL { testURL(url) }
    func resolveReference(_ reference: String, against base: ParsedURL) throws(Failure) -> ParsedURL { base }
    func start(_ id: TransferID, _ request: TransportRequest) { factory.start("\(number) \(request.url.canonical)") }
    func cancel(_ id: TransferID) {}
    func setPaused(_ id: TransferID, _ isPaused: Bool) {}
    func setPriority(_ id: TransferID, _ priority: Priority) {}
    func close() { factory.close(number) }
    var deadline: Instant? { nil }
    func deadlineReached(_ now: Instant) {}
    func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) {}
}

final class NoCodec: ImageCodec {
    func makeDecoder(_ options: DecodeOptions) -> any ImageDecoder { fatalError("nothing to decode") }
}
