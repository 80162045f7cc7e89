/// One request of a batch, read and checked.
package struct BatchRequest {
    package var url: ParsedURL
    package var template: RequestTemplate
    package var pumped: PumpedExecutor?
    package var userData: UnsafeMutableRawPointer?

    package init(
        url: ParsedURL, _ template: RequestTemplate, pumped: PumpedExecutor?, userData: UnsafeMutableRawPointer?
    ) {
        self.url = url
        self.template = template
        self.pumped = pumped
        self.userData = userData
    }
}

/// Whoever is told how far a batch is; the C face implements it over a callback.
package protocol BatchSink: AnyObject, Sendable {
    /// Says whether a callback ran. Never called twice at the same time. No lock is held.
    func deliver(_ progress: BatchProgress) -> Bool
    /// Nothing will be delivered any more. Once.
    func close()
}

/// Many requests with one progress: it has few of them accepted at a time and holds the others (features F1–F6, R09).
/// The downloader holds it until its last request has ended. Threads: any.
///
/// All its requests count for those who wait for the downloader, begun or not.
package final class Batch: @unchecked Sendable {
    package let downloader: Downloader
    private let lock = Lock()
    private var rules: BatchRules
    /// Requests that have begun; nil once one has ended.
    private var begun: [Subscription?] = []
    /// Of those that have not.
    private var held = Queue<RequestEnd>()
    private var isBeginning = false
    /// In place of their own, of those that have not begun.
    private var priority: Priority?
    private let announcement: Subscription
    /// Until the last step.
    private var announcementEnd: RequestEnd?
    private let announcer: Announcer
    /// Steps that its executor does not have yet.
    private var steps = Queue<BatchProgress>()
    private var isAnnouncing = false

    init(
        _ downloader: Downloader, _ subscriptions: [Subscription], width: Int, executor: any Executor,
        sink: any BatchSink
    ) {
        self.downloader = downloader
        rules = BatchRules(count: subscriptions.count, width: width)
        announcer = Announcer(sink)
        announcement = Subscription(
            announcingTo: Recipient(downloader, executor: executor, sink: announcer))
        announcementEnd = downloader.outstanding.hold(announcement)
        for (index, subscription) in subscriptions.enumerated() {
            subscription.extras.whenComplete = { [unowned self] code in ended(index, code) }
            held.append(downloader.outstanding.hold(subscription))
        }
    }

    package var progress: BatchProgress { lock.withLock { rules.progress } }

    /// Once, when the downloader holds it.
    func start() {
        guard progress.total == 0 else { return beginNext() }
        var announced = Queue<RequestEnd>()
        if let end = announcementEnd.take() { announced.append(end) }
        downloader.end(announced, nil)
        downloader.forget(self)
    }

    /// All that have not ended.
    package func cancel() {
        let waiting = lock.withLock { () -> Queue<RequestEnd> in
            for case let subscription? in begun { downloader.cancel(subscription) }
            return takeWaiting()
        }
        downloader.end(waiting, Self.cancelled)
    }

    /// Those that have not begun.
    func endWaiting(_ failure: Failure) { downloader.end(lock.withLock { takeWaiting() }, failure) }

    package func setPaused(_ paused: Bool) {
        lock.withLock { rules.setPaused(paused) }
        beginNext()
    }

    package func setPriority(_ priority: Priority) {
        lock.withLock {
            for case let subscription? in begun { downloader.setPriority(subscription, priority) }
            self.priority = priority
        }
    }

    /// None the second time. Inside the lock.
    private func takeWaiting() -> Queue<RequestEnd> {
        var waiting = Queue<RequestEnd>()
        if rules.cancelWaiting() { swap(&held, &waiting) }
        return waiting
    }

    static var cancelled: Failure { Failure(.cancelled, "cancelled before it was begun") }

    /// One at a time does this: a request that is refused ends at once, and so begins the next.
    private func beginNext() {
        guard
            lock.withLock({ () -> Bool in
                if isBeginning { return false }
                isBeginning = true
                return true
            })
        else { return }
        while true {
            var refused = Queue<RequestEnd>()
            let outcome = lock.withLock { beginOne(&refused) }
            switch outcome {
            case .none: return
            case .begun: break
            case .refused(let failure): downloader.end(refused, failure)
            }
        }
    }

    private enum Beginning {
        /// There is none that may begin.
        case none
        case begun
        case refused(Failure)
    }

    /// Under the lock, so that a cancel or a priority comes after it in the mailbox.
    private func beginOne(_ refused: inout Queue<RequestEnd>) -> Beginning {
        guard rules.begin(), let end = held.popFirst() else {
            isBeginning = false
            return .none
        }
        let subscription = end.subscription
        begun.append(subscription)
        var owed: RequestEnd? = end
        do throws(Failure) {
            try downloader.accept(&owed)
        } catch {
            if let end = owed.take() { refused.append(end) }
            return .refused(error)
        }
        if let priority, priority != subscription.options.priority { downloader.setPriority(subscription, priority) }
        return .begun
    }

    /// Its callback has returned.
    private func ended(_ index: Int, _ code: ErrorCode) {
        let isFinished = lock.withLock { () -> Bool in
            if index < begun.count { begun[index] = nil }
            rules.ended(index, code)
            steps.append(rules.progress)
            return rules.progress.isFinished
        }
        announce()
        if !isFinished { beginNext() }
    }

    /// One thread at a time does this: the executor has the steps in order, and inline none begins inside another.
    private func announce() {
        guard
            lock.withLock({ () -> Bool in
                if isAnnouncing { return false }
                isAnnouncing = true
                return true
            })
        else { return }
        while let step = takeStep() {
            if step.isFinished {
                announcer.last = step
                lock.withLock { announcementEnd.take() }?.post(nil)
                downloader.forget(self)
            } else {
                announcement.post(.step(step))
            }
        }
    }

    private func takeStep() -> BatchProgress? {
        lock.withLock {
            let step = steps.popFirst()
            isAnnouncing = step != nil
            return step
        }
    }
}

/// Tells a batch's sink what comes to its executor.
private final class Announcer: EventSink, @unchecked Sendable {
    private let sink: any BatchSink
    /// Progress that is told with the end. Set before that is posted.
    var last = BatchProgress(total: 0)

    init(_ sink: any BatchSink) { self.sink = sink }

    func deliver(_ event: DownloadEvent, of subscription: Subscription) -> Bool {
        guard case .step(let step) = event else { preconditionFailure("a batch announces steps and its end alone") }
        return sink.deliver(step)
    }

    func deliver(_ terminal: DownloadResult, of subscription: Subscription) -> Bool { sink.deliver(last) }

    func close(_ subscription: Subscription) { sink.close() }
}
