import Glibc

/// One request and the script that answers it, step by step, on the connection's thread.
/// Steps throw `ConnectionEnded` when the client has gone; let it pass, it ends the script.
package final class Exchange: Scripted {
    /// How the end of the answer is recognised, which decides when it is complete.
    private enum Framing: Equatable {
        case none
        case length(Int)
        case chunked, untilClose, raw, complete, closed
    }

    package let request: Request
    private let connection: Connection
    private let settings: Settings
    private var framing = Framing.none
    private var keepsAlive: Bool
    private var isFirstByte = true
    private var isFinished = false

    package var signals: Signals { connection.signals }
    package var party: Signals.Party { connection.party }

    init(_ request: Request, on connection: Connection, settings: Settings) {
        self.request = request
        self.connection = connection
        self.settings = settings
        keepsAlive =
            request.version == "HTTP/1.0"
            ? request.headers.lists("keep-alive", in: "Connection")
            : !request.headers.lists("close", in: "Connection")
    }

    // MARK: Sending

    /// The whole answer. Adds Content-Length unless the headers frame the body themselves; HEAD gets no body.
    package func respond(_ status: Int = 200, headers: Headers = [:], body: [UInt8] = []) throws {
        var headers = headers
        let hasBody = status >= 200 && status != 204 && status != 304
        if hasBody, headers["Content-Length"] == nil, headers["Transfer-Encoding"] == nil {
            headers.add("Content-Length", String(body.count))
        }
        let head = begin(status: status, reason: nil, headers: headers)
        switch framing {
        case .length(let length) where length == body.count && body.count <= 64 << 10:
            // One packet for head and body, as most servers send a small picture.
            framing = .complete
            try transmit(head + body, bodyCount: body.count, isLast: true)
        case .complete:
            try transmit(head, isLast: true)
        default:
            try transmit(head, isLast: false)
            try send(body: body)
            try end()
        }
    }

    package func respond(_ status: Int = 200, headers: Headers = [:], text: String) throws {
        var headers = headers
        if headers["Content-Type"] == nil { headers.add("Content-Type", "text/plain; charset=utf-8") }
        try respond(status, headers: headers, body: Array(text.utf8))
    }

    /// A head with exactly these headers. A status below 200 may be sent any number of times before the final one.
    package func send(status: Int, reason: String? = nil, headers: Headers = [:]) throws {
        let head = begin(status: status, reason: reason, headers: headers)
        try transmit(head, isLast: framing == .complete)
    }

    /// Bytes as they are, head or body, HTTP or not. Unless `end` follows, the connection is closed after the script.
    package func send(raw bytes: [UInt8]) throws {
        if framing == .none { framing = .raw }
        try transmit(bytes, isLast: false)
    }

    package func send(raw text: String) throws { try send(raw: Array(text.utf8)) }

    /// Body bytes in the framing that the head announced. More than the announced length is sent all the same.
    package func send(body: some Collection<UInt8>) throws {
        if body.isEmpty { return }
        switch framing {
        case .chunked:
            try sendChunk(body)
        case .length(let rest) where body.count >= rest:
            if body.count > rest { keepsAlive = false }
            framing = .complete
            try transmit(Array(body), bodyCount: body.count, isLast: true)
        case .length(let rest):
            framing = .length(rest - body.count)
            try transmit(Array(body), bodyCount: body.count, isLast: false)
        case .none, .untilClose, .raw:
            if framing == .none { framing = .raw }
            try transmit(Array(body), bodyCount: body.count, isLast: false)
        case .complete:
            if request.method != "HEAD" {
                keepsAlive = false
                try transmit(Array(body), bodyCount: body.count, isLast: false)
            }
        case .closed:
            throw ConnectionEnded()
        }
    }

    /// One chunk of the chunked coding; an empty one would end the body, so it sends nothing.
    package func sendChunk(_ bytes: some Collection<UInt8>) throws {
        if bytes.isEmpty || framing == .complete { return }
        if framing == .none { framing = .raw }
        try transmit(
            Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + Array("\r\n".utf8), bodyCount: bytes.count,
            isLast: false)
    }

    /// Ends the answer: the last chunk where it is chunked; after raw bytes, says that they were complete.
    /// An answer that is short of its length, or that only a close can end, closes the connection.
    package func end(trailers: Headers = [:]) throws {
        switch framing {
        case .chunked:
            framing = .complete
            let lines = trailers.map { "\($0.name): \($0.value)\r\n" }.joined()
            try transmit(Array("0\r\n\(lines)\r\n".utf8), isLast: true)
        case .raw, .complete:
            framing = .complete
            finish()
        case .none, .length, .untilClose:
            close()
        case .closed:
            break
        }
    }

    /// What TLS says that is no part of an answer.
    package enum Aside: Sendable {
        /// Of TLS 1.3.
        case keyUpdate
        /// NewSessionTicket of TLS 1.3.
        case ticket
        /// Of TLS 1.2: what the client answers is not read.
        case helloRequest
        /// A whole handshake of TLS 1.2.
        case renegotiation
    }

    package func say(_ message: Aside, count: Int) throws { try connection.say(message, count) }

    // MARK: Ending the connection

    /// The goodbye of TLS; TCP stays open.
    package func sayGoodbye() { connection.sayGoodbye() }

    /// FIN, without that goodbye.
    package func shutDownSending() { connection.socket.shutDownSending() }

    /// Closes the connection with FIN, whatever has been sent.
    package func close() {
        guard framing != .closed else { return }
        framing = .closed
        keepsAlive = false
        finish()
        connection.close()
    }

    /// Closes the connection with RST.
    package func reset() {
        guard framing != .closed else { return }
        framing = .closed
        keepsAlive = false
        finish()
        connection.reset()
    }

    /// Says that the connection will be closed after this answer, without saying so to the client.
    package func closeAfterwards() { keepsAlive = false }

    /// From now on the kernel holds back at most some 32 KiB that the client has not taken.
    package func keepLittleUnsent() { connection.socket.set(SOL_SOCKET, SO_SNDBUF, 16 << 10) }

    /// Passes bytes on in both directions until one side ends; then the script may close. True when the other server
    /// has ended with FIN, false when it was reset or the client has left. `edit` sees what comes from the server.
    func relay(_ server: Socket, edit: (ArraySlice<UInt8>) -> [UInt8]) throws -> Bool {
        framing = .raw
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            var waits = [connection.socket, server].map {
                pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0)
            }
            guard poll(&waits, 2, -1) >= 0 else { continue }
            if waits[0].revents != 0 {
                var count = try buffer.withUnsafeMutableBytes { try connection.receive(into: $0) }
                if count == 0 { throw ConnectionEnded() }
                while count > 0 {
                    do { try buffer[..<count].withUnsafeBytes { try server.send($0) } } catch { return false }
                    // No socket tells of what comes over TLS once it is decrypted.
                    count = try buffer.withUnsafeMutableBytes { try connection.receivePending(into: $0) }
                }
            }
            if waits[1].revents != 0 {
                guard let count = try? buffer.withUnsafeMutableBytes({ try server.receive(into: $0) }) else {
                    return false
                }
                if count == 0 { return true }
                let bytes = edit(buffer[..<count])
                try transmit(bytes, bodyCount: bytes.count, isLast: false)
            }
        }
    }

    // MARK: Below the steps

    /// Something of the answer has been sent.
    var hasBegun: Bool { !isFirstByte }

    /// After the script: true when the connection can carry another request.
    func conclude() -> Bool {
        switch framing {
        case .complete: finish()
        case .none, .length, .chunked, .untilClose, .raw, .closed: close()
        }
        return keepsAlive
    }

    private func begin(status: Int, reason: String?, headers: Headers) -> [UInt8] {
        if status >= 200 {
            if headers.lists("close", in: "Connection") { keepsAlive = false }
            if request.method == "HEAD" || status == 204 || status == 304 {
                framing = .complete
            } else if headers.lists("chunked", in: "Transfer-Encoding") {
                framing = .chunked
            } else if let text = headers["Content-Length"], let length = Int(text), length >= 0 {
                framing = length == 0 ? .complete : .length(length)
            } else {
                framing = .untilClose
            }
        }
        let lines = headers.map { "\($0.name): \($0.value)\r\n" }.joined()
        return Array("HTTP/1.1 \(status) \(reason ?? reasonPhrase(status))\r\n\(lines)\r\n".utf8)
    }

    private func transmit(_ bytes: [UInt8], bodyCount: Int = 0, isLast: Bool) throws {
        guard framing != .closed else { throw ConnectionEnded() }
        if isFirstByte {
            isFirstByte = false
            try pause(settings.latency)
        }
        try bytes.withUnsafeBytes { bytes in
            // The client may act on the last byte before this thread runs again: what it means is noted before it goes.
            let held = isLast ? min(bytes.count, 1024) : 0
            if bytes.count > held {
                try connection.send(
                    UnsafeRawBufferPointer(rebasing: bytes.dropLast(held)), segment: settings.segmentSize)
            }
            connection.journal.sent(bodyCount, of: request)
            if isLast {
                finish()
                try connection.send(UnsafeRawBufferPointer(rebasing: bytes.suffix(held)), segment: settings.segmentSize)
            }
        }
    }

    private func finish() {
        guard !isFinished else { return }
        isFinished = true
        connection.journal.finished(request)
        if !keepsAlive { connection.journal.closed(connection.number, byClient: false) }
    }
}

func reasonPhrase(_ status: Int) -> String {
    let phrases = [
        100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints",
        200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 206: "Partial Content",
        301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified", 307: "Temporary Redirect",
        308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
        405: "Method Not Allowed", 406: "Not Acceptable", 408: "Request Timeout", 410: "Gone",
        416: "Range Not Satisfiable", 425: "Too Early", 429: "Too Many Requests", 500: "Internal Server Error",
        501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
    ]
    return phrases[status] ?? "Status"
}
