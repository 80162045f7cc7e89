import XCTest

@testable import ImgdlCore

/// What a server sends to one request.
struct Reply {
    var status: Int32 = 200
    var fields: [HeaderField] = []
    var body: [UInt8] = []
    /// Of the body; nil: as long as it is. What is missing is `truncated`.
    var length: Int64?
    var hasLength = true
    /// In place of an answer.
    var failure: ErrorCode?

    init(_ status: Int32 = 200, _ fields: [(String, String)] = [], _ body: [UInt8] = []) {
        self.status = status
        self.fields = fields.map { HeaderField($0.0, $0.1) }
        self.body = body
    }

    static func failed(_ code: ErrorCode) -> Reply {
        var reply = Reply()
        reply.failure = code
        return reply
    }

    /// Breaks off.
    func cut(after count: Int) -> Reply {
        var cut = self
        cut.length = Int64(body.count)
        cut.body = Array(body.prefix(count))
        return cut
    }

    func withoutLength() -> Reply {
        var reply = self
        reply.hasLength = false
        return reply
    }
}

/// The server: answers by itself as `answers` says, or waits for the test to answer.
final class Network: @unchecked Sendable {
    private let lock = Lock()
    private let changed: Condition
    private var started: [Exchange] = []
    private var script: ((TransportRequest) -> Reply?)?
    private var cancelledCount = 0
    private var jar: [UInt8]?
    private var jarOfURL: [String: [UInt8]] = [:]
    private var configured: [UInt8] = []

    /// What the jar holds for every URL.
    var cookies: [UInt8]? {
        get { lock.withLock { jar } }
        set { lock.withLock { jar = newValue } }
    }
    /// In place of that for one URL.
    func setCookies(_ cookies: [UInt8], of url: String) { lock.withLock { jarOfURL[url] = cookies } }
    fileprivate func cookies(for url: ParsedURL) -> [UInt8]? { lock.withLock { jarOfURL[url.canonical] ?? jar } }
    /// What the transport is configured with that belongs to the security context.
    var trust: [UInt8] {
        get { lock.withLock { configured } }
        set { lock.withLock { configured = newValue } }
    }

    init() { changed = Condition(lock) }

    /// nil: the test answers later.
    func answers(_ script: @escaping (TransportRequest) -> Reply?) { lock.withLock { self.script = script } }

    var exchanges: [Exchange] { lock.withLock { started } }
    var count: Int { exchanges.count }
    var cancelled: Int { lock.withLock { cancelledCount } }
    var last: TransportRequest { exchanges.last!.request }

    /// The one of this number, once it is there.
    func exchange(_ index: Int, file: StaticString = #filePath, line: UInt = #line) throws -> Exchange {
        let limit = MonotonicClock().now().advanced(byMilliseconds: 20_000)
        let found = lock.withLock { () -> Exchange? in
            while started.count <= index { if !changed.wait(until: limit) { return nil } }
            return started[index]
        }
        return try XCTUnwrap(found, "request \(index) does not come", file: file, line: line)
    }

    func open(_ loop: any TransportLoop, _ events: any TransportEvents) -> any Transport {
        ScriptedTransport(self, loop, events)
    }

    fileprivate func start(_ exchange: Exchange) {
        let reply = lock.withLock { () -> Reply? in
            started.append(exchange)
            changed.broadcast()
            return script?(exchange.request)
        }
        if let reply { exchange.answer(reply) }
    }

    fileprivate func cancel() { lock.withLock { cancelledCount += 1 } }
}

/// One request at the transport. Its steps run on the engine's thread, in order.
final class Exchange: @unchecked Sendable {
    let id: TransferID
    let request: TransportRequest
    /// Sent with it. Changed before the answer alone.
    var cookies: [UInt8]?
    private let loop: any TransportLoop
    private unowned let events: any TransportEvents
    /// The engine's thread alone.
    fileprivate var isOver = false
    private var isDiscarding = false

    fileprivate init(
        _ id: TransferID, _ request: TransportRequest, _ cookies: [UInt8]?, _ loop: any TransportLoop,
        _ events: any TransportEvents
    ) {
        self.id = id
        self.request = request
        self.cookies = cookies
        self.loop = loop
        self.events = events
    }

    func field(_ name: String) -> String? { request.fields.first(named: name) }

    private func step(_ body: @escaping (Exchange) -> Void) {
        loop.perform { [self] in if !isOver { body(self) } }
    }

    /// A pause is over that kept it from being sent.
    func beginAnew() { step { $0.events.transferBeginsAnew($0.id) } }

    func connect() { step { $0.events.transferConnected($0.id) } }

    func head(_ status: Int32, _ fields: [HeaderField], length: Int64?) {
        step { exchange in
            var head = ResponseHead(
                status: status, httpVersion: 11, fields: fields, contentLength: length, isEncoded: false)
            head.sentCookies = exchange.cookies
            exchange.isDiscarding = exchange.events.transferReceived(exchange.id, head: head) == .discard
        }
    }

    func body(_ bytes: [UInt8]) {
        step { exchange in
            if !bytes.isEmpty { bytes.withUnsafeBytes { exchange.events.transferReceived(exchange.id, body: $0) } }
        }
    }

    func finish() {
        step { exchange in
            exchange.isOver = true
            exchange.events.transferFinished(exchange.id, TransferTimes())
        }
    }

    func fail(_ code: ErrorCode) {
        step { exchange in
            exchange.isOver = true
            exchange.events.transferFailed(exchange.id, Failure(code, "as the test has it"), TransferTimes())
        }
    }

    func answer(_ reply: Reply) {
        if let failure = reply.failure { return fail(failure) }
        connect()
        let length = reply.length ?? Int64(reply.body.count)
        var fields = reply.fields
        let hasBody = request.method != "HEAD" && reply.status != 304
        if reply.hasLength, reply.status != 304 { fields.append(HeaderField("Content-Length", "\(length)")) }
        head(reply.status, fields, length: reply.hasLength && reply.status != 304 ? length : nil)
        if hasBody {
            // In pieces, as networks have it.
            for start in stride(from: 0, to: reply.body.count, by: 1000) {
                body(Array(reply.body[start..<min(start + 1000, reply.body.count)]))
            }
        }
        if hasBody, reply.hasLength, Int64(reply.body.count) < length { fail(.truncated) } else { finish() }
    }
}

private final class ScriptedTransport: Transport {
    private let network: Network
    private let loop: any TransportLoop
    private unowned let events: any TransportEvents
    private var running: [TransferID: Exchange] = [:]

    init(_ network: Network, _ loop: any TransportLoop, _ events: any TransportEvents) {
        self.network = network
        self.loop = loop
        self.events = events
    }

    func parse(_ url: String) throws(Failure) -> ParsedURL { testURL(url) }

    func resolveReference(_ reference: String, against base: ParsedURL) throws(Failure) -> ParsedURL {
        testURL(reference.hasPrefix("/") ? "\(base.scheme)://\(base.host)\(reference)" : reference)
    }

    var trust: [UInt8] { network.trust }

    func cookies(for request: TransportRequest) -> [UInt8]? {
        request.usesCookies ? network.cookies(for: request.url) : nil
    }

    func start(_ id: TransferID, _ request: TransportRequest) {
        let exchange = Exchange(id, request, cookies(for: request), loop, events)
        running[id] = exchange
        network.start(exchange)
    }

    func cancel(_ id: TransferID) {
        running[id]?.isOver = true
        network.cancel()
    }

    func setPaused(_ id: TransferID, _ isPaused: Bool) {}
    func setPriority(_ id: TransferID, _ priority: Priority) {}
    func close() { for exchange in running.values { exchange.isOver = true } }
    var deadline: Instant? { nil }
    func deadlineReached(_ now: Instant) {}
    func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) {}
}
