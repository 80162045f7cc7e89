/// On the thread that made the event, like `InlineExecutor`, but for events that several threads make: one of them
/// delivers also what the others bring meanwhile.
final class SerialExecutor: Executor, @unchecked Sendable {
    private let lock = Lock()
    private var queue = DeliveryQueue()
    private var isDelivering = false

    func post(_ subscription: Subscription, _ event: DownloadEvent) {
        let (isMine, displaced) = lock.withLock { () -> (Bool, DecodedImage?) in
            let displaced = queue.add(subscription, event)
            if isDelivering { return (false, displaced) }
            isDelivering = true
            return (true, displaced)
        }
        withExtendedLifetime(displaced) {}
        guard isMine else { return }
        var delivered: Subscription?
        while let (subscription, event) = takeNext(after: delivered) {
            subscription.deliver(event)
            delivered = subscription
        }
    }

    private func takeNext(after delivered: Subscription?) -> (Subscription, DownloadEvent)? {
        lock.withLock {
            if let delivered { queue.returnTaken(delivered) }
            let next = queue.take()
            if next == nil { isDelivering = false }
            return next
        }
    }
}
