import ImgdlCore

/// These wait for the writing thread. Throw `wouldDeadlock` on the store's threads, `shutDown` once it is closed.
extension DiskStore {
    func query(_ key: String) throws(Failure) -> CachedResponse? {
        try onWriter { $0.query(key) }
    }

    func flush() throws(Failure) { try check { $0.flush() } }

    /// All changes that were asked for before are in the index. Throws `cacheBusy`, `diskFull`, `readOnly`, `diskFailed`, as
    /// the next do: what was to be removed is not served by this program any more, and goes from the disk when it can.
    func writeRemovals() throws(Failure) { try check { $0.writeRemovals() } }

    /// The same of what was stored under the key; where there is nothing it throws nothing.
    func writeRemoval(of key: String) throws(Failure) { try check { $0.writeRemoval(of: key) } }

    func removeOlder(than time: Int64) throws(Failure) { try check { $0.removeAll(usedBefore: time) } }

    func clear() throws(Failure) {
        try checkMayWait()
        removeAll(isAsked: true)
        try writeRemovals()
    }

    /// `body` waits for others that write until some seconds from now: it waits for what comes before it, too.
    private func check(_ body: @escaping (DiskWriter) -> Failure?) throws(Failure) {
        let end = MonotonicClock().now().advanced(byMilliseconds: tuning.busyMilliseconds)
        if let failure = try onWriter({ writer in writer.waiting(until: end) { body(writer) } }) { throw failure }
    }

    func addStatistics(_ statistics: inout CacheStatistics) throws(Failure) {
        let (totals, unflushed) = try onWriter { ($0.totals(), $0.unflushedCount) }
        let state = withState { ($0.statistics, $0.isWritable, $0.losses.total) }
        statistics.isWritable = state.1
        statistics.notStored = state.2
        statistics.unflushed = unflushed
        statistics.entries = totals.entries
        statistics.bytes = totals.bytes
        statistics.partialEntries = totals.partialEntries
        statistics.partialBytes = totals.partialBytes
        statistics.stored = state.0.stored
        statistics.evicted = state.0.evicted
        statistics.damaged = state.0.damaged
    }

    /// As `Cache.finishBackgroundWork`.
    func finishBackgroundWork() throws(Failure) {
        try onWriter { writer in while writer.backgroundStep() {} }
    }
}
