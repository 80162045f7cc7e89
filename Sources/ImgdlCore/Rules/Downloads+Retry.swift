/// Another attempt after what may pass (features B14). Retrying belongs to each subscriber: those with attempts left
/// stay with the transfer, the others end. A transfer that waits for its next attempt holds no place.
extension Downloads {
    /// How often a transfer was tried after its first attempt.
    package func retryCount(_ id: TransferID) -> Int { transfers.contains(id) ? transfers[id].retries : 0 }

    /// Whether this subscriber waits for another attempt when the transfer fails so. Its own reason comes first.
    func mayRetry(_ subscriber: SubscriberID, _ failure: Failure) -> Bool {
        let policy = subscribers[subscriber].options.retry
        guard subscribers[subscriber].retries < policy.count else { return false }
        let id = transfer(of: subscriber)
        return !transfers[id].isRefused && !transfers[id].cache.isPlaying
            && RetryRules.isTransient(subscribers[subscriber].doom ?? failure)
            && RetryRules.isIdempotent(transfers[id].firstMethod)
            && transfers[id].retryAfter ?? 0 <= policy.maximum
    }

    /// Whether any of its subscribers does.
    func mayRetry(_ id: TransferID, _ failure: Failure) -> Bool {
        var next = firstSubscriber(of: id)
        while let subscriber = next {
            if mayRetry(subscriber, failure) { return true }
            next = self.subscriber(after: subscriber)
        }
        return false
    }

    /// Whether all of them do.
    func mayAllRetry(_ id: TransferID, _ failure: Failure) -> Bool {
        var next = firstSubscriber(of: id)
        while let subscriber = next {
            guard mayRetry(subscriber, failure) else { return false }
            next = self.subscriber(after: subscriber)
        }
        return true
    }

    /// False when nobody waits for another attempt; the transfer has its place and nothing at the transport.
    mutating func retry(_ id: TransferID, _ failure: Failure, _ now: Instant) -> Bool {
        guard mayRetry(id, failure) else { return false }
        forEachSubscriber(id) { downloads, subscriber in
            guard !downloads.mayRetry(subscriber, failure) else { return }
            downloads.end(subscriber, .failure(downloads.subscribers[subscriber].doom ?? failure), now)
        }
        leaveTransport(id, now)
        rest(id, now)
        return true
    }

    /// For as long as the shortest wait among its subscribers.
    private mutating func rest(_ id: TransferID, _ now: Instant) {
        let mayTryAgain = now.advanced(byMilliseconds: transfers[id].retryAfter ?? 0)
        let jitter = random.next()
        forEachSubscriber(id) { downloads, subscriber in
            downloads.subscribers[subscriber].retries += 1
            downloads.subscribers[subscriber].doom = nil
            downloads.subscribers[subscriber].since = nil
            downloads.subscribers[subscriber].isProgressHeld = false
            downloads.subscribers[subscriber].isPartialHeld = false
            downloads.subscribers[subscriber].hasResponse = false
            downloads.subscribers[subscriber].hasHeader = false
            let wait = RetryRules.wait(downloads.subscribers[subscriber].longestWait, jitter)
            downloads.subscribers[subscriber].restsUntil = max(mayTryAgain, now.advanced(byMilliseconds: wait))
        }
        forgetBody(id)
        forgetKept(id)
        forgetCanvases(id)
        transfers[id].reset()
        transfers[id].retries += 1
        restingCount += 1
        updateClocks(id, now)
        actions.append(.restart(id))
        share(id)
        transfers[id].mayTryAgain = mayTryAgain
        transfers[id].jitter = jitter
        rest(id, until: shortestRest(id) ?? mayTryAgain, now)
    }

    private mutating func rest(_ id: TransferID, until: Instant, _ now: Instant) {
        transfers[id].restsUntil = until
        if until > now { remind(until, .rest(id)) } else { wake(id, now) }
    }

    /// nil: nobody is left who has said how long.
    private func shortestRest(_ id: TransferID) -> Instant? {
        var shortest: Instant?
        forEachSubscriber(of: id) { subscriber in
            guard let own = subscribers[subscriber].restsUntil else { return }
            shortest = min(shortest ?? own, own)
        }
        return shortest
    }

    /// When one with these options that comes now would have the next attempt, as if its own first one had just failed.
    func ownRest(_ id: TransferID, _ policy: RetryPolicy, _ now: Instant) -> Instant {
        let wait = RetryRules.wait(RetryRules.longestWait(policy, attempt: 1), transfers[id].jitter)
        return max(transfers[id].mayTryAgain, now.advanced(byMilliseconds: wait))
    }

    /// Has a transfer that it joined rest no longer than it would itself: nobody waits for another's retry. False where that does
    /// not rest before an attempt.
    mutating func shortenRest(of subscriber: SubscriberID, _ now: Instant) -> Bool {
        let id = transfer(of: subscriber)
        guard transfers[id].phase == .resting, let until = transfers[id].restsUntil else { return false }
        let own = ownRest(id, subscribers[subscriber].options.retry, now)
        subscribers[subscriber].restsUntil = own
        if own < until { rest(id, until: own, now) }
        return true
    }

    /// Its wait is over: it goes before all others of its priority. Not where those who are left would wait longer.
    mutating func wake(_ id: TransferID, _ now: Instant) {
        guard transfers.contains(id), transfers[id].phase == .resting, let until = transfers[id].restsUntil,
            until <= now
        else { return }
        if let shortest = shortestRest(id), shortest > now { return rest(id, until: shortest, now) }
        transfers[id].restsUntil = nil
        restingCount -= 1
        enqueue(id, atFront: true, now)
    }
}
