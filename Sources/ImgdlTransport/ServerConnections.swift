import ImgdlCore

/// Knowledge of one server's connections, those of one lane: whether requests share them, how fast their streams may
/// be reset, and which requests wait for somebody else's handshake, since the connection may turn out to be one that all
/// of them can share (HTTP/2). They wait until the first handshake has ended, and no
/// longer; nor longer than `patience`, since a handshake that stalls would hold up all. curl's own waiting
/// (CURLOPT_PIPEWAIT) lasts, in newer versions, for the whole first transfer where the server speaks HTTP/1.1.
final class ServerConnections {
    private enum Sharing {
        /// No handshake has ended well.
        case unknown
        /// One has, and nothing has been answered since.
        case handshakeDone
        /// HTTP/1.1: each has a connection of its own.
        case separate
        /// HTTP/2.
        case shared
    }

    /// In milliseconds: most handshakes take less. Where one takes more, a connection too many costs less than the wait.
    static let patience: Int64 = 300

    private var sharing = Sharing.unknown
    /// Whose handshake the others wait for.
    private var opener: TransferID?
    /// When the first of them began.
    private var openedAt = Instant(nanoseconds: 0)
    private var waiting: [TransferID] = []
    private var connected = 0
    /// Of its streams, where it speaks HTTP/2.
    var resets = ResetPace()
    /// Stopped streams that wait for their reset.
    var lingering = 0
    /// Requests that wait until there are fewer of these.
    private var held: [TransferID] = []

    /// No request waits or holds a connection, and all resets are allowed again; a new object in its place costs one wait
    /// at most.
    func isIdle(_ now: Instant) -> Bool {
        opener == nil && waiting.isEmpty && held.isEmpty && connected == 0 && resets.isRested(now)
    }

    var isHTTP2: Bool { sharing == .shared }

    /// When whoever waits has waited for long enough.
    var overdue: Instant? { waiting.isEmpty ? nil : openedAt.advanced(byMilliseconds: Self.patience) }

    /// False: it has to wait, until one of the calls below names it. `isFresh`: it makes a connection of its own, whatever
    /// there is.
    func begins(_ id: TransferID, isFresh: Bool = false, _ now: Instant) -> Bool {
        if isFresh { return true }
        switch sharing {
        case .separate, .handshakeDone: return true
        case .shared where connected > 0: return true
        case .shared, .unknown: break
        }
        guard opener != nil else {
            opener = id
            openedAt = now
            return true
        }
        guard now < openedAt.advanced(byMilliseconds: Self.patience) else { return true }
        waiting.append(id)
        return false
    }

    /// It has a connection, new or used again. Gives those that need not wait any more.
    func connects(_ id: TransferID) -> [TransferID] {
        connected += 1
        if sharing == .unknown { sharing = .handshakeDone }
        if opener == id { opener = nil }
        return takeWaiting()
    }

    /// Gives those that have waited for long enough.
    func losesPatience(_ now: Instant) -> [TransferID] {
        guard let overdue, overdue <= now else { return [] }
        return takeWaiting()
    }

    func answers(inHTTP2 isHTTP2: Bool) { sharing = isHTTP2 ? .shared : .separate }

    /// It is over. `handshakeEnded`: well or not, but not because the request was cancelled. Gives those that need not wait
    /// any more.
    func ends(_ id: TransferID, wasConnected: Bool, handshakeEnded: Bool) -> [TransferID] {
        if wasConnected { connected -= 1 }
        if connected == 0, sharing == .handshakeDone { sharing = .unknown }
        guard opener == id else {
            if !wasConnected {
                waiting.removeAll { $0 == id }
                held.removeAll { $0 == id }
            }
            return []
        }
        opener = nil
        if handshakeEnded { return takeWaiting() }
        // The next one's is now the first.
        guard !waiting.isEmpty else { return [] }
        opener = waiting.removeFirst()
        return opener.map { [$0] } ?? []
    }

    /// It has to wait until `takeHeld` names it.
    func hold(_ id: TransferID) { held.append(id) }

    func takeHeld() -> [TransferID] {
        defer { held = [] }
        return held
    }

    private func takeWaiting() -> [TransferID] {
        guard !waiting.isEmpty else { return [] }
        defer { waiting = [] }
        return waiting
    }
}

/// Those of one lane, by server.
struct ServerTable {
    private static let maximumIdle = 1_000

    private var servers: [ParsedURL.Origin: ServerConnections] = [:]
    /// Asked for last: mostly the next one's, too.
    private var last: (origin: ParsedURL.Origin, server: ServerConnections)?

    var count: Int { servers.count }

    mutating func server(for url: ParsedURL, _ now: Instant) -> ServerConnections {
        if let last, url.hasOrigin(last.origin) { return last.server }
        let origin = url.origin
        let server = servers[origin] ?? make(origin, now)
        last = (origin, server)
        return server
    }

    private mutating func make(_ origin: ParsedURL.Origin, _ now: Instant) -> ServerConnections {
        if servers.count >= Self.maximumIdle { servers = servers.filter { !$0.value.isIdle(now) } }
        let server = ServerConnections()
        servers[origin] = server
        return server
    }
}
