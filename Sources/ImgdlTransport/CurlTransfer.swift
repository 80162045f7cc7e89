import CCurl
import ImgdlCore

/// One running exchange, and what curl's callbacks for it do. curl knows it by an unretained pointer: the transport
/// holds it until its easy handle is off the multi.
final class CurlTransfer {
    /// A body that nobody wants is read this far to keep the connection; beyond, a new connection is cheaper.
    static let discardLimit = 64 * 1024

    let id: TransferID
    let request: TransportRequest
    var handle: EasyHandle?
    /// Of the host, as they were looked up.
    var addresses: [String] = []
    /// Its next connection has to be a new one.
    private(set) var needsFreshConnection = false
    /// Cancelled, finished or failed: nothing more is reported.
    var isEnded = false

    private unowned let events: any TransportEvents
    private var parser: ResponseHeadParser
    /// Has a connection, perhaps with others.
    private(set) var isConnected = false
    private var isDiscarding = false
    private var discardedBytes = 0
    /// Why a callback of ours told curl to stop.
    private var ownFailure: Failure?
    private var status: Int32 = 0

    init(_ id: TransferID, _ request: TransportRequest, events: any TransportEvents) {
        self.id = id
        self.request = request
        self.events = events
        parser = ResponseHeadParser(maximumBytes: request.maximumHeaderBytes)
    }

    func installCallbacks(on handle: EasyHandle) {
        handle.setCallbacks(
            Unmanaged.passUnretained(self).toOpaque(),
            body: { bytes, size, count, context in
                let bytes = UnsafeRawBufferPointer(start: bytes, count: size * count)
                return CurlTransfer.at(context!).goesOn { $0.receiveBody(bytes) } ? bytes.count : bytes.count &+ 1
            },
            header: { bytes, size, count, context in
                let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
                return CurlTransfer.at(context!).goesOn { $0.receiveHeader(line) } ? line.count : line.count &+ 1
            },
            connected: { context, _, _, _, _ in
                CurlTransfer.at(context!).goesOn { $0.connected() } ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
            })
    }

    static func at(_ context: UnsafeMutableRawPointer) -> CurlTransfer {
        Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
    }

    /// What curl's result means; nil for success.
    func failure(for code: CURLcode) -> Failure? {
        if var failure = ownFailure {
            if failure.status == 0 { failure.status = status }
            return failure
        }
        // Nobody wanted that body, so it does not matter how it ended.
        if isDiscarding { return nil }
        guard code != CURLE_OK else {
            return parser.isComplete
                ? nil : Failure(.connectionLost, "the connection ended before the response's header was complete")
        }
        let query = request.url.canonical.firstIndex(of: "?").map { request.url.canonical[$0...].dropFirst() } ?? ""
        var failure = CurlErrors.failure(
            CurlOutcome(
                code: code, message: handle?.errorMessage ?? "", isConnected: isConnected,
                hasHead: parser.isComplete, proxyStatus: handle?.proxyStatus ?? 0, query: String(query)))
        failure.status = status
        return failure
    }

    /// Whether to begin again, once, on a connection of its own. curl repeats a request that the server has not looked at
    /// (its stream came after the GOAWAY, or its connection had been closed), but on connections shared with others that
    /// may end in the same way, and not more than five times. The first stream of a connection is always looked at.
    func beginsAgain(after code: CURLcode) -> Bool {
        guard code == CURLE_SEND_ERROR, !needsFreshConnection, !isEnded, !parser.isComplete, ownFailure == nil,
            handle?.errorMessage.contains("before giving up") == true
        else { return false }
        needsFreshConnection = true
        return true
    }

    // MARK: curl's callbacks; false stops the transfer

    /// Whether it was stopped before its end, by a callback or by `cancel`.
    private(set) var isAbandoned = false

    func abandon() {
        isAbandoned = true
        handle?.forbidReuse()
    }

    private func goesOn(_ callback: (CurlTransfer) -> Bool) -> Bool {
        if callback(self) { return true }
        abandon()
        return false
    }

    private func connected() -> Bool {
        guard !isEnded else { return false }
        // curl asks again when it repeats the request because a kept connection turned out to be dead.
        if !isConnected {
            isConnected = true
            events.transferConnected(id)
        }
        return !isEnded
    }

    private func receiveHeader(_ line: UnsafeRawBufferPointer) -> Bool {
        guard !isEnded, ownFailure == nil else { return false }
        switch parser.receive(line) {
        case .more:
            return true
        case .failed(let failure):
            ownFailure = failure
            return false
        case .complete:
            do throws(Failure) {
                let head = try parser.head()
                status = head.status
                let disposition = events.transferReceived(id, head: head)
                guard case .discard = disposition else { return !isEnded }
                isDiscarding = true
                return !isEnded && head.contentLength ?? 0 <= Int64(Self.discardLimit)
            } catch {
                ownFailure = error
                return false
            }
        }
    }

    private func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard !isEnded else { return false }
        if isDiscarding {
            discardedBytes += bytes.count
            return discardedBytes <= Self.discardLimit
        }
        if !bytes.isEmpty { events.transferReceived(id, body: bytes) }
        return !isEnded
    }
}
