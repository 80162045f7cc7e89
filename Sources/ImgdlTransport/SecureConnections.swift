import CCurl
import ImgdlCore

/// The TLS connections of one multi handle by their names, and who has ended each.
struct SecureConnections {
    /// A reference to what is known of one.
    final class Connection {
        private var handshake: OpaquePointer?
        private(set) var lastUser: TransferID?
        /// Whether several streams were on it at once, at any time.
        private(set) var isShared = false
        /// One of its streams has ended for a flood of the server's: so do all.
        fileprivate(set) var isFlooded = false
        /// One of its streams has failed.
        var hasFailed = false
        /// Where it goes, as curl tells servers apart: all addresses of a port are one here.
        let server: Server

        init(_ handshake: OpaquePointer, port: UInt16) {
            self.handshake = ccurl_keep_handshake(handshake)
            server = Server(name: String(cString: ccurl_secure_server(handshake)), port: port)
        }

        deinit { ccurl_forget_handshake(&handshake) }

        /// `isRunning`: of another transfer that has used it.
        func serve(_ id: TransferID, isRunning: (TransferID) -> Bool) {
            if let lastUser, lastUser != id, isRunning(lastUser) { isShared = true }
            lastUser = id
        }

        var end: ccurl_secure_end { ccurl_secure_end(handshake) }
        var isHTTP2: Bool { ccurl_secure_is_http2(handshake) }
        var isClosed: Bool { ccurl_secure_is_closed(handshake) }
        /// It goes through a tunnel, and its proxy is spoken to over TLS, too.
        var isInTLS: Bool { ccurl_secure_is_in_tls(handshake) }
        /// TLS has ended, the server's or its proxy's.
        var hasGoodbye: Bool { ccurl_secure_has_goodbye(handshake) }
        /// Some of what has come lies decrypted, and no socket tells of it.
        var hasDecrypted: Bool { ccurl_secure_has_decrypted(handshake) }
        /// Some of what has come lies in OpenSSL, in whatever state.
        var hasUnread: Bool { ccurl_secure_has_unread(handshake) }
        /// Whether more has come, on its socket or in OpenSSL, than TLS says by itself (session tickets, new keys), which is read.
        /// Nobody uses the connection.
        func hasAnswer(_ socket: Int32) -> Bool { ccurl_secure_has_answer(handshake, socket) }
        /// Bytes that its socket had brought when it was closed; nil: not known.
        fileprivate var bytesAtClose: UInt64?
        /// Grows with each read that brings something; nil: it is closed, and not known.
        var readBytes: UInt64? { isClosed ? bytesAtClose : ccurl_secure_read_bytes(handshake) }

        /// Bytes that it had brought when something came of an answer last. Beyond those that it has brought: what may
        /// still come of streams that were reset.
        private var answeredBytes: UInt64 = 0
        private var readCredit = ReadCredit()
        /// The time of the last answer; nil: there was none.
        private var lastProgress: Instant?
        /// Milliseconds for which curl may have kept more of an answer before it is given out.
        static let keptTime: Int64 = 250

        /// Something has come of an answer, or gone of a request.
        func noteProgress(_ bytes: Int, _ now: Instant) {
            let place = readBytes ?? 0
            lastProgress = now
            answeredBytes = max(answeredBytes, place)
            readCredit.receive(bytes, at: place)
            excessRate.note(readCredit.excess, now)
            limitReads()
        }

        private var excessRate = ExcessRate()
        /// Whether it is a flood where that takes much of the thread's time, however little of answers comes between.
        var isExcessive: Bool { isHTTP2 && excessRate.isTooMuch }

        /// A stream was reset from here: as much as a window may still come of it, and belongs to nobody who waits.
        func noteReset() {
            let place = readBytes ?? 0
            answeredBytes = max(answeredBytes, place) + ReadCredit.window
            readCredit.reset(at: place)
            limitReads()
        }

        /// Bodies of its streams that curl keeps, since nobody takes them now: of what comes for them nothing is heard.
        var keptBodies: UInt64 = 0 {
            didSet {
                if keptBodies > oldValue { readCredit.keep(keptBodies, at: readBytes ?? 0) }
                limitReads()
            }
        }

        /// Has curl read no more for its streams in a turn than half of what the buffer of one holds: in each turn those have
        /// theirs emptied that have something, and that may have come in the turn before. What cannot be an answer any more has no
        /// such limit: how long a turn takes tells a flood.
        fileprivate func keepsRoomInStreams() {
            ccurl_secure_limit_reads(handshake, UInt64(EasyHandle.bufferBytes) / 2 - Self.recordBytes)
            limitReads()
        }

        private func limitReads() {
            guard CurlVersion.needsRoomInStreams, isHTTP2 else { return }
            ccurl_secure_limit_reads_until(handshake, readCredit.end)
        }

        /// A record of TLS with all that encryption may add.
        private static let recordBytes: UInt64 = 16 * 1024 + 256 + 5

        /// Curl may keep more of the answer of which something has come last.
        func mayKeepAnswer(_ now: Instant) -> Bool {
            lastProgress.map { now < $0.advanced(byMilliseconds: Self.keptTime) } ?? false
        }

        /// Bytes that it has brought since something came of an answer: of none, where curl keeps nothing of one.
        var strayBytes: UInt64 {
            let bytes = readBytes ?? 0
            return bytes - min(bytes, answeredBytes)
        }
    }

    struct Server: Hashable {
        let name: String
        let port: UInt16

        /// Names count as far as curl 7.88 tells servers apart by them: some 110 characters.
        init(name: String, port: UInt16) {
            self.name = String(name.prefix(100))
            self.port = port
        }
    }

    private static let leastToForget = 64
    private static let maximumServers = 1_000

    private var connections: [UInt64: Connection] = [:]
    /// Connections of HTTP/2 through a tunnel within a proxy's TLS.
    private var tunnels: Set<UInt64> = []
    private var flooded: [UInt64] = []
    /// Those that have spoken HTTP/2; nil: more than are remembered.
    private var serversOfHTTP2: Set<Server>? = []
    private var mostBeforeForgetting = leastToForget

    var count: Int { connections.count }
    var isEmpty: Bool { connections.isEmpty }
    var hasTunnels: Bool { !tunnels.isEmpty }

    subscript(name: UInt64) -> Connection? { connections[name] }

    mutating func note(_ connection: Connection, _ name: UInt64) {
        connections[name] = connection
        tunnels.remove(name)
        guard connection.isHTTP2 else { return }
        if CurlVersion.needsRoomInStreams { connection.keepsRoomInStreams() }
        if connection.isInTLS { tunnels.insert(name) }
        serversOfHTTP2?.insert(connection.server)
        if let count = serversOfHTTP2?.count, count > Self.maximumServers { serversOfHTTP2 = nil }
    }

    /// Forgets a closed connection whose name, with its ports, an open one has now.
    mutating func forget(ifClosed name: UInt64) {
        guard connections[name]?.isClosed == true else { return }
        connections[name] = nil
        tunnels.remove(name)
    }

    /// Its socket is about to be closed, and has brought so many bytes; negative: not known.
    func noteClose(of name: UInt64, bytes: Int64) { connections[name]?.bytesAtClose = UInt64(exactly: bytes) }

    /// Told by one of its streams.
    mutating func noteFlood(of name: UInt64) {
        guard let connection = connections[name], !connection.isFlooded else { return }
        connection.isFlooded = true
        flooded.append(name)
    }

    /// Those that were noted since this was called last.
    mutating func takeFlooded() -> [UInt64] {
        guard !flooded.isEmpty else { return [] }
        defer { flooded = [] }
        return flooded
    }

    /// Tunnels that have brought what nobody has read yet.
    var unread: [UInt64] {
        tunnels.filter { connections[$0]?.hasDecrypted == true }
    }

    /// Who was served last over a connection of HTTP/1.1 that curl may have requests share, since its server has spoken HTTP/2
    /// on another.
    func lastUser(ofShared name: UInt64) -> TransferID? {
        guard serversOfHTTP2?.isEmpty != true, let connection = connections[name], !connection.isHTTP2,
            serversOfHTTP2?.contains(connection.server) != false
        else { return nil }
        return connection.lastUser
    }

    /// Lets go of those that are closed, when there are many. Not while somebody may still ask how one of them ended.
    mutating func forgetClosed() {
        guard connections.count >= mostBeforeForgetting else { return }
        connections = connections.filter { !$0.value.isClosed }
        tunnels.formIntersection(connections.keys)
        mostBeforeForgetting = max(Self.leastToForget, 2 * connections.count)
    }
}
