import COriginTLS

/// One connection's TLS: encrypted bytes on one side, plain ones on the other. Touches no socket.
final class SecureChannel {
    struct Ended: Error {}

    private let authority: Authority
    private let session: OpaquePointer?

    init(_ authority: Authority) {
        self.authority = authority
        session = corigin_tls_session_new(authority.tls)
    }

    deinit { corigin_tls_session_free(session) }

    /// Bytes from the client.
    func put(_ encrypted: UnsafeRawBufferPointer) {
        corigin_tls_put_encrypted(session, encrypted.baseAddress, encrypted.count)
    }

    /// True when the handshake is over, false while it needs more from the client. Either way there may be bytes to send.
    func handshake() throws -> Bool {
        let state = corigin_tls_handshake(session)
        if state < 0 { throw Ended() }
        return state == 1
    }

    /// Decrypts as much as there is room for; 0 when more must be put first.
    func read(into plain: UnsafeMutableRawBufferPointer) throws -> Int {
        let count = corigin_tls_read(session, plain.baseAddress, Int32(clamping: plain.count))
        if count < 0 { throw Ended() }
        return Int(count)
    }

    func encrypt(_ plain: UnsafeRawBufferPointer) throws {
        if plain.isEmpty { return }
        guard corigin_tls_write(session, plain.baseAddress, Int32(plain.count)) == 0 else { throw Ended() }
    }

    func say(_ message: corigin_tls_message) throws {
        guard corigin_tls_say(session, message) == 0 else { throw Ended() }
    }

    var isInHandshake: Bool { corigin_tls_is_in_handshake(session) == 1 }

    func sayGoodbye() { corigin_tls_close_notify(session) }

    /// Bytes for the client.
    func takeEncrypted() -> [UInt8] {
        var all: [UInt8] = []
        withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 1) { part in
            while true {
                let count = corigin_tls_take_encrypted(session, part.baseAddress, part.count)
                if count == 0 { return }
                all += part[..<count]
            }
        }
        return all
    }

    /// What the handshake came to.
    var outcome: Log.Handshake {
        func text(_ get: (OpaquePointer?, UnsafeMutablePointer<CChar>?, Int) -> Void) -> String? {
            withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
                get(session, buffer.baseAddress, buffer.count)
                let text = String(cString: buffer.baseAddress!)
                return text.isEmpty ? nil : text
            }
        }
        return Log.Handshake(
            at: .now, protocolName: text(corigin_tls_protocol), isResumed: corigin_tls_is_resumed(session) == 1,
            clientName: text(corigin_tls_client_name), serverName: text(corigin_tls_server_name))
    }
}
