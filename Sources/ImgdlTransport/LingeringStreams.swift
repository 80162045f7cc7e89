import ImgdlCore

/// A stream that may wait for its reset once it has been stopped.
protocol LingeringStream: AnyObject {
    /// There is one, or is to be at once, and nobody has stopped it before.
    var hasStream: Bool { get }
    /// Its connection speaks HTTP/2: known from the handshake on.
    var isHTTP2: Bool { get }
    /// Tells its connection from the others of its lane.
    var connectionName: UInt64 { get }
    var server: ServerConnections? { get }
    var isLingering: Bool { get set }
}

/// Streams of HTTP/2 that nobody wants any more, and that are not reset yet, since too many of their server's were. Each was
/// cancelled, has failed, or has a body that is read no further; whoever waited for it has been told. What comes of it is
/// thrown away, and many come to their end by themselves.
///
/// However many wait, none has its turn earlier for that. Where a server is crowded, connections on which nobody waits for
/// anything are closed as a whole, which is no reset of a stream; and while it stays so, no request to it begins. So what
/// waits is never more than the limits below and what runs together.
struct LingeringStreams<Stream: LingeringStream> {
    /// With so many a server is crowded.
    static var maximumOfServer: Int { 200 }
    /// With so many in all each server is that has any of them.
    static var maximumCount: Int { 1_000 }

    private var transfers: [Stream] = []

    var all: [Stream] { transfers }
    var count: Int { transfers.count }

    /// When the first of them may be reset.
    func deadline(_ now: Instant) -> Instant? { transfers.compactMap { $0.server?.resets.next(now) }.min() }

    func hasTooMany(_ server: ServerConnections) -> Bool {
        server.lingering >= (count < Self.maximumCount ? Self.maximumOfServer : 1)
    }

    /// Asked once of each that is stopped. False: it is to be reset at once, which is counted, or is no stream that others
    /// share a connection with.
    mutating func join(_ transfer: Stream, _ now: Instant) -> Bool {
        guard transfer.hasStream, transfer.isHTTP2, let server = transfer.server, !server.resets.take(now) else {
            return false
        }
        transfer.isLingering = true
        server.lingering += 1
        transfers.append(transfer)
        return true
    }

    /// It has come to its end.
    mutating func leave(_ transfer: Stream) {
        if transfer.isLingering { _ = take { $0 === transfer } }
    }

    /// Those that are to be reset now.
    mutating func take(_ now: Instant) -> [Stream] { take { $0.server?.resets.take(now) != false } }

    mutating func takeAll() -> [Stream] { take { _ in true } }

    /// All those of the connection of a crowded server's that has the oldest of them. `isBusy`: somebody waits for
    /// something on that connection.
    mutating func takeCrowdedConnection(isBusy: (Stream) -> Bool) -> [Stream] {
        let oldest = transfers.first { stream in stream.server.map(hasTooMany) == true && !isBusy(stream) }
        guard let oldest else { return [] }
        return take { $0.server === oldest.server && $0.connectionName == oldest.connectionName }
    }

    private mutating func take(_ isTaken: (Stream) -> Bool) -> [Stream] {
        var taken: [Stream] = []
        transfers.removeAll { transfer in
            guard isTaken(transfer) else { return false }
            taken.append(transfer)
            return true
        }
        for transfer in taken {
            transfer.isLingering = false
            transfer.server?.lingering -= 1
        }
        return taken
    }
}
