import CStore
import Glibc
import ImgdlCore

/// The key of the digests by which contexts are told apart without being shown. All programs that use a folder share
/// the one in it. Who can read it can try whether a guess at somebody's credentials is right, and no more.
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

    /// nil: there is none that can be used. Throws where there is one that cannot be read now: what is stored needs it.
    static func read(_ path: String) throws(DiskError) -> DigestKey? {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOENT { return nil }
            throw DiskError("look at \(path)")
        }
        guard isUsable(status) else { return nil }
        let descriptor: Int32
        do throws(DiskError) {
            descriptor = try PlainFile.open(path, O_RDONLY)
        } catch {
            // Another program has put something else there.
            if error.isMissing || error.isNoFile { return nil }
            throw error
        }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: byteCount)
        guard fstat(descriptor, &status) == 0 else { throw DiskError("read \(path)") }
        guard isUsable(status) else { return nil }
        let count = Glibc.read(descriptor, &bytes, byteCount)
        guard count >= 0 else { throw DiskError("read \(path)") }
        return count == byteCount ? DigestKey(bytes) : nil
    }

    /// A key is sound as everything in the folder is: this user's or root's, and nobody else may write to it. Whom its
    /// owner lets read it is the owner's affair: others need it to find what is stored, and without it what is stored
    /// would be lost.
    private static func isUsable(_ status: stat) -> Bool {
        PlainFile.isSound(status) && Int(status.st_size) == byteCount
    }

    /// Puts it where none is that can be used. Of several programs that do so at once, one is the first: gives that
    /// one's. nil: the folder takes none. Throws as `read`.
    func share(_ path: String) throws(DiskError) -> DigestKey? {
        let temporary = "\(path)-\(String(UInt64.random(in: .min ... .max), radix: 16))"
        guard let descriptor = try? PlainFile.create(temporary, O_WRONLY) else { return try Self.read(path) }
        let isWritten = Glibc.write(descriptor, bytes, bytes.count) == bytes.count && fsync(descriptor) == 0
        close(descriptor)
        defer { unlink(temporary) }
        guard isWritten else { return nil }
        if link(temporary, path) == 0 { return self }
        if let other = try Self.read(path) { return other }
        // No key lies there; perhaps a folder.
        rmdir(path)
        return rename(temporary, path) == 0 ? self : nil
    }
}
