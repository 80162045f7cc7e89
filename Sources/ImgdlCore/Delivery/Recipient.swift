/// Whom subscriptions speak to, and where: one for all subscriptions of a downloader that agree in it.
package final class Recipient: Sendable {
    package let downloader: Downloader
    let outstanding: Outstanding
    /// Of subscriptions that name no pumped one.
    let executor: any Executor
    /// If that is a pumped one.
    let pumped: PumpedExecutor?
    /// nil: nobody listens.
    let sink: (any EventSink)?
    /// What is posted has been told when `post` returns.
    let tellsAtOnce: Bool

    /// `executor`: nil for the downloader's.
    package init(_ downloader: Downloader, executor: (any Executor)?, sink: (any EventSink)?) {
        self.downloader = downloader
        outstanding = downloader.outstanding
        self.executor = executor ?? downloader.defaultExecutor
        pumped = self.executor as? PumpedExecutor
        self.sink = sink
        tellsAtOnce = sink == nil || self.executor is InlineExecutor
    }

    /// To its executor, where somebody listens.
    func post(_ event: DownloadEvent, of subscription: Subscription) {
        if sink != nil { executor.post(subscription, event) }
    }

    /// Where nobody listens it is over at once.
    func post(_ terminal: consuming Terminal, of subscription: Subscription) {
        if sink == nil { subscription.deliver(terminal) } else { executor.post(subscription, terminal) }
    }

    /// Tells what is told last, and does what follows from it, on the executor's thread. Says whether a callback ran.
    func end(_ subscription: Subscription, _ terminal: consuming Terminal) -> Bool {
        let result = terminal.result
        var isTold = false
        outstanding.beginTerminal(subscription, result)
        if sink != nil {
            // Looked up twice: one that is kept for both would be counted.
            isTold = sink?.deliver(result, of: subscription) == true
            sink?.close(subscription)
            // A callback has had them: nothing keeps pixels alive behind the caller's back.
            result.letGoOfContent()
        } else {
            result.letGoOfCharges()
        }
        outstanding.complete(subscription, terminal.obligation)
        return isTold
    }
}
