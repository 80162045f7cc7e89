/// Subscriptions with something to deliver, each at most once, in order of their oldest event. Shared by the executors
/// that deliver on a thread of their own; one thread at a time takes from it.
///
/// It is used inside a lock, where nothing of the host's may end: what is taken or displaced goes out to whoever asks.
struct DeliveryQueue: ~Copyable {
    private var ready = Queue<Subscription>()

    var isEmpty: Bool { ready.isEmpty }

    /// The picture that the event takes the place of.
    mutating func add(_ subscription: Subscription, _ event: DownloadEvent) -> DecodedImage? {
        let displaced = subscription.pending.add(event)
        schedule(subscription)
        return displaced
    }

    /// The end is the queue's from now on. It lies in its subscription, which stands in line, or is to be returned.
    mutating func add(_ subscription: Subscription, _ terminal: consuming Terminal) -> DecodedImage? {
        let displaced = subscription.pending.add(terminal)
        schedule(subscription)
        return displaced
    }

    /// The next event, or the terminal, to be delivered.
    enum Taken: ~Copyable {
        /// `returnTaken` must follow when it has been delivered.
        case event(Subscription, DownloadEvent)
        /// The end is with whoever has taken it.
        case terminal(Subscription, Terminal)

        /// Says whether a callback ran. Whoever is to be returned is `delivered` from now on.
        consuming func deliver(_ delivered: inout Subscription?) -> Bool {
            switch consume self {
            case .event(let subscription, let event):
                delivered = subscription
                return subscription.deliver(event)
            case .terminal(let subscription, let terminal):
                delivered = nil
                return subscription.deliver(terminal)
            }
        }
    }

    mutating func take() -> Taken? {
        guard let subscription = ready.popFirst() else { return nil }
        switch subscription.pending.takeFirst() {
        // It stays scheduled meanwhile: events that come now only wait with it.
        case .event(let event): return .event(subscription, event)
        // Nothing comes after it.
        case .terminal(let terminal): return .terminal(subscription, terminal)
        case nil: preconditionFailure("who stands in line has something to deliver")
        }
    }

    /// Behind the others, if more has to be delivered.
    mutating func returnTaken(_ subscription: Subscription) {
        subscription.isScheduled = false
        if !subscription.pending.isEmpty { schedule(subscription) }
    }

    /// Everyone who waits, and what for.
    struct Waiting: ~Copyable {
        let subscription: Subscription
        let pending: PendingEvents
    }

    /// Empty afterwards.
    mutating func takeAll() -> Queue<Waiting> {
        var all = Queue<Waiting>()
        while let subscription = ready.popFirst() {
            subscription.isScheduled = false
            var pending = PendingEvents.nothing
            swap(&pending, &subscription.pending)
            all.append(Waiting(subscription: subscription, pending: pending))
        }
        return all
    }

    private mutating func schedule(_ subscription: Subscription) {
        guard !subscription.isScheduled else { return }
        subscription.isScheduled = true
        ready.append(subscription)
    }
}
