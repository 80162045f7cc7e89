/// Names one running transfer between engine and transport: slot and generation, never used again.
@usableFromInline package struct TransferID: Hashable, Sendable {
    @usableFromInline package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    /// An index for tables: no two that run have the same.
    @inlinable package var slot: Int { Int(rawValue & 0xFFFF_FFFF) }
}

/// Port: moves bytes. `ImgdlTransport` implements it with libcurl. Lives on the engine's thread; everything here but
/// `parse`, `resolveReference` and `takeLegacy` is called on it alone.
package protocol Transport: AnyObject {
    /// Threads: any. Throws `invalidURL` or `unsupportedScheme`.
    func parse(_ url: String) throws(Failure) -> ParsedURL
    /// Quickly, as `parse` would; nil for what that is not possible for. `url`: any bytes. `lastOrigin`: of the URL
    /// before. Threads: any.
    func parsePlain(_ url: UnsafeBufferPointer<UInt8>, lastOrigin: ParsedURL.Origin?) -> ParsedURL?
    /// A Location, absolute or relative (RFC 3986 section 5). Threads: any.
    func resolveReference(_ reference: String, against base: ParsedURL) throws(Failure) -> ParsedURL

    /// Whom all its requests trust, and on which way they go: what of its configuration belongs to `SecurityContext`.
    /// Each transport that is configured alike has the same.
    var trust: [UInt8] { get }
    /// Whether a loader of the host's answers for it, and no server.
    func hasLoader(for url: ParsedURL) -> Bool
    /// The line of the Cookie field as it is sent: the request's own cookies, and behind them its jar's; nil: the jar adds none.
    func cookies(for request: TransportRequest) -> [UInt8]?

    /// Begins; reports to `events` later, never from inside this call.
    func start(_ id: TransferID, _ request: __owned TransportRequest)
    /// Ends at once, whatever state it is in, and reports nothing more of it. May be called inside a report.
    func cancel(_ id: TransferID)
    /// The same, where nothing but a flood has come of it: its connection is closed, and all others on it end in `flood`.
    func cancelFlooded(_ id: TransferID)
    /// Paused, nothing more is sent for it than what is being sent: what has not been sent yet, or would be sent once more (with
    /// a credential, or since its connection has ended), begins anew when the pause is over, which is reported. No more body bytes
    /// are reported, and soon none are read; head, end and failure of what was sent may still come. Of a body
    /// with a content coding, what has arrived by then is decoded and reported. May be called inside a report.
    func setPaused(_ id: TransferID, _ isPaused: Bool)
    /// Best effort, for streams that share a connection. May be called inside a report.
    func setPriority(_ id: TransferID, _ priority: Priority)
    /// Lets go of what it keeps for later transfers and none uses: handles, and idle `connections`, where asked, which
    /// are closed soon. May be called inside a report.
    func trim(connections: Bool)
    /// What is open now serves what runs on it, and nothing that is started later: it may be dead without a word. Names
    /// are looked up anew. What was started and is not sent yet is started anew. May be called inside a report.
    func leaveConnections()
    /// Ends everything, writes what outlives it, and releases every descriptor and thread. Nothing may be called
    /// afterwards but `takeLegacy`.
    func close()
    /// Writes what outlives it, as `close` does, which then writes nothing: the process exits, and the engine's thread may
    /// never come to its end. nil: there is nothing, or it is written already. Threads: any.
    func takeLegacy() -> (@Sendable () -> Void)?

    /// Asked where its connect or idle timeout has come.
    func silence(_ id: TransferID) -> Silence

    /// When `deadlineReached` wants to be called next, nil for never.
    var deadline: Instant? { get }
    func deadlineReached(_ now: Instant)
    func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool)
    /// Some of its descriptors have lately kept the thread busy for no request: those with little to read go first.
    var isCrowded: Bool { get }
    /// Reports the ends of which the two above, and whatever else ran since, have left word. Called before the thread
    /// sleeps.
    func reportEnds()
}

extension Transport {
    package func hasLoader(for _: ParsedURL) -> Bool { false }
    package func takeLegacy() -> (@Sendable () -> Void)? { nil }
    package func cancelFlooded(_ id: TransferID) { cancel(id) }
}

/// What becomes of the body once the head is known.
package enum BodyDisposition: Sendable {
    package static let previewBytes = 512

    case receive
    /// Read and drop a short body, so that the connection can be used again; then report the end as usual. Its first
    /// `previewBytes` are reported like any body: they go into the error.
    case discard
}

/// What the engine hears of its transfers, on its own thread, in this order:
/// connected, head, body …, then finished or failed, once. What begins anew is connected again.
package protocol TransportEvents: AnyObject {
    /// Asked before something is sent: has the transport leave its connections, inside this call, if the host has said
    /// that the network has changed.
    func lookAtNetwork()
    /// Asked after that: the host has said that it is in the background, and who is paused for it has not been told yet. What
    /// is not sent yet is not to be sent before.
    var isPauseUnheard: Bool { get }
    /// The pause is over that kept it from being sent: it makes its connection from now on. Told inside `setPaused`.
    func transferBeginsAnew(_ id: TransferID)
    /// A connection stands (new or used again) and the request is about to be sent.
    func transferConnected(_ id: TransferID)
    /// More of the request's body has been handed to the network; only for requests with one, any time before the end.
    func transferSent(_ id: TransferID)
    /// Bytes of a coded body have come that mean nothing yet.
    func transferAdvanced(_ id: TransferID)
    /// Bytes of its body have come and wait here for their turn, or do so no longer: meanwhile it is not the server
    /// that is silent. Told where it changes; `true` is not followed by `false` where the transfer ends.
    func transferWaits(_ id: TransferID, _ isWaiting: Bool)
    /// The head of the final response (1xx are skipped).
    func transferReceived(_ id: TransferID, head: ResponseHead) -> BodyDisposition
    /// Body bytes, Content-Encoding undone; valid during the call.
    func transferReceived(_ id: TransferID, body: UnsafeRawBufferPointer)
    /// So many bytes of its body are held where they came, since nobody takes them at present; so many fewer, down to 0,
    /// before they are reported. Of a transport that holds any. `isEncoded`: its codings are not undone yet.
    func transferHolds(_ id: TransferID, _ bytes: Int, isEncoded: Bool)
    /// So much memory is held to undo the codings of its body.
    func transferHoldsCodings(_ id: TransferID, _ bytes: Int)
    /// The most that anybody takes of its body.
    func bodyLimit(_ id: TransferID) -> Int64
    func transferFinished(_ id: TransferID, _ times: TransferTimes)
    /// A body shorter than announced is `truncated`.
    func transferFailed(_ id: TransferID, _ failure: Failure, _ times: TransferTimes)
}

/// What a transport may ask of the thread it lives on.
package protocol TransportLoop: AnyObject {
    /// Calls `descriptorReady` while the descriptor is ready (level-triggered); replaces an earlier interest.
    func watch(_ descriptor: Int32, readable: Bool, writable: Bool)
    func unwatch(_ descriptor: Int32)
    /// The same for one that stays open until `unwatch`, and may be watched again soon, which then costs no system
    /// call: the kernel is told when the thread is about to sleep, or where it waited for bytes, when some have come.
    func rest(_ descriptor: Int32)
    /// Of what the thread is at: not read anew for each of its callbacks.
    var now: Instant { get }
    /// Runs `work` on the engine's thread, soon. Threads: any. After the engine has ended it is dropped.
    func perform(_ work: @escaping @Sendable () -> Void)
}
