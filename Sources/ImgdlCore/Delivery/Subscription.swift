import Synchronization

/// Whoever subscriptions speak to; the C face implements it over a callback.
package protocol EventSink: AnyObject, Sendable {
    /// Never twice at the same time for one subscription. No lock is held.
    func deliver(_ event: DownloadEvent, of subscription: Subscription)
    /// Nothing of it will be delivered any more. Once.
    func close(_ subscription: Subscription)
}

/// One accepted download of one caller, from acceptance to the end of its terminal callback: what a token stands for.
///
/// Cancelling is a flag besides a command to the engine: an event that has not been taken for delivery when the flag is
/// set is never delivered, and the terminal turns into `cancelled` (features D14, I4).
package final class Subscription: @unchecked Sendable {
    package let id: UInt64
    /// Not changed once it is accepted.
    @Boxed package internal(set) var options: SubscriberOptions
    /// The engine may put the transfer's in place of an equal one.
    package private(set) var request: TransferRequest
    package let recipient: Recipient
    /// Where its callbacks run; nil: on the recipient's executor.
    private let ownExecutor: PumpedExecutor?
    /// When it was asked for.
    let submitted: Instant
    /// The sink's alone: what its host calls it by, and has given for its events. Set before it is accepted.
    package let userData: UnsafeMutableRawPointer?
    package var handle: OpaquePointer?
    /// What the host has borrowed of it; guarded by the face that lends it.
    package var lent: AnyObject?
    private let cancelled = Atomic<Bool>(false)

    /// The engine's thread alone.
    var subscriberID: SubscriberID = 0
    var transferID = TransferID(rawValue: 0)
    /// Memory that the terminal carries: set before it is posted, let go when its callback has returned.
    var charges: [MemoryCharge] = []
    /// Guarded by the executor's queue.
    var pending: PendingEvents?
    var isScheduled = false
    /// Guarded by `outstanding`; set by the engine.
    var measurement: TransferMeasurement?
    /// Once the terminal is told.
    var conclusion: Conclusion?
    var isShared = false
    /// Guarded by `outstanding`.
    var isAccepted = false
    var isHeld = false
    /// Called when its callback has returned; set before it is accepted.
    var whenComplete: ((ErrorCode) -> Void)?

    package init(
        id: UInt64, request: TransferRequest, options: Boxed<SubscriberOptions>, to recipient: Recipient,
        on pumped: PumpedExecutor?, userData: UnsafeMutableRawPointer?, submitted: Instant
    ) {
        self.id = id
        self.request = request
        _options = options
        self.recipient = recipient
        ownExecutor = pumped
        self.userData = userData
        self.submitted = submitted
    }

    /// For events that are about no request: it only brings them to an executor.
    init(announcingTo recipient: Recipient) {
        id = 0
        _options = Boxed(wrappedValue: SubscriberOptions())
        let nowhere = ParsedURL(canonical: "", scheme: "", host: "", port: 0, user: nil, password: nil, redacted: "")
        request = TransferRequest(url: nowhere)
        submitted = Instant(nanoseconds: 0)
        self.recipient = recipient
        ownExecutor = nil
        userData = nil
    }

    /// Whether callbacks run at all; without, the terminal is complete as soon as it is known.
    package var hasSink: Bool { recipient.sink != nil }
    private var sink: (any EventSink)? { recipient.sink }
    /// nil: its callbacks run elsewhere.
    var pumped: PumpedExecutor? { ownExecutor ?? recipient.pumped }
    var outstanding: Outstanding { recipient.outstanding }
    var isCancelled: Bool { cancelled.load(ordering: .acquiring) }

    /// The request's own, or what its URL says (features X10).
    var scaleFactor: Double {
        options.scaleFactor > 0 ? options.scaleFactor : ImgdlCore.scaleFactor(ofURL: request.url.canonical)
    }

    func share(_ equal: TransferRequest) { request = equal }

    func markCancelled() { cancelled.store(true, ordering: .releasing) }

    /// To its executor, or, where nobody listens, at once.
    func post(_ event: DownloadEvent) {
        let event = event.withScaleFactor(of: self)
        if !hasSink {
            deliver(event)
        } else if let ownExecutor {
            ownExecutor.post(self, event)
        } else {
            recipient.executor.post(self, event)
        }
    }

    /// One that the engine never had.
    func end(_ failure: Failure?) {
        let message = failure.map { "\(request.url.redacted): \($0.message)" } ?? ""
        post(.terminal(DownloadResult(failure: failure, message: message)))
    }

    /// Runs the callback. Called by the executor on its thread, for one event after the other.
    func deliver(_ event: DownloadEvent) {
        guard case .terminal(var result) = event else {
            if !isCancelled { sink?.deliver(event, of: self) }
            return
        }
        outstanding.beginTerminal(self, result.metrics)
        if isCancelled, result.code != .cancelled {
            let metrics = result.metrics
            result = DownloadResult(
                failure: Failure(.cancelled, "cancelled", status: result.status),
                message: "\(request.url.redacted): cancelled", progress: result.progress)
            result.metrics = metrics
        }
        sink?.deliver(.terminal(result), of: self)
        complete(result)
    }

    /// Ends it without a callback: its executor is gone.
    func discard() {
        outstanding.beginTerminal(self, Metrics())
        complete(DownloadResult(failure: Failure(.cancelled, "its executor is gone"), message: "its executor is gone"))
    }

    private func complete(_ result: DownloadResult) {
        sink?.close(self)
        var kept = result
        if sink != nil { kept.forgetPictureAndBody() }
        outstanding.complete(self, kept)
        if !charges.isEmpty { charges = [] }
        whenComplete?(kept.code)
    }
}

/// How a subscription ended, for those who ask.
final class Conclusion {
    let metrics: Metrics
    /// When its callback has returned.
    var result: DownloadResult?

    init(_ metrics: Metrics) { self.metrics = metrics }
}

extension DownloadEvent {
    /// Pictures are shared by those who ask for the same pixels; what they are worth in the layout is each one's own.
    fileprivate func withScaleFactor(of subscription: Subscription) -> DownloadEvent {
        switch self {
        case .partial(var image, let progress):
            image.scaleFactor = subscription.scaleFactor
            return .partial(image, progress)
        case .terminal(var result) where result.image != nil:
            result.image?.scaleFactor = subscription.scaleFactor
            return .terminal(result)
        default:
            return self
        }
    }
}

/// What waits to be delivered to one subscription: one of each kind at most, newer progress and newer partial images in
/// place of older ones. A slow subscriber never makes a queue grow. Whatever the kind, an event tells the newest
/// progress there is when it is taken, so that the numbers never go back.
final class PendingEvents {
    private var isStarted = false
    private var response: (Response, Progress)?
    private var header: ImageHeader?
    private var hasProgress = false
    private var partial: DecodedImage?
    private var terminal: DownloadResult?
    private var latest = Progress()

    func add(_ event: DownloadEvent) {
        switch event {
        case .started: isStarted = true
        case .response(let response, let progress): self.response = (response, progress)
        case .header(let header, let progress):
            self.header = header
            note(progress)
        case .progress(let progress):
            hasProgress = true
            note(progress)
        case .partial(let image, let progress):
            partial = image
            note(progress)
        case .terminal(let result):
            terminal = result
            // The final picture takes the place of a partial one.
            partial = nil
        }
    }

    var isEmpty: Bool {
        !isStarted && response == nil && header == nil && !hasProgress && partial == nil && terminal == nil
    }

    var holdsTerminal: Bool { terminal != nil }

    func takeFirst() -> DownloadEvent? {
        if isStarted {
            isStarted = false
            return .started
        }
        if let (response, progress) = response.take() { return .response(response, progress) }
        if let header = header.take() { return .header(header, latest) }
        if hasProgress {
            hasProgress = false
            return .progress(latest)
        }
        if let partial = partial.take() { return .partial(partial, latest) }
        return terminal.take().map { .terminal($0) }
    }

    private func note(_ progress: Progress) {
        if progress.received >= latest.received { latest = progress }
    }
}
