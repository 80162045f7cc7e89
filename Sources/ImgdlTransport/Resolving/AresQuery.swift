import CAres
import Glibc
import ImgdlCore

/// One look-up by c-ares, with a channel of its own: stopping it closes its sockets at once, each look-up has other
/// source ports, and each goes by the files of /etc as they are then.
///
/// Threads: the engine's. It is closed by its owner.
final class AresQuery {
    /// Milliseconds until the first repetition, which doubles with each; and how often each server is asked.
    private static let timeout: Int32 = 2_000
    private static let tries: Int32 = 3
    /// Bytes: those that fit into one packet of any network.
    private static let datagramSize: Int32 = 1_232
    /// Packets that are read before others get their turn, and of the whole look-up. Each query is answered once: of
    /// families, domains to search and repetitions there are not so many.
    private static let maximumPacketsInTurn = 32
    private static let maximumPackets = 256
    /// Sockets opened in one call of c-ares: it opens one for each address to see which are reached, and an answer may
    /// have thousands.
    private static let maximumSocketsInTurn = 64

    let host: String
    /// Where it has come to its end.
    private(set) var answer: AddressAnswer?
    /// When it wants to be called though nothing is ready.
    private(set) var deadline: Instant?

    private let loop: any TransportLoop
    private let onWatch: (AresQuery, Int32, Bool) -> Void
    private var channel: OpaquePointer?
    private var packets = 0
    private var packetsInTurn = 0
    private var socketsInTurn = 0
    private var watched: Set<Int32> = []

    /// `onWatch` is told which descriptors are this one's, and which are not any more.
    init(
        _ host: String, loop: any TransportLoop,
        onWatch: @escaping (_ query: AresQuery, _ descriptor: Int32, _ isWatched: Bool) -> Void
    ) {
        self.host = host
        self.loop = loop
        self.onWatch = onWatch
    }

    deinit { assert(channel == nil, "closed by its owner") }

    /// Once. It may have its answer at once: from /etc/hosts, or since c-ares could not begin.
    func begin(services: String, servers: NameServers?, family: Int32) {
        let status = open(services: services, servers: servers)
        guard status == CARES_SUCCESS else {
            close()
            answer = AddressAnswer(host: host, cause: String(cString: cares_message(status)), isCertain: false)
            return
        }
        var hints = ares_addrinfo_hints()
        hints.ai_family = family
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        run { channel in
            ares_getaddrinfo(
                channel, host, nil, &hints,
                { context, status, _, list in
                    AresQuery.with(context) { $0.end(status, list) }
                    if let list { ares_freeaddrinfo(list) }
                }, Unmanaged.passUnretained(self).toOpaque())
        }
    }

    /// Its descriptors are closed, and nothing comes any more.
    func close() {
        guard let channel = channel.take() else { return }
        ares_destroy(channel)
        deadline = nil
    }

    func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) {
        run { channel in
            ares_process_fd(
                channel, readable ? descriptor : ARES_SOCKET_BAD, writable ? descriptor : ARES_SOCKET_BAD)
        }
    }

    func timeReached() { run { ares_process_fd($0, ARES_SOCKET_BAD, ARES_SOCKET_BAD) } }

    // MARK: c-ares

    private func open(services: String, servers: NameServers?) -> Int32 {
        var options = ares_options()
        options.timeout = Self.timeout
        options.tries = Self.tries
        options.sock_state_cb_data = Unmanaged.passUnretained(self).toOpaque()
        options.sock_state_cb = { context, descriptor, readable, writable in
            AresQuery.with(context) { $0.watch(descriptor, readable: readable != 0, writable: writable != 0) }
        }
        var mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB | ARES_OPT_LOOKUPS
        var version: Int32 = 0
        _ = ares_version(&version)
        if let flags = Self.flags(ofVersion: version) {
            options.flags = flags
            options.ednspsz = Self.datagramSize
            mask |= ARES_OPT_FLAGS | ARES_OPT_EDNSPSZ
        }
        var status = services.withCString { text in
            // c-ares takes a copy.
            options.lookups = UnsafeMutablePointer(mutating: text)
            return cares_init(&channel, &options, mask)
        }
        guard status == CARES_SUCCESS, let channel else { return status }
        ares_set_socket_functions(channel, AresSockets.functions, Unmanaged.passUnretained(self).toOpaque())
        if let servers { status = cares_set_servers(channel, servers.text) }
        return status
    }

    /// What is asked for otherwise than the version does by itself; nil from 1.34.7 on.
    ///
    /// Below, an answer over TCP may have a query freed twice (CVE-2026-33630): look-ups keep to UDP, and go by what there
    /// is of an answer that is cut off. From 1.32 on it may also be used after it was freed where a server knows no EDNS
    /// (CVE-2025-31498, CVE-2025-62408): there is none then.
    static func flags(ofVersion version: Int32) -> Int32? {
        if version >= 0x01_22_07 { return nil }
        return version >= 0x01_20_00 ? ARES_FLAG_IGNTC : ARES_FLAG_IGNTC | ARES_FLAG_EDNS
    }

    private func run(_ call: (OpaquePointer) -> Void) {
        guard let channel, answer == nil else { return }
        packetsInTurn = 0
        socketsInTurn = 0
        call(channel)
        guard answer == nil else { return close() }
        guard packets <= Self.maximumPackets else {
            answer = AddressAnswer(
                host: host, cause: "a name server sent more than \(Self.maximumPackets) packets", isCertain: false)
            return close()
        }
        var rest = timeval()
        deadline = ares_timeout(channel, nil, &rest).map { rest -> Instant in
            // Rounded up: c-ares does nothing before its time.
            let milliseconds = Int64(rest.pointee.tv_sec) * 1_000 + Int64(rest.pointee.tv_usec) / 1_000
            return loop.now.advanced(byMilliseconds: milliseconds + 1)
        }
    }

    /// Also called while the channel is closed: what is known by then stays.
    private func end(_ status: Int32, _ list: UnsafeMutablePointer<ares_addrinfo>?) {
        guard answer == nil else { return }
        guard status == CARES_SUCCESS else {
            let isCertain = status == CARES_NOT_FOUND || status == CARES_NO_DATA
            answer = AddressAnswer(host: host, cause: String(cString: cares_message(status)), isCertain: isCertain)
            return
        }
        var seconds = Int32.max
        var alias = list?.pointee.cnames
        while let entry = alias {
            seconds = min(seconds, entry.pointee.ttl)
            alias = entry.pointee.next
        }
        var addresses: [String] = []
        var next = list?.pointee.nodes
        while let entry = next, addresses.count < AddressCache.maximumAddresses {
            seconds = min(seconds, entry.pointee.ai_ttl)
            if let text = AresSockets.text(entry.pointee.ai_addr) { addresses.append(text) }
            next = entry.pointee.ai_next
        }
        answer = AddressAnswer(
            addresses: addresses, host: host, lifetime: AddressCache.lifetime(ofSeconds: seconds))
    }

    private func watch(_ descriptor: Int32, readable: Bool, writable: Bool) {
        if readable || writable {
            if watched.insert(descriptor).inserted { onWatch(self, descriptor, true) }
            loop.watch(descriptor, readable: readable, writable: writable)
        } else if watched.remove(descriptor) != nil {
            loop.unwatch(descriptor)
            onWatch(self, descriptor, false)
        }
    }

    // MARK: Sockets

    func openSocket(_ family: Int32, _ type: Int32, _ number: Int32) -> Int32 {
        socketsInTurn += 1
        guard socketsInTurn <= Self.maximumSocketsInTurn else {
            errno = EMFILE
            return -1
        }
        let flags = Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        return socket(family, type | flags, number)
    }

    func closeSocket(_ descriptor: Int32) -> Int32 {
        // Its number may come back before the loop sleeps.
        watch(descriptor, readable: false, writable: false)
        return Glibc.close(descriptor)
    }

    /// False: others have their turn first, or this look-up has had enough.
    func mayReceive() -> Bool {
        guard packetsInTurn < Self.maximumPacketsInTurn, packets <= Self.maximumPackets else { return false }
        packetsInTurn += 1
        packets += 1
        return true
    }

    static func with<Result>(_ context: UnsafeMutableRawPointer?, _ body: (AresQuery) -> Result) -> Result {
        body(Unmanaged<AresQuery>.fromOpaque(context!).takeUnretainedValue())
    }
}
