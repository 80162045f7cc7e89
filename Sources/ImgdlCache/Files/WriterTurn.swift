import Glibc
import ImgdlCore

/// Whose turn it is among the programs that write to one index. SQLite has nobody wait in a line: who has much to write would
/// be first again and again, and fill the log alone. So who was too late says so, and the others let it go first.
///
/// That is a courtesy. Nobody waits long for it, and who holds it and does nothing is passed over.
final class WriterTurn {
    private static let pauseMicroseconds: UInt32 = 1_000
    private static let forgettingMilliseconds: Int64 = 10_000

    private let descriptor: Int32
    /// Until then nobody is let go first: somebody was, and has not come to an end.
    private var impatientUntil: Instant?

    /// `path`: of a file, made when it is not there.
    init(_ path: String) throws(DiskError) { descriptor = try PlainFile.openOrCreate(path, O_RDWR) }

    deinit { close(descriptor) }

    /// Lets somebody else go first who has said so, until `end` at most.
    func waitForOthers(until end: Instant) {
        if let impatientUntil, MonotonicClock().now() < impatientUntil { return }
        impatientUntil = nil
        guard lock(LOCK_SH, until: end) else {
            impatientUntil = MonotonicClock().now().advanced(byMilliseconds: Self.forgettingMilliseconds)
            return
        }
        letGo()
    }

    /// Says that others are to let this one go first. False: they are to let another one, until `end`.
    func take(until end: Instant) -> Bool { lock(LOCK_EX, until: end) }

    func letGo() { flock(descriptor, LOCK_UN) }

    private func lock(_ kind: Int32, until end: Instant) -> Bool {
        while flock(descriptor, kind | LOCK_NB) != 0 {
            // A file system without locks has no turns.
            guard errno == EWOULDBLOCK || errno == EINTR else { return kind == LOCK_SH }
            guard MonotonicClock().now() < end else { return false }
            _ = Thread.resting { usleep(Self.pauseMicroseconds) }
        }
        return true
    }
}
