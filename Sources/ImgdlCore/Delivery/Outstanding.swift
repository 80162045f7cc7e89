/// The accepted downloads of one downloader that are not over: for counts and for those who wait.
package final class Outstanding: @unchecked Sendable {
    private let lock = Lock()
    private let changed: Condition
    /// Terminal callback not begun.
    private var accepted = 0
    /// Terminal callback not returned.
    private var live = 0
    /// For the last one, and for some one; those who wait are woken only when it may be over.
    private var idleWaiters = 0
    private var singleWaiters = 0
    /// Live ones on each pumped executor.
    private var pumped: [ObjectIdentifier: (executor: PumpedExecutor, count: Int)] = [:]

    package init() { changed = Condition(lock) }

    package var count: Int { lock.withLock { accepted } }

    func accept(_ subscription: Subscription) {
        lock.withLock {
            accepted += 1
            subscription.isAccepted = true
            if !subscription.isHeld { enter(subscription) }
        }
    }

    /// One that will be accepted later, or end without: it counts for those who wait.
    func hold(_ subscription: Subscription) {
        lock.withLock {
            subscription.isHeld = true
            enter(subscription)
        }
    }

    private func enter(_ subscription: Subscription) {
        live += 1
        if subscription.hasSink, let executor = subscription.pumped {
            pumped[ObjectIdentifier(executor), default: (executor, 0)].count += 1
        }
    }

    /// `metrics`: what the terminal tells, and whoever asks from now on.
    func beginTerminal(_ subscription: Subscription, _ metrics: Metrics) {
        lock.withLock {
            subscription.conclusion = Conclusion(metrics)
            if subscription.isAccepted { accepted -= 1 }
        }
    }

    func attach(_ measurement: TransferMeasurement?, isShared: Bool, to subscription: Subscription) {
        lock.withLock {
            subscription.measurement = measurement
            subscription.isShared = isShared
        }
    }

    /// nil while it is not known to the engine.
    func metrics(of subscription: Subscription, _ now: Instant) -> Metrics? {
        let (final, measurement, isShared) = lock.withLock {
            (subscription.conclusion?.metrics, subscription.measurement, subscription.isShared)
        }
        if let final { return final }
        guard let measurement, measurement.hasStarted else { return nil }
        return measurement.metrics(
            submitted: subscription.submitted, isShared: isShared, decode: subscription.options.decode, now)
    }

    func complete(_ subscription: Subscription, _ result: DownloadResult) {
        lock.withLock {
            subscription.conclusion?.result = result
            live -= 1
            if subscription.hasSink, let executor = subscription.pumped {
                let key = ObjectIdentifier(executor)
                pumped[key]?.count -= 1
                if pumped[key]?.count == 0 { pumped[key] = nil }
            }
            if idleWaiters > 0 && live == 0 || singleWaiters > 0 { changed.broadcast() }
        }
    }

    package func result(of subscription: Subscription) -> DownloadResult? {
        lock.withLock { subscription.conclusion?.result }
    }

    /// Until the terminal callback of this one has returned. Throws `wouldDeadlock`, `waitTimeout`.
    package func wait(for subscription: Subscription, until deadline: Instant?) throws(Failure) {
        let isOwn = { subscription.hasSink && subscription.pumped?.isOwnedByCurrentThread == true }
        try wait(until: deadline, \.singleWaiters, deadlock: isOwn) {
            subscription.conclusion?.result != nil
        }
    }

    /// Until there is none. Throws `wouldDeadlock`, `waitTimeout`.
    package func waitUntilNone(until deadline: Instant?) throws(Failure) {
        let isOwn = { self.pumped.values.contains { $0.executor.isOwnedByCurrentThread } }
        try wait(until: deadline, \.idleWaiters, deadlock: isOwn) { live == 0 }
    }

    /// Whether waiting for all of them on the calling thread would wait for that thread.
    var wouldDeadlock: Bool { lock.withLock { pumped.values.contains { $0.executor.isOwnedByCurrentThread } } }

    /// For the thread that ends a downloader, which nothing else waits on.
    func waitUntilNoneFromReaper() {
        lock.withLock {
            idleWaiters += 1
            while live > 0 { changed.wait() }
            idleWaiters -= 1
        }
    }

    private func wait(
        until deadline: Instant?, _ waiters: ReferenceWritableKeyPath<Outstanding, Int>, deadlock: () -> Bool,
        _ isOver: () -> Bool
    ) throws(Failure) {
        let outcome: ErrorCode = lock.withLock {
            if isOver() { return .ok }
            if Thread.isLibraryThread || deadlock() { return .wouldDeadlock }
            self[keyPath: waiters] += 1
            defer { self[keyPath: waiters] -= 1 }
            while !isOver() {
                if let deadline {
                    if !changed.wait(until: deadline), !isOver() { return .waitTimeout }
                } else {
                    changed.wait()
                }
            }
            return .ok
        }
        switch outcome {
        case .ok: return
        case .wouldDeadlock: throw Failure(.wouldDeadlock, "waiting here would wait for this very thread")
        default: throw Failure(.waitTimeout, "the time given is over")
        }
    }
}
