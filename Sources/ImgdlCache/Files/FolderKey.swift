import ImgdlCore

/// The key that a cache tells contexts apart by: the one in its folder from the moment on that there is one, whoever has put
/// it there. Until then, and in memory alone, one of its own. Threads: any.
final class FolderKey: @unchecked Sendable {
    private let lock = Lock()
    private var key = DigestKey()

    func digest(_ message: ContextMessage) -> ContextDigest { lock.withLock { key }.digest(message) }

    /// Takes the one in the folder. True: it is another one, and what is in memory was stored by the one of before.
    func take(_ path: String) -> Bool { DigestKey.read(path).map(use) ?? false }

    /// As `take`; where there is none, this one is put there.
    func join(_ path: String) -> Bool {
        guard let found = DigestKey.read(path) ?? lock.withLock({ key }).share(path) else { return false }
        return use(found)
    }

    private func use(_ found: DigestKey) -> Bool {
        lock.withLock {
            defer { key = found }
            return key != found
        }
    }
}
