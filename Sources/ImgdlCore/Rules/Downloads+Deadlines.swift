/// Three timeouts, each with a code of its own (features B16), and the pace of partial images.
///
/// A running transfer has one reminder in the heap, not one for each byte: when its time comes it looks at when
/// something was last heard, and sets the next. So a byte costs nothing, and a deadline O(log n).
extension Downloads {
    /// When `deadlineReached` wants to be called; nil for never. May be earlier than anything is due.
    package var nextDeadline: Instant? {
        guard let other = deadlines.earliest else { return totalTimeouts.earliest }
        return totalTimeouts.earliest.map { min($0, other) } ?? other
    }

    /// Nothing is left that they could be for.
    mutating func forgetDeadlines() {
        deadlines.removeAll()
        totalTimeouts.removeAll()
        nextLook = nil
    }

    /// Nothing is started for an end that has come before all others that are due have. `heardUntil`: what came before has
    /// been told; nil: all has. A transfer that was to be heard of later may have been: its own clocks wait for that.
    /// `silence`: as of `Transport`.
    package mutating func deadlineReached(
        _ now: Instant, heardUntil: Instant? = nil, silence: (TransferID) -> Silence = { _ in Silence() }
    ) {
        holdStarts()
        endOverdue(now)
        var unheard: [(deadline: Instant, id: TransferID)] = []
        var unheardLook: Instant?
        let heardUntil = min(now, heardUntil ?? now)
        while let owner = deadlines.popDue(now) {
            switch owner {
            case .transfer(let id):
                if let deadline = expireTransfer(id, now, heardUntil, silence) { unheard.append((deadline, id)) }
            case .partial(let id, let variant): showPartial(id, variant, now)
            case .heldPartial(let subscriber): showHeldPartial(subscriber, now)
            case .grace(let number): expireGrace(number, now)
            case .rest(let id): wake(id, now)
            case .look: if let look = look(now, heardUntil) { unheardLook = look }
            }
        }
        if let unheardLook, nextLook != nil { remind(unheardLook, .look) }
        for (deadline, id) in unheard where transfers.contains(id) { remind(deadline, .transfer(id)) }
        releaseStarts(now)
    }

    /// Time in which nobody looked is no time in which a server was silent: the clocks of what runs get it back, but for the
    /// total ones.
    package mutating func turnBegins(after delay: TurnDelay, _ now: Instant) {
        if delay.outlivesConnections { networkChanged() }
        guard delay.excess > 0 else { return }
        postponeLook(delay.excess, now)
        // Who waits for a turn gets all of that time back anyhow.
        for id in running where transfers[id].pauses.isEmpty && !transfers[id].waitsForTurn {
            shiftClocks(id, by: delay.excess, now)
        }
    }

    /// What they had left before, they have left now; those of a pause, or of a time in which nobody looked.
    mutating func shiftClocks(_ id: TransferID, by nanoseconds: Int64, _ now: Instant) {
        func shifted(_ start: Instant) -> Instant {
            let (sum, overflow) = start.nanoseconds.addingReportingOverflow(nanoseconds)
            return overflow ? now : min(now, Instant(nanoseconds: sum))
        }
        transfers[id].lastActivity = shifted(transfers[id].lastActivity)
        forEachSubscriber(id) { downloads, subscriber in
            downloads.subscribers[subscriber].since = downloads.subscribers[subscriber].since.map(shifted)
        }
    }

    /// What failed for good may have failed for the sake of the network.
    package mutating func forgetFailures() { failedURLs = FailedURLs() }

    package mutating func networkChanged() {
        forgetFailures()
        actions.append(.leaveConnections)
    }

    /// Something was heard of it: its time begins anew.
    mutating func touch(_ id: TransferID, _ now: Instant) {
        transfers[id].lastActivity = now
        if !transfers[id].cache.isPlaying { watch(id) }
    }

    /// A reminder stands that is not too late for the transfer's deadline.
    mutating func watch(_ id: TransferID) {
        guard let deadline = transfers[id].deadline(limits) else { return }
        if let reminder = transfers[id].reminder, reminder <= deadline { return }
        transfers[id].reminder = deadline
        remind(deadline, .transfer(id))
    }

    mutating func remind(_ instant: Instant, _ owner: DeadlineOwner) {
        if deadlines.isCrowded { dropForgottenDeadlines() }
        deadlines.insert(instant, owner)
    }

    private mutating func dropForgottenDeadlines() {
        var all = DeadlineHeap<DeadlineOwner>()
        swap(&all, &deadlines)
        all.compact { owner in
            switch owner {
            case .heldPartial(let subscriber): subscribers.contains(subscriber)
            case .transfer(let id), .partial(let id, _), .rest(let id): transfers.contains(id)
            case .grace(let stay): background?.number == stay
            case .look: true
            }
        }
        swap(&all, &deadlines)
    }

    /// Gives its deadline where it has passed, and nobody knows yet whether something has come.
    private mutating func expireTransfer(
        _ id: TransferID, _ now: Instant, _ heardUntil: Instant, _ silence: (TransferID) -> Silence
    ) -> Instant? {
        // A reminder that an earlier one has replaced is still in the heap: it has nothing to say.
        guard transfers.contains(id), let reminder = transfers[id].reminder, reminder <= now else { return nil }
        transfers[id].reminder = nil
        guard let deadline = transfers[id].deadline(limits), deadline <= now else {
            watch(id)
            return nil
        }
        guard deadline <= heardUntil else {
            transfers[id].reminder = deadline
            return deadline
        }
        if transfers[id].isDraining {
            actions.append(.stop(id))
            finished(id, now)
            return nil
        }
        return expireEach(id, heardUntil, now, silence(id))
    }

    /// Each subscriber at its own connect or idle timeout, the transfer with its last, and all at once where a flood is what
    /// has come. Gives the next one's as `expireTransfer` does: it may have joined later.
    private mutating func expireEach(
        _ id: TransferID, _ heardUntil: Instant, _ now: Instant, _ silence: Silence
    ) -> Instant? {
        let isConnecting = transfers[id].phase == .connecting
        var next: Instant?
        var flood: Failure?
        var connectTimeout = Int64.max
        var idleTimeout = Int64.max
        forEachSubscriber(id) { downloads, subscriber in
            let (limits, start) = (downloads.limits, downloads.transfers[id].lastActivity)
            let ownConnectTimeout = downloads.subscribers[subscriber].options.connectTimeout(limits)
            let ownIdleTimeout = downloads.subscribers[subscriber].options.idleTimeout(limits)
            let timeout = isConnecting ? ownConnectTimeout : ownIdleTimeout
            let since = downloads.subscribers[subscriber].since ?? start
            let deadline = max(start, since).advanced(byMilliseconds: timeout)
            if deadline <= heardUntil {
                let failure =
                    isConnecting
                    ? Self.noConnection(within: timeout, silence.nameLookedUp)
                    : Self.noAnswer(for: timeout, silence)
                if failure.code == .flood { flood = flood ?? failure }
                downloads.subscribers[subscriber].doom = failure
            } else {
                next = min(next ?? deadline, deadline)
                connectTimeout = min(connectTimeout, ownConnectTimeout)
                idleTimeout = min(idleTimeout, ownIdleTimeout)
            }
        }
        if let flood {
            forEachSubscriber(id) { downloads, subscriber in downloads.subscribers[subscriber].doom = flood }
            actions.append(.stopFlooded(id))
            failed(id, flood, now)
            return nil
        }
        guard let next else {
            let failure = firstSubscriber(of: id).flatMap { subscribers[$0].doom }
            actions.append(.stop(id))
            failed(id, failure ?? Failure(.idleTimeout, "the server sent nothing of the answer"), now)
            return nil
        }
        forEachSubscriber(id) { downloads, subscriber in
            if let own = downloads.subscribers[subscriber].doom { downloads.end(subscriber, .failure(own), now) }
        }
        transfers[id].lowest.connectTimeout = connectTimeout
        transfers[id].lowest.idleTimeout = idleTimeout
        transfers[id].reminder = next
        if next <= now { return next }
        remind(next, .transfer(id))
        return nil
    }

    /// A server that sends all the time, and nothing of an answer, is not asked again as a silent one is.
    private static func noAnswer(for timeout: Int64, _ silence: Silence) -> Failure {
        let sentence = "the server sent nothing of the answer for \(timeout) ms"
        guard silence.isFlood else { return Failure(.idleTimeout, sentence) }
        return Failure(.flood, "\(sentence), and meanwhile \(silence.strayBytes) bytes that gave nothing of an answer")
    }

    private static func noConnection(within timeout: Int64, _ nameLookedUp: String?) -> Failure {
        let cause = nameLookedUp.map { ": “\(PrintableText.shortened($0, to: 253))” was still being looked up" } ?? ""
        return Failure(.connectTimeout, "no connection within \(timeout) ms\(cause)")
    }

    /// Ends those whose total timeout is over, before anything is given out that has come: it waits for nobody. Nobody gets a
    /// place by it before the caller calls `startWaiting`: what ends with the same report gives up its own first. False: there
    /// are none.
    @discardableResult
    mutating func endOverdue(_ now: Instant) -> Bool {
        guard let earliest = totalTimeouts.earliest, earliest <= now else { return false }
        while let subscriber = totalTimeouts.popDue(now) { expireSubscriber(subscriber, now) }
        return true
    }

    private mutating func expireSubscriber(_ subscriber: SubscriberID, _ now: Instant) {
        // A clock that has stood still since has a later entry.
        guard subscribers.contains(subscriber), case .runs(let until) = subscribers[subscriber].clock, until <= now
        else {
            return
        }
        let id = transfer(of: subscriber)
        let timeout = subscribers[subscriber].options.totalTimeout
        let failure = Failure(.totalTimeout, "not complete within its total timeout of \(timeout) ms")
        // What it was to fail with anyway says more.
        let known = subscribers[subscriber].doom ?? transfers[id].doom ?? transfers[id].failure
        if let known, !mayRetry(subscriber, known) { return end(subscriber, .failure(known), now) }
        end(subscriber, .failure(failure), now)
    }

    private mutating func showPartial(_ id: TransferID, _ variant: Int, _ now: Instant) {
        guard transfers.contains(id) else { return }
        transfers[id].variants[variant].isTimerSet = false
        stepDecoder(id, variant, now)
    }

    private mutating func showHeldPartial(_ subscriber: SubscriberID, _ now: Instant) {
        guard subscribers.contains(subscriber) else { return }
        subscribers[subscriber].isPartialTimerSet = false
        if subscribers[subscriber].isPartialHeld { offerPartial(subscriber, now) }
    }
}
