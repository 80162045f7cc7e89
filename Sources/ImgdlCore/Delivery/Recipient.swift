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

    /// `executor`: nil for the downloader's.
    package init(_ downloader: Downloader, executor: (any Executor)?, sink: (any EventSink)?) {
        self.downloader = downloader
        outstanding = downloader.outstanding
        self.executor = executor ?? downloader.defaultExecutor
        pumped = self.executor as? PumpedExecutor
        self.sink = sink
    }
}
