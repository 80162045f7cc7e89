import CCurl
import Glibc
import ImgdlCore

/// Files in PEM that options name. They are looked at before anything is sent: one that is empty or broken would be
/// found out at the first connection otherwise, in words of OpenSSL's.
package enum TrustFile {
    /// Throws `invalidOperation`, which names the option, the file and the cause.
    package static func checkCertificates(_ path: String, option: String) throws(Failure) {
        try check(path, option, .authorities)
    }

    /// Throws as `checkCertificates`.
    package static func checkRevocationLists(_ path: String, option: String) throws(Failure) {
        try check(path, option, .revocationLists)
    }

    /// Regular files of a bounded size alone: nobody waits at a pipe, or for the end of what has none.
    private static func check(_ path: String, _ option: String, _ kind: PEMKind) throws(Failure) {
        // A host that uses OpenSSL, too, may have it cleaned up by then.
        if HostCode.isOver { throw .processExits }
        try checkReadable(path, option: option)
        var digest = [UInt8](repeating: 0, count: Int(CCURL_DIGEST_BYTES))
        var count = 0
        guard let bytes = ccurl_read_file(path, &digest, FileCopy.maximumBytes, &count) else {
            let cause = cause(maximumBytes: FileCopy.maximumBytes)
            throw Failure(.invalidOperation, cannotBeRead(path, option, cause))
        }
        defer { free(bytes) }
        let read = UnsafeRawBufferPointer(start: bytes, count: count)
        guard let cause = unusable(holding(kind, read), kind) else { return }
        throw Failure(.invalidOperation, cannotBeUsed(path, option, cause))
    }

    /// Sentence that says why contents of a file are of no use for what the option wants of it; nil: they are of use.
    static func complaint(
        about contents: FileContents, of path: String, option: String, _ kind: PEMKind
    ) -> String? {
        unusable(contents.finding(kind) { holding(kind, $0) }, kind).map { cannotBeUsed(path, option, $0) }
    }

    private static func holding(_ kind: PEMKind, _ bytes: UnsafeRawBufferPointer) -> PEMFinding {
        let count = ccurl_count_in_file(bytes.baseAddress, bytes.count, kind.code)
        return count > 0 ? .something : count == 0 ? .nothing : .broken
    }

    private static func unusable(_ found: PEMFinding, _ kind: PEMKind) -> String? {
        switch found {
        case .something: nil
        case .nothing: "it holds no \(kind.word) in PEM"
        case .broken: "a \(kind.word) in it is broken"
        }
    }

    static func cannotBeUsed(_ path: String, _ option: String, _ cause: String) -> String {
        "\(option) “\(path)” cannot be used: \(cause)"
    }

    static func cannotBeRead(_ path: String, _ option: String, _ cause: String) -> String {
        "\(option) “\(path)” cannot be read: \(cause)"
    }

    /// A file that may be read, and that is no folder, pipe or device. Throws as `checkCertificates`.
    static func checkReadable(_ path: String, option: String) throws(Failure) {
        var status = stat()
        errno = 0
        if stat(path, &status) == 0, access(path, R_OK) == 0 {
            guard status.st_mode & S_IFMT != S_IFREG else { return }
            errno = EINVAL
        }
        throw Failure(.invalidOperation, cannotBeRead(path, option, cause(maximumBytes: 0)))
    }

    /// Cause in words, as errno has it, which `ccurl_read_file` and its like have set. `maximumBytes`: what such a file
    /// may have.
    static func cause(maximumBytes: Int) -> String {
        switch errno {
        case EFBIG: "it is larger than \(maximumBytes) bytes"
        case EINVAL: "it is not a file"
        case EAGAIN: "it was written to meanwhile"
        case let number: String(cString: strerror(number))
        }
    }
}

extension PEMKind {
    fileprivate var code: ccurl_pem_kind {
        switch self {
        case .authorities: CCURL_PEM_AUTHORITIES
        case .revocationLists: CCURL_PEM_REVOCATION_LISTS
        case .certificate: CCURL_PEM_CERTIFICATE
        case .privateKey: CCURL_PEM_PRIVATE_KEY
        }
    }

    fileprivate var word: String {
        switch self {
        case .authorities, .certificate: "certificate"
        case .revocationLists: "revocation list"
        case .privateKey: "key"
        }
    }
}
