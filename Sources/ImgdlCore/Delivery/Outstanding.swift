import Synchronization

/// The accepted downloads of one downloader that are not over: for counts and for those who wait.
///
/// Counted without the lock, since most of them nobody waits for. A waiter first says that it waits and then looks
/// whether it is over; an end first counts and then looks whether somebody waits: one of the two sees the other.
package final class Outstanding: @unchecked Sendable {
    /// Terminal callback not begun.
    private let accepted = Atomic<Int>(0)
    /// Terminal callback not returned.
    private let live = Atomic<Int>(0)
    /// Threads that wait for the last one.
    private let idleWaiters = Atomic<Int>(0)
    /// The process exits: what is not over will not be.
    private let isAbandoned = Atomic<Bool>(false)
    private let lock = Lock()
    private let idle: Condition
    /// What threads wait for, each for one subscription.
    private var awaited: [ObjectIdentifier: Awaited] = [:]
    /// Live ones and those that are held, on each pumped executor; of those there are few.
    private var pumped: [(executor: PumpedExecutor, count: Int)] = []
    /// How often one was accepted for a pumped executor: who waits may be the one who dispatches that.
    private var pumpedEntries: UInt64 = 0

    /// One subscription whose end threads wait for.
    private final class Awaited {
        let ended: Condition
        var waiters = 0

        init(_ lock: Lock) { ended = Condition(lock) }
    }

    package init() { idle = Condition(lock) }

    package var count: Int { accepted.load(ordering: .relaxed) }

    func accept(_ subscription: Subscription) -> RequestEnd {
        accepted.add(1, ordering: .relaxed)
        subscription.isAccepted = true
        return enter(subscription)
    }

    /// One that will be accepted later, or end without: it counts for those who wait.
    func hold(_ subscription: Subscription) -> RequestEnd { enter(subscription) }

    func accept(held end: borrowing RequestEnd) {
        accepted.add(1, ordering: .relaxed)
        end.subscription.isAccepted = true
    }

    /// It is owed its end from now on.
    private func enter(_ subscription: Subscription) -> RequestEnd {
        assert(subscription.markOwed(), "a request is owed two ends")
        count(subscription)
        return RequestEnd(subscription, Obligation())
    }

    private func count(_ subscription: Subscription) {
        live.add(1, ordering: .sequentiallyConsistent)
        guard let executor = subscription.pumped else { return }
        lock.withLock {
            if let known = pumped.firstIndex(where: { $0.executor === executor }) {
                pumped[known].count += 1
            } else {
                pumped.append((executor, 1))
            }
            pumpedEntries &+= 1
            idle.broadcast()
        }
    }

    /// What the terminal tells, whoever asks hears from now on.
    func beginTerminal(_ subscription: Subscription, _ result: DownloadResult) {
        subscription.tell(result)
        if subscription.isAccepted { accepted.subtract(1, ordering: .relaxed) }
    }

    /// nil while it is not known to the engine.
    func metrics(of subscription: Subscription, _ now: Instant) -> Metrics? {
        if let told = subscription.told { return told.metrics }
        let metrics = subscription.withMeasurement {
            $0.metrics(
                submitted: subscription.submitted, isShared: subscription.isShared,
                decode: subscription.options.decode, now)
        }
        return metrics ?? nil
    }

    /// The end has been told, or discarded: nothing of it is owed any more.
    func complete(_ subscription: Subscription, _ obligation: consuming Obligation) {
        obligation.fulfil()
        if subscription.markComplete() {
            lock.withLock { awaited[ObjectIdentifier(subscription)]?.ended.broadcast() }
        }
        if let executor = subscription.pumped {
            lock.withLock {
                guard let known = pumped.firstIndex(where: { $0.executor === executor }) else { return }
                pumped[known].count -= 1
                if pumped[known].count == 0 { pumped.remove(at: known) }
            }
        }
        if live.subtract(1, ordering: .sequentiallyConsistent).newValue == 0,
            idleWaiters.load(ordering: .sequentiallyConsistent) > 0
        {
            lock.withLock { idle.broadcast() }
        }
    }

    package func result(of subscription: Subscription) -> DownloadResult? {
        subscription.isComplete ? subscription.told : nil
    }

    /// Until the terminal callback of this one has returned. Throws `waitTimeout`, and `shutDown` when the process exits, also
    /// where waiting would otherwise throw `wouldDeadlock`.
    package func wait(for subscription: Subscription, until deadline: Instant?) throws(Failure) {
        if subscription.isComplete { return }
        if areAbandoned { throw .processExits }
        if wouldDeadlock(waitingFor: subscription) { throw Self.wouldWaitForItself }
        let isOver = lock.withLock { () -> Bool in
            let key = ObjectIdentifier(subscription)
            let awaited = awaited[key] ?? Awaited(lock)
            self.awaited[key] = awaited
            awaited.waiters += 1
            defer {
                awaited.waiters -= 1
                if awaited.waiters == 0 { self.awaited[key] = nil }
            }
            subscription.markAwaited()
            return awaited.ended.wait(until: deadline) { subscription.isComplete || areAbandoned }
        }
        if !isOver { throw Self.timeIsOver }
        if !subscription.isComplete { throw .processExits }
    }

    /// Until there is none. Throws as `wait`.
    package func waitUntilNone(until deadline: Instant?) throws(Failure) {
        while !isNone {
            if areAbandoned { throw .processExits }
            let entries = lock.withLock { pumpedEntries }
            if wouldDeadlock { throw Self.wouldWaitForItself }
            switch waitForNone(until: deadline, orEntriesAfter: entries) {
            case .idle: return
            case .abandoned: continue
            case .entries:
                // They come faster than this looks, perhaps.
                if let deadline, MonotonicClock().now() >= deadline { throw Self.timeIsOver }
            case .deadline: throw Self.timeIsOver
            }
        }
    }

    /// Whether waiting for all of them on the calling thread would wait for that thread: one of the library's, one inside a
    /// callback or a destructor of one of them, or one that has to run their callbacks.
    var wouldDeadlock: Bool {
        if Thread.isLibraryThread { return true }
        let isOccupied = Occupation.includes { matter in
            switch matter {
            case .delivery(let subscription): subscription._withUnsafeGuaranteedRef { $0.outstanding === self }
            case .pumping: false
            }
        }
        if isOccupied { return true }
        let executors = lock.withLock { pumped.map(\.executor) }
        return executors.contains { $0.waitsForCurrentThread }
    }

    private func wouldDeadlock(waitingFor subscription: Subscription) -> Bool {
        if Thread.isLibraryThread || subscription.pumped?.waitsForCurrentThread == true { return true }
        return Occupation.includes { matter in
            if case .delivery(let other) = matter {
                other.toOpaque() == Unmanaged.passUnretained(subscription).toOpaque()
            } else {
                false
            }
        }
    }

    /// For the thread that ends a downloader, when nothing else waits for it. False when the process exits first.
    func waitUntilNoneAtTheEnd() -> Bool {
        waitForNone(until: nil) == .idle
    }

    /// The process exits: all who wait are told.
    func abandon() {
        isAbandoned.store(true, ordering: .sequentiallyConsistent)
        lock.withLock {
            idle.broadcast()
            for awaited in awaited.values { awaited.ended.broadcast() }
        }
    }

    var areAbandoned: Bool { isAbandoned.load(ordering: .sequentiallyConsistent) }

    private var isNone: Bool { live.load(ordering: .sequentiallyConsistent) == 0 }

    private enum Awakening {
        case idle
        case abandoned
        /// More were accepted for pumped executors.
        case entries
        case deadline
    }

    /// nil entries: however many there are.
    private func waitForNone(until deadline: Instant?, orEntriesAfter entries: UInt64? = nil) -> Awakening {
        lock.withLock {
            idleWaiters.add(1, ordering: .sequentiallyConsistent)
            defer { idleWaiters.subtract(1, ordering: .sequentiallyConsistent) }
            var awakening = Awakening.deadline
            _ = idle.wait(until: deadline) {
                // Looked at once: what is told is what ended the wait, whatever comes after.
                if isNone {
                    awakening = .idle
                } else if areAbandoned {
                    awakening = .abandoned
                } else if let entries, entries != pumpedEntries {
                    awakening = .entries
                } else {
                    return false
                }
                return true
            }
            return awakening
        }
    }

    private static var wouldWaitForItself: Failure {
        Failure(.wouldDeadlock, "no wait on this thread: it is the library's, or runs what would be waited for")
    }

    private static var timeIsOver: Failure { Failure(.waitTimeout, "the time given is over") }
}

/// The duty to end a request, from `accept` or `hold` until `complete`, which alone make it and use it up: to lose it is a trap in
/// debug builds. It has no size.
struct Obligation: ~Copyable {
    fileprivate init() {}

    #if DEBUG
        deinit { Self.trap() }

        /// A function that returns, as far as the compiler knows: more follows where a value ends.
        @inline(never) private static func trap() { preconditionFailure("a request was let go of without its end") }

        fileprivate consuming func fulfil() { discard self }
    #else
        fileprivate consuming func fulfil() {}
    #endif
}

extension Condition {
    /// False when the deadline has passed before `isOver`; nil: without limit.
    fileprivate func wait(until deadline: Instant?, _ isOver: () -> Bool) -> Bool {
        while !isOver() {
            if let deadline {
                if !wait(until: deadline) { return isOver() }
            } else {
                wait()
            }
        }
        return true
    }
}
