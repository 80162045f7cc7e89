import CCurl
import ImgdlCore

/// Connections that share whom they trust and as whom they appear. A request over https with another
/// `SecurityContext.Trust` never gets into them, one over http with another partition neither (what TLS trusts is nothing to
/// it): curl 7.88 compares neither the key of a client certificate nor its password when it looks for a connection to use
/// again (features B17).
final class Lane {
    private static let maximumSpareHandles = 32

    let trust: SecurityContext.Trust
    /// What was in the files that its connections were made with: it counts as long as they may stay open.
    private let files: [FileContents]
    /// Its connections serve one request each (`CurlTransfer.Connection.unshared`). They are kept apart from those that
    /// streams share: of a server that has spoken HTTP/2 curl takes any connection for one of these, and would send requests
    /// of HTTP/1.1 on one before those ahead of them are answered.
    let isUnshared: Bool
    let multi: CurlMulti
    private let sessions: TLSSessions
    private let reusesHandles: Bool
    /// Transfers that hold one of its handles.
    private(set) var running = 0
    /// The network has changed since: nothing more is sent over its connections.
    private(set) var isLeft = false
    private var spareHandles: [EasyHandle] = []
    private var servers = ServerTable()

    init(
        _ trust: RequestTrust, _ multi: CurlMulti, isUnshared: Bool = false,
        reusesHandles: Bool = CurlVersion.canReuseHandles
    ) throws(Failure) {
        self.trust = SecurityContext.Trust(trust)
        files = [trust.tls.authorities, trust.tls.certificate, trust.tls.key].compactMap { $0 }
        self.isUnshared = isUnshared
        self.multi = multi
        self.reusesHandles = reusesHandles
        sessions = try TLSSessions()
    }

    /// With that setup, or with none.
    func takeHandle(for setup: HandleSetup?) throws(Failure) -> EasyHandle {
        running += 1
        if let spare = spareHandles.popLast() {
            // Mostly the very same, which is seen without a call that would have it counted.
            if spare.setup != nil, spare.setup === setup || spare.setup == setup {
                spare.forgetOutcome()
                return spare
            }
            if spare.reset() { return spare }
        }
        do throws(Failure) {
            return try EasyHandle(sessions)
        } catch {
            running -= 1
            throw error
        }
    }

    // An object that is asked by its owner is not counted up and down for it, as one is that others ask: so these are here.

    func server(for url: ParsedURL, _ now: Instant) -> ServerConnections { servers.server(for: url, now) }

    func add(_ handle: EasyHandle) throws(Failure) { try multi.add(handle) }

    func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) {
        multi.descriptorReady(descriptor, readable: readable, writable: writable)
    }

    /// Off the multi. What was set for one request alone, such as a password, is not kept.
    func giveBack(_ handle: consuming EasyHandle) {
        running -= 1
        // What failed on it would be a fact about the next one, too.
        guard reusesHandles, spareHandles.count < Self.maximumSpareHandles, handle.systemError == 0,
            handle.setup != nil || handle.reset()
        else { return }
        spareHandles.append(handle)
    }

    func leave() { isLeft = true }

    func isDue(_ now: Instant) -> Bool { multi.deadline.map { $0 <= now } ?? false }

    func releaseSpareHandles() { spareHandles = [] }

    /// Closes all connections. Nothing runs any more.
    func close() {
        spareHandles = []
        multi.close()
    }
}
