/// Executors that are behind (`Backlogs`): who waits for them, and who does not. A request waits for its executor before it
/// starts, and before a decoder is opened for it; what runs is received to its end, since its place and its connection are
/// everybody's. A transfer that somebody shares whose executor is not behind waits for nobody.
extension Downloads {
    /// So much more waits for this executor. `reviewBacklogs` is to follow.
    package mutating func waits(_ bytes: Int64, for executor: Backlogs.Executor) {
        let before = backlogs.excused
        backlogs.add(bytes, to: executor, budget: memory.budget)
        // Room was to come of what was on its way to somebody: where it waits, none does.
        if backlogs.excused != before || isShortOfMemory { needsReview = true }
        excuse()
    }

    /// Has go on what may since what waits for executors has changed. False: nothing that matters has.
    @discardableResult
    package mutating func reviewBacklogs(_ now: Instant) -> Bool {
        guard needsReview else { return false }
        needsReview = false
        hasRoom = true
        startWaiting(now)
        return true
    }

    /// Its host has taken, or will never take, so much of that. `memoryReleased` tells besides what nobody holds any more.
    package mutating func taken(_ bytes: Int64, by executor: Backlogs.Executor, _ now: Instant) {
        let hasCaughtUp = backlogs.take(bytes, from: executor)
        excuse()
        hasRoom = true
        if hasCaughtUp { openExecutorDecodes(now) }
        startWaiting(now)
    }

    /// Whether all who want it, or this variant of it, are on executors that are behind.
    func waitsForExecutors(_ id: TransferID, variant: Int? = nil) -> Bool {
        guard backlogs.behindCount > 0 else { return false }
        var next = firstSubscriber(of: id)
        while let subscriber = next {
            let isMeant = variant == nil || subscribers[subscriber].variant == variant
            if isMeant, !backlogs.isBehind(subscribers[subscriber].executor) { return false }
            next = self.subscriber(after: subscriber)
        }
        return true
    }

    /// Memory is full, and nothing could make room but the hosts of executors: they are behind.
    mutating func judgeExecutors(_ kept: Int64) {
        guard backlogs.areSomeAhead, memory.canvases - kept <= backlogs.total else { return }
        backlogs.fallBehind()
        excuse()
        needsReview = true
    }

    // MARK: Starts

    /// Its turn has come, and passes. It waits for the first executor of its subscribers to catch up.
    mutating func restForExecutors(_ id: TransferID) {
        transfers[id].phase = .resting
        restingCount += 1
        if passedTurns.needsLook { dropLeftTurns() }
        var passed = PassedTurns<Backlogs.Executor>()
        swap(&passed, &passedTurns)
        forEachSubscriber(of: id) { passed.append(id, subscribers[$0].executor) }
        swap(&passed, &passedTurns)
    }

    private mutating func dropLeftTurns() {
        var passed = PassedTurns<Backlogs.Executor>()
        swap(&passed, &passedTurns)
        passed.keep { restsForTurn($0) }
        swap(&passed, &passedTurns)
    }

    func restsForTurn(_ id: TransferID) -> Bool {
        transfers.contains(id) && transfers[id].phase == .resting && transfers[id].restsUntil == nil
    }

    /// Its subscribers have changed: it waits for its turn anew. False where it waited for nobody: neither executors, hooks nor
    /// its source.
    @discardableResult
    mutating func wakeForTurn(_ id: TransferID, _ now: Instant) -> Bool {
        if isHeldConsultation(id) {
            releaseHeld(id)
            return true
        }
        guard restsForTurn(id) else { return false }
        restingCount -= 1
        enqueue(id, atFront: true, now)
        return true
    }

    /// Of those whose executor, hooks or source have caught up as many as there are places, oldest first: all of them in each
    /// turn would take longer than what they wait for. False when there is none.
    mutating func wakePassed(_ now: Instant) -> Bool {
        let areNone = passedTurns.isEmpty && turnsPassedByHooks.isEmpty && turnsPassedBySources.isEmpty
        guard !areNone, mayStart else { return false }
        var woken: [TransferID] = []
        if !passedTurns.isEmpty {
            var passed = PassedTurns<Backlogs.Executor>()
            swap(&passed, &passedTurns)
            for executor in passed.hosts where !backlogs.isBehind(executor) { popPassed(&passed, executor, &woken) }
            swap(&passed, &passedTurns)
        }
        if !turnsPassedByHooks.isEmpty {
            var passed = PassedTurns<ObjectIdentifier>()
            swap(&passed, &turnsPassedByHooks)
            for hooks in passed.hosts where !owedAnswers.isBehind(hooks) { popPassed(&passed, hooks, &woken) }
            swap(&passed, &turnsPassedByHooks)
        }
        if !turnsPassedBySources.isEmpty {
            var passed = PassedTurns<Source>()
            swap(&passed, &turnsPassedBySources)
            for source in passed.hosts where !slow.isBehind(source) { popPassed(&passed, source, &woken) }
            swap(&passed, &turnsPassedBySources)
        }
        for id in woken.reversed() { wakeForTurn(id, now) }
        return !woken.isEmpty
    }

    private func popPassed<Host>(_ passed: inout PassedTurns<Host>, _ host: Host, _ woken: inout [TransferID]) {
        var places = limits.maximumConcurrent - running.count
        while places > 0, let id = passed.popFirst(host) {
            guard restsForTurn(id) else { continue }
            woken.append(id)
            places -= 1
        }
    }

    /// As `restForExecutors`, until its hooks have given answers.
    mutating func restForAnswers(_ id: TransferID) {
        guard let hooks = transfers[id].request.hooks else { return }
        transfers[id].phase = .resting
        restingCount += 1
        var passed = PassedTurns<ObjectIdentifier>()
        swap(&passed, &turnsPassedByHooks)
        if passed.needsLook { passed.keep { restsForTurn($0) } }
        passed.append(id, ObjectIdentifier(hooks))
        swap(&passed, &turnsPassedByHooks)
    }

    // MARK: Decoders

    /// A decoder that has all its bytes waits.
    mutating func holdForExecutors(_ id: TransferID, _ variant: Int) {
        transfers[id].variants[variant].isHeldBack = true
        releaseProgress(of: variant, id)
        guard !transfers[id].variants[variant].waitsForExecutor else { return }
        transfers[id].variants[variant].waitsForExecutor = true
        if executorDecodes.count >= 2 * heldForExecutorsCount + 64 {
            executorDecodes = executorDecodes.filter { isHeldForExecutors($0) }
        }
        executorDecodes.append(OpenVariant(transfer: id, variant: variant))
        updateHeld(id)
    }

    /// Whether it does nothing any more but wait.
    mutating func updateHeld(_ id: TransferID) {
        guard backlogs.behindCount > 0 || transfers[id].isHeldForExecutors else { return }
        let variants = transfers[id].variants
        let isHeld =
            transfers[id].phase == .decoding && variants.contains { $0.waitsForExecutor }
            && variants.allSatisfy { $0.waitsForExecutor || $0.phase == .done || $0.subscriberCount == 0 }
        guard isHeld != transfers[id].isHeldForExecutors else { return }
        guard isHeld else { return letGoOfExecutors(id) }
        transfers[id].isHeldForExecutors = true
        heldForExecutorsCount += 1
        heldForExecutorsBytes += transfers[id].countedBytes
        needsReview = true
        excuse()
    }

    private func isHeldForExecutors(_ decode: OpenVariant) -> Bool {
        transfers.contains(decode.transfer) && decode.variant < transfers[decode.transfer].variants.count
            && transfers[decode.transfer].variants[decode.variant].waitsForExecutor
    }

    /// It goes on, or ends.
    mutating func letGoOfExecutors(_ id: TransferID) {
        guard transfers[id].isHeldForExecutors else { return }
        transfers[id].isHeldForExecutors = false
        heldForExecutorsCount -= 1
        heldForExecutorsBytes -= transfers[id].countedBytes
        excuse()
    }

    private mutating func openExecutorDecodes(_ now: Instant) {
        var held: [OpenVariant] = []
        swap(&held, &executorDecodes)
        for next in held where isHeldForExecutors(next) {
            transfers[next.transfer].variants[next.variant].waitsForExecutor = false
            letGoOfExecutors(next.transfer)
            stepDecoder(next.transfer, next.variant, now)
        }
    }
}
