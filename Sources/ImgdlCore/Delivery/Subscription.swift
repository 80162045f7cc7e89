import Synchronization

/// Whoever subscriptions speak to; the C face implements it over a callback.
package protocol EventSink: AnyObject, Sendable {
    /// Says whether a callback ran. Never called twice at the same time for one subscription. No lock is held.
    @discardableResult
    func deliver(_ event: DownloadEvent, of subscription: Subscription) -> Bool
    /// The terminal, likewise: nothing but `close` follows.
    func deliver(_ terminal: DownloadResult, of subscription: Subscription) -> Bool
    /// Nothing of it will be delivered any more. Once.
    func close(_ subscription: Subscription)
}

/// One accepted download of one caller, from acceptance to the end of its terminal callback: what a token stands for.
///
/// Cancelling is a flag besides a command to the engine: an event that has not been taken for delivery when the flag is
/// set is never delivered, and the terminal turns into `cancelled` (features D14, I4).
///
/// Its end is with whoever has its `RequestEnd`; whoever has the subscription alone may cancel it, ask about it, or tell it what is not
/// its end.
///
/// One block of 128 bytes: a million of them may wait.
package final class Subscription: @unchecked Sendable {
    package let id: UInt64
    /// The engine may put the transfer's in place of an equal one.
    package private(set) var url: ParsedURL
    private let template: RequestTemplate
    /// Where its callbacks run; nil: on the recipient's executor.
    private let ownExecutor: PumpedExecutor?
    /// When it was asked for.
    let submitted: Instant
    /// The sink's alone: what its host calls it by, and has given for its events. Set before it is accepted.
    package let userData: UnsafeMutableRawPointer?
    package var handle: OpaquePointer?
    private let conclusion = OnceReference<DownloadResult>()
    private let measuring = OnceReference<TransferMeasurement>()
    private let rarities = OnceReference<SubscriptionExtras>()
    /// Guarded by the executor's queue.
    var pending = PendingEvents.nothing

    /// The engine's thread alone: in the rules' tables, once they have it.
    var slot = noSlot
    var transferSlot = noSlot
    /// Guarded by the executor's queue.
    var isScheduled = false
    /// `Mark`s; here it takes no room of its own.
    private let state = Atomic<UInt8>(0)
    /// Changed by whoever accepts it, before the engine has it.
    var isAccepted = false

    static let noSlot = UInt32.max

    package init(
        id: UInt64, url: ParsedURL, _ template: RequestTemplate, on pumped: PumpedExecutor?,
        userData: UnsafeMutableRawPointer?, submitted: Instant
    ) {
        self.id = id
        self.url = url
        self.template = template
        ownExecutor = pumped
        self.userData = userData
        self.submitted = submitted
    }

    /// For events that are about no request: it only brings them to an executor. It is owed an end where one is held of it.
    convenience init(announcingTo recipient: Recipient) {
        let nowhere = ParsedURL(canonical: "", scheme: "", host: "", port: 0, user: nil, password: nil)
        let template = RequestTemplate(
            options: Boxed(wrappedValue: SubscriberOptions()), profile: TransferRequest.Profile(), recipient: recipient)
        self.init(
            id: 0, url: nowhere, template, on: nil, userData: nil, submitted: Instant(nanoseconds: 0))
    }

    package var request: TransferRequest { TransferRequest(url: url, template.profile) }
    /// Not changed once it is accepted.
    package var options: SubscriberOptions { template.options.wrappedValue }
    var sharedOptions: Boxed<SubscriberOptions> { template.options }
    package var recipient: Recipient { template.recipient }

    /// Made for who asks.
    package var extras: SubscriptionExtras { rarities.object { SubscriptionExtras() } }

    /// Whether callbacks run at all; without, the terminal is complete as soon as it is known.
    package var hasSink: Bool { recipient.sink != nil }
    private var sink: (any EventSink)? { recipient.sink }
    /// The executor that runs them, where a thread of the host does.
    var pumped: PumpedExecutor? { hasSink ? ownExecutor ?? recipient.pumped : nil }
    var outstanding: Outstanding { recipient.outstanding }
    /// Where its terminal may wait; nil: nowhere.
    var executorIdentity: ObjectIdentifier? {
        isToldAtOnce ? nil : ownExecutor.map { ObjectIdentifier($0) } ?? ObjectIdentifier(recipient.executor)
    }

    // MARK: What every thread may ask

    /// Bits of `state`; none is ever taken back.
    private enum Mark {
        static let cancelled: UInt8 = 1
        /// It joined a transfer that was there.
        static let shared: UInt8 = 2
        /// Somebody has waited for its end.
        static let awaited: UInt8 = 4
        /// Its callback has returned.
        static let complete: UInt8 = 8
        /// In debug builds: there is, or was, an end of it.
        static let owed: UInt8 = 16
    }

    var isCancelled: Bool { has(Mark.cancelled) }
    var isShared: Bool { has(Mark.shared) }
    var isComplete: Bool { has(Mark.complete) }

    func markCancelled() { mark(Mark.cancelled) }
    func markShared() { mark(Mark.shared) }
    func markAwaited() { mark(Mark.awaited) }

    /// Whether somebody may wait for that.
    func markComplete() -> Bool { mark(Mark.complete) & Mark.awaited != 0 }
    /// False the second time.
    func markOwed() -> Bool { mark(Mark.owed) & Mark.owed == 0 }

    private func has(_ mark: UInt8) -> Bool { state.load(ordering: .sequentiallyConsistent) & mark != 0 }

    /// What it was before.
    @discardableResult
    private func mark(_ mark: UInt8) -> UInt8 { state.bitwiseOr(mark, ordering: .sequentiallyConsistent).oldValue }

    /// How it ended, once its terminal is told.
    var told: DownloadResult? { conclusion.object }
    func tell(_ result: DownloadResult) { conclusion.set(result) }

    /// Of its transfer, once that has left the queue.
    func withMeasurement<Result>(_ body: (TransferMeasurement) -> Result) -> Result? { measuring.look(body) }
    func attach(_ measurement: TransferMeasurement) { measuring.set(measurement) }

    // MARK: Delivery

    /// The request's own, or what its URL says (features X10).
    var scaleFactor: Double {
        options.scaleFactor > 0 ? options.scaleFactor : ImgdlCore.scaleFactor(ofURL: url.canonical)
    }

    func share(_ equal: ParsedURL) { url = equal }

    /// Its terminal has been told when `post` returns.
    var isToldAtOnce: Bool { template.tellsAtOnce && (ownExecutor == nil || !hasSink) }

    /// To its executor, where somebody listens.
    func post(_ event: DownloadEvent) {
        if let ownExecutor, hasSink { ownExecutor.post(self, event) } else { template.post(event, of: self) }
    }

    /// To its executor, or, where nobody listens, at once. Of `RequestEnd`.
    func post(_ terminal: consuming Terminal) {
        if let ownExecutor, hasSink { ownExecutor.post(self, terminal) } else { template.post(terminal, of: self) }
    }

    /// For this subscriber: whether it may show secrets in the URL's query, its options say.
    func message(of failure: Failure, redirectedTo target: ParsedURL? = nil) -> String {
        failure.message(about: url, redirectedTo: target, showsWholeURL: options.showsFullURLs)
    }

    /// Runs the callback, and says whether it did: a cancelled one is not told. Called by the executor on its thread,
    /// for one event after the other.
    @discardableResult
    func deliver(_ event: DownloadEvent) -> Bool {
        Occupation.with(.delivery(.passUnretained(self))) {
            !isCancelled && sink?.deliver(event, of: self) == true
        }
    }

    /// The last: of one that has been cancelled meanwhile, that.
    @discardableResult
    func deliver(_ terminal: consuming Terminal) -> Bool {
        // A closure uses up what it may take out, and nothing else.
        var owed: Terminal? = terminal
        return Occupation.with(.delivery(.passUnretained(self))) {
            guard let terminal = owed.take() else { return false }
            return end(terminal)
        }
    }

    private func end(_ ended: consuming Terminal) -> Bool {
        var terminal = ended
        if isCancelled, terminal.result.code != .cancelled {
            correctStatistics(terminal.result.code)
            terminal = Terminal(cancelled(terminal.result), terminal.obligation)
        }
        let code = terminal.result.code
        let isTold = template.end(self, terminal)
        rarities.look { $0.whenComplete?(code) }
        return isTold
    }

    /// The statistics say what is told of it, before it is told.
    private func correctStatistics(_ code: ErrorCode) {
        // What a batch announces was never counted.
        guard id != 0 else { return }
        recipient.downloader.statistics.update { $0.cancelAfterwards(code) }
    }

    /// Ends it without a callback, and not as it had ended: its executor is gone.
    func discard(_ terminal: consuming Terminal) {
        correctStatistics(terminal.result.code)
        let reason = "its executor is gone"
        let result = DownloadResult(failure: Failure(.cancelled, reason), message: reason)
        outstanding.beginTerminal(self, result)
        var owed: Obligation? = terminal.obligation
        Occupation.with(.delivery(.passUnretained(self))) {
            sink?.close(self)
            if let obligation = owed.take() { outstanding.complete(self, obligation) }
            rarities.look { $0.whenComplete?(result.code) }
        }
    }

    private func cancelled(_ result: DownloadResult) -> DownloadResult {
        let failure = Failure(.cancelled, "cancelled", status: result.status)
        return DownloadResult(
            failure: failure, message: message(of: failure), progress: result.progress,
            metrics: result.metrics)
    }
}

/// What few subscriptions have.
package final class SubscriptionExtras {
    /// Called when its callback has returned; set before it is accepted.
    var whenComplete: ((ErrorCode) -> Void)?
    /// What the host has borrowed of it; guarded by the face that lends it.
    package var lent: AnyObject?
}
