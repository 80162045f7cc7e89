import Glibc
import ImgdlCore

/// What is done when there is nothing else to do, in small steps.
extension DiskWriter {
    private static var stepCount: Int { 64 }
    private static var agingMilliseconds: Int64 { 600_000 }
    /// While others are in the way.
    private static var pauseMilliseconds: Int64 { 1_000 }

    private var hasBackgroundWork: Bool {
        guard index != nil, !hasFailed else { return false }
        return needsEviction || hasRoomToRelease || isAgingDue || isRecountDue || hasOrphans
    }

    private var hasOrphans: Bool { !(orphans?.isAtEnd ?? true) }

    /// When there is something to do; nil: there is nothing.
    var nextBackgroundWork: Instant? {
        guard hasBackgroundWork else { return nextCheck }
        return backgroundPause ?? MonotonicClock().now()
    }

    private var isAgingDue: Bool {
        guard store.configuration.maximumAge != nil, let nextAging else { return false }
        return store.clock.now() >= nextAging
    }

    /// False: there is nothing to do, or others are in the way.
    func backgroundStep() -> Bool {
        guard let index, hasBackgroundWork || nextCheck != nil else { return false }
        backgroundPause = nil
        do throws(DatabaseError) {
            if needsEviction {
                needsEviction = try evict(index)
            } else if hasRoomToRelease {
                try release(index)
            } else if isAgingDue {
                let isDone = try remove(index, .usedBefore(oldestUse ?? .min), bytes: .max) == 0
                if isDone { nextAging = store.clock.now().advanced(byMilliseconds: Self.agingMilliseconds) }
            } else if isRecountDue {
                try recount(index)
            } else if hasOrphans {
                if try !searchOrphans(index) {
                    pauseBackground()
                    return false
                }
            } else {
                return try check(index)
            }
        } catch {
            if error.isBusy || error.isLogFull {
                pauseBackground()
                return false
            }
            needsEviction = false
            if error.isDamage { replaceIndex(error.message) } else { fail(error.failure) }
        }
        return true
    }

    private func pauseBackground() {
        backgroundPause = MonotonicClock().now().advanced(byMilliseconds: Self.pauseMilliseconds)
    }

    /// False: there is no descriptor for it.
    private func searchOrphans(_ index: Index) throws(DatabaseError) -> Bool {
        let step = try orphans?.step(folder, index) { (name) throws(DatabaseError) in
            try change(index, .changing) { (_) throws(DatabaseError) in try index.release(name) }
        }
        if step == .later { return false }
        guard orphans?.isAtEnd ?? true else { return true }
        orphans = nil
        hasUnknownBodies = false
        return true
    }

    /// The index is a new one, and what its forerunner knew still takes its place: nothing is stored beside it. Without
    /// a descriptor it cannot be found, and a body cannot be stored.
    func removeUnknownBodies(_ index: Index) throws(DatabaseError) {
        while hasUnknownBodies, try searchOrphans(index) {}
    }

    /// Down to what is allowed, and beginnings to nine tenths of that. False: there is no more to evict.
    private func evict(_ index: Index) throws(DatabaseError) -> Bool {
        let limits = store.configuration
        // Files that this writer has removed are gone, and only said to be reserved still.
        let gone = max(0, reserved - ledger.granted)
        let excess = try index.use(others: otherBytes).total - gone - limits.maximumBytes
        if excess > 0, try remove(index, .all, bytes: excess) > 0 { return true }
        let partialBytes = try index.totals().partialBytes
        if isEvictingBeginnings || partialBytes > limits.maximumPartialBytes {
            let excess = partialBytes - limits.maximumPartialBytes / 10 * 9
            isEvictingBeginnings = false
            if excess > 0 { isEvictingBeginnings = try remove(index, .beginnings, bytes: excess) > 0 }
            if isEvictingBeginnings { return true }
        }
        return false
    }

    /// One step: how many.
    private func remove(_ index: Index, _ selection: Index.Selection, bytes: Int64) throws(DatabaseError) -> Int {
        let removal = try removeOldest(index, selection, count: Self.stepCount, bytes: bytes)
        store.withState { $0.statistics.evicted += Int64(removal.ids.count) }
        return removal.ids.count
    }

    /// What their files take stays reserved until they are gone.
    private func removeOldest(
        _ index: Index, _ selection: Index.Selection, count: Int, bytes: Int64
    ) throws(DatabaseError) -> Index.Removal {
        try boundUses(index)
        let removal = try change(index, .changing) { (room) throws(DatabaseError) in
            let removal = try index.removeOldest(selection, count: min(count, room.changes), bytes: bytes)
            try reserve(ledger.granted + removal.cost, in: index)
            return removal
        }
        discard(removal.ids)
        return removal
    }

    /// Step by step: others can write in between.
    func removeAll(_ index: Index, _ selection: Index.Selection) throws(DatabaseError) {
        while try !removeOldest(index, selection, count: .max, bytes: .max).ids.isEmpty {}
    }

    /// Everything, and the count begins anew.
    func clear(_ index: Index) throws(DatabaseError) {
        while try !removeAtOnce(index) {
            var count = 0
            while count < tuning.clearedAtOnce {
                let removal = try removeOldest(index, .all, count: .max, bytes: .max)
                if removal.ids.isEmpty { break }
                count += removal.ids.count
            }
        }
        try recount(index)
    }

    /// False: there is too much for one transaction.
    private func removeAtOnce(_ index: Index) throws(DatabaseError) -> Bool {
        let removal = try change(index, .changing) { (_) throws(DatabaseError) -> Index.Removal? in
            guard let removal = try index.removeAll(atMost: tuning.clearedAtOnce) else { return nil }
            try reserve(ledger.granted + removal.cost, in: index)
            return removal
        }
        if let removal { discard(removal.ids) }
        return removal != nil
    }
}
