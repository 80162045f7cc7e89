import CCurl
import Glibc
import ImgdlCore

/// What was in a file that a downloader's options name when it was made, under a path of its own. libcurl reads such
/// files at each connection: what somebody has written there since is not what the downloader's security context stands
/// for. Threads: any.
final class FileCopy: Sendable {
    /// Revocation lists of large authorities have a few.
    static let maximumBytes = 16 << 20

    /// As the options name it.
    let name: String
    /// Where the copy is read. Without /proc that is the file itself.
    let path: String
    /// SHA-256 of what is in the copy.
    let digest: [UInt8]
    private let descriptor: Int32

    /// Throws `invalidOperation`, which names the option, the file and the cause.
    init(_ name: String, option: String) throws(Failure) {
        try TrustFile.checkReadable(name, option: option)
        var digest = [UInt8](repeating: 0, count: Int(CCURL_DIGEST_BYTES))
        descriptor = ccurl_copy_file(name, &digest, Self.maximumBytes)
        guard descriptor >= 0 else {
            let cause = TrustFile.cause(maximumBytes: Self.maximumBytes)
            throw Failure(.invalidOperation, TrustFile.cannotBeRead(name, option, cause))
        }
        let copy = "/proc/self/fd/\(descriptor)"
        self.name = name
        path = access(copy, R_OK) == 0 ? copy : name
        self.digest = digest
    }

    deinit { close(descriptor) }

    /// With the file's name where a message of libcurl's has the copy's.
    func named(in message: String) -> String { message.replacing(path, with: name) }
}
