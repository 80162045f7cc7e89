import ImgdlCore

/// A stream that may wait for its reset once it has been cancelled.
protocol LingeringStream: AnyObject {
    var isConnected: Bool { get }
    var server: ServerConnections? { get }
    var isLingering: Bool { get set }
}

/// Streams of HTTP/2 that nobody wants any more and that are not reset yet, since too many of their server's were: what
/// comes of them is thrown away, and many come to their end by themselves.
struct LingeringStreams<Stream: LingeringStream> {
    /// So many wait at most: with more of them the oldest are reset, whatever their server makes of it.
    static var maximumCount: Int { 200 }

    private var transfers: [Stream] = []

    var all: [Stream] { transfers }
    var count: Int { transfers.count }

    /// When the first of them may be reset.
    func deadline(_ now: Instant) -> Instant? { transfers.compactMap { $0.server?.resets.next(now) }.min() }

    /// False: it may be reset at once, or is no stream that others share a connection with.
    mutating func join(_ transfer: Stream, _ now: Instant) -> Bool {
        guard transfer.isConnected, let server = transfer.server, server.isHTTP2, !server.resets.take(now) else {
            return false
        }
        transfer.isLingering = true
        transfers.append(transfer)
        return true
    }

    /// It has come to its end.
    mutating func leave(_ transfer: Stream) {
        if transfer.isLingering { transfers.removeAll { $0 === transfer } }
    }

    /// Those that are to be reset now.
    mutating func take(_ now: Instant) -> [Stream] {
        var taken = Array(transfers.prefix(max(0, transfers.count - Self.maximumCount)))
        transfers.removeFirst(taken.count)
        transfers.removeAll { transfer in
            guard transfer.server?.resets.take(now) != false else { return false }
            taken.append(transfer)
            return true
        }
        return taken
    }

    mutating func takeAll() -> [Stream] {
        defer { transfers = [] }
        return transfers
    }
}
