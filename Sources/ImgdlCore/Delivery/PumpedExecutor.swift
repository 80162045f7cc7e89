import CSystem
import Glibc
import Synchronization

/// A thread of the host: it watches `descriptor` and calls `dispatch`.
package final class PumpedExecutor: Executor, @unchecked Sendable {
    /// An eventfd, readable while callbacks wait.
    package let descriptor: Int32
    /// Callbacks in one go where the host names no number: it gets its loop back.
    private static let turn = 1024
    private let lock = Lock()
    private var queue = DeliveryQueue()
    private var isClosed = false
    private var isDispatching = false
    /// The thread that made it or, later, dispatched it last.
    private var owner = system_thread_number()

    package init() throws(Failure) {
        descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard descriptor >= 0 else { throw Failure(.outOfMemory, "no eventfd: \(String(cString: strerror(errno)))") }
    }

    deinit {
        Glibc.close(descriptor)
    }

    /// Waiting for its callbacks would wait for the calling thread: it dispatched the executor last, or made it, and
    /// its host has not let go of it; or it dispatches it or brings it to its end at this moment.
    var waitsForCurrentThread: Bool {
        if lock.withLock({ !isClosed && owner == system_thread_number() }) { return true }
        return Occupation.includes { matter in
            if case .pumping(let executor) = matter {
                executor.toOpaque() == Unmanaged.passUnretained(self).toOpaque()
            } else {
                false
            }
        }
    }

    package func post(_ subscription: Subscription, _ event: DownloadEvent) {
        add(subscription) { $0.add(subscription, event) }
    }

    package func post(_ subscription: Subscription, _ terminal: consuming Terminal) {
        // A closure uses up what it may take out, and nothing else.
        var owed: Terminal? = terminal
        add(subscription) { queue in
            guard let terminal = owed.take() else { return nil }
            return queue.add(subscription, terminal)
        }
        // Nobody will dispatch it.
        if let terminal = owed.take() { subscription.discard(terminal) }
    }

    /// Unless its host has let go of it. `add` gives what is displaced, which ends outside the lock.
    private func add(_ subscription: Subscription, _ add: (inout DeliveryQueue) -> DecodedImage?) {
        let (wakes, displaced) = lock.withLock { () -> (Bool, DecodedImage?) in
            // What a dispatch has in hand is ended by that dispatch, when its callback has returned.
            if isClosed, !subscription.isScheduled { return (false, nil) }
            let wasEmpty = queue.isEmpty
            let displaced = add(&queue)
            return (wasEmpty && !queue.isEmpty, displaced)
        }
        withExtendedLifetime(displaced) {}
        if wakes { signal() }
    }

    /// How many callbacks ran: none when the process exits. Throws `wouldDeadlock` when called inside one of them or on
    /// two threads at once.
    package func dispatch(maximum: Int) throws(Failure) -> Int {
        if HostCode.isOver { return 0 }
        let isMine = lock.withLock { () -> Bool in
            if isDispatching { return false }
            isDispatching = true
            owner = system_thread_number()
            return true
        }
        guard isMine else {
            throw Failure(.wouldDeadlock, "the executor is being dispatched already")
        }
        // Cleared before the events are taken: what comes meanwhile signals anew.
        var value: UInt64 = 0
        _ = read(descriptor, &value, 8)
        let limit = maximum > 0 ? maximum : Self.turn
        var ran = 0
        var delivered: Subscription?
        Occupation.with(.pumping(.passUnretained(self))) {
            // An event that nobody is told takes nobody's place: none has run only where none waited.
            while ran < limit, let taken = takeNext(after: delivered) {
                if taken.deliver(&delivered) { ran += 1 }
            }
        }
        let (isLeft, wasClosed) = lock.withLock { () -> (Bool, Bool) in
            if ran == limit, let delivered { queue.returnTaken(delivered) }
            isDispatching = false
            return (!queue.isEmpty, isClosed)
        }
        // One of the callbacks let go of the executor: what was in its hands then has come back since.
        if wasClosed { dropWaiting() } else if isLeft { signal() }
        return ran
    }

    private func takeNext(after delivered: Subscription?) -> DeliveryQueue.Taken? {
        lock.withLock { () -> DeliveryQueue.Taken? in
            if let delivered { queue.returnTaken(delivered) }
            if isClosed { return nil }
            return queue.take()
        }
    }

    /// Its host has let go of it: nobody will dispatch any more. What waits is dropped, each subscription still ends,
    /// but for the one that a dispatch has in hand: that sees to it.
    package func close() {
        lock.withLock { isClosed = true }
        dropWaiting()
    }

    private func dropWaiting() {
        Occupation.with(.pumping(.passUnretained(self))) {
            var ended = takeEnded()
            while let one = ended.popFirst() { one.discard() }
        }
    }

    /// One whose terminal waited.
    private struct Ended: ~Copyable {
        let subscription: Subscription
        let terminal: Terminal

        /// Nobody is told, and it has ended.
        consuming func discard() { subscription.discard(terminal) }
    }

    /// What waited with their terminals has ended when this returns, and its memory has come back.
    private func takeEnded() -> Queue<Ended> {
        var all = lock.withLock { queue.takeAll() }
        var ended = Queue<Ended>()
        while let waiting = all.popFirst() {
            let subscription = waiting.subscription
            guard let terminal = waiting.pending.onlyTerminal() else { continue }
            terminal.result.letGoOfContent()
            ended.append(Ended(subscription: subscription, terminal: terminal))
        }
        return ended
    }

    private func signal() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }
}
