import ImgdlCore

/// What the host asks of its cache. These wait for the disk. They throw `wouldDeadlock` on the cache's own threads,
/// `shutDown` once it is closed, `forked` in the child of a fork.
extension Cache {
    /// Empties memory, on the calling thread. The disk keeps what it has and what is about to be written; whoever has an
    /// image or a body of it keeps that. Does nothing in the child of a fork.
    package func releaseMemory() {
        if isForked { return }
        memory.removeAll()
        imageTier?.removeAll()
    }

    /// The newest response under the key, whatever Vary says. Its times are none of the future.
    package func query(_ key: String) throws(Failure) -> CachedResponse? {
        try checkOpen()
        try checkMayWait()
        let onDisk = try disk?.query(key)
        removeOld()
        let time = wallTime
        // What the disk could not take is kept in memory all the same, and answers from there.
        let inMemory = memory.newest(key, wallTime: time)
        return newest(inMemory, onDisk, wallTime: time)?.clamped(to: time)
    }

    private func newest(
        _ inMemory: CachedResponse?, _ onDisk: CachedResponse?, wallTime time: Int64
    ) -> CachedResponse? {
        guard let inMemory, let onDisk else { return inMemory ?? onDisk }
        let takesItsPlace =
            inMemory.id != onDisk.id && inMemory.response.displaces(onDisk.response, wallTime: time)
        return takesItsPlace || inMemory.isNewer(than: onDisk, wallTime: time) ? inMemory : onDisk
    }

    /// As `remove(key:)`, which does not wait. What cannot be removed from the disk throws, as in the next three.
    package func removeAndWait(key: String) throws(Failure) {
        try checkOpen()
        try checkMayWait()
        remove(key: key)
        try disk?.writeRemoval(of: key)
    }

    /// What was neither used nor validated for so many seconds.
    package func removeOlder(than seconds: Int64) throws(Failure) {
        try checkOpen()
        try checkMayWait()
        let (difference, overflow) = wallTime.subtractingReportingOverflow(max(0, seconds))
        let time = overflow ? .min : difference
        // Also what the disk does not have, and where it cannot.
        let gone = memory.remove(usedBefore: time, wallTime: wallTime)
        imageTier?.remove(gone)
        // Also what memory does not have.
        imageTier?.remove(usedBefore: time)
        try disk?.removeOlder(than: time)
    }

    package func clear() throws(Failure) {
        try checkOpen()
        try checkMayWait()
        changes.countRemovalOfAll()
        // Also where the disk keeps it.
        defer {
            memory.removeAll()
            imageTier?.removeAll()
            outdated.insertAll()
        }
        try disk?.clear()
    }

    /// What has been stored so far is on the disk for good: a power cut loses none of it.
    package func flush() throws(Failure) {
        try checkOpen()
        try checkMayWait()
        try disk?.flush()
    }

    package func statistics() throws(Failure) -> CacheStatistics {
        try checkOpen()
        try checkMayWait()
        removeOld()
        var statistics = counted
        let totals = memory.totals
        statistics.memoryEntries = totals.count
        statistics.memoryBytes = totals.bytes
        if let images = imageTier?.totals {
            statistics.imageEntries = images.count
            statistics.imageBytes = images.bytes
        }
        if let disk {
            try disk.addStatistics(&statistics)
        } else {
            statistics.partialEntries = totals.partialCount
            statistics.partialBytes = totals.partialBytes
            statistics.notStored = losses?.total ?? 0
        }
        return statistics
    }

    /// Evicts, removes what is too old and what has no entry, until nothing of that is left to do: it would be done
    /// anyway, when there is time. For tests.
    package func finishBackgroundWork() throws(Failure) {
        try checkOpen()
        try disk?.finishBackgroundWork()
    }

    private func checkMayWait() throws(Failure) {
        try disk?.checkMayWait()
        if losses?.isOwnThread ?? false { throw Failure.onOwnThread }
    }

    /// Writes what is left and lets go of the directory; waits for that, except on the cache's own threads. Afterwards
    /// nothing is found or stored. May be called again. In the child of a fork nothing happens.
    package func close() {
        guard endTiers() else { return }
        disk?.close()
        losses?.close()
    }

    /// The same where the process exits: has what is left written, for which there is time until `end`. `abandon` follows.
    package func beginClosing(by end: Instant) {
        guard endTiers() else { return }
        disk?.beginClosing(by: end)
        losses?.beginClosing()
    }

    /// Waits for that until `deadline` at most, and not on the cache's own threads. Who waits for the disk waits no longer.
    package func abandon(at deadline: Instant) {
        if isForked { return }
        disk?.abandon(at: deadline)
        losses?.wait(until: deadline)
    }

    /// False when the cache is closed already.
    private func endTiers() -> Bool {
        guard !isForked, markClosed() else { return false }
        memory.close()
        imageTier?.close()
        return true
    }
}

extension Failure {
    static var onOwnThread: Failure { Failure(.wouldDeadlock, "a thread of the cache cannot wait for the cache") }
}
