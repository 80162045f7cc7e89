import CCurl
import Glibc
import ImgdlCore

/// Files in PEM that a downloader's configuration names. They are read when it is made: one that is empty or broken would
/// be found out at its first download otherwise, in words of OpenSSL's.
package enum TrustFile {
    /// Throws `invalidOperation`, which names the option, the file and the cause.
    package static func checkCertificates(_ path: String, option: String) throws(Failure) {
        try check(path, option, lists: false, kind: "certificate")
    }

    /// Throws as `checkCertificates`.
    package static func checkRevocationLists(_ path: String, option: String) throws(Failure) {
        try check(path, option, lists: true, kind: "revocation list")
    }

    /// Regular files of a bounded size alone: nobody waits at a pipe, or for the end of what has none.
    private static func check(_ path: String, _ option: String, lists: Bool, kind: String) throws(Failure) {
        try checkReadable(path, option: option)
        var digest = [UInt8](repeating: 0, count: Int(CCURL_DIGEST_BYTES))
        var count = 0
        guard let bytes = ccurl_read_file(path, &digest, FileCopy.maximumBytes, &count) else {
            throw cannotBeRead(path, option, FileCopy.maximumBytes)
        }
        defer { free(bytes) }
        guard let cause = unusable(ccurl_count_in_file(bytes, count, lists), kind) else { return }
        throw Failure(.invalidOperation, cannotBeUsed(path, option, cause))
    }

    /// As errno says. `maximumBytes`: what such a file may have.
    static func cannotBeRead(_ path: String, _ option: String, _ maximumBytes: Int) -> Failure {
        let number = errno
        let cause = number == EFBIG ? "it is larger than \(maximumBytes) bytes" : String(cString: strerror(number))
        return Failure(.invalidOperation, "\(option) “\(path)” cannot be read: \(cause)")
    }

    /// Complaint of OpenSSL about what was read of such a file; nil: it can be used.
    static func complaint(about contents: FileContents, of path: String, option: String) -> String? {
        let count = ccurl_count_in_file(contents.bytes.baseAddress, contents.bytes.count, false)
        return unusable(count, "certificate").map { cannotBeUsed(path, option, $0) }
    }

    private static func unusable(_ count: Int32, _ kind: String) -> String? {
        if count > 0 { return nil }
        return count == 0 ? "it holds no \(kind) in PEM" : "a \(kind) in it is broken"
    }

    static func cannotBeUsed(_ path: String, _ option: String, _ cause: String) -> String {
        "\(option) “\(path)” cannot be used: \(cause)"
    }

    /// A file that may be read, and that is no folder, pipe or device. Throws as `checkCertificates`.
    package static func checkReadable(_ path: String, option: String) throws(Failure) {
        guard let cause = unreadable(path) else { return }
        throw Failure(.invalidOperation, "\(option) “\(path)” cannot be read: \(cause)")
    }

    /// Why it cannot be read; nil: it can.
    static func unreadable(_ path: String) -> String? {
        var status = stat()
        errno = 0
        guard stat(path, &status) == 0, access(path, R_OK) == 0 else { return String(cString: strerror(errno)) }
        return status.st_mode & S_IFMT == S_IFREG ? nil : "it is not a file"
    }
}
