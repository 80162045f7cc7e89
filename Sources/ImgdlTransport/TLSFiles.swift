import Glibc
import ImgdlCore

/// Whether what `TLSOptions` name can be used, before curl is asked: it names no file in some of its messages, takes a
/// pinned key that is none for a file's name, and reads pipes.
enum TLSFiles {
    /// Throws `tlsFailed`, which names the file and the cause.
    static func check(_ options: TLSOptions) throws(Failure) {
        guard options != TLSOptions() else { return }
        try check(options.certificateAuthorities, options.authorities, "ca_file")
        try check(options.clientCertificate, options.certificate, "client_certificate")
        try check(options.clientKey, options.key, "client_key")
        if options.clientKey != nil, options.clientCertificate == nil {
            throw Failure(.tlsFailed, "there is a client key without a client certificate")
        }
        if let key = options.pinnedPublicKey, !isPin(key) {
            throw Failure(.tlsFailed, "the pinned public key is not “sha256//BASE64”")
        }
    }

    private static func check(_ file: String?, _ contents: FileContents?, _ option: String) throws(Failure) {
        guard let file else { return }
        if let contents {
            // From some version on curl takes no empty contents.
            guard contents.bytes.isEmpty else { return }
            let missing = option == "client_key" ? "key" : "certificate"
            throw Failure(.tlsFailed, TrustFile.cannotBeUsed(file, option, "it holds no \(missing) in PEM"))
        }
        do throws(Failure) {
            try TrustFile.checkReadable(file, option: option)
        } catch {
            throw Failure(.tlsFailed, error.message)
        }
        let bound = "larger than \(FileDigest.maximumBytes) bytes"
        throw Failure(
            .tlsFailed, "\(option) “\(file)” could not be read when the request was made, or is \(bound)")
    }

    /// One or more of the digests of SHA-256 in base 64, with semicolons between them.
    private static func isPin(_ text: String) -> Bool {
        text.split(separator: ";", omittingEmptySubsequences: false).allSatisfy { part in
            guard part.hasPrefix("sha256//") else { return false }
            let digest = part.utf8.dropFirst("sha256//".utf8.count)
            return digest.count == 44 && digest.last == UInt8(ascii: "=")
                && digest.dropLast().allSatisfy { byte in
                    switch byte {
                    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "+"), UInt8(ascii: "/"): true
                    default: false
                    }
                }
        }
    }
}

extension TLSOptions {
    /// Reads the files: a connection that is made for these options goes by what is in them now. Throws `outOfMemory`, which
    /// names the option and the file, where the process holds too much of others.
    package mutating func readFiles() throws(Failure) {
        authorities = try Self.contents(certificateAuthorities, "ca_file")
        certificate = try Self.contents(clientCertificate, "client_certificate")
        key = try Self.contents(clientKey, "client_key")
    }

    private static func contents(_ file: String?, _ option: String) throws(Failure) -> FileContents? {
        guard let file else { return nil }
        do throws(Failure) {
            return try FileDigest.contents(of: file)
        } catch {
            throw Failure(error.code, "\(option) \(error.message)")
        }
    }
}
