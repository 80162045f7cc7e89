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
        add { $0.add(subscription, event) }
    }

    package func post(_ subscription: Subscription, _ terminal: consuming Terminal) {
        // A closure uses up what it may take out, and nothing else.
        var owed: Terminal? = terminal
        add { queue in
            guard let terminal = owed.take() else { return nil }
            return queue.add(subscription, terminal)
        }
    }

    /// `add` gives what is displaced, which ends outside the lock.
    private func add(_ add: (inout DeliveryQueue) -> DecodedImage?) {
        let displaced = lock.withLock {
            defer { changed.signal() }
            return add(&queue)
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
            guard let taken = next ?? waitForNext() else { return }
            _ = taken.deliver(&delivered)
        }
    }

    private func takeNext(after delivered: Subscription?) -> DeliveryQueue.Taken? {
        lock.withLock {
            if let delivered { queue.returnTaken(delivered) }
            return queue.take()
        }
    }

    /// nil at the end.
    private func waitForNext() -> DeliveryQueue.Taken? {
        lock.withLock { () -> DeliveryQueue.Taken? in
            while true {
                if let next = queue.take() { return next }
                if isClosing { return nil }
                changed.wait()
            }
        }
    }
}
