import ImgdlCore

/// A long index is looked through for damage when there is nothing else to do. Whoever has something to do ends that, and a
/// while later it begins anew.
extension DiskWriter {
    private static var firstPauseMilliseconds: Int64 { 1_000 }
    private static var lastPauseMilliseconds: Int64 { 300_000 }

    /// Nothing that was taken waits to be written.
    var isCheckDue: Bool {
        guard let index, !hasFailed, !isReadOnly, batch.isEmpty, deadline == nil else { return false }
        return index.attemptsToCheck.map { $0 < tuning.checkAttempts } ?? false
    }

    /// False: it was ended, or it is too early. Throws that the index is damaged.
    func check(_ index: Index) throws(DatabaseError) -> Bool {
        guard let attempts = index.attemptsToCheck, nextCheck.map({ MonotonicClock().now() >= $0 }) ?? true else {
            return false
        }
        nextCheck = nil
        if try isWhole(index) {
            index.check = .isDone
            return true
        }
        // What the disk had to bring is in memory the next time, which goes further then.
        index.check = .isDueInIdleTime(attempts: attempts + 1)
        let pause = min(Self.firstPauseMilliseconds << Int64(min(attempts, 16)), Self.lastPauseMilliseconds)
        nextCheck = MonotonicClock().now().advanced(byMilliseconds: pause)
        return false
    }

    /// False: that was not found out.
    private func isWhole(_ index: Index) throws(DatabaseError) -> Bool {
        if index.log.isLong { index.database.emptyLog(waiting: 0) }
        if index.log.isLong { return false }
        var watch: CheckWatch?
        defer {
            store.endCheck()
            watch?.end()
        }
        return try index.database.check { interruption in
            watch = CheckWatch(index.log, interruption)
            return watch != nil && store.beginCheck(interruption)
        }
    }
}

/// Ends a look through the index in whose way it is: other programs cannot empty the log meanwhile, and a fork waits for the
/// thread, which may have locks of SQLite's. Older versions of SQLite ask nobody while they look at pages, and can only be
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
