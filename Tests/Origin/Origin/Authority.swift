import COriginTLS
import Glibc

/// What the server's certificate is worth to a client that trusts the authority.
package enum Certificate: String, Sendable {
    case valid, expired
    case wrongHost = "wrong-host"
    case selfSigned = "self-signed"
}

/// How a server secures its connections.
package struct TLS: Equatable, Sendable {
    package enum Client: String, Sendable { case unasked, optional, required }

    package var certificate: Certificate
    /// Whether clients must show a certificate of `Authority.client`.
    package var client: Client
    /// Nothing above TLS 1.2: there a refused client certificate ends the handshake, not the first read.
    package var isAtMost12: Bool

    package init(_ certificate: Certificate = .valid, client: Client = .unasked, isAtMost12: Bool = false) {
        self.certificate = certificate
        self.client = client
        self.isAtMost12 = isAtMost12
    }
}

/// An authority made for one origin, in a file for the client to trust, and a server certificate signed by it.
package final class Authority: @unchecked Sendable {
    /// A client's certificate, as PEM files.
    package struct Identity: Sendable {
        package var name: String
        package var certificate: String
        package var key: String
        /// The same key, encrypted with `passphrase`.
        package var encryptedKey: String
        package var passphrase = "open sesame"
    }

    package let file: String
    /// One that the server takes, and one that it does not.
    package let client: Identity
    package let stranger: Identity
    /// Of the server's key, as curl and browsers write pins: `sha256//BASE64`.
    package let pin: String
    private let directory: String
    let tls: OpaquePointer

    package convenience init(_ certificate: Certificate) throws { try self.init(TLS(certificate), protocols: []) }

    package init(_ options: TLS, protocols: [String]) throws {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/origin-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SystemError(call: "mkdtemp") }
        let directory = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
        self.directory = directory
        file = directory + "/ca.pem"
        func identity(_ name: String) -> Identity {
            Identity(
                name: name, certificate: "\(directory)/\(name).pem", key: "\(directory)/\(name).key",
                encryptedKey: "\(directory)/\(name).encrypted.key")
        }
        client = identity("client")
        stranger = identity("stranger")
        let kind =
            switch options.certificate {
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
        var digest = [UInt8](repeating: 0, count: 32)
        corigin_tls_pin(tls, &digest)
        pin = "sha256//" + base64(digest)
        let asked =
            switch options.client {
            case .unasked: CORIGIN_CLIENT_UNASKED
            case .optional: CORIGIN_CLIENT_OPTIONAL
            case .required: CORIGIN_CLIENT_REQUIRED
            }
        let list = protocols.flatMap { [UInt8($0.utf8.count)] + $0.utf8 }
        corigin_tls_configure(tls, list, UInt32(list.count), asked, options.isAtMost12 ? 1 : 0)
        if options.client == .unasked { return }
        for (identity, isStranger) in [(client, Int32(0)), (stranger, 1)] {
            guard
                corigin_tls_write_client(
                    tls, identity.name, isStranger, identity.certificate, identity.key, identity.encryptedKey,
                    identity.passphrase) == 1
            else { throw SystemError(call: "client certificate", code: EIO) }
        }
    }

    deinit {
        removeFiles()
        corigin_tls_free(tls)
    }

    /// The server's certificate and key, for a server that is another program.
    package func writeServer(certificate: String, key: String) throws {
        guard corigin_tls_write_files(tls, certificate, key) == 1 else {
            throw SystemError(call: "certificate", code: EIO)
        }
    }

    /// A file with the authority's list of revoked certificates; the server's is one of them, or none is. `issuer`: another
    /// authority's, which has signed nothing here.
    package func revocationList(revokesServer: Bool, issuer: String? = nil) throws -> String {
        guard corigin_tls_write_revocations(tls, revocations, revokesServer ? 1 : 0, issuer) == 1 else {
            throw SystemError(call: "revocation list", code: EIO)
        }
        return revocations
    }

    private var revocations: String { directory + "/revoked.pem" }

    package func removeFiles() {
        unlink(revocations)
        for identity in [client, stranger] {
            for path in [identity.certificate, identity.key, identity.encryptedKey] { unlink(path) }
        }
        unlink(file)
        rmdir(directory)
    }
}

func base64(_ bytes: [UInt8]) -> String {
    var text = [CChar](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
    corigin_base64(bytes, bytes.count, &text)
    return text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
}

/// In hexadecimal, by OpenSSL's name of it.
func digest(_ name: String, _ text: String) -> String {
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = corigin_digest(name, text, text.utf8.count, &bytes)
    return bytes[..<count].map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}
