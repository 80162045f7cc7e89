import ImgdlCore

/// How long others are waited for that write: never for each command by itself, but for all that waits together.
extension DiskWriter {
    /// A quarter of a second at a time: meanwhile the cache may be closed.
    private static var mostPatience: Int64 { 250 }

    /// One transaction, which waits as long as it may.
    func change<Result>(
        _ index: Index, _ purpose: StorageLog.Purpose, _ body: (StorageLog.Room) throws(DatabaseError) -> Result
    ) throws(DatabaseError) -> Result {
        try index.checkIfShort()
        if isPatient { turn?.waitForOthers(until: attemptEnd) }
        let busy: DatabaseError
        do throws(DatabaseError) {
            return try attempt(index, purpose, body)
        } catch {
            guard error.isBusy else { throw error }
            busy = error
        }
        notePatience()
        // Others were faster. They let this one go first now.
        let lastTry = attemptEnd
        guard isPatient, let turn, turn.take(until: lastTry) else { throw busy }
        defer { turn.letGo() }
        while true {
            do throws(DatabaseError) {
                return try attempt(index, purpose, body)
            } catch {
                guard error.isBusy, now < lastTry else { throw error }
            }
        }
    }

    private func attempt<Result>(
        _ index: Index, _ purpose: StorageLog.Purpose, _ body: (StorageLog.Room) throws(DatabaseError) -> Result
    ) throws(DatabaseError) -> Result {
        index.database.setBusy(milliseconds: patience)
        let result = try index.change(purpose, until: end, body)
        patienceEnd = nil
        lastChange = now
        return result
    }

    /// Others are in the way.
    func notePatience() {
        if patienceEnd == nil { patienceEnd = now.advanced(byMilliseconds: tuning.busyMilliseconds) }
    }

    /// They have been for so long that nobody knows when they will not be.
    var isTooLong: Bool { patienceEnd.map { now >= $0.advanced(byMilliseconds: tuning.failingMilliseconds) } ?? false }

    /// Until when it waits, whatever it does now. Who waits for it does not lose by what it had to do before: others are
    /// waited for as long after each change.
    private var end: Instant {
        if isWritingLastRemovals, let waitingEnd { return waitingEnd }
        var end = waitingEnd ?? patienceEnd ?? now.advanced(byMilliseconds: tuning.busyMilliseconds)
        if waitingEnd != nil, let lastChange {
            end = max(end, lastChange.advanced(byMilliseconds: tuning.busyMilliseconds))
        }
        return store.withState { $0.closingDeadline }.map { min($0, end) } ?? end
    }

    var isPatient: Bool { now < end }

    /// End of one wait, after which it looks whether it is to go on.
    private var attemptEnd: Instant { min(end, now.advanced(byMilliseconds: Self.mostPatience)) }

    /// Milliseconds; 0: it tries, and does not wait.
    var patience: Int32 { Int32(min(max(0, end.milliseconds(since: now)), Self.mostPatience)) }

    /// Waits until `end` at most, whatever `body` does.
    func waiting<Result>(until end: Instant, _ body: () -> Result) -> Result {
        let before = waitingEnd
        waitingEnd = end
        defer { waitingEnd = before }
        return body()
    }

    private var now: Instant { MonotonicClock().now() }
}
