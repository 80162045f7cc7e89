import XCTest

@testable import ImgdlCache
@testable import ImgdlCore

/// A downloader with a real cache, a transport that the test speaks for, and a clock that stands still until it is
/// moved.
class CachingTestCase: XCTestCase {
    let clock = StandingClock()
    let network = Network()
    let codec = CountingCodec()
    var store: HoldingStore!
    var downloader: Downloader!
    private(set) var configuration = DownloaderConfiguration(userAgent: "test")
    private(set) var directory: String?
    /// Those that go on in what stands for another program.
    private var programs: [(downloader: Downloader, store: HoldingStore)] = []

    override func setUpWithError() throws {
        continueAfterFailure = false
        try open { _ in }
    }

    override func tearDownWithError() throws {
        downloader.destroy()
        for program in programs {
            program.downloader.destroy()
            program.store.cache.close()
        }
        try removeDirectory()
    }

    /// With another cache, or settings of its own.
    func open(onDisk: Bool = false, _ change: (inout DownloaderConfiguration) -> Void) throws {
        downloader?.destroy()
        if onDisk { directory = NSTemporaryDirectory() + "imgdl-caching-\(UUID().uuidString)" }
        if store == nil || onDisk { try openStore() }
        try openDownloader(change)
    }

    /// With an empty cache that has so much memory for bodies.
    func openAnew(onDisk: Bool, memory: Int64, _ disk: BrokenDisk? = nil) throws {
        downloader.destroy()
        try removeDirectory()
        if onDisk { directory = NSTemporaryDirectory() + "imgdl-caching-\(UUID().uuidString)" }
        try openStore(memory: memory, disk)
        // Also where the test holds some of them.
        try openDownloader { $0.decodeThreads = 4 }
    }

    private func removeDirectory() throws {
        store?.cache.close()
        if let directory { try FileManager.default.removeItem(atPath: directory) }
        directory = nil
    }

    /// As after a restart: what is on the disk is found there, and nothing else.
    func reopen() throws {
        try store.cache.flush()
        downloader.destroy()
        try openStore()
        try openDownloader { _ in }
    }

    /// As by another program that has the same folder open at the same time; what asked until now stays open.
    func openBeside() throws {
        try store.cache.flush()
        programs.append((downloader, store))
        store = nil
        try openStore()
        try openDownloader { _ in }
    }

    private func openStore(memory: Int64? = nil, _ disk: BrokenDisk? = nil) throws {
        var cache = CacheConfiguration()
        cache.maximumMemoryBytes = memory ?? (directory == nil ? 32 << 20 : 0)
        cache.maximumImageBytes = 32 << 20
        cache.directory = directory
        store?.cache.close()
        var tuning = CacheTuning()
        if let disk { tuning.disk = disk }
        store = HoldingStore(try Cache(cache, clock: clock, tuning: tuning) { _ in })
    }

    private func openDownloader(_ change: (inout DownloaderConfiguration) -> Void) throws {
        var configuration = DownloaderConfiguration(userAgent: "test")
        configuration.store = store
        configuration.defaults.cacheMode = .use
        change(&configuration)
        self.configuration = configuration
        let ports = DownloaderPorts(codec: codec, clock: clock) { [network] (_, loop, events) throws(Failure) in
            network.open(loop, events)
        }
        downloader = try Downloader(configuration, ports: ports, executor: nil)
    }

    // MARK: Requests

    /// `path`: a path at one server, or a URL.
    func start(
        _ path: String, _ mode: CacheMode = .use, method: String = "GET", fields: [HeaderField] = [],
        body: [UInt8]? = nil, hooks: (any Hooks)? = nil, followsRedirects: Bool = true, usesCookies: Bool = false,
        staleLimit: StaleLimit = .none, credential: Credential? = nil, identity: RequestIdentity? = nil,
        profile: TransferRequest.Profile? = nil,
        _ change: (inout SubscriberOptions) -> Void = { _ in }
    ) throws -> Heard {
        let profile =
            profile
            ?? TransferRequest.Profile(
                method: method, fields: fields, body: body,
                identity: identity ?? RequestIdentity(credential: credential, usesCookies: usesCookies),
                followsRedirects: followsRedirects, cacheMode: mode, staleLimit: staleLimit,
                hooks: hooks)
        var options = SubscriberOptions()
        options.decode = nil
        options.wantsBody = true
        options.events = .all
        change(&options)
        let heard = Heard()
        let template = RequestTemplate(
            options: Boxed(wrappedValue: options), profile: profile,
            recipient: Recipient(downloader, executor: InlineExecutor.shared, sink: heard))
        try downloader.download(testURL(path.hasPrefix("/") ? "https://a.example" + path : path), template) {
            heard.subscription = $0
        }
        return heard
    }

    @discardableResult
    func end(_ heard: Heard, file: StaticString = #filePath, line: UInt = #line) throws -> Ended {
        return try XCTUnwrap(heard.wait(), "no end; heard \(heard.log)", file: file, line: line)
    }

    /// Asks and waits.
    func get(
        _ path: String, _ mode: CacheMode = .use, method: String = "GET", fields: [HeaderField] = [],
        hooks: (any Hooks)? = nil, _ change: (inout SubscriberOptions) -> Void = { _ in },
        file: StaticString = #filePath, line: UInt = #line
    ) throws -> Ended {
        let heard = try start(path, mode, method: method, fields: fields, hooks: hooks, change)
        return try end(heard, file: file, line: line)
    }
}

/// What a terminal told: its picture and its body are let go of when the callback has returned.
struct Ended {
    let code: ErrorCode
    let failure: Failure?
    let message: String
    let status: Int32
    let progress: ImgdlCore.Progress
    let metrics: Metrics
    let image: DecodedImage?
    let body: BodySlice?
    let response: Response?

    init(_ result: DownloadResult) {
        code = result.code
        failure = result.failure
        message = result.message
        status = result.status
        progress = result.progress
        metrics = result.metrics
        image = result.image
        body = result.body
        response = result.response
    }

    var outcome: CacheOutcome? { response?.head.outcome }
    var bytes: [UInt8]? { body.map { $0.withBytes { [UInt8]($0) } } }
    func field(_ name: String) -> String? { response?.head.fields.first(named: name) }
}

func testURL(_ text: String) -> ParsedURL {
    let scheme = String(text.prefix { $0 != ":" })
    let host = String(text.dropFirst(scheme.count + 3).prefix { $0 != "/" })
    return ParsedURL(
        canonical: text, scheme: scheme, host: host, port: scheme == "https" ? 443 : 80, user: nil, password: nil,
        redacted: text)
}

/// Everything one request was told.
final class Heard: EventSink, @unchecked Sendable {
    private let lock = Lock()
    private var events: [String] = []
    private var terminal: Ended?
    private var latestResponse: Response?
    var subscription: Subscription!
    private let changed: Condition

    init() { changed = Condition(lock) }

    /// Until the end.
    func wait() -> Ended? {
        let limit = MonotonicClock().now().advanced(byMilliseconds: 20_000)
        return lock.withLock {
            while terminal == nil { if !changed.wait(until: limit) { return nil } }
            return terminal
        }
    }

    /// Until it has been told this, or anything.
    func waitForEvent(_ event: String? = nil) -> Bool {
        let limit = MonotonicClock().now().advanced(byMilliseconds: 20_000)
        return lock.withLock {
            while event.map({ !events.contains($0) }) ?? events.isEmpty {
                if !changed.wait(until: limit) { return false }
            }
            return true
        }
    }

    func deliver(_ event: DownloadEvent, of subscription: Subscription) -> Bool {
        lock.withLock {
            defer { changed.broadcast() }
            switch event {
            case .started: events.append("started")
            case .response(let response, _):
                events.append("response \(response.head.status)")
                latestResponse = response
            case .header: events.append("header")
            case .progress(let progress): events.append("progress \(progress.received)/\(progress.expected)")
            case .partial: events.append("partial")
            case .step: preconditionFailure("a request has no steps")
            }
        }
        return true
    }

    func deliver(_ result: DownloadResult, of subscription: Subscription) -> Bool {
        lock.withLock {
            events.append("terminal \(result.code)")
            terminal = Ended(result)
            changed.broadcast()
        }
        return true
    }

    func close(_ subscription: Subscription) {}

    var result: Ended? { lock.withLock { terminal } }
    var log: [String] { lock.withLock { events } }
    /// Of the last response event.
    var response: Response? { lock.withLock { latestResponse } }
}

final class StandingClock: Clock, @unchecked Sendable {
    private let lock = Lock()
    private var instant = Instant(nanoseconds: 1_000_000_000)
    private var microseconds: Int64 = 1_800_000_000_000_000

    func now() -> Instant { lock.withLock { instant } }
    func wallTime() -> Int64 { wallMicroseconds() / 1_000_000 }
    func wallMicroseconds() -> Int64 { lock.withLock { microseconds } }

    func pass(microseconds passed: Int64) { lock.withLock { microseconds += passed } }

    func pass(seconds passed: Int64) {
        lock.withLock {
            microseconds += passed * 1_000_000
            instant.nanoseconds += passed * 1_000_000_000
        }
    }

    func pass(milliseconds passed: Int64) { lock.withLock { instant.nanoseconds += passed * 1_000_000 } }
}
