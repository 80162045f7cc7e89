import Glibc
import ImgdlCore

/// Room in the folder: asked for before anything is written, and made by removing what was used longest ago.
extension DiskWriter {
    /// Steps that others may have in between.
    private static var mostSteps: Int { 10_000 }
    private static var recountMilliseconds: Int64 { 600_000 }

    /// Whether so many bytes may be written. They count as held from now on. `own`: what is held for the same body already.
    func admit(_ bytes: Int64, beside own: Int64 = 0, for purpose: StorageLog.Purpose = .adding) -> Bool {
        if ledger.take(bytes) { return true }
        // What waits can be evicted once the index has it.
        if isPatient { writeBatch() }
        refusal = Refusal(.behind)
        repeat {
            guard !hasFailed, let index = currentIndex() else { return false }
            do throws(DatabaseError) {
                try removeUnknownBodies(index)
                guard try makeRoom(bytes, index, purpose) else {
                    refusal = Refusal(.noRoom)
                    return false
                }
                commitSoon()
                return ledger.take(bytes)
            } catch {
                if error.isLogFull {
                    refusal = Refusal(.reader, error.failure)
                    return false
                }
                if error.isBusy { refusal = Refusal(.writer, error.failure) }
                if error.isDamage { replaceIndex(error.message) } else if !error.isBusy { fail(error.failure) }
                if !hasFailed, ledger.takeUngranted(bytes, beside: own) { return true }
                if isOutOfTime { return false }
            }
        } while isPatient
        return false
    }

    /// Why there was no room.
    struct Refusal {
        let cause: StorageLosses.Cause
        /// For the next flush; nil: it says nothing.
        let failure: Failure?

        init(_ cause: StorageLosses.Cause, _ failure: Failure? = nil) {
            self.cause = cause
            self.failure = failure
        }
    }

    private enum Step {
        case isDone
        case hasRemoved(Index.Removal)
        case isRefused
    }

    private func makeRoom(
        _ bytes: Int64, _ index: Index, _ purpose: StorageLog.Purpose
    ) throws(DatabaseError) -> Bool {
        try boundUses(index)
        var hasRecounted = false
        for _ in 0..<Self.mostSteps {
            switch try step(bytes, index, purpose) {
            case .isDone: return true
            case .hasRemoved(let removal) where !removal.ids.isEmpty:
                discard(removal.ids)
                store.withState { $0.statistics.evicted += Int64(removal.ids.count) }
            case .isRefused, .hasRemoved:
                // Only a wrong count leaves nothing to remove, or nothing free.
                if hasRecounted { return false }
                hasRecounted = true
                try recount(index)
            }
        }
        return false
    }

    /// Uses in the future count as now, once: they would keep what nobody uses until that time comes. Not by a clock that
    /// stands before there was this library, as that of a machine does that has just been switched on.
    func boundUses(_ index: Index) throws(DatabaseError) {
        let now = store.clock.wallTime()
        guard now >= 1_600_000_000 else { return }
        for _ in 0..<Self.mostSteps {
            guard try index.hasUses(after: now) else { return }
            try change(index, .changing) { (room) throws(DatabaseError) in try index.boundUses(now, count: room.changes)
            }
        }
    }

    /// One transaction. What was removed stays reserved until its files are gone.
    private func step(
        _ bytes: Int64, _ index: Index, _ purpose: StorageLog.Purpose
    ) throws(DatabaseError) -> Step {
        let maximum = store.configuration.maximumBytes
        ledger.grant(0)
        if purpose == .adding, try index.canShrink() {
            try change(index, purpose) { (_) throws(DatabaseError) in try index.shrink() }
            index.shortenFile()
        }
        return try change(index, purpose) { (room) throws(DatabaseError) in
            try reserve(ledger.held, in: index)
            let use = try index.use(others: otherBytes)
            switch use.admission(of: bytes, wanting: StorageUse.portion(of: maximum), within: maximum) {
            case .granted(let granted):
                try reserve(ledger.held + granted, in: index)
                ledger.grant(granted)
                return .isDone
            case .evict(let excess):
                let removal = try index.removeOldest(.all, count: room.changes, bytes: excess)
                try reserve(ledger.held + removal.cost, in: index)
                return .hasRemoved(removal)
            case .refused: return .isRefused
            }
        }
    }

    /// Says in the index what this writer may fill.
    func reserve(_ bytes: Int64, in index: Index) throws(DatabaseError) {
        guard let name = writerFolder?.name else { return }
        try index.reserve(bytes, for: name)
        reserved = bytes
    }

    // MARK: When there is time

    /// What was removed is gone by now.
    var hasRoomToRelease: Bool { reserved > ledger.granted }

    func release(_ index: Index) throws(DatabaseError) {
        try change(index, .changing) { (_) throws(DatabaseError) in try reserve(ledger.granted, in: index) }
    }

    var isRecountDue: Bool { nextRecount.map { store.clock.now() >= $0 } ?? true }

    func recount(_ index: Index) throws(DatabaseError) {
        otherBytes = folder.bytesAside()
        try change(index, .changing) { (_) throws(DatabaseError) in
            // A writer has its folder before the index knows it.
            try index.recount(writers: Set((try? Folder.list(folder.writers)) ?? []))
        }
        nextRecount = store.clock.now().advanced(byMilliseconds: Self.recountMilliseconds)
    }
}
