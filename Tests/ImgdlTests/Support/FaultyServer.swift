import Origin

/// Where in an exchange a fault strikes.
enum FaultPoint: String, CaseIterable {
    case connect
    case tls = "TLS handshake"
    case statusLine = "status line"
    case headers
    /// In place of the first byte of the body.
    case firstBodyByte = "first body byte"
    case midBody = "mid-body"
    case lastByte = "last byte"
    case betweenChunks = "between chunks"
    case afterInterim = "after a 1xx"
    case trailers
}

enum Fault: String, CaseIterable { case reset, close, stall, garbage }

/// One cell of the matrix, and what a download of it must come to.
struct FaultCell: CustomStringConvertible {
    enum Side { case client, server, nobody }

    var point: FaultPoint
    var fault: Fault
    /// The code of the terminal.
    var code: String
    /// Who ends the connection; nobody where there never is one.
    var closedBy: Side
    /// The connection is good for other requests: it stays until the downloader goes.
    var isKept: Bool

    var description: String { "\(fault) at \(point.rawValue)" }

    /// A second attempt may do better.
    var isTransient: Bool {
        ["CONNECT_FAILED", "CONNECTION_LOST", "TRUNCATED", "CONNECT_TIMEOUT", "IDLE_TIMEOUT"].contains {
            code == "IMGDL_ERROR_" + $0
        }
    }
}

/// A server for one cell: it strikes the first `faults` times, and then answers with the picture.
final class FaultyServer {
    let cell: FaultCell
    private let picture: Picture
    private let authority: Authority?
    private let journal = Journal()
    private let signals = Signals()
    private let listener: Listener
    private let remaining: Monitor<Int>

    /// `isHeld`: it comes to the gate `fault` before it strikes. `isSecure`: over TLS, wherever it strikes.
    init(
        _ cell: FaultCell, _ picture: Picture, authority: Authority, faults: Int = .max, isHeld: Bool = false,
        isSecure: Bool = false
    ) throws {
        self.cell = cell
        self.picture = picture
        self.authority = cell.point == .tls || isSecure ? authority : nil
        remaining = Monitor(faults)
        listener = try Listener(journal: journal, signals: signals)
        if !isHeld { gate.open() }
        switch (cell.point, cell.fault) {
        case (.connect, .reset): break  // The port is ours, and nobody listens.
        case (.connect, .stall): try listener.neverAnswer()
        default: try begin()
        }
    }

    func stop() { listener.stop() }

    var url: String { "\(authority == nil ? "http" : "https")://127.0.0.1:\(listener.port)/picture.png" }
    var gate: Gate { signals.gate("fault") }
    /// No thread of the server learns of the fault: the kernel deals it out.
    var isKernels: Bool { cell.point == .connect && cell.fault != .close }
    var log: Log { journal.log }
    func wait(for condition: (Log) -> Bool) -> Bool { journal.wait(until: .patient, for: condition) }

    /// From now on a port that refused or ignored connections takes them.
    func recover() throws {
        remaining.change { $0 = 0 }
        try begin()
    }

    private func begin() throws {
        try listener.start { [self] connection in serve(connection) }
    }

    private func strikes() -> Bool {
        remaining.change { remaining in
            defer { remaining -= remaining > 0 ? 1 : 0 }
            return remaining > 0
        }
    }

    private func serve(_ connection: Connection) {
        switch cell.point {
        case .connect:
            if strikes() { return strike(connection) }
        case .tls:
            if strikes() {
                var hello = [UInt8](repeating: 0, count: 16 << 10)
                let count = try? hello.withUnsafeMutableBytes { try connection.receive(into: $0) }
                if count ?? 0 > 0 { strike(connection) }
                return
            }
        default:
            break
        }
        if let authority, (try? connection.secure(by: authority)) == nil { return }
        Conversation(
            journal: journal, settings: { Settings() },
            script: { [self] _ in
                { [self] exchange in
                    if cell.point != .connect, cell.point != .tls, strikes() {
                        try answerBadly(exchange)
                    } else {
                        try exchange.respond(headers: ["Content-Type": picture.type], body: picture.bytes)
                    }
                }
            }
        ).run(on: connection)
    }

    /// Before there is any HTTP. The listener closes what is open afterwards.
    private func strike(_ connection: Connection) {
        guard signals.wait(gate: "fault", party: connection.party, until: .never) == .opened else { return }
        switch cell.fault {
        case .close:
            connection.close()
        case .reset:
            connection.reset()
        case .stall:
            _ = signals.wait(gate: nil, party: connection.party, until: .never)
        case .garbage:
            try? Array("220 this is the wrong kind of server\r\n".utf8).withUnsafeBytes { try connection.send($0) }
            _ = signals.wait(gate: nil, party: connection.party, until: .never)
        }
    }

    private func answerBadly(_ exchange: Exchange) throws {
        let answer = FaultyAnswer(cell.point, picture)
        if !answer.beginning.isEmpty { try exchange.send(raw: answer.beginning) }
        try exchange.wait(gate)
        switch cell.fault {
        case .close: exchange.close()
        case .reset: exchange.reset()
        case .stall: try exchange.stall()
        case .garbage:
            try exchange.send(raw: answer.garbage)
            if answer.isComplete { try exchange.end() } else { try exchange.stall() }
        }
    }
}

/// What a server has sent when the fault strikes, and what garbage would be then.
private struct FaultyAnswer {
    var beginning: [UInt8]
    var garbage: [UInt8]
    /// With the garbage the answer has its right length.
    var isComplete = false

    init(_ point: FaultPoint, _ picture: Picture) {
        let body = picture.bytes
        let half = body.count / 2
        let status = "HTTP/1.1 200 OK\r\nContent-Type: \(picture.type)\r\n"
        let head = Array("\(status)Content-Length: \(body.count)\r\n\r\n".utf8)
        let chunkedHead = Array("\(status)Transfer-Encoding: chunked\r\n\r\n".utf8)
        func chunk(_ bytes: some Collection<UInt8>) -> [UInt8] {
            Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + Array("\r\n".utf8)
        }
        func noise(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ 41) } }

        switch point {
        case .connect, .tls:
            (beginning, garbage) = ([], [])
        case .statusLine:
            (beginning, garbage) = (Array("HTTP/1.1 2".utf8), Array("\u{1}\u{2} no status\r\n\r\n".utf8))
        case .headers:
            (beginning, garbage) = (
                Array((status + "Content-Len").utf8), Array("\u{0}\u{1}\u{2} no header\r\n\r\n".utf8)
            )
        case .firstBodyByte:
            (beginning, garbage, isComplete) = (head, noise(body.count), true)
        case .midBody:
            (beginning, garbage, isComplete) = (head + body[..<half], noise(body.count - half), true)
        case .lastByte:
            (beginning, garbage, isComplete) = (head + body.dropLast(), [body[body.count - 1] ^ 0xFF], true)
        case .betweenChunks:
            (beginning, garbage) = (chunkedHead + chunk(body[..<half]), Array("this is no size\r\n".utf8))
        case .afterInterim:
            (beginning, garbage) = (
                Array("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n".utf8),
                Array("\u{1}\u{2} this is not HTTP\r\n\r\n".utf8)
            )
        case .trailers:
            (beginning, garbage) = (
                chunkedHead + chunk(body) + Array("0\r\nX-Che".utf8), Array("\u{0}\u{1}\u{2} no trailer\r\n\r\n".utf8)
            )
        }
    }
}
