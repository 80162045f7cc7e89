/// The end of a session, and a new one (features M4, M5, D7).
extension Downloads {
    /// No more requests will come. `cancels`: everything ends; else what waits does, and what runs, or is to be tried
    /// again, runs to its end.
    package mutating func invalidate(cancels: Bool, _ now: Instant) {
        if cancels { return cancelAll(now) }
        let failure = Failure(.invalidOperation, "the downloader's session is invalidated")
        for subscriber in subscribers.keys {
            guard subscribers.contains(subscriber) else { continue }
            let id = transfer(of: subscriber)
            guard transfers[id].isWaiting, !transfers[id].hasStarted else { continue }
            end(subscriber, .failure(failure), now)
        }
        startWaiting(now)
    }

    /// Everything is cancelled; what comes now goes by these limits, to other servers perhaps, which are trusted otherwise.
    package mutating func reconfigure(_ limits: Limits, _ now: Instant) {
        cancelAll(now)
        self.limits = limits
        failedURLs = FailedURLs()
        memory.setBudget(limits.memoryBudget)
        excuse()
        setMaximumPerHost(limits.maximumPerHost, now)
    }
}
