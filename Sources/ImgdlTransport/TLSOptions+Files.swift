import CCurl
import ImgdlCore

extension TLSOptions {
    /// Reads the files: a connection that is made for these options goes by what is in them now. What cannot be used is
    /// `unusable`. Throws `outOfMemory`, which names the option and the file, where the process holds too much of
    /// others.
    package mutating func readFiles() throws(Failure) {
        authorities = nil
        certificate = nil
        key = nil
        unusable = nil
        do throws(ReadingError) {
            authorities = try Self.read(certificateAuthorities, "ca_file", .authorities)
            certificate = try Self.read(clientCertificate, "client_certificate", .certificate)
            key = try Self.read(clientKey, "client_key", .privateKey)
            try checkClient()
        } catch {
            switch error {
            case .file(let words): unusable = words
            case .refused(let failure): throw failure
            }
        }
    }

    private enum ReadingError: Error {
        case file(String)
        case refused(Failure)
    }

    private static func read(_ file: String?, _ option: String, _ kind: PEMKind) throws(ReadingError) -> FileContents? {
        guard let file else { return nil }
        let contents = try contents(of: file, option)
        if let words = TrustFile.complaint(about: contents, of: file, option: option, kind) { throw .file(words) }
        return contents
    }

    private static func contents(of file: String, _ option: String) throws(ReadingError) -> FileContents {
        // As in `TrustFile.check`.
        if HostCode.isOver { throw .refused(.processExits) }
        do throws(FileDigest.Refusal) {
            return try FileDigest.contents(of: file)
        } catch {
            switch error {
            case .unreadable(let cause): throw .file(TrustFile.cannotBeRead(file, option, cause))
            case .outOfMemory:
                let words =
                    "certificates and keys of requests and connections take \(HeldContents.maximumBytes >> 20) MiB "
                    + "already; imgdl_trim (CONNECTIONS) lets go of what idle connections hold"
                throw .refused(Failure(.outOfMemory, "\(option) “\(file)”: \(words)"))
            }
        }
    }

    /// The key is in the certificate's file where it has none of its own.
    private func checkClient() throws(ReadingError) {
        guard let clientCertificate, let certificate else {
            guard clientKey == nil else { throw .file("there is a client key without a client certificate") }
            return
        }
        let complaint = TrustFile.complaint(
            about: certificate, of: clientCertificate, option: "client_certificate", .privateKey)
        if clientKey == nil, let complaint { throw .file("\(complaint), and there is no client_key") }
        let pair = ClientPair(certificate: certificate, key: key, password: clientKeyPassword)
        if let words = Self.complaint(pair.finding, certificate: clientCertificate, key: clientKey, clientKeyPassword) {
            throw .file(words)
        }
    }

    private static func complaint(
        _ finding: ccurl_pair_finding, certificate: String, key: String?, _ password: String?
    ) -> String? {
        let cause: String
        switch finding {
        case CCURL_PAIR_CERTIFICATE_BROKEN:
            return TrustFile.cannotBeUsed(certificate, "client_certificate", "a certificate in it is broken")
        case CCURL_PAIR_KEY_BROKEN: cause = "the key in it is broken"
        case CCURL_PAIR_KEY_UNKNOWN: cause = "its key has a format or a cipher that OpenSSL does not take"
        case CCURL_PAIR_KEY_LOCKED where password == nil:
            cause = "its key is encrypted, and there is no client_key_password"
        case CCURL_PAIR_KEY_LOCKED: cause = "client_key_password is not the password of its key"
        case CCURL_PAIR_KEY_OF_ANOTHER where key == nil: cause = "its key is not that of its certificate"
        case CCURL_PAIR_KEY_OF_ANOTHER: cause = "its key is not that of client_certificate “\(certificate)”"
        default: return nil
        }
        return TrustFile.cannotBeUsed(key ?? certificate, key == nil ? "client_certificate" : "client_key", cause)
    }

    /// Sentence that says why a text is not one or more digests of SHA-256 in base 64, with semicolons between them; nil:
    /// it is. curl takes what is none for a file's name.
    package static func complaint(aboutPin text: String) -> String? {
        let parts = text.split(separator: ";", omittingEmptySubsequences: false)
        let form = "pinned_public_key is not sha256//BASE64, or several with ; between them"
        for part in parts {
            guard !part.isEmpty || parts.count == 1 else {
                return "\(form): a ; stands before the first or after the last"
            }
            guard part.hasPrefix(pinPrefix) else { return form }
            guard isDigest(part.utf8.dropFirst(pinPrefix.utf8.count)) else {
                return "\(form): BASE64 is the 44 characters of a SHA-256"
            }
        }
        return nil
    }

    private static let pinPrefix = "sha256//"

    private static func isDigest(_ text: Substring.UTF8View.SubSequence) -> Bool {
        text.count == 44 && text.last == UInt8(ascii: "=")
            && text.dropLast().allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "+"), UInt8(ascii: "/"): true
                default: false
                }
            }
    }
}
