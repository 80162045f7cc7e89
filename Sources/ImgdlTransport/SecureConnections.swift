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

        init(_ handshake: OpaquePointer) { self.handshake = ccurl_keep_handshake(handshake) }

        deinit { ccurl_forget_handshake(&handshake) }

        /// `isRunning`: of another transfer that has used it.
        func serve(_ id: TransferID, isRunning: (TransferID) -> Bool) {
            if let lastUser, lastUser != id, isRunning(lastUser) { isShared = true }
            lastUser = id
        }

        var end: ccurl_secure_end { ccurl_secure_end(handshake) }
        var isHTTP2: Bool { ccurl_secure_is_http2(handshake) }
        var isClosed: Bool { ccurl_secure_is_closed(handshake) }
    }

    private static let leastToForget = 64

    private var connections: [UInt64: Connection] = [:]
    /// One has spoken HTTP/2, of whatever server: curl knows servers by other spellings than URLs have.
    private(set) var mayBeShared = false
    private var mostBeforeForgetting = leastToForget

    var count: Int { connections.count }

    subscript(name: UInt64) -> Connection? { connections[name] }

    mutating func note(_ connection: Connection, _ name: UInt64) {
        connections[name] = connection
        if connection.isHTTP2 { mayBeShared = true }
    }

    /// Lets go of those that are closed, when there are many. Not while somebody may still ask how one of them ended.
    mutating func forgetClosed() {
        guard connections.count >= mostBeforeForgetting else { return }
        connections = connections.filter { !$0.value.isClosed }
        mostBeforeForgetting = max(Self.leastToForget, 2 * connections.count)
    }
}
