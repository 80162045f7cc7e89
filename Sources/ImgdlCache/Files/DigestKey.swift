import CStore
import Glibc
import ImgdlCore

/// The key of the digests by which contexts are told apart without being shown. All programs that use a folder share the one
/// in it. Who can read it can try whether a guess at somebody's credentials is right, and no more.
struct DigestKey: Equatable, Sendable {
    private static let byteCount = 32

    private let bytes: [UInt8]

    /// One of its own: for memory alone, and where the folder's cannot be had.
    init() {
        var random = SystemRandomNumberGenerator()
        bytes = (0..<Self.byteCount).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    }

    private init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// HMAC with SHA-256 (RFC 2104), the first half of it.
    func digest(_ message: ContextMessage) -> ContextDigest {
        var parts: (UInt64, UInt64) = (0, 0)
        let isDone = message.bytes.withUnsafeBytes { message in
            withUnsafeMutableBytes(of: &parts) { parts in
                store_keyed_digest(bytes, bytes.count, message.baseAddress, message.count, parts.baseAddress)
            }
        }
        // Without memory: like no other.
        guard isDone else { return ContextDigest(high: .random(in: .min ... .max), low: .random(in: .min ... .max)) }
        return ContextDigest(high: parts.0, low: parts.1)
    }

    // MARK: The folder's

    /// nil: there is none, or none that this user alone can read.
    static func read(_ path: String) -> DigestKey? {
        guard let descriptor = try? PlainFile.open(path, O_RDONLY) else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, isSecret(status), Int(status.st_size) == byteCount else { return nil }
        var bytes = [UInt8](repeating: 0, count: byteCount)
        guard Glibc.read(descriptor, &bytes, byteCount) == byteCount else { return nil }
        return DigestKey(bytes)
    }

    /// This user's alone; or root's, who may let others read what is stored.
    private static func isSecret(_ status: stat) -> Bool {
        if status.st_uid == geteuid() { return status.st_mode & 0o077 == 0 }
        return status.st_uid == 0 && status.st_mode & 0o022 == 0
    }

    /// Puts it where none is that can be used. Of several programs that do so at once, one is the first: gives that one's.
    /// nil: the folder takes none.
    func share(_ path: String) -> DigestKey? {
        let temporary = "\(path)-\(String(UInt64.random(in: .min ... .max), radix: 16))"
        guard let descriptor = try? PlainFile.create(temporary, O_WRONLY) else { return Self.read(path) }
        let isWritten = Glibc.write(descriptor, bytes, bytes.count) == bytes.count && fsync(descriptor) == 0
        close(descriptor)
        defer { unlink(temporary) }
        guard isWritten else { return nil }
        if link(temporary, path) == 0 { return self }
        if let other = Self.read(path) { return other }
        // No key lies there; perhaps a folder.
        rmdir(path)
        return rename(temporary, path) == 0 ? self : nil
    }
}
