import Glibc
import ImgdlCore

/// What is done when there is nothing else to do, in small steps.
extension DiskWriter {
    private static var stepCount: Int { 64 }
    private static var agingMilliseconds: Int64 { 600_000 }

    var hasBackgroundWork: Bool {
        guard index != nil, !hasFailed else { return false }
        return needsEviction || isAgingDue || !(orphans?.isAtEnd ?? true)
    }

    private var isAgingDue: Bool {
        guard store.configuration.maximumAge != nil, let nextAging else { return false }
        return store.clock.now() >= nextAging
    }

    /// False: there is nothing to do.
    func backgroundStep() -> Bool {
        guard hasBackgroundWork, let index else { return false }
        do throws(DatabaseError) {
            if needsEviction {
                needsEviction = try evict(index)
            } else if isAgingDue {
                let isDone = try remove(index, .usedBefore(oldestUse ?? .min), bytes: .max) == 0
                if isDone { nextAging = store.clock.now().advanced(byMilliseconds: Self.agingMilliseconds) }
            } else {
                try orphans?.step(folder, index)
                if orphans?.isAtEnd ?? true { orphans = nil }
            }
        } catch {
            needsEviction = false
            if error.isDamage { replaceIndex(error.message) } else if !error.isBusy { fail(error.failure) }
        }
        return true
    }

    /// Down to nine tenths of what is allowed. False: there is no more to evict.
    private func evict(_ index: Index) throws(DatabaseError) -> Bool {
        let totals = try index.totals()
        let limits = store.configuration
        if isEvicting || totals.bytes > limits.maximumBytes {
            let excess = totals.bytes - limits.maximumBytes / 10 * 9
            isEvicting = false
            if excess > 0 { isEvicting = try remove(index, .all, bytes: excess) > 0 }
            if isEvicting { return true }
        }
        if isEvictingBeginnings || totals.partialBytes > limits.maximumPartialBytes {
            let excess = totals.partialBytes - limits.maximumPartialBytes / 10 * 9
            isEvictingBeginnings = false
            if excess > 0 { isEvictingBeginnings = try remove(index, .beginnings, bytes: excess) > 0 }
            if isEvictingBeginnings { return true }
        }
        return false
    }

    /// One step: how many.
    private func remove(_ index: Index, _ selection: Index.Selection, bytes: Int64) throws(DatabaseError) -> Int {
        let gone = try index.database.transaction { () throws(DatabaseError) in
            try index.boundUses(now: store.clock.wallTime())
            return try index.removeOldest(selection, count: Self.stepCount, bytes: bytes)
        }
        discard(gone)
        store.withState { $0.statistics.evicted += Int64(gone.count) }
        return gone.count
    }

    /// Step by step: others can write in between.
    func removeAll(_ index: Index, _ selection: Index.Selection) throws(DatabaseError) {
        while true {
            let gone = try index.database.transaction { () throws(DatabaseError) in
                try index.removeOldest(selection, count: 500, bytes: .max)
            }
            discard(gone)
            if gone.isEmpty { return }
        }
    }
}
