/// Transfers that bring next to nothing while others wait for memory: they are slow. One that led passes the lead on, none is
/// paused, so that their idle clocks run, and what they hold counts for their source alone (`Shares`), until they have become
/// quicker or there is room for all. So whoever stands still holds up itself. Once they hold as much as the budget there are no
/// more of them, but for those that had begun at a source that has used up its share, where nothing begins any more. So all
/// together hold three times the budget at most, besides those: what came before that, what filled the budget then, and what
/// does afterwards. One that brings next to nothing and cannot be slow any more holds up all others: it ends like a silent one,
/// after its idle timeout.
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

    /// Nobody has looked for a while: what came in that time has not been seen.
    mutating func postponeLook(_ now: Instant) {
        if nextLook != nil { nextLook = now.advanced(byMilliseconds: Self.lookInterval) }
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
        for id in running { judgePace(id, mayBeMore, now) }
        endLongestDrip(now)
        if let leader, transfers[leader].isSlow {
            openLead(now)
        } else if isLeadOpen {
            isLeadOpen = false
            needsLeader = isPressing
        }
        if !running.isEmpty { remindOfLook(now) }
        return nil
    }

    /// What slow transfers hold would fit, too, with some to spare.
    private var hasRoomForSlow: Bool { memory.fits(slow.total + memory.budget / 8) }

    private mutating func judgePace(_ id: TransferID, _ mayBeMore: Bool, _ now: Instant) {
        let seen = transfers[id].seenBytes
        beginPace(id)
        guard seen >= 0, transfers[id].seenBytes >= 0 else { return forgetDrip(id) }
        let isSlow = transfers[id].seenBytes - seen < limits.slowBytes
        setSlow(id, isSlow && (mayBeMore || transfers[id].isSlow || waitsForSource(id)))
        let isItsServers = transfers[id].isAtTransport && transfers[id].pauses.isEmpty
        guard isSlow, !transfers[id].isSlow, isItsServers, transfers[id].countedBytes > 0 else { return forgetDrip(id) }
        transfers[id].dripsSince = transfers[id].dripsSince ?? now.advanced(byMilliseconds: -Self.lookInterval)
    }

    private mutating func forgetDrip(_ id: TransferID) {
        if transfers[id].dripsSince != nil { transfers[id].dripsSince = nil }
    }

    /// One at each look, since the room it leaves may be all that the others need.
    private mutating func endLongestDrip(_ now: Instant) {
        var longest: (id: TransferID, since: Instant, timeout: Int64)?
        for id in running {
            guard let since = transfers[id].dripsSince, since < longest?.since ?? now else { continue }
            let timeout = longestIdleTimeout(id)
            if since.advanced(byMilliseconds: timeout) <= now { longest = (id, since, timeout) }
        }
        guard let longest else { return }
        let pace = "less than \(limits.slowBytes) bytes a second for \(longest.timeout) ms"
        let cause = "the server sent \(pace), while others waited for the memory that its body holds"
        actions.append(.stop(longest.id))
        failed(longest.id, Failure(.idleTimeout, cause), now)
    }

    private mutating func longestIdleTimeout(_ id: TransferID) -> Int64 {
        var longest: Int64 = 0
        forEachSubscriber(id) { downloads, subscriber in
            longest = max(longest, downloads.subscribers[subscriber].options.idleTimeout(downloads.limits))
        }
        return longest
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
        guard transfers[id].seenBytes >= 0 || transfers[id].isSlow else { return }
        transfers[id].seenBytes = -1
        setSlow(id, false)
        forgetDrip(id)
    }

    /// Brings the count in line with what it holds.
    mutating func updateSlow(_ id: TransferID) {
        guard let source = transfers[id].slowSource else { return }
        var bytes: Int64 = 0
        if transfers[id].isSlow {
            // While a hook is asked its body counts for that.
            bytes = transfers[id].countedBytes - transfers[id].owedBytes
            for variant in transfers[id].variants { bytes += variant.reserved }
        } else {
            transfers[id].slowSource = nil
        }
        let change = bytes - transfers[id].slowBytes
        guard change != 0 else { return }
        transfers[id].slowBytes = bytes
        slow.change(change, of: source, budget: memory.budget)
        hasRoom = true
        excuse()
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
