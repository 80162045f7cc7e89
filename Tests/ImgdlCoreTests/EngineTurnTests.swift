import XCTest

@testable import ImgdlCore

/// How long the engine's thread sleeps.
final class EngineTurnTests: XCTestCase {
    /// What took an hour must not put off by an hour what is due when it is over, as the next request is when
    /// a callback returns.
    func testWhatBecomesDueInATurnIsNotPutOffByItsLength() throws {
        let clock = LeapingClock()
        let calls = Calls()
        let ports = DownloaderPorts(codec: NoCodec(), clock: clock) { (_, _, _) in DueTransport(clock, calls) }
        let downloader = try Downloader(
            DownloaderConfiguration(userAgent: "test"), ports: ports, executor: InlineExecutor.shared)
        XCTAssertTrue(calls.wait(for: 2))
        downloader.destroy()
    }

    /// Nobody looked for an hour: what is idle may be dead.
    func testAfterAnHourConnectionsAreLeft() throws {
        let clock = LeapingClock()
        let (calls, leavings) = (Calls(), Calls())
        let ports = DownloaderPorts(codec: NoCodec(), clock: clock) { (_, _, _) in
            DueTransport(clock, calls, leavings)
        }
        let downloader = try Downloader(
            DownloaderConfiguration(userAgent: "test"), ports: ports, executor: InlineExecutor.shared)
        XCTAssertTrue(leavings.wait(for: 1))
        downloader.networkChanged()
        XCTAssertTrue(leavings.wait(for: 2))
        downloader.destroy()
        XCTAssertEqual(leavings.add(), 3)
    }

    /// Features N1: parts of a transfer are never longer than the whole of it.
    func testTheTimeThatReadingTakesIsTheTransfers() throws {
        let clock = LeapingClock()
        let ports = DownloaderPorts(codec: NoCodec(), clock: clock) { (_, _, events) in ReadingTransport(clock, events)
        }
        let downloader = try Downloader(
            DownloaderConfiguration(userAgent: "test"), ports: ports, executor: InlineExecutor.shared)
        let template = RequestTemplate(
            options: Boxed(wrappedValue: .quiet), profile: TransferRequest.Profile(),
            recipient: Recipient(downloader, executor: nil, sink: nil))
        var accepted: Subscription?
        try downloader.download(testURL("https://a.example/picture"), template) { accepted = $0 }
        let subscription = try XCTUnwrap(accepted)
        try downloader.wait(for: subscription, milliseconds: 30_000)
        let result = downloader.result(of: subscription)
        XCTAssertEqual(result?.code, .ok)
        XCTAssertGreaterThanOrEqual(result?.metrics.transfer ?? 0, LeapingClock.leap)
        downloader.destroy()
    }
}

private final class Calls: @unchecked Sendable {
    private let lock = Lock()
    private let changed: Condition
    private var count = 0

    init() { changed = Condition(lock) }

    func add() -> Int {
        lock.withLock {
            count += 1
            changed.broadcast()
            return count
        }
    }

    func wait(for enough: Int) -> Bool {
        let limit = MonotonicClock().now().advanced(byMilliseconds: 20_000)
        return lock.withLock {
            while count < enough { if !changed.wait(until: limit) { return false } }
            return true
        }
    }
}

/// Due at once, and again when the first time is over, which takes an hour.
private final class DueTransport: Transport {
    private let clock: LeapingClock
    private let calls: Calls
    private let leavings: Calls
    private(set) var deadline: Instant?

    init(_ clock: LeapingClock, _ calls: Calls, _ leavings: Calls = Calls()) {
        self.clock = clock
        self.calls = calls
        self.leavings = leavings
        deadline = clock.now()
    }

    func deadlineReached(_ now: Instant) {
        deadline = nil
        guard calls.add() == 1 else { return }
        clock.leap()
        deadline = clock.now()
    }

    func leaveConnections() { _ = leavings.add() }

    func parse(_ url: String) throws(Failure) -> ParsedURL { testURL(url) }
    func resolveReference(_ reference: String, against base: ParsedURL) throws(Failure) -> ParsedURL { base }
    func start(_ id: TransferID, _ request: __owned TransportRequest) {}
    func cancel(_ id: TransferID) {}
    func setPaused(_ id: TransferID, _ isPaused: Bool) {}
    func setPriority(_ id: TransferID, _ priority: Priority) {}
    func close() {}
    func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) {}
}

/// To read a response takes it an hour.
private final class ReadingTransport: Transport {
    private let clock: LeapingClock
    private unowned let events: any TransportEvents
    private var started: TransferID?
    private var read: TransferID?

    init(_ clock: LeapingClock, _ events: any TransportEvents) {
        self.clock = clock
        self.events = events
    }

    var deadline: Instant? { started == nil ? nil : Instant(nanoseconds: 0) }

    func start(_ id: TransferID, _ request: __owned TransportRequest) { started = id }

    func deadlineReached(_ now: Instant) {
        guard let id = started.take() else { return }
        events.transferConnected(id)
        _ = events.transferReceived(
            id, head: ResponseHead(status: 200, httpVersion: 11, fields: [], contentLength: 0, isEncoded: false))
        clock.leap()
        read = id
    }

    func reportEnds() {
        guard let id = read.take() else { return }
        events.transferFinished(id, TransferTimes())
    }

    func parse(_ url: String) throws(Failure) -> ParsedURL { testURL(url) }
    func resolveReference(_ reference: String, against base: ParsedURL) throws(Failure) -> ParsedURL { base }
    func cancel(_ id: TransferID) {}
    func setPaused(_ id: TransferID, _ isPaused: Bool) {}
    func setPriority(_ id: TransferID, _ priority: Priority) {}
    func close() {}
    func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) {}
}
