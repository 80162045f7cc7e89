import ImgdlCore

/// A long index is looked through for damage when there is nothing else to do. Whoever has something to do ends that, and a
/// while later it begins anew.
extension DiskWriter {
    private static var firstPauseMilliseconds: Int64 { 1_000 }
    private static var lastPauseMilliseconds: Int64 { 300_000 }

    /// When the index is looked through; nil: it has been, it cannot be, or what was taken waits to be written.
    var nextCheck: Instant? {
        guard let index, !hasFailed, !isReadOnly, batch.isEmpty, deadline == nil,
            case .isDueInIdleTime(let attempts, let notBefore) = index.check, attempts < tuning.checkAttempts
        else { return nil }
        return notBefore
    }

    /// False: it was ended, or it is too early. Throws that the index is damaged.
    func check(_ index: Index) throws(DatabaseError) -> Bool {
        guard case .isDueInIdleTime(let attempts, let notBefore) = index.check, MonotonicClock().now() >= notBefore
        else { return false }
        if try isWhole(index) {
            index.check = .isDone
            return true
        }
        // What the disk had to bring is in memory the next time, which goes further then.
        let pause = min(Self.firstPauseMilliseconds << Int64(min(attempts, 16)), Self.lastPauseMilliseconds)
        let next = MonotonicClock().now().advanced(byMilliseconds: pause)
        index.check = .isDueInIdleTime(attempts: attempts + 1, notBefore: next)
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
