/// What others may know of its work (features B24, N1–N4, I40).
extension Downloader {
    /// nil takes it out. The one before is closed on the engine's thread, or, after the downloader's end, this one here.
    package func setObserver(_ observer: (any TransferObserver)?) {
        if !mailbox.post(.setObserver(observer)) { observer?.close() }
    }

    /// So far; nil while it waits.
    package func metrics(of subscription: Subscription) -> Metrics? {
        outstanding.metrics(of: subscription, clock.now())
    }
}
