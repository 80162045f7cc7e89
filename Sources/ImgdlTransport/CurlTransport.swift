import CCurl
import Glibc
import ImgdlCore

/// The transport over libcurl's multi interface, on the engine's thread. It and the engine hold each other until the engine
/// lets go of it; the loop is kept until the transport goes.
///
/// Only running transfers hold an easy handle; handles are used again. What is asked for inside a report waits until
/// curl has returned, since curl may not be called from its own callbacks: whoever is cancelled hears nothing more from
/// that moment, and its connection closes right after.
package final class CurlTransport: Transport {
    private let loop: any TransportLoop
    /// The engine. Held, since each use of what is not held would be counted.
    let events: any TransportEvents
    private let resolver: any Resolver
    /// Transfers that wait for it.
    private var lookUps = 0
    let options: RequestOptions
    let lanes: Lanes
    let watch = TurnWatch()
    /// Those that have neither ended nor been cancelled.
    private(set) var transfers = RunningTransfers()
    private var isReporting = false
    private var deferred: [Deferred] = []
    /// Empty, for the memory that it has.
    private var spareDeferred: [Deferred] = []
    /// The servers whose handshake somebody waits for.
    private var waitedFor: [ServerConnections] = []
    /// Transfers whose bodies take more work than one turn allows, in line.
    private var line = BodyLine()
    /// In the order in which their bodies were decoded, behind what curl had to do with them, or stopped being so.
    private var readyToEnd: [CurlTransfer] = []
    /// Those whose streams wait for their reset, and whose ends are still to be told.
    private var stopped: [(transfer: CurlTransfer, failure: Failure?, times: TransferTimes)] = []

    private var lingering = LingeringStreams<CurlTransfer>()
    /// The servers that requests are held back from, since too many streams of theirs wait for a reset.
    private var heldFrom: [ServerConnections] = []

    private enum Deferred {
        /// With its addresses.
        case begin(CurlTransfer)
        case release(CurlTransfer)
        case nudge(CurlTransfer)
        case serveLine
        case trim(connections: Bool)
        case close
    }

    /// What libcurl and OpenSSL make once. What they fail with, the first transport fails with.
    package static func makeReady() {
        try? CurlGlobal.setUp()
        _ = CurlVersion.canReuseHandles
        _ = try? EasyHandle()
    }

    /// The resolver is the transport's from now on: `close` closes it. Throws `invalidURL` for a proxy that is none, and
    /// `invalidOperation` for a file that cannot be read, or for a proxy, from the environment too, where private
    /// addresses are denied: only the proxy would know where its connections lead.
    package init(
        configuration: TransportConfiguration, loop: any TransportLoop, events: any TransportEvents,
        resolver: any Resolver
    ) throws(Failure) {
        try CurlGlobal.setUp()
        self.loop = loop
        self.events = events
        self.resolver = resolver
        let proxies = try ProxyRules(configured: configuration.proxy)
        if configuration.deniesPrivateAddresses, proxies.isUsed {
            let names = proxies.variables
            let source =
                names.isEmpty
                ? "" : ", which the environment names (\(names.joined(separator: ", "))): proxy \"\" stands for none"
            throw Failure(.invalidOperation, "private addresses cannot be denied behind a proxy\(source)")
        }
        let handle = try EasyHandle()
        options = try RequestOptions(
            trust: TrustAnchors(
                configured: configuration.certificateAuthorities,
                builtIn: ccurl_default_ca_file(handle.easy).map { String(cString: $0) }),
            proxies: proxies,
            cookies: try CookieJar(file: configuration.cookieFile, partition: configuration.cookiePartition),
            addressGuard: configuration.deniesPrivateAddresses
                ? AddressGuard(translators: configuration.translators) : nil, configuration)
        lanes = try Lanes(loop: loop, maximumIdleConnections: configuration.maximumIdleConnections, watch: watch)
    }

    package var trust: [UInt8] { options.trustOfAll }

    package func cookies(for request: TransportRequest) -> [UInt8]? {
        options.cookies.line(for: request.url, request.partition, besides: request.fields)
    }

    package func parse(_ url: String) throws(Failure) -> ParsedURL { try Self.parse(url) }

    package func parsePlain(_ url: UnsafeBufferPointer<UInt8>, lastOrigin: ParsedURL.Origin?) -> ParsedURL? {
        PlainURL.parse(url, lastOrigin: lastOrigin)
    }

    /// Without a transport: what a hook answers may be parsed before its transfer goes on.
    package static func parse(_ url: String) throws(Failure) -> ParsedURL { try URLParser.parse(url) }

    package func resolveReference(_ reference: String, against base: ParsedURL) throws(Failure) -> ParsedURL {
        try URLParser.resolve(reference, against: base)
    }

    // MARK: Starting

    package func start(_ id: TransferID, _ request: __owned TransportRequest) {
        events.lookAtNetwork()
        let refusal = refusal(of: request)
        transfers.insert(
            CurlTransfer(id, request, addressGuard: options.addressGuard, transport: self), id)
        transfers.look(id) { transfer in
            if let refusal { failLater(transfer, refusal) } else { begin(transfer) }
        }
    }

    /// From the look-up on.
    private func begin(_ transfer: CurlTransfer) {
        if transfer.isPaused { return beginAll(park(transfer)) }
        if let server = options.serverToLookUp(transfer.request.url) {
            lookUp(server.host, for: transfer)
        } else {
            begin(transfer, addresses: [])
        }
    }

    private func refusal(of request: TransportRequest) -> Failure? {
        do throws(Failure) {
            try options.check(request)
        } catch {
            return error
        }
        return RequestLength.refusal(of: request) ?? options.addressGuard?.refusal(ofHost: request.url.host)
    }

    package func silence(_ id: TransferID) -> Silence {
        guard let transfer = transfers[id] else { return Silence() }
        let name = transfer.lookUp == nil ? nil : options.serverToLookUp(transfer.request.url)?.host
        return Silence(
            nameLookedUp: name, strayBytes: strayBytes(transfer),
            hasUnsent: transfer.lane?.multi.hasUnsent(transfer.connectionName) ?? false)
    }

    /// None where a body on its connection is held back: what has come of that belongs to it, and nobody has seen it.
    private func strayBytes(_ transfer: CurlTransfer) -> UInt64 {
        let bytes = transfer.strayBytes(loop.now)
        guard bytes >= Silence.unansweredBytes else { return bytes }
        let isHeldBack = transfers.all.contains { other in
            (other.isPaused || other.isInLine) && other.lane === transfer.lane
                && other.connectionName == transfer.connectionName
        }
        return isHeldBack ? 0 : bytes
    }

    /// Whether curl may have had some of a body on that connection that nobody has seen.
    func mayHoldBodies(on connection: SecureConnections.Connection) -> Bool {
        (transfers.all + lingering.all).contains { $0.mayHaveBody(on: connection) }
    }

    private func lookUp(_ host: String, for transfer: CurlTransfer) {
        let road = WayBack(transport: self, loop: loop, transfer: transfer, isStarting: true)
        let starter = pthread_self()
        let began = loop.now
        transfer.lookUp = resolver.resolve(host) { result in
            // Known at once: no need to go round through the loop.
            if pthread_equal(pthread_self(), starter) != 0, road.isStarting, case .success(let addresses) = result {
                road.transport?.found(addresses, for: transfer)
            } else {
                road.loop?.perform { road.transfer.map { road.transport?.resolved($0, result, began) } }
            }
        }
        road.isStarting = false
        if transfer.lookUp != nil { lookUps += 1 }
    }

    private func resolved(_ transfer: CurlTransfer, _ result: Result<[String], Failure>, _ began: Instant) {
        guard !transfer.isEnded else { return }
        if transfer.lookUp.take() != nil { lookUps -= 1 }
        transfer.lookUpTime = loop.now.nanoseconds - began.nanoseconds
        switch result {
        case .success(let addresses): found(addresses, for: transfer)
        case .failure(let failure): fail(transfer, transfer.proxy?.unreachable(failure.message) ?? failure)
        }
    }

    private func found(_ addresses: [String], for transfer: CurlTransfer) {
        do throws(Failure) {
            let allowed =
                try options.addressGuard?.publicAddresses(addresses, host: transfer.request.url.host) ?? addresses
            begin(transfer, addresses: allowed)
        } catch {
            failLater(transfer, error)
        }
    }

    func begin(_ transfer: CurlTransfer, addresses: [String]) {
        if !addresses.isEmpty { transfer.addresses = addresses }
        guard !isReporting else {
            deferred.append(.begin(transfer))
            return
        }
        guard !lanes.areClosed, !transfer.isEnded else { return }
        if transfer.isPaused { return beginAll(park(transfer)) }
        do throws(Failure) {
            let isUnshared = transfer.connection == .unshared
            let lane = try lanes.lane(for: transfer.request, isUnshared: isUnshared)
            guard mayConnect(transfer, lane) else { return }
            let setup = options.setup(for: transfer.request, transfer.priority, addresses: addresses)
            let handle = try lane.takeHandle(for: setup)
            handle.transfer = .passUnretained(transfer)
            if handle.setup != nil {
                handle.setNextURL(
                    transfer.request.url, keepsEscapes: options.keepsEscapes(transfer.request))
            } else {
                options.apply(transfer.request, transfer.priority, addresses: addresses, to: handle)
                lane.multi.installSockets(on: handle)
                transfer.installCallbacks(on: handle)
                handle.setup = setup
            }
            if transfer.connection != .any { handle.setOnce(CURLOPT_FRESH_CONNECT, 1) }
            if isUnshared {
                handle.setOnce(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
                handle.setOnce(CURLOPT_FORBID_REUSE, 1)
            }
            do throws(Failure) {
                try handle.check()
                try lane.add(handle)
            } catch {
                handle.transfer = nil
                lane.giveBack(handle)
                throw error
            }
            transfer.lane = lane
            transfer.handle = handle
        } catch {
            leaveServer(transfer, handshakeEnded: false)
            failLater(transfer, error)
        }
    }

    // MARK: Handshakes

    /// False: it waits for another's handshake. Who has waited does not wait again.
    private func mayConnect(_ transfer: CurlTransfer, _ lane: Lane) -> Bool {
        // One that nobody shares tells nothing of the others, and has no streams.
        guard transfer.request.url.isSecure, transfer.connection != .unshared, transfer.server == nil else {
            return true
        }
        let now = loop.now
        let server = lane.server(for: transfer.request.url, now)
        transfer.server = server
        if server.lingering > 0, hasTooManyLingering(server) {
            server.hold(transfer.id)
            if !heldFrom.contains(where: { $0 === server }) { heldFrom.append(server) }
            return false
        }
        if server.begins(transfer.id, isFresh: transfer.connection == .fresh, now) { return true }
        if !waitedFor.contains(where: { $0 === server }) { waitedFor.append(server) }
        return false
    }

    /// Whether an answer to it may still come on that connection. One that was cancelled inside a callback has it until its
    /// handle is taken off.
    func holds(_ id: TransferID, connection name: UInt64) -> Bool {
        if let transfer = transfers[id] { return transfer.hasStream && transfer.connectionName == name }
        return deferred.contains {
            if case .release(let transfer) = $0 { transfer.id == id && transfer.connectionName == name } else { false }
        }
    }

    func connected(_ transfer: CurlTransfer) {
        guard let server = transfer.server else { return }
        beginAll(server.connects(transfer.id))
    }

    private func leaveServer(_ transfer: CurlTransfer, handshakeEnded: Bool) {
        beginAll(takeServer(of: transfer, handshakeEnded: handshakeEnded))
    }

    /// Gives those that need not wait for it any more.
    private func takeServer(of transfer: CurlTransfer, handshakeEnded: Bool) -> [TransferID] {
        guard let server = transfer.server.take() else { return [] }
        defer { transfer.holdsConnection = false }
        return server.ends(transfer.id, wasConnected: transfer.holdsConnection, handshakeEnded: handshakeEnded)
    }

    /// However many of them are paused, and wait for one another's handshake, none is called from inside another.
    private func beginAll(_ ids: [TransferID]) {
        var ids = ids
        var next = 0
        while next < ids.count {
            if let transfer = transfers[ids[next]] {
                if transfer.isPaused {
                    ids += park(transfer)
                } else {
                    begin(transfer, addresses: transfer.addresses)
                }
            }
            next += 1
        }
    }

    // MARK: Paused before they are sent

    /// Until its pause is over, when it begins anew. Gives those that need not wait for its handshake any more.
    private func park(_ transfer: CurlTransfer) -> [TransferID] {
        transfer.isParked = true
        return takeServer(of: transfer, handshakeEnded: false)
    }

    private func leavePark(_ transfer: CurlTransfer) {
        transfer.leavesPark()
        events.transferBeginsAnew(transfer.id)
        begin(transfer)
    }

    // MARK: Crowded servers

    /// Also once what can be closed is closed.
    private func hasTooManyLingering(_ server: ServerConnections) -> Bool {
        guard lingering.hasTooMany(server) else { return false }
        closeCrowdedConnections()
        return lingering.hasTooMany(server)
    }

    /// Those on which nobody waits for anything any more. A connection that ends is no reset, however many streams it had.
    private func closeCrowdedConnections() {
        guard lingering.count >= LingeringStreams<CurlTransfer>.maximumOfServer else { return }
        let running = transfers.all.filter(\.isConnected)
        while true {
            let streams = lingering.takeCrowdedConnection { stream in
                running.contains { $0.lane === stream.lane && $0.connectionName == stream.connectionName }
            }
            guard let first = streams.first else { return }
            first.lane?.multi.disconnect(first.connectionName)
            reset(streams)
        }
    }

    /// Lets requests begin whose servers are not crowded any more, or all.
    private func releaseHeld(all: Bool = false) {
        guard !heldFrom.isEmpty else { return }
        let released = heldFrom.filter { all || !lingering.hasTooMany($0) }
        heldFrom.removeAll { server in released.contains { $0 === server } }
        for id in released.flatMap({ $0.takeHeld() }) {
            guard let transfer = transfers[id] else { continue }
            // It has its turn among those that wait for a handshake still to come.
            transfer.server = nil
            begin(transfer, addresses: transfer.addresses)
        }
    }

    // MARK: Ending

    package func cancel(_ id: TransferID) {
        guard let transfer = transfers.remove(id) else { return }
        transfer.isEnded = true
        if let lookUp = transfer.lookUp.take() {
            lookUps -= 1
            resolver.abandon(lookUp)
        }
        guard transfer.handle != nil else { return leaveServer(transfer, handshakeEnded: false) }
        if transfer.isLingering { return }
        if lingering.join(transfer, loop.now) {
            // It may be paused: what is left of it would never come.
            nudgeLater(transfer)
        } else {
            transfer.abandon()
            if isReporting { deferred.append(.release(transfer)) } else { release(transfer, isCancelled: true) }
        }
    }

    package func cancelFlooded(_ id: TransferID) {
        if let transfer = transfers[id] { stopFlood(to: transfer) }
        cancel(id)
    }

    /// Its connection is over, and what is on it ends.
    func stopFlood(to transfer: CurlTransfer) {
        guard let multi = transfer.lane?.multi else { return }
        multi.secureConnections.noteFlood(of: transfer.connectionName)
        multi.disconnect(transfer.connectionName)
    }

    /// By whatever stops a transfer but `cancel`: a callback of curl's, or decoding in line. True: its stream has to wait for
    /// its reset, and curl goes on with it; its end is told with the others. False: it may be reset at once.
    func stopsLater(_ transfer: CurlTransfer) -> Bool {
        // It may have been cancelled inside that very callback.
        if transfer.isLingering { return true }
        guard !transfer.isEnded, lingering.join(transfer, loop.now) else {
            transfer.abandon()
            return false
        }
        stopped.append((transfer, transfer.failure(for: CURLE_WRITE_ERROR), transfer.times))
        // Ends are told soon, also of one that nobody was reading for.
        nudgeLater(transfer)
        return true
    }

    package func leaveConnections() {
        lanes.leave()
        resolver.networkChanged()
        releaseHeld(all: true)
    }

    package func close() {
        // No more cookies come.
        options.cookies.takeFile()?()
        guard !isReporting else {
            for transfer in transfers.all { transfer.isEnded = true }
            deferred.append(.close)
            return
        }
        // All of them first: none begins because another ends.
        for transfer in transfers.all { transfer.isEnded = true }
        for transfer in transfers.all + lingering.takeAll() { release(transfer) }
        transfers.removeAll()
        guard !lanes.areClosed else { return }
        lanes.close()
        resolver.close()
        watch.close()
    }

    package func takeLegacy() -> (@Sendable () -> Void)? { options.cookies.takeFile() }

    package func trim(connections: Bool) {
        guard !isReporting else { return deferred.append(.trim(connections: connections)) }
        guard !lanes.areClosed else { return }
        lanes.releaseSpareHandles()
        guard connections else { return }
        options.forgetRequests()
        try? lanes.retire()
        lanes.closeRetired()
    }

    /// Takes the handle off the multi, which closes the connection of an unfinished HTTP/1.1 transfer and resets the
    /// stream of an HTTP/2 one, and keeps it for the next transfer.
    private func release(_ transfer: CurlTransfer, isCancelled: Bool = false) {
        guard let handle = transfer.handle.take(), let lane = transfer.lane.take() else { return }
        lane.multi.remove(handle)
        transfer.leavesConnection(isReset: isCancelled || transfer.isAbandoned)
        if transfer.isAbandoned { flushConnection(of: transfer, in: lane) }
        handle.transfer = nil
        lane.giveBack(handle)
        leaveServer(transfer, handshakeEnded: !isCancelled)
    }

    /// Those that share its HTTP/2 connection carry its RST_STREAM to the server, each in a turn of its own: curl gives out
    /// meanwhile what it has kept for them.
    private func flushConnection(of ended: CurlTransfer, in lane: Lane) {
        let url = ended.request.url
        guard url.isSecure, ended.isConnected else { return }
        for other in transfers.all + lingering.all where other.isConnected && other !== ended && other.lane === lane {
            guard other.request.url.host == url.host, other.request.url.port == url.port else { continue }
            nudgeLater(other)
        }
    }

    var now: Instant { loop.now }

    /// By a callback of curl's, of one that waits for its reset and goes on sending. False: it waits on.
    func takeResetAhead(of transfer: CurlTransfer) -> Bool { transfer.server?.resets.takeAhead(loop.now) != false }

    private func reset(_ streams: [CurlTransfer]) {
        for transfer in streams {
            transfer.abandon()
            release(transfer, isCancelled: true)
        }
    }

    private func failLater(_ transfer: CurlTransfer, _ failure: Failure) {
        let road = WayBack(transport: self, loop: loop, transfer: transfer, isStarting: false)
        loop.perform { road.transfer.map { road.transport?.fail($0, failure) } }
    }

    private func fail(_ transfer: CurlTransfer, _ failure: Failure) {
        guard !transfer.isEnded else { return }
        transfer.isEnded = true
        transfers.remove(transfer.id)
        events.transferFailed(transfer.id, failure, transfer.times)
    }

    // MARK: While it runs

    package func setPaused(_ id: TransferID, _ isPaused: Bool) {
        guard let transfer = transfers[id], transfer.isPaused != isPaused else { return }
        transfer.isPaused = isPaused
        guard !isPaused else { return }
        if transfer.isParked { leavePark(transfer) } else { nudgeLater(transfer) }
    }

    package func setPriority(_ id: TransferID, _ priority: Priority) {
        guard let transfer = transfers[id], transfer.priority != priority else { return }
        transfer.priority = priority
        guard let handle = transfer.handle else { return }
        handle.setPriority(priority)
        // curl says it to the server with the next frame that it sends for this very stream.
        if transfer.isConnected, transfer.request.url.isSecure { nudgeLater(transfer) }
    }

    /// What curl kept is reported as soon as it may go on, and nothing is from inside the engine's call.
    func nudgeLater(_ transfer: CurlTransfer) {
        guard !transfer.isNudged else { return }
        transfer.isNudged = true
        let road = WayBack(transport: self, loop: loop, transfer: transfer, isStarting: false)
        loop.perform { road.transfer.map { road.transport?.nudge($0) } }
    }

    /// Somebody is in line, or enough was decoded in this turn of curl: what else comes is decoded behind that.
    var decodesInLine: Bool { line.isFull(inTurnOfCurl: watch.turnNumber) }

    /// By a callback of curl's.
    func decoded(_ count: Int, in time: Int64) { line.decoded(count, in: time) }

    /// By a callback of curl's, for each piece of a body. False: it goes on when the transfer has its turn in line.
    func takesPiece(of transfer: CurlTransfer) -> Bool {
        if line.takesPiece(inTurnOfCurl: watch.turnNumber) { return true }
        goOnInLine(transfer)
        return false
    }

    func goOnInLine(_ transfer: CurlTransfer) {
        setWaiting(transfer, true)
        if line.join(transfer) { serveLineLater() }
    }

    private func serveLineLater() {
        let road = WayBack(transport: self, loop: loop, transfer: nil, isStarting: false)
        loop.perform { road.transport?.serveLine() }
    }

    private func serveLine() {
        guard !isReporting else {
            deferred.append(.serveLine)
            return
        }
        let turn = DecodingTurn()
        for _ in 0..<line.beginTurn() {
            guard !turn.isOver, let transfer = line.takeFirst() else { break }
            nudge(transfer)
            if !transfer.isInLine { setWaiting(transfer, false) }
        }
        if line.needsTurn() { serveLineLater() }
    }

    private func setWaiting(_ transfer: CurlTransfer, _ isWaiting: Bool) {
        guard transfer.isWaiting != isWaiting, !transfer.isEnded else { return }
        transfer.isWaiting = isWaiting
        events.transferWaits(transfer.id, isWaiting)
    }

    private func nudge(_ transfer: CurlTransfer) {
        guard !isReporting else {
            deferred.append(.nudge(transfer))
            return
        }
        transfer.isNudged = false
        // curl 7.88 has one of those that share a connection read in a turn: the others do first what they have to do otherwise.
        if transfer.readsLeft > 0, let multi = transfer.lane?.multi { drive { multi.timeReached() } }
        defer { readAlone(transfer) }
        if transfer.isLingering {
            drive { transfer.flush() }
            // What curl had kept of it was too much: it is reset.
            if transfer.end != nil { readyToEnd.append(transfer) }
            return
        }
        guard !transfer.isEnded else { return }
        drive { transfer.goOn() }
        if transfer.isReadyToEnd { readyToEnd.append(transfer) }
    }

    /// Reads in front of the end, which the last one finds: frames for the connection, such as a GOAWAY, may take one each.
    private static let readsBehindGoodbye = 8

    /// The read is in a turn of curl in which this transfer is the only one that has gone on.
    private func readAlone(_ transfer: CurlTransfer) {
        guard transfer.readsLeft > 0, let multi = transfer.lane?.multi else { return }
        transfer.readsLeft -= 1
        drive { multi.timeReached() }
        if transfer.readsLeft > 0 { nudgeLater(transfer) }
    }

    // MARK: Driving

    package var deadline: Instant? {
        guard !waitedFor.isEmpty || lingering.count > 0 || lookUps > 0 else { return lanes.deadline }
        let overdue = waitedFor.compactMap(\.overdue).min()
        return [lanes.deadline, overdue, lingering.deadline(loop.now), lookUps > 0 ? resolver.deadline : nil]
            .compactMap { $0 }.min()
    }

    package var isCrowded: Bool { watch.isCrowded }

    package func deadlineReached(_ now: Instant) {
        lanes.forEachDue(now) { lane in drive { lane.multi.timeReached() } }
        if lingering.count > 0 {
            reset(lingering.take(now))
            closeCrowdedConnections()
            releaseHeld()
        }
        if lookUps > 0, let due = resolver.deadline, due <= now { resolver.deadlineReached(now) }
        guard !waitedFor.isEmpty else { return }
        for server in waitedFor { beginAll(server.losesPatience(now)) }
        waitedFor.removeAll { $0.overdue == nil }
    }

    package func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) {
        if lookUps > 0, resolver.descriptorReady(descriptor, readable: readable, writable: writable) { return }
        drive { lanes.descriptorReady(descriptor, readable: readable, writable: writable) }
    }

    /// What ends meanwhile is told by `reportEnds`.
    private func drive(_ step: () -> Void) {
        isReporting = true
        step()
        isReporting = false
        performDeferred()
    }

    /// What begins inside a report waits for the end of them all.
    package func reportEnds() {
        isReporting = true
        lanes.forEach { reportEnds(of: $0.multi) }
        for transfer in readyToEnd { if let code = transfer.end { conclude(transfer, code) } }
        readyToEnd.removeAll(keepingCapacity: true)
        if !stopped.isEmpty { tellStopped() }
        lanes.forEach { readOn(of: $0.multi) }
        isReporting = false
        performDeferred()
        if lanes.areRetired { lanes.closeRetired() }
        if lanes.mayHaveTooManyUnused { lanes.closeUnused() }
    }

    private func reportEnds(of multi: CurlMulti) {
        let flooded = multi.floods.isEmpty ? [] : markFlooded(by: multi)
        defer {
            for transfer in flooded where !transfer.isEnded { end(flooded: transfer) }
            multi.secureConnections.forgetClosed()
        }
        while let (context, code) = multi.nextDone() {
            guard let transfer = EasyHandle.transfer(context)?.takeUnretainedValue() else { continue }
            transfer.noteEnd(code)
            if transfer.beginsAnew {
                release(transfer)
                begin(transfer)
                continue
            }
            if transfer.beginsAgain(after: code) {
                release(transfer)
                begin(transfer, addresses: transfer.addresses)
                continue
            }
            transfer.reportHeldHead(code)
            if transfer.curlEnds(code) { conclude(transfer, code) }
        }
        // curl tells some of its streams, and others nothing.
        for name in multi.secureConnections.takeFlooded() {
            for transfer in transfers.all where transfer.lane?.multi === multi && transfer.connectionName == name {
                end(flooded: transfer)
            }
        }
        if multi.takeGoodbye() { wakeEnded(of: multi) }
    }

    /// Streams whose server has ended TLS, or its proxy, are read for: where TCP stays open curl hears of it once, for one of them.
    private func wakeEnded(of multi: CurlMulti) {
        for transfer in transfers.all + lingering.all where transfer.hasStream && transfer.lane?.multi === multi {
            guard multi.secureConnections[transfer.connectionName]?.hasGoodbye == true else { continue }
            transfer.readsLeft = Self.readsBehindGoodbye
            nudgeLater(transfer)
        }
    }

    /// curl 7.88 reads until one stream has something, and goes on when its socket says so. What a proxy over TLS has sent for
    /// several of them at once lies decrypted by then, and no socket tells of it: another stream is read for, and one after the
    /// other where that brings nothing, since they are paused.
    private func readOn(of multi: CurlMulti) {
        guard multi.secureConnections.hasTunnels else { return }
        for name in multi.secureConnections.unread {
            let streams = (transfers.all + lingering.all).filter {
                $0.hasStream && $0.lane?.multi === multi && $0.connectionName == name
            }
            guard !streams.contains(where: { $0.readsLeft > 0 }) else { continue }
            let place = multi.secureConnections[name]?.readBytes
            let untried = streams.filter { $0.readsOnFrom != place }
            guard let reader = untried.first(where: { !$0.isPaused }) ?? untried.first else { continue }
            reader.readsOnFrom = place
            reader.readsLeft = 1
            nudgeLater(reader)
        }
    }

    /// Those on connections that kept curl busy: they fail, unless they have ended well.
    private func markFlooded(by multi: CurlMulti) -> [CurlTransfer] {
        let floods = multi.takeFloods()
        let flooded = transfers.all.filter { transfer in
            transfer.lane?.multi === multi && floods.contains { transfer.isOn($0) }
        }
        for transfer in flooded { transfer.hasKeptBusy = true }
        return flooded
    }

    private func end(flooded transfer: CurlTransfer) {
        guard transfer.end == nil, transfer.handle != nil else { return }
        transfer.abandon()
        conclude(transfer, CURLE_RECV_ERROR)
    }

    private func conclude(_ transfer: CurlTransfer, _ code: CURLcode) {
        lingering.leave(transfer)
        let failure = transfer.failure(for: code)
        let times = transfer.times
        release(transfer)
        releaseHeld()
        tellEnd(of: transfer, failure, times)
    }

    private func tellStopped() {
        let ends = stopped
        stopped = []
        for (transfer, failure, times) in ends { tellEnd(of: transfer, failure, times) }
    }

    private func tellEnd(of transfer: CurlTransfer, _ failure: Failure?, _ times: TransferTimes) {
        guard !transfer.isEnded else { return }
        transfer.isEnded = true
        transfers.remove(transfer.id)
        if let failure {
            events.transferFailed(transfer.id, failure, times)
        } else {
            events.transferFinished(transfer.id, times)
        }
    }

    private func performDeferred() {
        guard !deferred.isEmpty else { return }
        var actions: [Deferred] = []
        swap(&actions, &spareDeferred)
        swap(&actions, &deferred)
        for action in actions {
            switch action {
            case .begin(let transfer): begin(transfer, addresses: transfer.addresses)
            case .release(let transfer): release(transfer, isCancelled: true)
            case .nudge(let transfer): nudge(transfer)
            case .serveLine: serveLine()
            case .trim(let connections): trim(connections: connections)
            case .close: close()
            }
        }
        actions.removeAll(keepingCapacity: true)
        spareDeferred = actions
    }
}

/// How an answer of another thread finds back. Only the engine's thread takes the transport and the transfer out of it;
/// both references are weak where the engine may have ended meanwhile.
private final class WayBack: @unchecked Sendable {
    weak var transport: CurlTransport?
    weak var loop: (any TransportLoop)?
    let transfer: CurlTransfer?
    /// Read and written on the engine's thread only.
    var isStarting: Bool

    init(transport: CurlTransport, loop: any TransportLoop, transfer: CurlTransfer?, isStarting: Bool) {
        self.transport = transport
        self.loop = loop
        self.transfer = transfer
        self.isStarting = isStarting
    }
}
