/// Whom the cache is asked about now, of those that have no place: so many at a time, and none whose executor or hooks are
/// behind (`Backlogs`, `Shares`), since what is stored would only wait there.
extension Downloads {
    mutating func consult(_ id: TransferID, _ kind: Consultation.Kind) {
        findLowestLimits(id)
        transfers[id].phase = .consulting
        transfers[id].cache.number += 1
        transfers[id].cache.fallbackUntil = nil
        transfers[id].cache.hasBegun = true
        let consultation = Consultation(kind, number: transfers[id].cache.number)
        guard !holdsPlace(id) else { return actions.append(.consult(id, consultation)) }
        transfers[id].cache.isCounted = true
        consultingCount += 1
        if waitsForHosts(id) {
            holdConsultation(id, consultation)
        } else if mayConsult, consultationLine.isEmpty {
            ask(id, consultation)
        } else {
            consultationLine.append((id: id, consultation: consultation))
        }
    }

    /// What the cache gives takes memory. Where there is none left one comes at a time, and none while pictures wait for room,
    /// since the next would only wait with them.
    private var mayConsult: Bool {
        guard memory.isFull else { return askedCount < limits.maximumConsulting }
        return askedCount < 1 && heldDecodes.isEmpty
    }

    private mutating func ask(_ id: TransferID, _ consultation: Consultation) {
        transfers[id].cache.isAsked = true
        askedCount += 1
        actions.append(.consult(id, consultation))
    }

    /// Those whose turn has come to be consulted about.
    mutating func consultNext() {
        guard !consultationLine.isEmpty || heldConsultationCount > 0 else { return }
        recallHeld()
        while mayConsult, let (id, consultation) = consultationLine.popFirst() {
            guard isConsulting(id, consultation.number) else { continue }
            if waitsForHosts(id) { holdConsultation(id, consultation) } else { ask(id, consultation) }
        }
    }

    /// The store has been looked into, and what is there would only wait for hosts: it is let go of, and asked for again when they
    /// have caught up. Nothing that has a place is postponed. `isReplacement`: it was about what an answer led to.
    package mutating func postpones(
        _ id: TransferID, _ number: UInt64, isReplacement: Bool, _ now: Instant
    ) -> Bool {
        guard isConsulting(id, number), transfers[id].cache.isAsked, waitsForHosts(id) else { return false }
        unmarkAsked(id)
        transfers[id].cache.number += 1
        let kind = isReplacement ? Consultation.Kind.answer : .again
        holdConsultation(id, Consultation(kind, number: transfers[id].cache.number))
        startWaiting(now)
        return true
    }

    mutating func uncountConsultation(_ id: TransferID) {
        guard transfers[id].cache.isCounted else { return }
        transfers[id].cache.isCounted = false
        consultingCount -= 1
        if transfers[id].cache.isAsked { unmarkAsked(id) } else { _ = takeHeld(id) }
    }

    private mutating func unmarkAsked(_ id: TransferID) {
        transfers[id].cache.isAsked = false
        askedCount -= 1
        guard transfers[id].cache.isRecalled else { return }
        transfers[id].cache.isRecalled = false
        recalledCount -= 1
    }

    // MARK: Those that wait for hosts

    /// Whether what it brings would only wait for executors, or for hooks.
    func waitsForHosts(_ id: TransferID) -> Bool { waitsForAnswers(id) || waitsForExecutors(id) }

    func isHeldConsultation(_ id: TransferID) -> Bool {
        heldConsultationCount > 0 && transfers.contains(id) && transfers[id].heldConsultation != nil
    }

    /// Until its hooks have given answers, or the first executor of its subscribers has caught up.
    private mutating func holdConsultation(_ id: TransferID, _ consultation: Consultation) {
        transfers[id].heldConsultation = consultation
        heldConsultationCount += 1
        var byHooks = PassedTurns<ObjectIdentifier>()
        var byExecutor = PassedTurns<Backlogs.Executor>()
        swap(&byHooks, &consultationsHeldByHooks)
        swap(&byExecutor, &consultationsHeldByExecutors)
        if byHooks.needsLook { byHooks.keep { isHeldConsultation($0) } }
        if byExecutor.needsLook { byExecutor.keep { isHeldConsultation($0) } }
        if waitsForAnswers(id), let hooks = transfers[id].request.hooks {
            byHooks.append(id, ObjectIdentifier(hooks))
        } else {
            forEachSubscriber(of: id) { byExecutor.append(id, subscribers[$0].executor) }
        }
        swap(&byHooks, &consultationsHeldByHooks)
        swap(&byExecutor, &consultationsHeldByExecutors)
    }

    private mutating func takeHeld(_ id: TransferID) -> Consultation? {
        guard let consultation = transfers[id].heldConsultation else { return nil }
        transfers[id].heldConsultation = nil
        heldConsultationCount -= 1
        return consultation
    }

    /// Its subscribers have changed: it is looked at anew.
    mutating func releaseHeld(_ id: TransferID) {
        guard let consultation = takeHeld(id) else { return }
        consultationLine.append((id: id, consultation: consultation))
    }

    /// Of those whose executor or hooks have caught up as many as there are places, oldest first: what they bring may be enough
    /// for the others to wait on.
    private mutating func recallHeld() {
        while heldConsultationCount > 0, mayConsult, recalledCount < limits.maximumConcurrent, let id = nextHeld() {
            guard let consultation = takeHeld(id) else { continue }
            guard !waitsForHosts(id) else {
                holdConsultation(id, consultation)
                continue
            }
            transfers[id].cache.isRecalled = true
            recalledCount += 1
            ask(id, consultation)
        }
    }

    private mutating func nextHeld() -> TransferID? {
        if !consultationsHeldByHooks.isEmpty {
            for hooks in consultationsHeldByHooks.hosts where !owedAnswers.isBehind(hooks) {
                while let id = consultationsHeldByHooks.popFirst(hooks) { if isHeldConsultation(id) { return id } }
            }
        }
        if !consultationsHeldByExecutors.isEmpty {
            for executor in consultationsHeldByExecutors.hosts where !backlogs.isBehind(executor) {
                while let id = consultationsHeldByExecutors.popFirst(executor) {
                    if isHeldConsultation(id) { return id }
                }
            }
        }
        return nil
    }
}
