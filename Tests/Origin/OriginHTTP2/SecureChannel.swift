import COriginTLS
import Glibc
import Origin

/// What the server's certificate is worth to a client that trusts the authority.
package enum Certificate: Equatable, Sendable { case valid, expired, wrongHost, selfSigned }

/// An authority made for one origin, in a file for the client to trust, and a server certificate signed by it.
package final class Authority: @unchecked Sendable {
    package let file: String
    private let directory: String
    fileprivate let tls: OpaquePointer

    package init(_ certificate: Certificate) throws {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/origin-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SystemError(call: "mkdtemp") }
        directory = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
        file = directory + "/ca.pem"
        let kind =
            switch certificate {
            case .valid: CORIGIN_CERTIFICATE_VALID
            case .expired: CORIGIN_CERTIFICATE_EXPIRED
            case .wrongHost: CORIGIN_CERTIFICATE_WRONG_HOST
            case .selfSigned: CORIGIN_CERTIFICATE_SELF_SIGNED
            }
        guard let tls = corigin_tls_new(file, kind) else {
            rmdir(directory)
            throw SystemError(call: "certificate", code: EINVAL)
        }
        self.tls = tls
    }

    deinit {
        removeFile()
        corigin_tls_free(tls)
    }

    /// The server's certificate and key, for a server that is another program.
    package func writeServer(certificate: String, key: String) throws {
        guard corigin_tls_write_files(tls, certificate, key) == 1 else { throw SystemError(call: "certificate", code: EIO) }
    }

    package func removeFile() {
        unlink(file)
        rmdir(directory)
    }
}

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

    /// Decrypts what came from the client. Handshake answers may have to be sent afterwards: see `takeEncrypted`.
    func decrypt(_ bytes: some Collection<UInt8>) throws -> [UInt8] {
        let encrypted = Array(bytes)
        corigin_tls_put_encrypted(session, encrypted, encrypted.count)
        var plain: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = corigin_tls_read(session, &part, Int32(part.count))
            if count < 0 { throw Ended() }
            if count == 0 { return plain }
            guard isReady else { throw Ended() }
            plain += part[..<Int(count)]
        }
    }

    /// The handshake is over, and the client wants HTTP/2.
    var isReady: Bool { corigin_tls_is_ready(session) == 1 }

    /// Only once the channel is ready.
    func encrypt(_ bytes: [UInt8]) throws {
        if !bytes.isEmpty, corigin_tls_write(session, bytes, Int32(bytes.count)) != 0 { throw Ended() }
    }

    func takeEncrypted() -> [UInt8] {
        var all: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = corigin_tls_take_encrypted(session, &part, part.count)
            if count == 0 { return all }
            all += part[..<count]
        }
    }
}
