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

    /// Accepts one that was held, and takes it: there must be one. Throws `shutDown`, `invalidOperation`, and leaves it then.
    func accept(_ held: inout RequestEnd?) throws(Failure) {
        try mailbox.submit {
            guard let end = held.take() else { preconditionFailure("nothing is held") }
            outstanding.accept(held: end)
            statistics.submit()
            return end
        }
    }

    /// Ends some that were never accepted, on the engine's thread as long as there is one.
    func end(_ held: consuming Queue<RequestEnd>, _ failure: Failure?) {
        if held.isEmpty { return }
        let requests = UnsubmittedRequests(held, failure)
        if !mailbox.end(requests) { requests.end(statistics) }
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
