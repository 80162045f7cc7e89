/// A thread of the library for callbacks alone: the default of a downloader.
package final class ThreadExecutor: Executor, @unchecked Sendable {
    private let lock = Lock()
    private let changed: Condition
    private var queue = DeliveryQueue()
    private var isClosing = false
    private var thread: Thread?

    package init() throws(Failure) {
        changed = Condition(lock)
        thread = try Thread.start(name: "imgdl-delivery") { [unowned self] in run() }
    }

    package func post(_ subscription: Subscription, _ event: DownloadEvent) {
        let displaced = lock.withLock {
            defer { changed.signal() }
            return queue.add(subscription, event)
        }
        withExtendedLifetime(displaced) {}
    }

    /// Delivers what is left and ends the thread. Not on that thread.
    func close() {
        lock.withLock {
            isClosing = true
            changed.signal()
        }
        thread?.join()
        thread = nil
    }

    private func run() {
        var delivered: Subscription?
        while true {
            let next = takeNext(after: delivered)
            // Nothing delivered before is held while the thread sleeps: it may have a picture in it.
            delivered = nil
            guard let (subscription, event) = next ?? waitForNext() else { return }
            subscription.deliver(event)
            delivered = subscription
        }
    }

    private func takeNext(after delivered: Subscription?) -> (Subscription, DownloadEvent)? {
        lock.withLock {
            if let delivered { queue.returnTaken(delivered) }
            return queue.take()
        }
    }

    /// nil at the end.
    private func waitForNext() -> (Subscription, DownloadEvent)? {
        lock.withLock {
            while true {
                if let next = queue.take() { return next }
                if isClosing { return nil }
                changed.wait()
            }
        }
    }
}
