import Glibc
import ImgdlCore

/// A folder for the bodies that one cache is writing. Locked while that lives, so that others can tell it from what a
/// process has left that was killed.
final class WriterFolder {
    let path: String
    private let lock: FileLock
    var name: String { String(path[(path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex)...]) }

    private init(_ path: String, _ lock: FileLock) {
        self.path = path
        self.lock = lock
    }

    static func make(in folder: Folder) throws(DiskError) -> WriterFolder {
        for _ in 0..<100 {
            let path = "\(folder.writers)/\(String(UInt64.random(in: 0...UInt64.max), radix: 16))"
            if mkdir(path, 0o700) != 0 {
                if errno == EEXIST { continue }
                throw DiskError("make \(path)")
            }
            // From here on somebody may take it for a dead one's, and remove it.
            if chmod(path, 0o700) != 0 {
                if errno == ENOENT { continue }
                throw DiskError("make \(path)")
            }
            guard let lock = try? FileLock(path, .exclusive, isFolder: true), access(path, F_OK) == 0 else { continue }
            return WriterFolder(path, lock)
        }
        throw DiskError("make a folder in \(folder.writers)", EEXIST)
    }

    /// Names of the folders of writers that are no more. None stays locked, since there may be more of them than a
    /// process may have descriptors: what becomes of one is decided under its own lock, with `claim`. Throws what
    /// stands in the way of finding them all.
    static func dead(in folder: Folder) throws(DiskError) -> [String] {
        var dead: [String] = []
        for name in try Folder.list(folder.writers) where try claim(name, in: folder) != nil { dead.append(name) }
        return dead
    }

    /// Folder of a writer that is no more, locked so that nobody else cleans up after it, too. nil: it lives, or
    /// somebody does, or it is gone, or no folder of ours. Throws what may be otherwise the next time.
    static func claim(_ name: String, in folder: Folder) throws(DiskError) -> WriterFolder? {
        let path = "\(folder.writers)/\(name)"
        do throws(DiskError) {
            guard let lock = try FileLock(path, .exclusive, isFolder: true) else { return nil }
            return WriterFolder(path, lock)
        } catch {
            guard error.isExhaustion else { return nil }
            throw error
        }
    }

    func body(_ id: EntryID) -> String { "\(path)/\(Folder.name(of: id))" }

    /// Throws where nothing could be seen of what is in it: all of it is still there.
    func removeFiles() throws(DiskError) {
        for name in try Folder.list(path) { unlink("\(path)/\(name)") }
    }

    /// Throws as `removeFiles`.
    func remove() throws(DiskError) {
        try removeFiles()
        rmdir(path)
    }
}
