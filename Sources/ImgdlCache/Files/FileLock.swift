import Glibc
import ImgdlCore

/// flock() of a file or folder, for as long as this lives. The kernel lets go of it when the process ends, however, and
/// those that were forked while it had it.
final class FileLock {
    enum Kind { case shared, exclusive }

    let descriptor: Int32
    private let generation = ProcessGeneration.current

    /// nil: somebody else has it. The file is made when it is not there, the folder is not.
    init?(_ path: String, _ kind: Kind, isFolder: Bool = false) throws(DiskError) {
        let descriptor =
            isFolder
            ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : try PlainFile.openOrCreate(path, O_RDWR)
        guard descriptor >= 0 else { throw DiskError("open \(path)") }
        guard flock(descriptor, (kind == .shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0 else {
            close(descriptor)
            return nil
        }
        self.descriptor = descriptor
    }

    /// Tries again and again for so long. nil: somebody else had it all the while.
    static func waiting(_ path: String, _ kind: Kind, milliseconds: Int) throws(DiskError) -> FileLock? {
        for _ in 0..<max(1, milliseconds / 2) {
            if let lock = try FileLock(path, kind) { return lock }
            _ = Thread.resting { usleep(2_000) }
        }
        return nil
    }

    deinit {
        // A child that lives on has the descriptor, too: the lock would stay with it. What a child lets go of is its parent's.
        if generation == ProcessGeneration.current { flock(descriptor, LOCK_UN) }
        close(descriptor)
    }
}
