import Glibc
import ImgdlCore

/// flock() of a file or folder, for as long as this lives. The kernel lets go of it when the process, however it ends, and all
/// that were forked meanwhile have ended.
final class FileLock {
    enum Kind { case shared, exclusive }

    let descriptor: Int32
    private let generation = ProcessGeneration.current

    /// nil: somebody else has it. The file is made when it is not there.
    convenience init?(_ path: String, _ kind: Kind) throws(DiskError) {
        try self.init(PlainFile.openOrCreate(path, O_RDWR), kind)
    }

    /// The same of a folder that is there.
    convenience init?(folder: InnerPath, _ kind: Kind) throws(DiskError) {
        let descriptor = try folder.reach { (parent, name) throws(DiskError) in
            let descriptor = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            guard descriptor >= 0 else { throw DiskError("open \(folder)") }
            return descriptor
        }
        self.init(descriptor, kind)
    }

    private init?(_ descriptor: Int32, _ kind: Kind) {
        guard flock(descriptor, (kind == .shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0 else {
            close(descriptor)
            return nil
        }
        self.descriptor = descriptor
    }

    /// Tries again and again for so long. nil: somebody else had it all the while. `rest`: sleeps for about so many milliseconds.
    static func waiting(
        _ path: String, _ kind: Kind, milliseconds: Int, clock: any Clock = MonotonicClock(),
        rest: (Int64) -> Void = { moment in _ = Thread.resting { usleep(UInt32(moment) * 1_000) } }
    ) throws(DiskError) -> FileLock? {
        let patience = Int32(clamping: milliseconds)
        var wait = BusyWait()
        var count: Int32 = 0
        while true {
            if let lock = try FileLock(path, kind) { return lock }
            guard let moment = wait.moment(count, patience: patience, clock.now()) else { return nil }
            rest(moment)
            count += 1
        }
    }

    deinit {
        // A child that lives on has the descriptor, too: the lock would stay with it. What a child lets go of is its parent's.
        if generation == ProcessGeneration.current { flock(descriptor, LOCK_UN) }
        close(descriptor)
    }
}
