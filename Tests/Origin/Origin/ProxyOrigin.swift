import Glibc

/// An HTTP proxy on 127.0.0.1. It takes requests in the absolute form and CONNECT, and whatever host they name it goes to
/// the port on this machine: a test can ask for names that nobody can resolve. With `tls` it is an https proxy.
package final class ProxyOrigin: @unchecked Sendable {
    private let journal = Journal()
    private let signals = Signals()
    private let listener: Listener
    private let gathering = Monitor(Gathering())
    private let connections = Monitor<[Connection]>([])
    /// Nil without TLS.
    package let authority: Authority?

    private struct Gathering {
        var wanted = 0
        var records = TLSRecords()
    }

    /// With a user only requests that bear the name and the password in Proxy-Authorization pass, by Basic.
    package init(port: UInt16 = 0, tls: TLS? = nil, user: String? = nil, password: String = "") throws {
        authority = try tls.map { try Authority($0, protocols: ["http/1.1"]) }
        let login = user.map { Login(user: $0, password: password) }
        listener = try Listener(port: port, journal: journal, signals: signals)
        var conversation = Conversation(
            journal: journal, settings: { Settings() },
            script: { [gathering] _ in
                { exchange in
                    if let login, !Self.admits(exchange.request, login) {
                        return try exchange.respond(
                            407, headers: ["Proxy-Authenticate": "Basic realm=\"proxy\""], text: "not without a name\n")
                    }
                    try Self.pass(exchange, gathering)
                }
            })
        let control = Control(journal: journal, signals: signals)
        conversation.control = { try control.answer($0) }
        try listener.start(by: authority) { [connections] connection in
            connections.change { $0.append(connection) }
            conversation.run(on: connection)
        }
    }

    deinit { stop() }

    /// Closes every connection and tunnel, joins every thread.
    package func stop() {
        listener.stop()
        authority?.removeFiles()
    }

    package var port: Int { Int(listener.port) }
    package var base: String { "\(authority == nil ? "http" : "https")://127.0.0.1:\(port)" }

    /// The proxy's own TLS ends on all its connections, which stay open. Only while nothing passes through them.
    package func sayGoodbye() { for connection in connections.read({ $0 }) { connection.sayGoodbye() } }

    /// What the server sends through a tunnel from now on is held until so many records of its TLS are there, and passes in one
    /// piece; what comes behind that passes as it comes. For one tunnel at a time.
    package func gather(_ records: Int) { gathering.change { $0 = Gathering(wanted: records) } }

    /// True once so many of them are held, or have passed.
    package func hasGathered(_ records: Int) -> Bool {
        gathering.wait(until: .patient) { $0.records.count >= records ? true : nil } ?? false
    }

    /// What went through, and what was refused: targets as they came, `http://…` or `host:port`. A request is in flight
    /// until the connection to the server is over; `bytesSent` counts all that went to the client.
    package var log: Log { journal.log }
    package func resetLog() { journal.reset() }

    /// As `Origin.wait`.
    @discardableResult
    package func wait(until deadline: Deadline = .patient, for condition: (Log) throws -> Bool) rethrows -> Bool {
        try journal.wait(until: deadline, for: condition)
    }

    private static func admits(_ request: Request, _ login: Login) -> Bool {
        let parts = (request.headers["Proxy-Authorization"] ?? "").split(separator: " ", maxSplits: 1)
        return parts.count == 2 && parts[0].equalsIgnoringCase("Basic") && parts[1].trimmed == login.basic
    }

    private static func pass(_ exchange: Exchange, _ gathering: Monitor<Gathering>) throws {
        let request = exchange.request
        let isTunnel = request.method == "CONNECT"
        let target = isTunnel ? Target(authority: request.target, path: "") : Target(url: request.target)
        guard let target else { return try exchange.respond(400, text: "this is a proxy: \(request.target)\n") }
        let server: Socket
        do { server = try Socket.connected(to: target.port) } catch {
            return try exchange.respond(502, text: "\(target.port): \(error)\n")
        }
        defer { server.close() }
        var rewriter = HeadRewriter()
        if isTunnel {
            try exchange.send(raw: "HTTP/1.1 200 Connection established\r\n\r\n")
        } else {
            try head(of: request, for: target).withUnsafeBytes { try server.send($0) }
        }
        let hasEnded = try exchange.relay(server) { bytes in
            guard isTunnel else { return rewriter.rewrite(bytes) }
            return gathering.change { gathering in
                guard gathering.records.count < gathering.wanted else { return Array(bytes) }
                gathering.records.take(bytes)
                return gathering.records.count < gathering.wanted ? [] : gathering.records.bytes
            }
        }
        if hasEnded { exchange.close() } else { exchange.reset() }
    }

    /// The request as the server gets it.
    private static func head(of request: Request, for target: Target) -> [UInt8] {
        var headers = Headers()
        let ours = [
            "connection", "keep-alive", "proxy-connection", "proxy-authorization", "transfer-encoding",
            "content-length",
        ]
        for field in request.headers where !ours.contains(field.name.lowercased()) {
            headers.add(field.name, field.value)
        }
        if !request.body.isEmpty { headers.add("Content-Length", String(request.body.count)) }
        headers.add("Via", "1.1 proxy")
        headers.add("Connection", "close")
        let lines = headers.map { "\($0.name): \($0.value)\r\n" }.joined()
        return Array("\(request.method) \(target.path) HTTP/1.1\r\n\(lines)\r\n".utf8) + request.body
    }

    private struct Target {
        var port: UInt16
        var path: String

        init?(url: String) {
            guard url.lowercased().hasPrefix("http://") else { return nil }
            let rest = url.dropFirst("http://".count)
            let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
            let path = rest[end...].hasPrefix("/") ? String(rest[end...]) : "/" + rest[end...]
            let authority = String(rest[..<end])
            self.init(authority: authority.contains(":") ? authority : authority + ":80", path: path)
        }

        init?(authority: String, path: String) {
            guard let port = authority.split(separator: ":").last.flatMap({ UInt16($0) }) else { return nil }
            self.port = port
            self.path = path
        }
    }
}

/// Records of TLS, each behind five bytes of which the last two say how long it is.
private struct TLSRecords {
    private(set) var bytes: [UInt8] = []
    /// Those that are whole.
    private(set) var count = 0
    private var end = 0

    mutating func take(_ piece: ArraySlice<UInt8>) {
        bytes += piece
        while bytes.count >= end + 5 {
            let next = end + 5 + Int(bytes[end + 3]) << 8 + Int(bytes[end + 4])
            guard bytes.count >= next else { return }
            end = next
            count += 1
        }
    }
}

/// Says in the answer's head that the connection ends with it. What is no head of HTTP passes as it is.
private struct HeadRewriter {
    private var head: [UInt8] = []
    private var isDone = false

    mutating func rewrite(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        if isDone { return Array(bytes) }
        head += bytes
        var passed: [UInt8] = []
        let end = Array("\r\n\r\n".utf8)
        while head.starts(with: Array("HTTP/1.".utf8)), head.count < 1 << 20 {
            guard let at = head.indices.first(where: { head[$0...].starts(with: end) }) else { return passed }
            let isInterim = head.count > 9 && head[9] == UInt8(ascii: "1")
            passed += head[..<at]
            if !isInterim {
                passed += Array("\r\nConnection: close\r\nVia: 1.1 proxy".utf8) + head[at...]
                isDone = true
                return passed
            }
            passed += end
            head.removeFirst(at + 4)
        }
        if head.count < 7, Array("HTTP/1.".utf8).starts(with: head) { return passed }
        isDone = true
        return passed + head
    }
}
