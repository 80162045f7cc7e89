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

    /// Those of writers that are no more, locked so that nobody else cleans up after them, too.
    static func dead(in folder: Folder) -> [WriterFolder] {
        Folder.names(in: folder.writers).compactMap { name in
            let path = "\(folder.writers)/\(name)"
            guard let lock = try? FileLock(path, .exclusive, isFolder: true) else { return nil }
            return WriterFolder(path, lock)
        }
    }

    func body(_ id: EntryID) -> String { "\(path)/\(Folder.name(of: id))" }

    func removeFiles() {
        for name in Folder.names(in: path) { unlink("\(path)/\(name)") }
    }

    func remove() {
        removeFiles()
        rmdir(path)
    }
}
