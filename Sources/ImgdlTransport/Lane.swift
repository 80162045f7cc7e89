import CCurl
import ImgdlCore

/// Connections that share whom they trust and as whom they appear. A request with other `TLSOptions` never gets into
/// them: curl 7.88 compares neither the key of a client certificate nor its password when it looks for a connection to
/// use again, and an easy handle keeps TLS sessions over a reset (features B17).
final class Lane {
    private static let maximumSpareHandles = 32

    let tls: TLSOptions
    let multi: CurlMulti
    /// Transfers that hold one of its handles.
    private(set) var running = 0
    private var spareHandles: [EasyHandle] = []

    init(_ tls: TLSOptions, _ multi: CurlMulti) {
        self.tls = tls
        self.multi = multi
    }

    func takeHandle() throws(Failure) -> EasyHandle {
        let handle: EasyHandle
        if let spare = spareHandles.popLast() { handle = spare } else { handle = try EasyHandle() }
        running += 1
        return handle
    }

    /// Off the multi.
    func giveBack(_ handle: EasyHandle) {
        running -= 1
        if handle.reset(), spareHandles.count < Self.maximumSpareHandles { spareHandles.append(handle) }
    }

    func isDue(_ now: Instant) -> Bool { multi.deadline.map { $0 <= now } ?? false }

    /// Closes all connections. Nothing runs any more.
    func close() {
        spareHandles = []
        multi.close()
    }
}
