/// Three timeouts, each with a code of its own (features B16), and the pace of partial images.
extension Downloads {
    /// When `deadlineReached` wants to be called; nil for never. May be earlier than anything is due.
    package var nextDeadline: Instant? {
        let running = running.isEmpty ? nil : earliestRunningDeadline
        guard let earliest = deadlines.earliest else { return running }
        return running.map { min($0, earliest) } ?? earliest
    }

    package mutating func deadlineReached(_ now: Instant) {
        while let owner = deadlines.popDue(now) {
            switch owner {
            case .totalTimeout(let subscriber):
                guard let timed = subscribers.get(subscriber), let deadline = timed.deadline, deadline <= now else { continue }
                let message = "not complete within its total timeout of \(timed.options.totalTimeout) ms"
                end(subscriber, .failure(Failure(.totalTimeout, message)), now)
            case .partial(let id, let variant):
                guard transfers.contains(id.rawValue) else { continue }
                transfers[id.rawValue].variants[variant].isTimerSet = false
                stepDecoder(id, variant, now)
            }
        }
        if deadlines.count > 2 * (subscribers.count + transfers.count) + 64 { compactDeadlines() }
        expireRunning(now)
        startWaiting(now)
    }

    private mutating func expireRunning(_ now: Instant) {
        guard let earliest = earliestRunningDeadline, earliest <= now else { return }
        for id in running {
            guard let transfer = transfers.get(id.rawValue), let deadline = transfer.deadline(limits), deadline <= now else {
                continue
            }
            let failure = transfer.phase == .connecting
                ? Failure(.connectTimeout, "no connection within \(limits.connectTimeout) ms")
                : Failure(.idleTimeout, "the server sent nothing for \(limits.idleTimeout) ms")
            actions.append(.stop(id))
            failed(id, failure, now)
        }
        earliestRunningDeadline = running.lazy.compactMap { [self] in transfers.get($0.rawValue)?.deadline(limits) }.min()
    }

    private mutating func compactDeadlines() {
        deadlines.compact { [subscribers, transfers] owner in
            switch owner {
            case .totalTimeout(let subscriber): subscribers.contains(subscriber)
            case .partial(let id, _): transfers.contains(id.rawValue)
            }
        }
    }
}
