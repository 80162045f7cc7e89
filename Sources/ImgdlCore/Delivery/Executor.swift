/// Where callbacks run. `post` keeps the order of one subscription and never runs two of its callbacks at once.
package protocol Executor: AnyObject, Sendable {
    func post(_ subscription: Subscription, _ event: DownloadEvent)
    /// The last.
    func post(_ subscription: Subscription, _ terminal: consuming Terminal)
}

/// On the thread that made the event: the engine's, which makes them all.
package final class InlineExecutor: Executor {
    package static let shared = InlineExecutor()

    package func post(_ subscription: Subscription, _ event: DownloadEvent) { subscription.deliver(event) }
    package func post(_ subscription: Subscription, _ terminal: consuming Terminal) { subscription.deliver(terminal) }
}
