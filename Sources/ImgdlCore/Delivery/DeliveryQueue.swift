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

    /// The next event; `returnTaken` must follow when it has been delivered.
    mutating func take() -> (Subscription, DownloadEvent)? {
        guard let subscription = ready.popFirst() else { return nil }
        guard let event = subscription.pending.takeFirst() else {
            preconditionFailure("who stands in line has something to deliver")
        }
        // It stays scheduled meanwhile: events that come now only wait with it.
        return (subscription, event)
    }

    /// Behind the others, if more has to be delivered.
    mutating func returnTaken(_ subscription: Subscription) {
        subscription.isScheduled = false
        if !subscription.pending.isEmpty { schedule(subscription) }
    }

    /// Everyone who waits, and what for; empty afterwards.
    mutating func takeAll() -> [(Subscription, PendingEvents)] {
        var all: [(Subscription, PendingEvents)] = []
        while let subscription = ready.popFirst() {
            subscription.isScheduled = false
            all.append((subscription, subscription.pending))
            subscription.pending = .nothing
        }
        return all
    }

    private mutating func schedule(_ subscription: Subscription) {
        guard !subscription.isScheduled else { return }
        subscription.isScheduled = true
        ready.append(subscription)
    }
}
