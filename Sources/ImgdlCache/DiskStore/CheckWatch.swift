import ImgdlCore

/// Ends a look through the index in whose way it is: other programs cannot empty the log meanwhile, and a fork waits for the
/// thread, which may have locks of SQLite's. SQLite 3.40 asks no progress handler while it looks at pages, and can only be
/// told by another thread.
final class CheckWatch: @unchecked Sendable {
    private static let pauseMilliseconds: Int64 = 10
    private static let longestMilliseconds: Int64 = 30_000

    private let lock = Lock()
    private let ended: Condition
    private var isEnded = false
    private var thread: Thread?

    /// nil: there are no more threads.
    init?(_ log: Index.Log, _ interrupt: Database.Interruption) {
        ended = Condition(lock)
        let start = MonotonicClock().now()
        let end = start.advanced(byMilliseconds: Self.longestMilliseconds)
        thread = try? Thread.start(name: "imgdl-check") { [self] in
            Thread.resting {
                var now = start
                while !isEnded(until: now.advanced(byMilliseconds: Self.pauseMilliseconds)) {
                    now = MonotonicClock().now()
                    if Thread.isForkNear || now >= end || log.isLong { interrupt() }
                }
            }
        }
        if thread == nil { return nil }
    }

    private func isEnded(until end: Instant) -> Bool {
        lock.withLock {
            while !isEnded { if !ended.wait(until: end) { break } }
            return isEnded
        }
    }

    /// Nothing is ended from here on.
    func end() {
        lock.withLock {
            isEnded = true
            ended.signal()
        }
        thread?.join()
    }
}
