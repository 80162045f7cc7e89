import ImgdlCore

/// The key that a cache tells contexts apart by: the one in its folder from the moment on that there is one, whoever
/// has put it there. Until then, and in memory alone, one of its own. Threads: any.
final class FolderKey: @unchecked Sendable {
    private let lock = Lock()
    private var key = DigestKey()

    func digest(_ message: ContextMessage) -> ContextDigest { lock.withLock { key }.digest(message) }

    /// Takes the one in the folder. True: it is another one, and what is in memory was stored by the one of before.
    func take(_ path: String) -> Bool { (try? DigestKey.read(path)).map(use) ?? false }

    /// Takes the one in the folder, as `take`, or puts this one there where there is none. Throws where there is one
    /// that cannot be read now: what would be stored without it nobody could find.
    func join(_ path: String) throws(DiskError) -> Bool {
        if let found = try DigestKey.read(path) { return use(found) }
        guard let shared = try lock.withLock({ key }).share(path) else { return false }
        return use(shared)
    }

    private func use(_ found: DigestKey) -> Bool {
        lock.withLock {
            defer { key = found }
            return key != found
        }
    }
}
