import Glibc
import ImgdlCore

/// A folder for the bodies that one cache is writing. Locked while that lives, so that others can tell it from what a
/// process has left that was killed.
final class WriterFolder {
    let path: InnerPath
    /// Its descriptor, by which files in it are removed, whatever has its name by then.
    private let lock: FileLock
    var name: String { path.name }

    private init(_ path: InnerPath, _ lock: FileLock) {
        self.path = path
        self.lock = lock
    }

    static func make(in folder: Folder) throws(DiskError) -> WriterFolder {
        for _ in 0..<100 {
            let path = folder.writers.appending(String(UInt64.random(in: 0...UInt64.max), radix: 16))
            do throws(DiskError) {
                try Folder.makeNew(path)
            } catch {
                // From the moment on that it is there somebody may take it for a dead one's, and remove it.
                guard error.number == EEXIST || error.number == ENOENT else { throw error }
                if try folder.writers.status() == nil { throw error }
                continue
            }
            guard let lock = try? FileLock(folder: path, .exclusive) else { continue }
            let writer = WriterFolder(path, lock)
            if !writer.isGone { return writer }
        }
        throw DiskError("make a folder in \(folder.writers)", EEXIST)
    }

    /// Something else has its name, or nothing. False where that cannot be found out.
    var isGone: Bool {
        let found: stat?
        do throws(DiskError) { found = try path.status() } catch { return false }
        var own = stat()
        guard let found, fstat(lock.descriptor, &own) == 0 else { return found == nil }
        return found.st_dev != own.st_dev || found.st_ino != own.st_ino
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
        let path = folder.writers.appending(name)
        do throws(DiskError) {
            guard let lock = try FileLock(folder: path, .exclusive) else { return nil }
            return WriterFolder(path, lock)
        } catch {
            guard error.isExhaustion else { return nil }
            throw error
        }
    }

    func body(_ id: EntryID) -> InnerPath { path.appending(Folder.name(of: id)) }

    /// A body that is in it, also where no descriptor is left.
    func removeBody(_ id: EntryID) { unlinkat(lock.descriptor, Folder.name(of: id), 0) }

    /// Throws where nothing could be seen of what is in it: all of it is still there.
    func removeFiles() throws(DiskError) {
        for name in try Folder.list(lock.descriptor, ".", "read \(path)") { unlinkat(lock.descriptor, name, 0) }
    }

    /// Throws as `removeFiles`.
    func remove() throws(DiskError) {
        try removeFiles()
        try? path.reach { (folder, name) throws(DiskError) in _ = unlinkat(folder, name, AT_REMOVEDIR) }
    }
}
