/// Subscriptions with something to deliver, each at most once, in order of their oldest event. Shared by the executors
/// that deliver on a thread of their own; one thread at a time takes from it.
///
/// What ends here ends inside a lock: whoever takes holds what it has taken until it is outside.
struct DeliveryQueue: ~Copyable {
    private var ready = Queue<Subscription>()

    var isEmpty: Bool { ready.isEmpty }

    mutating func add(_ subscription: Subscription, _ event: DownloadEvent) {
        subscription.pending.add(event)
        schedule(subscription)
    }

    /// The next event; `returnTaken` must follow when it has been delivered.
    mutating func take() -> (Subscription, DownloadEvent)? {
        while let subscription = ready.popFirst() {
            // It stays scheduled meanwhile: events that come now only wait with it.
            if let event = subscription.pending.takeFirst() { return (subscription, event) }
            subscription.isScheduled = false
        }
        return nil
    }

    /// Behind the others, if more has to be delivered.
    mutating func returnTaken(_ subscription: Subscription) {
        subscription.isScheduled = false
        if !subscription.pending.isEmpty { schedule(subscription) }
    }

    /// Everyone who waits; empty afterwards.
    mutating func takeAll() -> [Subscription] {
        var all: [Subscription] = []
        while let subscription = ready.popFirst() {
            subscription.isScheduled = false
            all.append(subscription)
        }
        return all
    }

    private mutating func schedule(_ subscription: Subscription) {
        guard !subscription.isScheduled else { return }
        subscription.isScheduled = true
        ready.append(subscription)
    }
}
