import CCurl
import CSystem
import Glibc
import ImgdlCore

/// curl's multi handle, driven by events: says which descriptors it waits for and when it wants to be woken.
final class CurlMulti {
    private let multi: UnsafeMutableRawPointer
    private let loop: any TransportLoop
    private var isClosed = false
    /// As curl said it last.
    private var knownDeadline: Instant?
    /// Nothing has been asked of curl since.
    private var isDeadlineKnown = false
    /// Some of its transfers have had no turn since they were added.
    private(set) var hasNewcomers = false
    /// Told which descriptors are this one's, and which are not any more.
    var onWatch: ((_ descriptor: Int32, _ isWatched: Bool) -> Void)?
    /// By descriptor, those of its connections that are open: only of these it is known when they close.
    private var sockets: [Socket?] = []
    /// Sockets of connections that have been used.
    private var usedSockets: [UInt64: Int32] = [:]
    /// The others, in the order in which they were opened. Those of HTTP/2 are among them.
    private var unusedSockets: [Int32] = []
    /// Sockets of connections that are being made, with the easy handles that they are for: none that was removed, and none
    /// that has got its connection.
    private(set) var openings: [(socket: Int32, easy: UnsafeMutableRawPointer)] = []
    /// Easy handles whose connection to one address has failed in this turn of curl's.
    private var refused: [UnsafeMutableRawPointer] = []
    private var isActing = false
    private let watch: TurnWatch
    private var users = SocketUsers()
    /// Connections that were shut down since they kept curl busy, and are to be told of.
    private(set) var floods: [Flood] = []
    var secureConnections = SecureConnections()
    /// A server has ended TLS on one of its connections, of which curl tells whoever it was reading for.
    private var hasReadGoodbye = false

    private struct Socket {
        /// Its connection's name, once that has been used.
        var connection: UInt64?
    }

    struct Flood {
        /// The connection's name.
        let connection: UInt64
        /// Of the transfer that it is made for.
        let user: SocketUsers.User?
    }

    init(loop: any TransportLoop, maximumIdleConnections: Int32, watch: TurnWatch) throws(Failure) {
        // curl does not say why it cannot: 8.23 at least wants a descriptor for it.
        errno = 0
        guard let multi = curl_multi_init() else {
            let words = errno == 0 ? "no memory" : String(cString: strerror(errno))
            throw Failure(.outOfMemory, "libcurl cannot begin transfers: \(words)")
        }
        self.multi = multi
        self.loop = loop
        self.watch = watch
        ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, Int(maximumIdleConnections))
        ccurl_multi_set_socket_callback(multi, Unmanaged.passUnretained(self).toOpaque()) {
            easy, descriptor, what, context, _ in
            CurlMulti.with(context) { $0.watch(descriptor, what, for: easy) }
            return 0
        }
    }

    deinit { close() }

    /// Closes all connections. Every handle has been removed before.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        curl_multi_cleanup(multi)
    }

    /// When curl wants to be called though nothing is ready. Asked for when it is needed: to be told of each change costs a
    /// look at the clock for each call of curl's functions.
    var deadline: Instant? {
        if isDeadlineKnown { return knownDeadline }
        isDeadlineKnown = true
        var milliseconds = -1
        if !isClosed { curl_multi_timeout(multi, &milliseconds) }
        knownDeadline = milliseconds < 0 ? nil : loop.now.advanced(byMilliseconds: Int64(milliseconds))
        return knownDeadline
    }

    /// Something has been asked of curl, here or by one of its easy handles.
    func noteUse() { isDeadlineKnown = false }

    func add(_ handle: EasyHandle) throws(Failure) {
        noteUse()
        handle.addition = users.add()
        let code = curl_multi_add_handle(multi, handle.easy)
        guard code == CURLM_OK else {
            throw Failure(
                code == CURLM_OUT_OF_MEMORY ? .outOfMemory : .internal,
                "libcurl does not take the transfer: \(String(cString: curl_multi_strerror(code)))")
        }
        hasNewcomers = true
    }

    /// Ends the transfer if it still runs.
    func remove(_ handle: EasyHandle) {
        noteUse()
        curl_multi_remove_handle(multi, handle.easy)
        noteConnected(handle)
    }

    /// It needs no other address of its server: it has a connection, or is over.
    func noteConnected(_ handle: EasyHandle) {
        if !openings.isEmpty { openings.removeAll { $0.easy == handle.easy } }
    }

    func timeReached() { act(CURL_SOCKET_TIMEOUT, 0) }

    func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) {
        act(descriptor, (readable ? CURL_CSELECT_IN : 0) | (writable ? CURL_CSELECT_OUT : 0))
    }

    /// The context of the next handle that came to its end since the last call, and curl's verdict.
    func nextDone() -> (context: UnsafeMutableRawPointer, code: CURLcode)? {
        var context: UnsafeMutableRawPointer?
        var code = CURLE_OK
        guard !isClosed, ccurl_next_done(multi, &context, &code), let context else { return nil }
        return (context, code)
    }

    // MARK: Sockets of connections

    /// Has the ends of the connections that the handle opens known.
    func installSockets(on handle: EasyHandle) {
        handle.setCloseSocket(Unmanaged.passUnretained(self).toOpaque()) { context, socket in
            CurlMulti.with(context) { $0.close(socket) }
            return 0
        }
    }

    /// `opener`: the easy handle that it is for.
    func noteSocket(_ socket: curl_socket_t, for opener: UnsafeMutableRawPointer?) -> curl_socket_t {
        guard socket != CURL_SOCKET_BAD else { return socket }
        while sockets.count <= Int(socket) { sockets.append(nil) }
        sockets[Int(socket)] = Socket()
        if let opener { openings.append((socket, opener)) }
        unusedSockets.append(socket)
        users.open(socket)
        watch.opened(socket)
        return socket
    }

    /// Of its connections.
    var openSockets: [Int32] { sockets.indices.filter { sockets[$0] != nil }.map(Int32.init) }

    /// The connection is used, once more or for the first time. Whether something has come on it since it was used last: not at
    /// its first use, since a session ticket of TLS may have come by then.
    func beginsUseWithUnread(of connection: UInt64) -> Bool {
        if let socket = usedSockets[connection] {
            let secure = secureConnections[connection]
            guard system_unread(socket) > 0 || secure?.hasUnread == true else { return false }
            return secure?.hasAnswer(socket) ?? true
        }
        beginsUse(of: connection)
        return false
    }

    /// The connection is used for the first time.
    func beginsUse(of connection: UInt64) {
        // Mostly the newest.
        if let place = unusedSockets.lastIndex(where: { system_socket_name($0) == connection }) {
            let socket = unusedSockets.remove(at: place)
            sockets[Int(socket)] = Socket(connection: connection)
            usedSockets[connection] = socket
        }
    }

    /// Whether its server has no room for all that is to be sent to it.
    func hasUnsent(_ connection: UInt64) -> Bool {
        usedSockets[connection].map { system_socket_has_unsent($0) != 0 } ?? false
    }

    /// Nothing is sent or received on it any more; curl finds out, and closes it.
    func disconnect(_ connection: UInt64) { TurnWatch.disconnect(connection, among: openSockets) }

    private func close(_ socket: curl_socket_t) {
        if isSocket(socket) {
            if let connection = sockets[Int(socket)]?.connection {
                usedSockets[connection] = nil
                if !secureConnections.isEmpty {
                    secureConnections.noteClose(of: connection, bytes: system_socket_taken(socket))
                }
            } else if let place = unusedSockets.lastIndex(of: socket) {
                unusedSockets.remove(at: place)
            }
            if let place = openings.firstIndex(where: { $0.socket == socket }) {
                let easy = openings.remove(at: place).easy
                if isActing { refused.append(easy) }
            }
            sockets[Int(socket)] = nil
        }
        // Whoever gets its number has not flooded anybody.
        if let stop = watch.closes(socket) { note(stop) }
        // Its number may come back before the loop sleeps, and in another lane.
        onWatch?(socket, false)
        loop.unwatch(socket)
        Glibc.close(socket)
    }

    private func isSocket(_ descriptor: Int32) -> Bool { descriptor < sockets.count && sockets[Int(descriptor)] != nil }

    private func act(_ descriptor: Int32, _ events: Int32) {
        guard !isClosed else { return }
        noteUse()
        hasNewcomers = false
        var running: Int32 = 0
        isActing = true
        let stopped = watch.during {
            ccurl_begin_turn()
            _ = curl_multi_socket_action(multi, descriptor, events, &running)
            // A stream that reads for others has curl look at them later, again and again (see `CurlVersion.needsRoomInStreams`).
            guard ccurl_begin_turn_without_reads() else { return }
            _ = curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running)
        }
        isActing = false
        if !refused.isEmpty { tryNextAddresses() }
        if ccurl_take_goodbye() { hasReadGoodbye = true }
        for stop in stopped { note(stop) }
    }

    /// libcurl 7.88 goes on to a server's next address when it looks at the transfer again, and neither watches anything nor
    /// sets a timer for it. A transfer that is over is left alone.
    private func tryNextAddresses() {
        for easy in refused { EasyHandle.flush(easy) }
        refused.removeAll(keepingCapacity: true)
    }

    private func note(_ stop: TurnWatch.Stop) {
        floods.append(Flood(connection: stop.connection, user: users[stop.socket]))
    }

    func takeGoodbye() -> Bool {
        defer { hasReadGoodbye = false }
        return hasReadGoodbye
    }

    func takeFloods() -> [Flood] {
        defer { floods = [] }
        return floods
    }

    /// Not counted: it has what curl calls back on, and curl calls for each change of a socket or a timer.
    private static func with<Result>(_ context: UnsafeMutableRawPointer?, _ body: (CurlMulti) -> Result) -> Result {
        Unmanaged<CurlMulti>.fromOpaque(context!)._withUnsafeGuaranteedRef(body)
    }

    private func watch(_ descriptor: Int32, _ what: Int32, for easy: UnsafeMutableRawPointer?) {
        // Newer versions of curl close connections in the name of a handle of their own.
        if what != CURL_POLL_REMOVE { users.watch(descriptor, for: easy) }
        onWatch?(descriptor, what != CURL_POLL_REMOVE)
        if what == CURL_POLL_REMOVE {
            if isSocket(descriptor) { loop.rest(descriptor) } else { loop.unwatch(descriptor) }
        } else {
            loop.watch(
                descriptor, readable: what & CURL_POLL_IN != 0, writable: what & CURL_POLL_OUT != 0)
        }
    }
}
