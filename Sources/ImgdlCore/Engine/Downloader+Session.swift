/// What a downloader goes by can change while it lives (features C1, M4, M5, M9, O4).
extension Downloader {
    package func setMaximumConcurrent(_ maximum: Int) {
        change { settings in
            settings.limits.maximumConcurrent = maximum
            return .setMaximumConcurrent(maximum)
        }
    }

    /// 0: no limit but the total.
    package func setMaximumPerHost(_ maximum: Int) {
        change { settings in
            settings.limits.maximumPerHost = maximum
            return .setMaximumPerHost(maximum)
        }
    }

    package func setOrder(_ order: ExecutionOrder) {
        change { settings in
            settings.limits.order = order
            return .setOrder(order)
        }
    }

    package func setSuspended(_ suspended: Bool) {
        change { settings in
            settings.isSuspended = suspended
            return .setSuspended(suspended)
        }
    }

    package var maximumConcurrent: Int { settings.limits.maximumConcurrent }
    package var maximumPerHost: Int { settings.limits.maximumPerHost }
    package var isSuspended: Bool { settings.isSuspended }

    /// Milliseconds of grace; nil: without end.
    package func enterBackground(grace: Int64?) { mailbox.enterBackground(grace: grace) }
    package func enterForeground() { mailbox.post(.enterForeground) }

    /// Connections that are open now serve what runs on them, and nothing else. Threads: any.
    package func networkChanged() { mailbox.networkChanged() }

    /// Takes no more requests until `reconfigure`. `cancels`: what there is is cancelled; else what runs runs to its
    /// end, and what waits ends with `invalidOperation`. Threads: any.
    package func invalidate(cancels: Bool) {
        if cancels { cancelBatches() } else { endWaitingBatches(Mailbox.isInvalidated) }
        // One that is shut down takes none in any case, and has what it lets run to its end.
        if !mailbox.invalidate(cancelling: cancels), cancels { mailbox.post(.cancelAll) }
    }

    /// Cancels everything, closes the connections and goes on with this; threads, executor and header fields stay.
    /// Threads: any. Throws what making a transport throws, and `shutDown`; nothing has changed then.
    package func reconfigure(_ configuration: DownloaderConfiguration) throws(Failure) {
        try replaceSession(configuration)
    }

    /// Bytes of bodies and pictures at work now, and at most so far.
    package var memoryInUse: Int64 { ledger.inUse }
    package var memoryPeak: Int64 { ledger.peak }
}
