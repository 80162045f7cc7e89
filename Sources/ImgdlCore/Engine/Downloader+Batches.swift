/// Many requests with one progress (features F1–F6).
extension Downloader {
    /// Accepts a batch; `willHold` gets its requests, and `willStart` itself, before anything of it is told.
    /// `willHold` and `willStart` run inside a lock. `executor`: of its progress; nil: the downloader's. Throws `shutDown`,
    /// `invalidOperation`.
    package func prefetch(
        _ requests: [BatchRequest], width: Int, executor: (any Executor)?, sink: any BatchSink,
        willHold: (Subscription) -> Void, willStart: (Batch) -> Void
    ) throws(Failure) {
        try mailbox.checkIsOpen()
        let now = clock.now()
        let subscriptions = requests.map { request in
            Subscription(
                id: Self.lastID.wrappingAdd(1, ordering: .relaxed).newValue, url: request.url, request.template,
                on: request.pumped, userData: request.userData, submitted: now)
        }
        let batch = lock.withLock { () -> Batch? in
            guard acceptsBatches, !outstanding.areAbandoned else { return nil }
            let batch = Batch(
                self, subscriptions, width: width, executor: executor ?? defaultExecutor, sink: sink)
            for subscription in subscriptions { willHold(subscription) }
            willStart(batch)
            batches[ObjectIdentifier(batch)] = batch
            return batch
        }
        guard let batch else {
            throw outstanding.areAbandoned ? .processExits : Failure(.shutDown, "the downloader is shut down")
        }
        batch.start()
    }

    /// Accepts one that was held. Throws `shutDown`, `invalidOperation`.
    func accept(_ held: Subscription) throws(Failure) {
        try mailbox.submit(held) {
            outstanding.accept(held)
            statistics.submit()
        }
    }

    /// Ends some that were never accepted, on the engine's thread as long as there is one.
    func end(_ subscriptions: [Subscription], _ failure: Failure?) {
        guard !subscriptions.isEmpty, !mailbox.post(.end(subscriptions, failure)) else { return }
        for subscription in subscriptions {
            statistics.drop(subscription, failure)
            subscription.end(failure)
        }
    }

    func forget(_ batch: Batch) { lock.withLock { batches[ObjectIdentifier(batch)] = nil } }

    func cancelBatches() {
        for batch in lock.withLock({ Array(batches.values) }) { batch.cancel() }
    }

    /// Requests that batches have not begun are not begun any more, and end so.
    func endWaitingBatches(_ failure: Failure) {
        for batch in lock.withLock({ Array(batches.values) }) { batch.endWaiting(failure) }
    }

    /// The downloader ends: what a batch has not begun is not begun any more.
    func closeBatches() {
        let open = lock.withLock { () -> [Batch] in
            acceptsBatches = false
            return Array(batches.values)
        }
        for batch in open { batch.endWaiting(Batch.cancelled) }
    }
}
