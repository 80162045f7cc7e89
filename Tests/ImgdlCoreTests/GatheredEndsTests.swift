import XCTest

@testable import ImgdlCore

/// Transfers that end in one turn of the engine: what callbacks say of the first of them counts for what comes next.
final class GatheredEndsTests: XCTestCase {
    private let network = EndingNetwork()
    private let clock = LeapingClock()
    private var downloader: Downloader!

    override func setUpWithError() throws {
        let ports = DownloaderPorts(codec: NoCodec(), clock: clock) { [network] (_, loop, events) in
            network.open(loop, events)
        }
        downloader = try Downloader(DownloaderConfiguration(userAgent: "test"), ports: ports, executor: nil)
    }

    override func tearDown() { downloader.destroy() }

    @discardableResult
    private func download(_ path: String, _ sink: EndSink? = nil) throws(Failure) -> Subscription {
        try downloader.download(path, .quiet, sink)
    }

    private func code(of subscription: Subscription) throws(Failure) -> ErrorCode? {
        try downloader.wait(for: subscription, milliseconds: 30_000)
        return downloader.result(of: subscription)?.code
    }

    func testEachHearsOfItsOwnEnd() throws {
        let all = try ["a", "b", "c"].map { path in try download(path) }
        network.endAll(once: 3)
        for subscription in all { XCTAssertEqual(try code(of: subscription), .ok) }
        XCTAssertEqual(network.turns, [3])
    }

    /// Features D14: it had ended, but nobody had been told.
    func testACallbackCancelsAnotherThatHasEnded() throws {
        let sink = EndSink()
        let first = try download("first", sink)
        let second = try download("second")
        sink.then = { [downloader] in downloader?.cancel(second) }
        network.endAll(once: 2)
        XCTAssertEqual(try code(of: first), .ok)
        XCTAssertEqual(try code(of: second), .cancelled)
        XCTAssertEqual(network.turns, [2])
    }

    /// Features C1: two places are free, and the callback that is told of the first end leaves one.
    func testACallbackDecidesWhatStarts() throws {
        downloader.setMaximumConcurrent(2)
        let sink = EndSink()
        let first = try download("first", sink)
        try download("second")
        try download("third")
        try download("fourth")
        sink.then = { [downloader] in downloader?.setMaximumConcurrent(1) }
        network.endAll(once: 2)
        XCTAssertEqual(try code(of: first), .ok)
        network.endAll(once: 1)
        network.endAll(once: 1)
        try downloader.waitUntilIdle(milliseconds: 30_000)
        XCTAssertEqual(network.turns, [2, 1, 1])
    }

    /// Features N1: the clock is read once for a moment, and a callback may take longer than that.
    func testTheTimeOfACallbackCounts() throws {
        let sink = EndSink()
        let first = try download("first", sink)
        let second = try download("second")
        sink.then = { [clock] in clock.leap() }
        network.endAll(once: 2)
        for subscription in [first, second] { XCTAssertEqual(try code(of: subscription), .ok) }
        let totals = [first, second].map { downloader.result(of: $0)?.metrics.total ?? -1 }
        XCTAssertLessThan(totals[0], LeapingClock.leap)
        XCTAssertGreaterThanOrEqual(totals[1], LeapingClock.leap)
    }

    /// What a callback asks for begins with all that waits.
    func testACallbackAsksForMore() throws {
        downloader.setMaximumConcurrent(2)
        let sink = EndSink()
        try download("first", sink)
        try download("second")
        sink.then = { [self] in _ = try? download("third") }
        network.endAll(once: 2)
        network.endAll(once: 1)
        try downloader.waitUntilIdle(milliseconds: 30_000)
        XCTAssertEqual(network.turns, [2, 1])
    }
}

private final class EndSink: EventSink, @unchecked Sendable {
    /// What its callback does; set before the end.
    var then: () -> Void = {}

    func deliver(_ event: DownloadEvent, of subscription: Subscription) -> Bool { true }

    func deliver(_ terminal: DownloadResult, of subscription: Subscription) -> Bool {
        then()
        return true
    }

    func close(_ subscription: Subscription) {}
}

/// Ends transfers when the test says so, all in one turn.
private final class EndingNetwork: @unchecked Sendable {
    private let lock = Lock()
    private let changed: Condition
    private var started: [TransferID] = []
    private var ended: [Int] = []
    private var loop: (any TransportLoop)?

    init() { changed = Condition(lock) }

    /// How many ended in each turn.
    var turns: [Int] { lock.withLock { ended } }

    func open(_ loop: any TransportLoop, _ events: any TransportEvents) -> any Transport {
        lock.withLock { self.loop = loop }
        return EndingTransport(self, events)
    }

    func start(_ id: TransferID) {
        lock.withLock {
            started.append(id)
            changed.broadcast()
        }
    }

    /// Once that many run; returns when they are being ended.
    func endAll(once count: Int, file: StaticString = #filePath, line: UInt = #line) {
        let turn = turns.count
        wait(file, line) { started.count >= count }
        lock.withLock { self.loop }?.perform { self.isDue = true }
        wait(file, line) { ended.count > turn }
    }

    private func wait(_ file: StaticString, _ line: UInt, until isThere: () -> Bool) {
        let limit = MonotonicClock().now().advanced(byMilliseconds: 20_000)
        let isInTime = lock.withLock { () -> Bool in
            while !isThere() { if !changed.wait(until: limit) { return false } }
            return true
        }
        XCTAssertTrue(isInTime, "does not come about", file: file, line: line)
    }

    /// The engine's thread alone.
    private var isDue = false

    fileprivate func take() -> [TransferID] {
        guard isDue else { return [] }
        isDue = false
        return lock.withLock {
            defer { started = [] }
            ended.append(started.count)
            changed.broadcast()
            return started
        }
    }
}

private final class EndingTransport: Transport {
    private let network: EndingNetwork
    private unowned let events: any TransportEvents

    init(_ network: EndingNetwork, _ events: any TransportEvents) {
        self.network = network
        self.events = events
    }

    func parse(_ url: String) throws(Failure) -> ParsedURL { testURL(url) }
    func resolveReference(_ reference: String, against base: ParsedURL) throws(Failure) -> ParsedURL { base }
    func start(_ id: TransferID, _ request: TransportRequest) { network.start(id) }
    func cancel(_ id: TransferID) {}
    func setPaused(_ id: TransferID, _ isPaused: Bool) {}
    func setPriority(_ id: TransferID, _ priority: Priority) {}
    func close() {}
    var deadline: Instant? { nil }
    func deadlineReached(_ now: Instant) {}
    func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) {}

    func reportEnds() {
        for id in network.take() {
            events.transferConnected(id)
            _ = events.transferReceived(
                id, head: ResponseHead(status: 200, httpVersion: 11, fields: [], contentLength: 0, isEncoded: false))
            events.transferFinished(id, TransferTimes())
        }
    }
}
