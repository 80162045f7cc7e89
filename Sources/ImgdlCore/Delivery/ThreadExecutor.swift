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
        lock.withLock {
            queue.add(subscription, event)
            changed.signal()
        }
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
        var taken: (Subscription, DownloadEvent)?
        while true {
            let next: (Subscription, DownloadEvent)? = lock.withLock {
                if let taken { queue.returnTaken(taken.0) }
                while queue.isEmpty, !isClosing { changed.wait() }
                return queue.take()
            }
            taken = next
            guard let next else {
                if lock.withLock({ isClosing && queue.isEmpty }) { return }
                continue
            }
            next.0.deliver(next.1)
        }
    }
}
