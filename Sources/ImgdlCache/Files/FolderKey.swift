import ImgdlCore
import Synchronization

/// The key that a cache tells contexts apart by: the one in its folder from the moment on that there is one, whoever
/// has put it there. Until then, and in memory alone, one of its own. Threads: any.
final class FolderKey: @unchecked Sendable {
    private let lock = Lock()
    private var key = DigestKey()
    private let count = Atomic<UInt64>(1)

    /// Another one with each other key. Asked for before a digest is, it is no newer than the digest's.
    var number: UInt64 { count.load(ordering: .acquiring) }

    func digest(_ message: ContextMessage) -> ContextDigest { lock.withLock { key }.digest(message) }

    /// Takes the one in the folder. True: it is another one, and what is in memory was stored by the one of before.
    func take(_ path: InnerPath) -> Bool { (try? DigestKey.read(path)).map(use) ?? false }

    /// Takes the one in the folder, as `take`, or puts this one there where there is none. Throws where there is one
    /// that cannot be read now, or where none can be put there: what would be stored without it nobody could find.
    func join(_ path: InnerPath, on disk: any Disk) throws(DiskError) -> Bool {
        if let found = try DigestKey.read(path) { return use(found) }
        return use(try lock.withLock { key }.share(path, on: disk))
    }

    private func use(_ found: DigestKey) -> Bool {
        lock.withLock {
            if key == found { return false }
            key = found
            count.wrappingAdd(1, ordering: .acquiringAndReleasing)
            return true
        }
    }
}
