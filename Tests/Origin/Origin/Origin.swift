import Glibc

/// A scripted HTTP/1.1 server on 127.0.0.1, for one test or for a whole suite as a program.
/// A thread per connection runs the scripts; all of it may be used from any thread.
package final class Origin: @unchecked Sendable {
    package typealias Script = (Exchange) throws -> Void

    package let content = Content()
    let journal = Journal()
    let signals = Signals()
    private let listener: Listener
    private let shared: Monitor<Shared>
    /// Nil for cleartext. Its files are for clients: the authority to trust, the pin, certificates to show.
    package let authority: Authority?
    package let asksForCertificates: Bool

    struct Shared {
        var settings: Settings
        var routes = Routes<Script>()
        /// How often each `/flaky` id has failed.
        var failures: [String: Int] = [:]
    }

    /// Port 0 takes a free one. What is not given here comes from IMGDL_ORIGIN_SEGMENT (bytes) and
    /// IMGDL_ORIGIN_LATENCY (milliseconds), so that a whole suite can be run again under other conditions.
    /// With `tls` it is https on every path, and agrees on nothing but HTTP/1.1: see `HTTP2Origin` for more.
    package init(port: UInt16 = 0, tls: TLS? = nil, segmentSize: Int? = nil, latency: Duration? = nil) throws {
        var settings = Settings.environment
        if let segmentSize { settings.segmentSize = segmentSize }
        if let latency { settings.latency = latency }
        shared = Monitor(Shared(settings: settings))
        asksForCertificates = tls.map { $0.client != .unasked } ?? false
        authority = try tls.map { try Authority($0, protocols: ["http/1.1"]) }
        listener = try Listener(port: port, journal: journal, signals: signals)
        let service = Service(pictures: Pictures(content: content), shared: shared)
        var conversation = Conversation(
            journal: journal, settings: { [shared] in shared.read(\.settings) },
            script: { service.script(for: $0.path) })
        let control = Control(journal: journal, signals: signals) { [shared] in shared.change { $0.failures = [:] } }
        conversation.control = { try control.answer($0) }
        try listener.start(by: authority) { conversation.run(on: $0) }
    }

    deinit { stop() }

    /// Opens all gates, closes every connection, joins every thread. Not to be called by a script.
    package func stop() {
        listener.stop()
        // Scripts may hold this origin.
        shared.change { $0.routes = Routes() }
        authority?.removeFiles()
    }

    package var port: Int { Int(listener.port) }
    package var base: String { "\(authority == nil ? "http" : "https")://127.0.0.1:\(port)" }
    package func url(_ path: String) -> String { base + path }

    // MARK: What it answers

    /// A script for one path (without query). A later one for the same path takes its place.
    package func route(_ path: String, _ script: @escaping Script) {
        shared.change { $0.routes.set(path, script) }
    }

    /// A script for every path that begins so and has no script of its own; the longest prefix wins.
    package func route(prefix: String, _ script: @escaping Script) {
        shared.change { $0.routes.set(prefix: prefix, script) }
    }

    /// Serves the files below the directory under `/files/` and `/pictures/`.
    package func serve(directory: String) { content.directory = directory }

    package func gate(_ name: String) -> Gate { signals.gate(name) }

    /// At most so many bytes per system call, so that a client sees them arrive apart. Nil: no limit.
    package var segmentSize: Int? {
        get { shared.read(\.settings.segmentSize) }
        set { shared.change { $0.settings.segmentSize = newValue } }
    }

    /// Time before the first byte of every answer, from the next request on.
    package var latency: Duration {
        get { shared.read(\.settings.latency) }
        set { shared.change { $0.settings.latency = newValue } }
    }

    // MARK: What arrived

    package var log: Log { journal.log }
    package func resetLog() { journal.reset() }

    /// Waits for the log to be as described: true at once when it is, false at the deadline. Never polls.
    /// The condition must not use the origin; what it needs is in the log.
    @discardableResult
    package func wait(until deadline: Deadline = .patient, for condition: (Log) throws -> Bool) rethrows -> Bool {
        try journal.wait(until: deadline, for: condition)
    }
}

/// Conditions that hold for all answers of an origin.
package struct Settings: Sendable {
    package var segmentSize: Int?
    package var latency: Duration = .zero

    package init() {}

    static var environment: Settings {
        func number(_ name: String) -> Int? { getenv(name).flatMap { Int(String(cString: $0)) } }
        var settings = Settings()
        settings.segmentSize = number("IMGDL_ORIGIN_SEGMENT")
        settings.latency = .milliseconds(number("IMGDL_ORIGIN_LATENCY") ?? 0)
        return settings
    }
}
