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

    private mutating func rest(_ id: TransferID, _ now: Instant) {
        var longest = Int64.max
        forEachSubscriber(id) { downloads, subscriber in
            downloads.subscribers[subscriber].retries += 1
            downloads.subscribers[subscriber].doom = nil
            downloads.subscribers[subscriber].since = nil
            downloads.subscribers[subscriber].isProgressHeld = false
            downloads.subscribers[subscriber].isPartialHeld = false
            downloads.subscribers[subscriber].hasResponse = false
            downloads.subscribers[subscriber].hasHeader = false
            longest = min(longest, downloads.subscribers[subscriber].longestWait)
        }
        let wait = max(transfers[id].retryAfter ?? 0, Int64.random(in: 0...longest, using: &random))
        forgetBody(id)
        forgetCanvases(id)
        transfers[id].reset()
        transfers[id].retries += 1
        restingCount += 1
        updateClocks(id, now)
        actions.append(.restart(id))
        share(id)
        let until = now.advanced(byMilliseconds: wait)
        transfers[id].restsUntil = until
        if wait > 0 { remind(until, .rest(id)) } else { wake(id, now) }
    }

    /// Its wait is over: it goes before all others of its priority.
    mutating func wake(_ id: TransferID, _ now: Instant) {
        guard transfers.contains(id), transfers[id].phase == .resting, let until = transfers[id].restsUntil,
            until <= now
        else { return }
        transfers[id].restsUntil = nil
        restingCount -= 1
        enqueue(id, atFront: true, now)
    }
}
