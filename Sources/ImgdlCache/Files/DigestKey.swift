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
    static func read(_ path: InnerPath) throws(DiskError) -> DigestKey? {
        guard let found = try path.status(), isUsable(found) else { return nil }
        let descriptor: Int32
        do throws(DiskError) {
            descriptor = try PlainFile.open(path, O_RDONLY)
        } catch {
            // Another program has put something else there.
            if error.isMissing || error.isNoFile { return nil }
            throw error
        }
        defer { close(descriptor) }
        var status = stat()
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
    /// one's. Throws as `read`, and where the folder takes none.
    func share(_ path: InnerPath, on disk: any Disk) throws(DiskError) -> DigestKey {
        do throws(DiskError) {
            return try put(path, on: disk)
        } catch {
            if let other = try Self.read(path) { return other }
            throw DiskError("write \(path)", error.number)
        }
    }

    private func put(_ path: InnerPath, on disk: any Disk) throws(DiskError) -> DigestKey {
        let temporary = path.beside("-\(Self.randomEnd())")
        let descriptor = try disk.create(temporary)
        defer { try? temporary.unlink() }
        let written = Result { () throws(DiskError) in
            let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
            defer { memory.deallocate() }
            memory.copyBytes(from: bytes)
            try disk.write(descriptor, UnsafeRawBufferPointer(memory), temporary)
            // Some file systems cannot and need not.
            guard fsync(descriptor) == 0 || errno == EINVAL else { throw DiskError("sync \(temporary)") }
        }
        try disk.close(descriptor, temporary)
        try written.get()
        if try temporary.link(as: path) { return self }
        if let other = try Self.read(path) { return other }
        // No key lies there, but something else.
        try Self.setFolderAside(path)
        try disk.rename(temporary, path)
        return self
    }

    /// A folder that has the name, with all that somebody has put in it. A file goes by itself.
    private static func setFolderAside(_ path: InnerPath) throws(DiskError) {
        try path.reach { (folder, name) throws(DiskError) in
            if unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOTDIR || errno == ENOENT { return }
            // With the slash nothing but a folder is renamed, whatever another program has put there meanwhile.
            let folderAlone = String(cString: name) + "/"
            try path.beside(".aside-\(randomEnd())").reach { (asideFolder, aside) throws(DiskError) in
                if renameat(folder, folderAlone, asideFolder, aside) == 0 || errno == ENOTDIR || errno == ENOENT {
                    return
                }
                throw DiskError("rename \(path)")
            }
        }
    }

    private static func randomEnd() -> String { String(UInt64.random(in: .min ... .max), radix: 16) }
}
