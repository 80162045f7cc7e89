import XCTest

@testable import ImgdlCore

/// What the decoding threads do first, when there is more to do than there are threads.
final class DecodeOrderTests: XCTestCase {
    private let codec = HoldingCodec()
    private let network = SpeakingNetwork()
    private var downloader: Downloader!

    override func setUpWithError() throws {
        let ports = DownloaderPorts(codec: codec, clock: MonotonicClock()) { [network] (_, loop, events) in
            network.open(loop, events)
        }
        var configuration = DownloaderConfiguration(userAgent: "test")
        configuration.decodeThreads = 1
        downloader = try Downloader(configuration, ports: ports, executor: nil)
    }

    override func tearDown() {
        codec.open()
        downloader.destroy()
    }

    /// Features D13, B21: what has been begun holds its canvas until it is done, and was asked for first; so it comes before
    /// what would begin.
    func testWhatHasBegunGoesOnBeforeOthersBegin() throws {
        for (index, path) in ["a", "b", "c"].enumerated() {
            try downloader.download(path, SubscriberOptions())
            network.wait { $0.startedCount == index + 1 }
        }
        network.receive(0, byte: UInt8(ascii: "a"), count: Int(Limits().earlyDecodeBytes))
        codec.wait(for: 1)
        for (index, name) in "bc".utf8.enumerated() {
            network.receive(index + 1, byte: name, count: 1)
            network.finish(index + 1)
        }
        network.receive(0, byte: UInt8(ascii: "a"), count: 1)
        network.finish(0)
        network.passEngine()
        codec.letPass()
        // Of a or b: the thread may be there before the engine has heard that it is done. Then the engine has.
        codec.wait(for: 2)
        network.passEngine()
        codec.open()
        try downloader.waitUntilIdle(milliseconds: 30_000)
        let steps = codec.steps
        XCTAssertEqual(steps.count, 4)
        XCTAssertEqual(steps.last, "c finishes", "\(steps)")
    }

    /// Features D13, I12: what nobody waits for any more takes no time of those that others wait for.
    func testWhatIsCancelledBeforeItsTurnIsNotDecoded() throws {
        var downloads: [Subscription] = []
        for (index, path) in ["a", "b", "c"].enumerated() {
            downloads.append(try downloader.download(path, SubscriberOptions()))
            network.wait { $0.startedCount == index + 1 }
        }
        for (index, name) in "abc".utf8.enumerated() {
            network.receive(index, byte: name, count: 1)
            network.finish(index)
        }
        codec.wait(for: 1)
        network.passEngine()
        downloader.cancel(downloads[1])
        network.passEngine()
        codec.open()
        try downloader.waitUntilIdle(milliseconds: 30_000)
        XCTAssertEqual(codec.steps, ["a finishes", "c finishes"])
    }

    /// Features D13, I12: a step that runs is not broken off inside a piece of the body, but does nothing after it.
    func testWhatIsCancelledWhileItIsReadIsNotFinished() throws {
        let subscription = try downloader.download("a", SubscriberOptions())
        network.wait { $0.startedCount == 1 }
        network.receive(0, byte: UInt8(ascii: "a"), count: 2)
        network.finish(0)
        codec.wait(for: 1)
        downloader.cancel(subscription)
        network.passEngine()
        codec.open()
        try downloader.waitUntilIdle(milliseconds: 30_000)
        try downloader.download("b", SubscriberOptions())
        network.wait { $0.startedCount == 2 }
        network.receive(1, byte: UInt8(ascii: "b"), count: 1)
        network.finish(1)
        try downloader.waitUntilIdle(milliseconds: 30_000)
        XCTAssertEqual(codec.steps, ["a feeds", "b finishes"])
    }

    /// To have the pixels of a broken picture may be as much work as to decode it: it is done for who asked for them.
    func testABrokenPictureIsSalvagedForWhoAskedForIt() throws {
        codec.open()
        var salvaging = SubscriberOptions()
        salvaging.salvages = true
        for (index, options) in [SubscriberOptions(), salvaging].enumerated() {
            try downloader.download("\(index)", options)
            network.wait { $0.startedCount == index + 1 }
            network.receive(index, byte: UInt8(ascii: "a") + UInt8(index), count: 1)
            network.finish(index)
            try downloader.waitUntilIdle(milliseconds: 30_000)
        }
        XCTAssertEqual(codec.steps, ["a finishes", "b finishes", "b salvages"])
    }

    /// Also where he came while it was decoded for another.
    func testABrokenPictureIsSalvagedForWhoJoinsWhileItIsDecoded() throws {
        try downloader.download("a", SubscriberOptions())
        network.wait { $0.startedCount == 1 }
        network.receive(0, byte: UInt8(ascii: "a"), count: 1)
        network.finish(0)
        codec.wait(for: 1)
        var salvaging = SubscriberOptions()
        salvaging.salvages = true
        try downloader.download("a", salvaging)
        network.passEngine()
        codec.open()
        try downloader.waitUntilIdle(milliseconds: 30_000)
        XCTAssertEqual(codec.steps, ["a finishes", "a salvages"])
    }
}

/// Its decoders are named after the first byte, and stop at their first piece and at the end until they may pass.
private final class HoldingCodec: ImageCodec, @unchecked Sendable {
    private let lock = Lock()
    private let changed: Condition
    private var told: [String] = []
    private var passes = 0
    private var isOpen = false

    init() { changed = Condition(lock) }

    var steps: [String] { lock.withLock { told } }

    func makeDecoder(_ options: DecodeOptions) -> any ImageDecoder { HeldDecoder(self) }

    func letPass() {
        lock.withLock {
            passes += 1
            changed.broadcast()
        }
    }

    func open() {
        lock.withLock {
            isOpen = true
            changed.broadcast()
        }
    }

    /// Until so many steps have begun.
    func wait(for count: Int, file: StaticString = #filePath, line: UInt = #line) {
        let limit = MonotonicClock().now().advanced(byMilliseconds: 20_000)
        let isInTime = lock.withLock { () -> Bool in
            while told.count < count { if !changed.wait(until: limit) { return false } }
            return true
        }
        XCTAssertTrue(isInTime, "\(steps)", file: file, line: line)
    }

    fileprivate func tell(_ step: String) { lock.withLock { told.append(step) } }

    fileprivate func hold(_ step: String) {
        lock.withLock {
            told.append(step)
            changed.broadcast()
            while !isOpen, passes == 0 { changed.wait() }
            if !isOpen { passes -= 1 }
        }
    }
}

private final class HeldDecoder: ImageDecoder {
    private let codec: HoldingCodec
    private var name: String?

    init(_ codec: HoldingCodec) { self.codec = codec }

    func feed(_ bytes: UnsafeRawBufferPointer) {
        guard name == nil, let first = bytes.first else { return }
        let name = String(UnicodeScalar(first))
        self.name = name
        if bytes.count > 1 { codec.hold("\(name) feeds") }
    }

    func finish(_: BodyEnd) throws(Failure) -> DecodedImage {
        codec.hold("\(name ?? "?") finishes")
        throw Failure(.badImageData, "no picture")
    }

    var header: ImageHeader? { nil }
    func partialImage() -> DecodedImage? { nil }

    func salvagedImage() -> DecodedImage? {
        codec.tell("\(name ?? "?") salvages")
        return nil
    }
}

/// Says of its transfers what the test has it say.
private final class SpeakingNetwork: @unchecked Sendable {
    private let lock = Lock()
    private let changed: Condition
    private var started: [TransferID] = []
    private var passes = 0
    private var loop: (any TransportLoop)?
    private var events: (any TransportEvents)?

    init() { changed = Condition(lock) }

    /// The lock is held.
    var startedCount: Int { started.count }

    func open(_ loop: any TransportLoop, _ events: any TransportEvents) -> any Transport {
        lock.withLock { (self.loop, self.events) = (loop, events) }
        return SpokenTransport(self)
    }

    func close() { lock.withLock { (loop, events) = (nil, nil) } }

    func start(_ id: TransferID) {
        lock.withLock {
            started.append(id)
            changed.broadcast()
        }
    }

    func wait(file: StaticString = #filePath, line: UInt = #line, until isThere: (SpeakingNetwork) -> Bool) {
        let limit = MonotonicClock().now().advanced(byMilliseconds: 20_000)
        let isInTime = lock.withLock { () -> Bool in
            while !isThere(self) { if !changed.wait(until: limit) { return false } }
            return true
        }
        XCTAssertTrue(isInTime, "does not come about", file: file, line: line)
    }

    private func say(_ index: Int, _ say: @escaping @Sendable (any TransportEvents, TransferID) -> Void) {
        let (loop, events, id) = lock.withLock { (self.loop, self.events, started[index]) }
        guard let loop, let events else { return }
        nonisolated(unsafe) let told = events
        loop.perform { say(told, id) }
    }

    /// Bytes of the body; before the first its head.
    func receive(_ index: Int, byte: UInt8, count: Int) {
        let isFirst = headed.insert(index).inserted
        say(index) { (events, id) in
            if isFirst {
                events.transferConnected(id)
                _ = events.transferReceived(
                    id,
                    head: ResponseHead(status: 200, httpVersion: 11, fields: [], contentLength: -1, isEncoded: false))
            }
            [UInt8](repeating: byte, count: count).withUnsafeBytes { events.transferReceived(id, body: $0) }
        }
    }

    /// The test's thread alone.
    private var headed: Set<Int> = []

    func finish(_ index: Int) { say(index) { (events, id) in events.transferFinished(id, TransferTimes()) } }

    /// Returns when the engine has done what it was given before.
    func passEngine() {
        let before = lock.withLock { passes }
        lock.withLock { loop }?
            .perform { [self] in
                lock.withLock {
                    passes += 1
                    changed.broadcast()
                }
            }
        wait { $0.passes > before }
    }
}

private final class SpokenTransport: Transport {
    private let network: SpeakingNetwork

    init(_ network: SpeakingNetwork) { self.network = network }

    func parse(_ url: String) throws(Failure) -> ParsedURL { testURL(url) }
    func resolveReference(_ reference: String, against base: ParsedURL) throws(Failure) -> ParsedURL { base }
    func start(_ id: TransferID, _ request: TransportRequest) { network.start(id) }
    func cancel(_ id: TransferID) {}
    func setPaused(_ id: TransferID, _ isPaused: Bool) {}
    func setPriority(_ id: TransferID, _ priority: Priority) {}
    func close() { network.close() }
    var deadline: Instant? { nil }
    func deadlineReached(_ now: Instant) {}
    func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) {}
}
