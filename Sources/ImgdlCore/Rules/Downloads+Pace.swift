/// Transfers that bring next to nothing while others wait for memory: they are slow. One that led passes the lead on, none is
/// paused, so that their idle clocks run, and what they hold counts for their source alone (`Shares`), until they have become
/// quicker or there is room for all. So whoever stands still holds up itself. Once they hold as much as the budget there are no
/// more of them, but for those that had begun at a source that has used up its share, where nothing begins any more. So all
/// together hold three times the budget at most, besides those: what came before that, what filled the budget then, and what
/// does afterwards. One that brings next to nothing and cannot be slow any more holds up all others (Downloads+Drips).
extension Downloads {
    /// Milliseconds between two looks at what has come.
    static var lookInterval: Int64 { 1_000 }

    func source(of id: TransferID) -> Source {
        if transfers[id].asksItsOwnURL { return Source(transfers[id].request.url) }
        return Source(transfers[id].laterHops.last ?? transfers[id].firstURL)
    }

    // MARK: Looks

    /// Looks are due for as long as somebody waits for memory.
    mutating func beginLooks(_ now: Instant) {
        guard nextLook == nil, isShortOfMemory, !running.isEmpty else { return }
        for id in running { beginPace(id) }
        remindOfLook(now)
    }

    private mutating func remindOfLook(_ now: Instant) {
        let next = now.advanced(byMilliseconds: Self.lookInterval)
        nextLook = next
        remind(next, .look)
    }

    /// The next look is later by `excess` nanoseconds, in which nobody looked; by an interval from now at most, so that late turns
    /// do not put it off for ever.
    mutating func postponeLook(_ excess: Int64, _ now: Instant) {
        guard let due = nextLook else { return }
        let (sum, overflow) = due.nanoseconds.addingReportingOverflow(excess)
        let latest = now.advanced(byMilliseconds: Self.lookInterval)
        nextLook = overflow ? latest : min(latest, Instant(nanoseconds: sum))
    }

    /// `heardUntil`: as of `deadlineReached`. Gives its time where that has passed, and nobody knows yet what has come.
    mutating func look(_ now: Instant, _ heardUntil: Instant) -> Instant? {
        guard let due = nextLook else { return nil }
        guard due <= now else {
            remind(due, .look)
            return nil
        }
        guard due <= heardUntil else { return due }
        nextLook = nil
        hasRoom = true
        guard isShortOfMemory || slowCount > 0 && !hasRoomForSlow else {
            for id in running {
                setSlow(id, false)
                forgetDrip(id)
            }
            return nil
        }
        // Those that go on while the lead is open have filled the budget together.
        let mayBeMore = isLeadOpen || slow.total < memory.budget
        let othersWait = othersWaitForMemory
        for id in running { judgePace(id, mayBeMore, othersWait: othersWait) }
        endDrip(now)
        if let leader, transfers[leader].isSlow {
            openLead(now)
        } else if isLeadOpen {
            isLeadOpen = false
            needsLeader = isPressing
        }
        // Looks may have begun anew with what has ended.
        if !running.isEmpty, nextLook == nil { remindOfLook(now) }
        return nil
    }

    /// What slow transfers hold would fit, too, with some to spare.
    private var hasRoomForSlow: Bool { memory.fits(slow.total + memory.budget / 8) }

    private mutating func judgePace(_ id: TransferID, _ mayBeMore: Bool, othersWait: Bool) {
        let seen = transfers[id].seenBytes
        let wasSlow = transfers[id].isSlow
        beginPace(id)
        guard seen >= 0, transfers[id].seenBytes >= 0 else { return }
        let brought = max(0, transfers[id].seenBytes - seen)
        setSlow(id, brought < limits.slowBytes && (mayBeMore || wasSlow || waitsForSource(id)))
        countDrip(id, brought: brought, holdsUp: othersWait && !wasSlow)
    }

    /// From here on it is seen what it brings; unless it waits for others itself.
    private mutating func beginPace(_ id: TransferID) {
        let waits =
            transfers[id].pauses.contains(.memory) || transfers[id].question != nil || transfers[id].waitsForTurn
        transfers[id].seenBytes = waits ? -1 : transfers[id].received + transfers[id].heldBytes
    }

    /// The leader has become slow. Nobody knows who of the others is not: all go on, until one of them has shown it and leads.
    private mutating func openLead(_ now: Instant) {
        leader = nil
        needsLeader = false
        isLeadOpen = true
        for id in pressed where transfers.contains(id) {
            resume(id, .memory, now)
            beginPace(id)
        }
        pressed = []
    }

    /// More of its body has come.
    mutating func updatePace(_ id: TransferID) {
        guard slowCount > 0, transfers[id].isSlow else { return }
        if isQuick(id) { setSlow(id, false) } else { updateSlow(id) }
    }

    /// Since the last look it has brought enough.
    func isQuick(_ id: TransferID) -> Bool {
        let seen = max(0, transfers[id].seenBytes)
        return transfers[id].received + transfers[id].heldBytes - seen >= limits.slowBytes
    }

    // MARK: What slow ones hold

    mutating func setSlow(_ id: TransferID, _ isSlow: Bool) {
        guard transfers[id].isSlow != isSlow else { return }
        transfers[id].isSlow = isSlow
        slowCount += isSlow ? 1 : -1
        if isSlow { transfers[id].slowSource = source(of: id) }
        updateSlow(id)
    }

    /// It has no place any more.
    mutating func forgetPace(_ id: TransferID) {
        forgetDrip(id)
        guard transfers[id].seenBytes >= 0 || transfers[id].isSlow else { return }
        transfers[id].seenBytes = -1
        setSlow(id, false)
    }

    /// Brings the count in line with what it holds.
    mutating func updateSlow(_ id: TransferID) {
        guard let source = transfers[id].slowSource else { return }
        let bytes = transfers[id].isSlow ? bytesInWork(id) : 0
        if !transfers[id].isSlow { transfers[id].slowSource = nil }
        let change = bytes - transfers[id].slowBytes
        guard change != 0 else { return }
        transfers[id].slowBytes = bytes
        slow.change(change, of: source, budget: memory.budget)
        hasRoom = true
        excuse()
    }

    func bytesInWork(_ id: TransferID) -> Int64 {
        // While a hook is asked its body counts for that.
        transfers[id].variants.reduce(transfers[id].countedBytes - transfers[id].owedBytes) { $0 + $1.reserved }
    }

    // MARK: Who waits for it

    /// Whether so much of its source stands still that it does not begin.
    func waitsForSource(_ id: TransferID) -> Bool { slow.behindCount > 0 && slow.isBehind(source(of: id)) }

    /// As `restForExecutors`, until less of its source stands still.
    mutating func restForSource(_ id: TransferID) {
        transfers[id].phase = .resting
        restingCount += 1
        var passed = PassedTurns<Source>()
        swap(&passed, &turnsPassedBySources)
        if passed.needsLook { passed.keep { restsForTurn($0) } }
        passed.append(id, source(of: id))
        swap(&passed, &turnsPassedBySources)
    }
}
