import Synchronization

/// Whoever a subscription speaks to; the C face implements it over a callback.
package protocol EventSink: AnyObject, Sendable {
    /// Never twice at the same time for one subscription. No lock is held.
    func deliver(_ event: DownloadEvent)
    /// Nothing will be delivered any more. Once.
    func close()
}

/// One accepted download of one caller, from acceptance to the end of its terminal callback: what a token stands for.
///
/// Cancelling is a flag besides a command to the engine: an event that has not been taken for delivery when the flag is
/// set is never delivered, and the terminal turns into `cancelled` (features D14, I4).
package final class Subscription: @unchecked Sendable {
    package let id: UInt64
    package let options: SubscriberOptions
    package let request: TransferRequest
    let executor: any Executor
    let outstanding: Outstanding
    private let sink: (any EventSink)?
    private let cancelled = Atomic<Bool>(false)

    /// The engine's thread alone.
    var subscriberID: SubscriberID = 0
    var transferID = TransferID(rawValue: 0)
    /// Guarded by the executor's queue.
    var pending = PendingEvents()
    var isScheduled = false
    /// Guarded by `outstanding`.
    var result: DownloadResult?

    package init(
        id: UInt64, request: TransferRequest, options: SubscriberOptions, executor: any Executor,
        outstanding: Outstanding, sink: (any EventSink)?
    ) {
        self.id = id
        self.request = request
        self.options = options
        self.executor = executor
        self.outstanding = outstanding
        self.sink = sink
    }

    /// Whether callbacks run at all; without, the terminal is complete as soon as it is known.
    var hasSink: Bool { sink != nil }
    var isCancelled: Bool { cancelled.load(ordering: .acquiring) }

    func markCancelled() { cancelled.store(true, ordering: .releasing) }

    /// To its executor, or, where nobody listens, at once.
    func post(_ event: DownloadEvent) {
        if sink == nil { deliver(event) } else { executor.post(self, event) }
    }

    /// Runs the callback. Called by the executor on its thread, for one event after the other.
    func deliver(_ event: DownloadEvent) {
        guard case .terminal(var result) = event else {
            if !isCancelled { sink?.deliver(event) }
            return
        }
        outstanding.beginTerminal()
        if isCancelled, result.code != .cancelled {
            result = DownloadResult(
                failure: Failure(.cancelled, "cancelled", status: result.status),
                message: "\(request.url.redacted): cancelled", progress: result.progress)
        }
        sink?.deliver(.terminal(result))
        complete(result)
    }

    /// Ends it without a callback: its executor is gone.
    func discard() {
        outstanding.beginTerminal()
        complete(DownloadResult(failure: Failure(.cancelled, "its executor is gone"), message: "its executor is gone"))
    }

    private func complete(_ result: DownloadResult) {
        sink?.close()
        var kept = result
        if sink != nil {
            // The callback has had them; nothing keeps pixels alive behind the caller's back.
            kept.image = nil
            kept.body = nil
            kept.response = nil
        }
        outstanding.complete(self, kept)
    }
}

/// What waits to be delivered to one subscription: one of each kind at most, newer progress and newer partial images in
/// place of older ones. A slow subscriber never makes a queue grow.
struct PendingEvents {
    private var isStarted = false
    private var response: DownloadEvent?
    private var header: DownloadEvent?
    private var progress: DownloadEvent?
    private var partial: DownloadEvent?
    private var terminal: DownloadEvent?

    mutating func add(_ event: DownloadEvent) {
        switch event {
        case .started: isStarted = true
        case .response: response = event
        case .header: header = event
        case .progress: progress = event
        case .partial: partial = event
        case .terminal:
            terminal = event
            // The final picture takes the place of a partial one.
            partial = nil
        }
    }

    var isEmpty: Bool {
        !isStarted && response == nil && header == nil && progress == nil && partial == nil && terminal == nil
    }

    var holdsTerminal: Bool { terminal != nil }

    mutating func takeFirst() -> DownloadEvent? {
        if isStarted {
            isStarted = false
            return .started
        }
        return response.take() ?? header.take() ?? progress.take() ?? partial.take() ?? terminal.take()
    }
}
