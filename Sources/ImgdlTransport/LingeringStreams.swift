import ImgdlCore

/// Streams of HTTP/2 that nobody wants any more and that are not reset yet, since too many of their server's were: what
/// comes of them is thrown away, and many come to their end by themselves.
struct LingeringStreams {
    /// So many wait at most: with more of them the oldest are reset, whatever their server makes of it.
    static let maximumCount = 200

    private var transfers: [CurlTransfer] = []

    var all: [CurlTransfer] { transfers }
    var count: Int { transfers.count }

    /// When the first of them may be reset.
    func deadline(_ now: Instant) -> Instant? { transfers.compactMap { $0.turns?.resets.next(now) }.min() }

    /// False: it may be reset at once, or is no stream that others share a connection with.
    mutating func join(_ transfer: CurlTransfer, _ now: Instant) -> Bool {
        guard transfer.isConnected, let turns = transfer.turns, turns.isHTTP2, !turns.resets.take(now) else {
            return false
        }
        transfer.isLingering = true
        transfers.append(transfer)
        return true
    }

    /// It has come to its end.
    mutating func leave(_ transfer: CurlTransfer) {
        if transfer.isLingering { transfers.removeAll { $0 === transfer } }
    }

    /// Those that are to be reset now.
    mutating func take(_ now: Instant) -> [CurlTransfer] {
        var taken = Array(transfers.prefix(max(0, transfers.count - Self.maximumCount)))
        transfers.removeFirst(taken.count)
        transfers.removeAll { transfer in
            guard transfer.turns?.resets.take(now) != false else { return false }
            taken.append(transfer)
            return true
        }
        return taken
    }

    mutating func takeAll() -> [CurlTransfer] {
        defer { transfers = [] }
        return transfers
    }
}
