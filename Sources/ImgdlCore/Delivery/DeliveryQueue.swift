/// Subscriptions with something to deliver, each at most once, in order of their oldest event. Shared by the executors
/// that deliver on a thread of their own; one thread at a time takes from it.
struct DeliveryQueue {
    /// nil: taken. What is held here ends inside a lock, and with it may end what the host has a destructor for.
    private var ready: [Subscription?] = []
    private var head = 0

    var isEmpty: Bool { head == ready.count }

    mutating func add(_ subscription: Subscription, _ event: DownloadEvent) {
        let pending = subscription.pending ?? PendingEvents()
        subscription.pending = pending
        pending.add(event)
        schedule(subscription)
    }

    /// The next event; `returnTaken` must follow when it has been delivered.
    mutating func take() -> (Subscription, DownloadEvent)? {
        while head < ready.count {
            let subscription = ready[head].take()!
            head += 1
            if head == ready.count {
                ready.removeAll(keepingCapacity: ready.capacity <= 1024)
                head = 0
            } else if head >= 64, head * 2 >= ready.count {
                ready.removeFirst(head)
                head = 0
            }
            // It stays scheduled meanwhile: events that come now only wait with it.
            if let event = subscription.pending?.takeFirst() { return (subscription, event) }
            subscription.isScheduled = false
        }
        return nil
    }

    /// Behind the others, if more has to be delivered.
    mutating func returnTaken(_ subscription: Subscription) {
        subscription.isScheduled = false
        if subscription.pending?.isEmpty == false { schedule(subscription) }
    }

    /// Everyone who waits; empty afterwards.
    mutating func takeAll() -> [Subscription] {
        let all = ready[head...].compactMap { $0 }
        ready = []
        head = 0
        for subscription in all { subscription.isScheduled = false }
        return all
    }

    private mutating func schedule(_ subscription: Subscription) {
        guard !subscription.isScheduled else { return }
        subscription.isScheduled = true
        ready.append(subscription)
    }
}
