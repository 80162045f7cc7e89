import Glibc
import Synchronization
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
    func testAfterAnHourConnectionsAreLeft() throws { try checkConnectionsAreLeft { $0.leap() } }

    /// The clock of timeouts stands still while the machine sleeps.
    func testAfterAnHourOfSleepConnectionsAreLeft() throws { try checkConnectionsAreLeft { $0.sleep() } }

    private func checkConnectionsAreLeft(after hour: @escaping (LeapingClock) -> Void) throws {
        let clock = LeapingClock()
        let (calls, leavings) = (Calls(), Calls())
        let ports = DownloaderPorts(codec: NoCodec(), clock: clock) { (_, _, _) in
            DueTransport(clock, calls, leavings, hour)
        }
        let downloader = try Downloader(
            DownloaderConfiguration(userAgent: "test"), ports: ports, executor: InlineExecutor.shared)
        XCTAssertTrue(leavings.wait(for: 1))
        downloader.networkChanged()
        XCTAssertTrue(leavings.wait(for: 2))
        downloader.destroy()
        XCTAssertEqual(leavings.add(), 3)
    }

    /// Twenty that always have something to read, of whom each turn takes 30 ms, whoever pays for it: a total timeout is told
    /// when a round's time is over, and not when each has had its turn.
    func testACrowdHoldsUpNoTotalTimeout() throws {
        let clock = SteppedClock()
        let crowd = try (0..<20).map { _ -> Int32 in
            var pair: [Int32] = [-1, -1]
            XCTAssertEqual(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair), 0)
            // The other end has gone: it is readable for good.
            close(pair[1])
            return try XCTUnwrap(pair[0] >= 0 ? pair[0] : nil)
        }
        defer { for socket in crowd { close(socket) } }
        let ports = DownloaderPorts(codec: NoCodec(), clock: clock) { (_, loop, _) in CrowdTransport(clock, loop, crowd)
        }
        let downloader = try Downloader(
            DownloaderConfiguration(userAgent: "test"), ports: ports, executor: InlineExecutor.shared)
        var options = SubscriberOptions.quiet
        options.totalTimeout = 300
        let subscription = try downloader.download("picture", options)
        try downloader.wait(for: subscription, milliseconds: 30_000)
        XCTAssertEqual(downloader.result(of: subscription)?.code, .totalTimeout)
        downloader.destroy()
        let late = clock.marked / 1_000_000 - 300
        XCTAssertGreaterThanOrEqual(late, 0)
        XCTAssertLessThanOrEqual(late, ReadyRounds.longest / 1_000_000 + 2 * CrowdTransport.turn)
    }

    /// A flood that lasts until the idle timeout ends with its connection, and is not asked for again.
    func testAFloodUntilTheIdleTimeoutEndsItsConnection() throws {
        let flooded = Calls()
        let ports = DownloaderPorts(codec: NoCodec(), clock: MonotonicClock()) { (_, _, events) in
            FloodedTransport(events, flooded)
        }
        let downloader = try Downloader(
            DownloaderConfiguration(userAgent: "test"), ports: ports, executor: InlineExecutor.shared)
        var options = SubscriberOptions.quiet
        options.idleTimeout = 50
        options.retry.count = 2
        let subscription = try downloader.download("picture", options)
        try downloader.wait(for: subscription, milliseconds: 30_000)
        XCTAssertEqual(downloader.result(of: subscription)?.code, .flood)
        downloader.destroy()
        XCTAssertEqual(flooded.add(), 2, "once before")
    }

    /// What was read of an answer waits in the transport, while others have their turns there: its server is not silent.
    func testWhatWaitsInTheTransportIsNoSilence() throws {
        let clock = SteppedClock()
        let ports = DownloaderPorts(codec: NoCodec(), clock: clock) { (_, _, events) in WaitingTransport(clock, events)
        }
        let downloader = try Downloader(
            DownloaderConfiguration(userAgent: "test"), ports: ports, executor: InlineExecutor.shared)
        var options = SubscriberOptions.quiet
        options.idleTimeout = 100
        let subscription = try downloader.download("picture", options)
        try downloader.wait(for: subscription, milliseconds: 30_000)
        XCTAssertEqual(downloader.result(of: subscription)?.code, .ok)
        downloader.destroy()
    }

    /// The host enters the background while the thread reads: what would be sent in the same turn is not to be, and in the next
    /// one it is paused.
    func testABackgroundIsKnownBeforeItsCommandIsHeard() throws {
        let (clock, seen) = (LeapingClock(), SeenPauses())
        let ports = DownloaderPorts(codec: NoCodec(), clock: clock) { (_, _, events) in PausingTransport(events, seen) }
        let downloader = try Downloader(
            DownloaderConfiguration(userAgent: "test"), ports: ports, executor: InlineExecutor.shared)
        let template = RequestTemplate(
            options: Boxed(wrappedValue: .quiet), profile: TransferRequest.Profile(),
            recipient: Recipient(downloader, executor: nil, sink: nil))
        seen.onTurn = { downloader.enterBackground(grace: nil) }
        var accepted: Subscription?
        try downloader.download(testURL("https://a.example/picture"), template) { accepted = $0 }
        XCTAssertTrue(seen.pauses.wait(for: 1))
        XCTAssertEqual(seen.unheard, [false, true, false])
        downloader.enterForeground()
        try downloader.wait(for: XCTUnwrap(accepted), milliseconds: 30_000)
        seen.onTurn = {}
        downloader.destroy()
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
    private let hour: (LeapingClock) -> Void
    private(set) var deadline: Instant?

    init(
        _ clock: LeapingClock, _ calls: Calls, _ leavings: Calls = Calls(),
        _ hour: @escaping (LeapingClock) -> Void = { $0.leap() }
    ) {
        self.clock = clock
        self.calls = calls
        self.leavings = leavings
        self.hour = hour
        deadline = clock.now()
    }

    func deadlineReached(_ now: Instant) {
        deadline = nil
        guard calls.add() == 1 else { return }
        hour(clock)
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

private final class SeenPauses: @unchecked Sendable {
    let pauses = Calls()
    /// Before the host says so, after it, and when it has been heard.
    var unheard: [Bool] = []
    var onTurn: () -> Void = {}
}

/// Its only turn is one in which the host enters the background.
private final class PausingTransport: Transport {
    private unowned let events: any TransportEvents
    private let seen: SeenPauses
    private var started: TransferID?
    private var finished: TransferID?

    init(_ events: any TransportEvents, _ seen: SeenPauses) {
        self.events = events
        self.seen = seen
    }

    var deadline: Instant? { started == nil && finished == nil ? nil : Instant(nanoseconds: 0) }

    func start(_ id: TransferID, _ request: __owned TransportRequest) { started = id }

    func deadlineReached(_ now: Instant) {
        guard started != nil, seen.unheard.isEmpty else { return }
        seen.unheard.append(events.isPauseUnheard)
        seen.onTurn()
        seen.unheard.append(events.isPauseUnheard)
    }

    func setPaused(_ id: TransferID, _ isPaused: Bool) {
        if isPaused {
            // Its command is being heard.
            seen.unheard.append(events.isPauseUnheard)
            _ = seen.pauses.add()
        } else {
            events.transferBeginsAnew(id)
            finished = started.take()
        }
    }

    func reportEnds() {
        guard let id = finished.take() else { return }
        events.transferConnected(id)
        _ = events.transferReceived(
            id, head: ResponseHead(status: 200, httpVersion: 11, fields: [], contentLength: 0, isEncoded: false))
        events.transferFinished(id, TransferTimes())
    }

    func parse(_ url: String) throws(Failure) -> ParsedURL { testURL(url) }
    func resolveReference(_ reference: String, against base: ParsedURL) throws(Failure) -> ParsedURL { base }
    func cancel(_ id: TransferID) {}
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

/// Goes on where a test says so; from the moment in which it was made, since threads wait by the machine's.
private final class SteppedClock: Clock, @unchecked Sendable {
    private let start = MonotonicClock().now().nanoseconds
    private let time = Atomic<Int64>(0)
    private let mark = Atomic<Int64>(0)

    func markNow() { mark.store(time.load(ordering: .relaxed), ordering: .relaxed) }
    /// Nanoseconds since it was made.
    var marked: Int64 { mark.load(ordering: .relaxed) }
    func step(milliseconds: Int64) { time.add(milliseconds * 1_000_000, ordering: .relaxed) }
    func now() -> Instant { Instant(nanoseconds: start + time.load(ordering: .relaxed)) }
    func wallTime() -> Int64 { time.load(ordering: .relaxed) / 1_000_000 }
}

/// Sockets that are always ready from the first request on, and a request that is never answered.
private final class CrowdTransport: Transport {
    /// Milliseconds.
    static let turn: Int64 = 30
    private let clock: SteppedClock
    private unowned let loop: any TransportLoop
    private let crowd: [Int32]

    init(_ clock: SteppedClock, _ loop: any TransportLoop, _ crowd: [Int32]) {
        self.clock = clock
        self.loop = loop
        self.crowd = crowd
    }

    var deadline: Instant? { nil }
    func deadlineReached(_ now: Instant) {}

    func start(_ id: TransferID, _ request: __owned TransportRequest) {
        for socket in crowd { loop.watch(socket, readable: true, writable: false) }
    }

    func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) { clock.step(milliseconds: Self.turn) }

    func cancel(_ id: TransferID) { clock.markNow() }

    func close() { for socket in crowd { loop.unwatch(socket) } }

    func parse(_ url: String) throws(Failure) -> ParsedURL { testURL(url) }
    func resolveReference(_ reference: String, against base: ParsedURL) throws(Failure) -> ParsedURL { base }
    func setPaused(_ id: TransferID, _ isPaused: Bool) {}
    func setPriority(_ id: TransferID, _ priority: Priority) {}
}

/// A server that takes each request, and sends nothing but a flood.
private final class FloodedTransport: Transport {
    private unowned let events: any TransportEvents
    private let flooded: Calls
    private var started: TransferID?
    private(set) var deadline: Instant?

    init(_ events: any TransportEvents, _ flooded: Calls) {
        self.events = events
        self.flooded = flooded
    }

    func start(_ id: TransferID, _ request: __owned TransportRequest) {
        started = id
        deadline = Instant(nanoseconds: 0)
    }

    func deadlineReached(_ now: Instant) {
        deadline = nil
        if let id = started.take() { events.transferConnected(id) }
    }

    func silence(_ id: TransferID) -> Silence { Silence(strayBytes: Silence.floodBytes) }
    func cancelFlooded(_ id: TransferID) { _ = flooded.add() }

    func parse(_ url: String) throws(Failure) -> ParsedURL { testURL(url) }
    func resolveReference(_ reference: String, against base: ParsedURL) throws(Failure) -> ParsedURL { base }
    func cancel(_ id: TransferID) {}
    func setPaused(_ id: TransferID, _ isPaused: Bool) {}
    func setPriority(_ id: TransferID, _ priority: Priority) {}
    func close() {}
    func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) {}
}

/// An answer that is told after five turns of others, each of which takes twice an idle timeout.
private final class WaitingTransport: Transport {
    private let clock: SteppedClock
    private unowned let events: any TransportEvents
    private(set) var deadline: Instant?
    private var started: TransferID?
    private var turns = 0
    private var isRead = false

    init(_ clock: SteppedClock, _ events: any TransportEvents) {
        self.clock = clock
        self.events = events
    }

    func start(_ id: TransferID, _ request: __owned TransportRequest) {
        started = id
        deadline = clock.now()
    }

    func deadlineReached(_ now: Instant) {
        guard let id = started else { return }
        if turns == 0 { events.transferConnected(id) }
        turns += 1
        if turns <= 5 { return clock.step(milliseconds: 200) }
        deadline = nil
        _ = events.transferReceived(
            id, head: ResponseHead(status: 200, httpVersion: 11, fields: [], contentLength: 0, isEncoded: false))
        isRead = true
    }

    func reportEnds() {
        guard isRead, let id = started.take() else { return }
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
