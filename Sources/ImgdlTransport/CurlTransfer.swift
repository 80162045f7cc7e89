import CCurl
import CSystem
import ImgdlCore

/// One running exchange, and what curl's callbacks for it do. curl knows it by an unretained pointer: the transport
/// holds it until its easy handle is off the multi.
final class CurlTransfer: LingeringStream {
    /// A body that nobody wants is read this far to keep the connection; beyond, a new connection is cheaper.
    static let discardLimit = 64 * 1024
    /// A server that calls every answer stale would have curl ask without end.
    private static let maximumChallenges = 4
    /// Twice what a block of zstd may have before it can be decoded (RFC 8878 section 3.1.1.2.4).
    private static let maximumSilentBytes = 256 * 1024

    let id: TransferID
    let request: TransportRequest
    /// The request's, until it is changed.
    var priority: Priority
    /// While it has a handle.
    var lane: Lane?
    var handle: EasyHandle?
    /// Of the host, as they were looked up.
    var addresses: [String] = []
    /// While it waits for them.
    var lookUp: LookUpID?
    /// What our own look-up took, in nanoseconds.
    var lookUpTime: Int64 = 0
    /// The connections of its server, while it waits for one or has one.
    var server: ServerConnections?
    /// Whether `server` counts it among those that have a connection.
    var holdsConnection = false
    /// Nothing is sent for it and no body bytes are taken at present.
    var isPaused = false
    /// It begins when its pause is over.
    var isParked = false
    private(set) var connection: Connection
    /// It is never sent over HTTP/2.
    private let needsHTTP1: Bool
    /// Kept from being sent on the connection that curl has chosen: the network had changed since, the connection before
    /// has ended without an answer, another request waits there for its answer, or it is paused.
    private var isTurnedBack = false
    /// Stopped, and still to be reset: what comes is thrown away.
    var isLingering = false {
        didSet {
            guard isLingering else { return }
            decoder = nil
            heldHead = nil
            kept = KeptBody()
        }
    }
    /// Cancelled, finished or failed: nothing more is reported.
    var isEnded = false
    /// Whether it was stopped before its end, by a callback or by `cancel`.
    private(set) var isAbandoned = false

    /// nil: private addresses are not denied.
    private let addressGuard: AddressGuard?
    private let sendsBody: Bool
    /// It outlives what runs on it, and a transfer that has ended does not look at it.
    private let transport: Unmanaged<CurlTransport>
    private var parser: ResponseHeadParser
    /// Its server is reached through a tunnel of a proxy's.
    let isTunnelled: Bool
    /// For what proxies answer to CONNECT.
    private var tunnelBudget: HeaderBudget
    /// How many connections had been made for it when it last got one that leads to its server.
    private var connectionsAtServer: Int?
    /// Has a connection, perhaps with others.
    private(set) var isConnected = false
    /// Its request goes out on that connection, or has.
    private var isSent = false
    /// Curl has neither ended it nor been told to.
    var hasStream: Bool { isSent && end == nil && !isAbandoned }
    /// Whether that is one of HTTP/2; nil: something of its answer has come since.
    private var unansweredInHTTP2: Bool?
    /// curl has sent it again by itself over HTTP/2, on a connection of any kind.
    private var isRepeated = false
    /// The name of that connection.
    private(set) var connectionName: UInt64 = 0
    /// Its connection kept curl busy, and was shut down.
    var hasKeptBusy = false
    /// That connection, where it is one of TLS.
    private var connectionSentOn: SecureConnections.Connection? {
        willSet { isKeptByCurl = false }
        didSet { countStream() }
    }
    /// The part of its body in front of what curl keeps.
    private var kept = KeptBody()
    /// Curl keeps what comes of its body, until it is to go on.
    private var isKeptByCurl = false {
        didSet {
            guard isKeptByCurl != oldValue, let connectionSentOn else { return }
            if isKeptByCurl { connectionSentOn.keptBodies += 1 } else { connectionSentOn.keptBodies -= 1 }
        }
    }
    /// The name of the connection of HTTP/2 on which it is counted.
    private var countedOn: UInt64?
    /// Bytes that its connection had brought by the time at which it was sent.
    private var readBytesBefore: UInt64 = 0
    /// Bytes that its connection had brought when curl gave it up, and that gave nothing of any answer.
    private var strayBytesAtLoss: UInt64 = 0
    /// The system's number for what failed before it had a connection: an address that is not reached, say.
    private var earlierError: Int32 = 0
    private var isDiscarding = false
    /// It is thrown away, and what it is coded with cannot be undone.
    private var isUndecodable = false
    /// Those of its body, as the head says.
    private var codings: [ContentCoding] = []
    /// Undoes them, once a byte has come.
    private var decoder: ContentDecoder?
    /// The memory that it holds, and bytes of `kept`, as they were told.
    private var toldOfCodings = 0
    private var toldOfKept = 0
    /// Its framing is HTTP/1.1's chunks.
    private var isChunked = false
    /// Curl's code for its end, or that of decoding that stopped it, where the end is told later.
    private(set) var end: CURLcode?
    /// It is asked to go on already.
    var isNudged = false
    /// So often curl is to read for it, once it is nudged: what is there to be read no socket tells of.
    var readsLeft = 0
    /// How much had been read for its connection when curl was last to read on for it.
    var readsOnFrom: UInt64?
    /// It waits for a turn of decoding.
    var isInLine = false
    /// Now or before.
    var hasBeenInLine = false
    /// The engine has been told so.
    var isWaiting = false
    /// Bytes of a coded body that have come since anything could be decoded.
    private var silentBytes = 0
    /// Bytes that have come of the encoded body.
    private var encodedBytes: Int64 = 0
    private var announcedBytes: Int64 = 0
    private var discardedBytes = 0
    /// Why a callback of ours told curl to stop.
    private var ownFailure: Failure?
    private var status: Int32 = 0
    /// A challenge that curl may answer by itself: nobody hears of it then.
    private var heldHead: ResponseHead?
    private var answeredChallenges = 0
    /// How often a connection that curl has chosen was not one for it. A new connection is one, but not for what is sent on it
    /// after the answer to a challenge.
    private var timesTurnedAway = 0
    private static let maximumTimesTurnedAway = 4
    private var sentBytes: Int64 = 0
    /// The last address that curl was not let connect to.
    private var refusedAddress: Failure?

    init(
        _ id: TransferID, _ request: __owned TransportRequest, addressGuard: AddressGuard?, transport: CurlTransport
    ) {
        self.id = id
        priority = request.priority
        self.addressGuard = addressGuard
        sendsBody = request.manner.hasBody
        self.transport = .passUnretained(transport)
        parser = ResponseHeadParser(maximumBytes: request.maximumHeaderBytes)
        tunnelBudget = HeaderBudget(maximumBytes: request.maximumHeaderBytes)
        isTunnelled = request.url.isSecure && transport.options.proxies.proxy(for: request.url) != nil
        self.request = request
        needsHTTP1 = request.body?.isEmpty == false && request.url.isSecure && !CurlVersion.canSendBodiesInHTTP2
        connection = needsHTTP1 ? .unshared : .any
    }

    /// Of those that will run on the handle with its options as they are now.
    func installCallbacks(on handle: EasyHandle) {
        handle.setCallbacks(
            body: { bytes, size, count, context in
                let bytes = UnsafeRawBufferPointer(start: bytes, count: size * count)
                return CurlTransfer.with(context) { transfer in
                    transfer.transport._withUnsafeGuaranteedRef { $0.watch.received(bytes.count) }
                    transfer.noteProgress(bytes.count)
                    transfer.readsOnFrom = nil
                    if transfer.isLingering { return transfer.passOver(bytes) ? bytes.count : bytes.count &+ 1 }
                    if !transfer.kept.isEmpty || transfer.keepsBodyBack || !transfer.takesPiece {
                        guard transfer.keep(bytes) else { return Int(CURL_WRITEFUNC_PAUSE) }
                        return transfer.goesOn { !$0.isEnded } ? bytes.count : bytes.count &+ 1
                    }
                    return transfer.goesOn { $0.receiveBody(bytes) } ? bytes.count : bytes.count &+ 1
                }
            },
            header: { bytes, size, count, context in
                let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
                return CurlTransfer.with(context) { transfer in
                    transfer.transport._withUnsafeGuaranteedRef { $0.watch.receivedLine(line.count) }
                    if transfer.isLingering {
                        transfer.noteProgress(line.count)
                        return transfer.passOver(header: line) ? line.count : line.count &+ 1
                    }
                    let goesOn = transfer.goesOn { $0.receiveHeader(line) }
                    // Interim responses give nothing of the answer.
                    if transfer.parser.part != .interim { transfer.noteProgress(line.count) }
                    return goesOn ? line.count : line.count &+ 1
                }
            },
            connected: { context, address, _, remotePort, localPort in
                CurlTransfer.with(context) { transfer in
                    let before = transfer.secureConnection
                    transfer.connectionName = system_connection_name(address, remotePort, localPort)
                    transfer.noteConnection()
                    guard !transfer.stopsRepetition(after: before), !transfer.turnsBack else {
                        return CURL_PREREQFUNC_ABORT
                    }
                    transfer.isSent = transfer.connected(to: address)
                    transfer.connectionSentOn = transfer.secureConnection
                    transfer.readBytesBefore = transfer.connectionSentOn?.readBytes ?? 0
                    transfer.unansweredInHTTP2 = transfer.isSent ? transfer.isHTTP2 : nil
                    guard !transfer.isSent else { return CURL_PREREQFUNC_OK }
                    transfer.abandon()
                    return CURL_PREREQFUNC_ABORT
                }
            })
        handle.setOpenSocket { context, purpose, address in
            CurlTransfer.with(context) { $0.openSocket(purpose, address!) }
        }
        if request.body?.isEmpty == false {
            handle.setProgress { context, _, _, _, sent in
                CurlTransfer.with(context) { $0.sent(Int64(sent)) }
                return 0
            }
        }
    }

    private func countStream() {
        let watch = transport._withUnsafeGuaranteedRef { $0.watch }
        if let countedOn { watch.streams(of: countedOn, by: -1) }
        countedOn = connectionSentOn?.isHTTP2 == true ? connectionName : nil
        if let countedOn { watch.streams(of: countedOn, by: 1) }
    }

    /// Since it was sent on that connection.
    private func readBytes(of connection: SecureConnections.Connection?) -> UInt64? {
        connection?.readBytes.map { $0 - min($0, readBytesBefore) }
    }

    /// Bytes that gave nothing of an answer: those that its connection has brought since it was sent, or since something came of
    /// any answer on it.
    func strayBytes(_ now: Instant) -> UInt64 { connectionSentOn?.mayKeepAnswer(now) == true ? 0 : strayBytes() }

    private func strayBytes() -> UInt64 {
        guard isSent, let connectionSentOn, let bytes = readBytes(of: connectionSentOn) else { return 0 }
        return min(bytes, connectionSentOn.strayBytes)
    }

    private func noteProgress(_ bytes: Int) {
        guard let connectionSentOn else { return }
        transport._withUnsafeGuaranteedRef {
            connectionSentOn.noteProgress(bytes, $0.now)
            if connectionSentOn.isExcessive, $0.isCrowded { $0.stopFlood(to: self) }
        }
    }

    /// Its stream has come to its end, or is reset from here, as a broken one is by nghttp2.
    func leavesConnection(isReset: Bool) {
        if isSent, isReset { connectionSentOn?.noteReset() }
        connectionSentOn = nil
    }

    /// Curl has come to its end: where that is no whole answer, it has given out whatever it had kept of one by then.
    func noteEnd(_ code: CURLcode) {
        guard code != CURLE_OK || !parser.isComplete else { return }
        strayBytesAtLoss = lostStrayBytes
        leavesConnection(isReset: true)
    }

    private var lostStrayBytes: UInt64 {
        let bytes = strayBytes()
        guard bytes >= Silence.floodBytes, let connectionSentOn else { return 0 }
        return transport._withUnsafeGuaranteedRef { $0.mayHoldBodies(on: connectionSentOn) } ? 0 : bytes
    }

    /// An answer has begun, or what comes of one is thrown away.
    func mayHaveBody(on connection: SecureConnections.Connection) -> Bool {
        connectionSentOn === connection && (parser.isComplete || isLingering)
    }

    private var secureConnection: SecureConnections.Connection? {
        guard let multi = lane?.multi, !multi.secureConnections.isEmpty else { return nil }
        return multi.secureConnections[connectionName]
    }

    func isOn(_ flood: CurlMulti.Flood) -> Bool {
        if isConnected { return connectionName == flood.connection }
        guard let handle, let user = flood.user else { return false }
        return user.isOn(handle.easy, addition: handle.addition)
    }

    /// By the context of its handle's callbacks. Nothing runs on a handle without a transfer, and none is taken off in
    /// a callback: so it is not counted for each line of a header.
    @inline(__always)
    private static func with<Result>(_ context: UnsafeMutableRawPointer?, _ body: (CurlTransfer) -> Result) -> Result {
        EasyHandle.transfer(context!)!._withUnsafeGuaranteedRef(body)
    }

    /// curl has come to an end without answering the challenge: it was the final response.
    func reportHeldHead(_ code: CURLcode) {
        guard code == CURLE_OK, !isEnded, let head = heldHead else { return }
        heldHead = nil
        _ = report(head)
    }

    /// What was measured, also of one that failed.
    var times: TransferTimes {
        var times = handle?.times(isConnected: isConnected, sendsBody: sendsBody) ?? TransferTimes()
        times.resolve += lookUpTime
        return times
    }

    /// What curl's result means; nil for success.
    func failure(for code: CURLcode) -> Failure? {
        if ownFailure != nil, var failure = ownFailure {
            if failure.status == 0 { failure.status = status }
            return failure
        }
        // Nobody wanted that body, so it does not matter how it ended.
        if isDiscarding { return nil }
        guard !hasKeptBusy || code == CURLE_OK else {
            return Failure(
                .flood,
                "the server kept this program busy with what belongs to no request, for "
                    + "\(TurnBudget.limit / 1_000_000) ms by itself or together with others: the connection was "
                    + "closed, all requests on it end, and none is tried again",
                status: status)
        }
        guard code != CURLE_OK else {
            return parser.isComplete ? unfinishedCoding : CurlErrors.cutHeader(outcome(code))
        }
        if code == CURLE_COULDNT_CONNECT, let refusedAddress { return refusedAddress }
        var failure = CurlErrors.failure(outcome(code))
        if connection == .unshared, !needsHTTP1, parser.bytes == 0,
            [.tlsFailed, .protocolError].contains(failure.code)
        {
            // The server had taken connections before, and none like the last one; or it says nothing of HTTP/1.1 on it.
            let what = failure.code == .tlsFailed ? "refused another connection, of" : "does not speak"
            failure.code = .connectionLost
            failure.message = "the server did not answer, and \(what) HTTP/1.1: \(failure.message)"
        }
        if failure.code == .tlsFailed, !isConnected {
            failure.message = options.namingFiles(in: failure.message)
            nameFile(in: &failure)
        }
        if [.tlsFailed, .tlsCertificate].contains(failure.code), let file = options.revocationLists?.name,
            handle?.isRevoked == true, !request.tls.allowsInvalidCertificates
        {
            failure.message += " (crl_file “\(file)”)"
        }
        failure.status = status
        return failure
    }

    /// What curl says of a file does not name it.
    private func nameFile(in failure: inout Failure) {
        guard let certificate = request.tls.clientCertificate else { return }
        let key = request.tls.clientKey
        // Where curl has words for a file that it was given the contents of.
        failure.message = failure.message.replacing("CURLOPT_SSLCERT_BLOB", with: "“\(certificate)”")
            .replacing("'(memory blob)'", with: "“\(key ?? certificate)”")
        failure.message += " (client_certificate “\(certificate)”"
        failure.message += key.map { ", client_key “\($0)”)" } ?? ")"
    }

    private func outcome(_ code: CURLcode) -> CurlOutcome {
        let connection = secureConnection
        let outcome = CurlOutcome(
            code: code, method: request.method, message: handle?.errorMessage ?? "", isConnected: isConnected,
            hasHead: parser.isComplete, isChunked: isChunked, headerBytes: parser.bytes,
            maximumHeaderBytes: request.maximumHeaderBytes, bodyBytes: handle?.bodyBytes ?? 0,
            announcedBytes: handle?.announcedBytes, headerPart: parser.part,
            lastFieldName: parser.lastFieldName, systemError: systemError,
            handshake: handle?.handshakeEnd ?? CCURL_HANDSHAKE_UNKNOWN,
            isHTTP2: connection?.isHTTP2 ?? false, isShared: connection?.isShared ?? false,
            isFlooded: connection?.isFlooded ?? false, isFirst: connection?.hasFailed != true,
            readBytes: isSent ? readBytes(of: connection) : 0, strayBytes: strayBytesAtLoss,
            secureEnd: connection?.end ?? CCURL_SECURE_UNKNOWN,
            usesClientCertificate: request.tls.clientCertificate != nil, proxyStatus: handle?.proxyStatus ?? 0,
            isTunnelled: isTunnelled, proxy: proxy,
            secrets: options.proxies.secrets + QueryRedaction.secrets(request.url.canonical))
        connection?.hasFailed = true
        if CurlErrors.isFlood(outcome) { lane?.multi.secureConnections.noteFlood(of: connectionName) }
        return outcome
    }

    /// The system's number for what failed on its connection; 0 for none.
    private var systemError: Int32 {
        let error = handle?.systemError ?? 0
        return error == earlierError ? 0 : error
    }

    private var unfinishedCoding: Failure? {
        do throws(Failure) {
            try decoder?.finish()
            return nil
        } catch {
            return Failure(error.code, error.message, status: status)
        }
    }

    /// What its next connection has to be.
    enum Connection {
        case any
        /// A new one, which other streams may come to use.
        case fresh
        /// A new one that nobody else comes to use: of HTTP/1.1.
        case unshared
    }

    /// Whether to begin again, on another connection. curl repeats a request that the server has not looked at (its stream
    /// came after the GOAWAY, or its connection had been closed), but on connections shared with others that may end in
    /// the same way, and not more than once (see `stopsRepetition`). The first stream of a connection is looked at, but its
    /// answer is lost where the server closes the connection while others still send to it: the last attempt shares it with
    /// nobody.
    func beginsAgain(after code: CURLcode) -> Bool {
        guard !isEnded, !hasKeptBusy, !parser.isComplete, ownFailure == nil, let loss = loss(code),
            RetryRules.maySendAgain(
                request.method, inHTTP2: isHTTP2, after: loss, hasAnswer: parser.bytes > 0)
        else { return false }
        switch connection {
        case .any: connection = .fresh
        case .fresh where request.url.isSecure: connection = .unshared
        default: return false
        }
        forgetConnection()
        return true
    }

    /// Whether it was turned back: then it begins anew, with its look-up. Of an answer it has a challenge at most.
    var beginsAnew: Bool {
        guard isTurnedBack, !isEnded, !hasKeptBusy else { return false }
        isTurnedBack = false
        heldHead = nil
        kept = KeptBody()
        tellOfMemory()
        forgetConnection()
        return true
    }

    /// Its pause is over: the engine hears of its next connection as of a first one.
    func leavesPark() {
        isParked = false
        isConnected = false
    }

    /// Connections are counted anew, and the next one may have a tunnel to be made. So are the bytes of its body that are sent.
    private func forgetConnection() {
        connectionSentOn = nil
        strayBytesAtLoss = 0
        connectionsAtServer = nil
        isSent = false
        sentBytes = 0
        unansweredInHTTP2 = nil
        readsLeft = 0
        readsOnFrom = nil
        parser = ResponseHeadParser(maximumBytes: request.maximumHeaderBytes)
    }

    /// How curl's code for its end says that it has no answer, for no fault of its own. nil: it does not.
    private func loss(_ code: CURLcode) -> RetryRules.Loss? {
        guard let handle else { return nil }
        let outcome = outcome(code)
        // It would come again on each connection.
        if CurlErrors.isFlood(outcome) { return nil }
        if handle.isTurnedAway || CurlErrors.isUnseenRequest(code, handle.errorMessage) { return .refused }
        switch CurlErrors.excess(outcome) {
        // That may have been another's, where there were others.
        case .header: return outcome.isShared ? .lost : nil
        // A flood has been told by now.
        case .flood, nil: break
        }
        // Where a connection was used before, the server may have sent more than it had announced, which has spoilt it for
        // whoever came next; or it had broken down without a word to curl; or what broke the rules was for somebody else.
        if handle.newConnections == 0 {
            return code == CURLE_HTTP2 || Self.endsOfSpoiltConnections.contains(code) ? .lost : nil
        }
        if CurlErrors.isReset(outcome) { return .lost }
        // In HTTP/2 most often a GOAWAY that does not count its stream.
        return code == CURLE_HTTP2 && !CurlErrors.isBreachOfHTTP2(outcome) ? .lost : nil
    }

    private static var endsOfSpoiltConnections: [CURLcode] {
        [
            CURLE_GOT_NOTHING, CURLE_HTTP2_STREAM, CURLE_PARTIAL_FILE, CURLE_RECV_ERROR, CURLE_SEND_ERROR,
            CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY,
        ]
    }

    /// The handshake says it; where there is none to ask, as with a proxy, the server's last answer does.
    var isHTTP2: Bool {
        lane?.multi.secureConnections[connectionName]?.isHTTP2 ?? (server?.isHTTP2 == true)
    }

    var proxy: Proxy? { options.proxies.proxy(for: request.url) }

    private var options: RequestOptions { transport._withUnsafeGuaranteedRef(\.options) }

    /// Neither the transport nor whom it reports to is counted for it.
    @inline(__always)
    private func tell<Result>(_ report: (any TransportEvents) -> Result) -> Result {
        transport._withUnsafeGuaranteedRef { report($0.events) }
    }

    // MARK: curl's callbacks; false stops the transfer

    func abandon() {
        isAbandoned = true
        handle?.forbidReuse()
    }

    /// Where a callback stops it, its stream may have to wait for its reset: then curl goes on with that.
    private func goesOn(_ callback: (CurlTransfer) -> Bool) -> Bool {
        callback(self) || transport._withUnsafeGuaranteedRef { $0.stopsLater(self) }
    }

    /// Asked right before anything is sent, also what curl sends by itself: the answer to a challenge, what a kept connection
    /// has not answered. Whoever is to be stopped is not turned back.
    private var turnsBack: Bool {
        guard !isEnded else { return false }
        let isPauseUnheard = tell { events in
            events.lookAtNetwork()
            return events.isPauseUnheard
        }
        isTurnedBack = lane?.isLeft == true || isPaused || isPauseUnheard
        if !isTurnedBack, isConnectionTaken || hasUnaskedAnswer {
            isTurnedBack = true
            connection = .fresh
            timesTurnedAway += 1
        }
        if timesTurnedAway > Self.maximumTimesTurnedAway {
            ownFailure = Failure(.protocolError, "the server sends more than it is asked for, again and again")
            abandon()
            isTurnedBack = false
            return true
        }
        if isTurnedBack, unansweredInHTTP2 == false, connection == .any { connection = .fresh }
        return isTurnedBack
    }

    /// Where it has made the connection itself.
    private func noteConnection() {
        if let handle { lane?.multi.noteConnected(handle) }
        let isInTLS = isTunnelled && proxy?.isSecure == true
        if let connection = handle?.takeConnection(port: request.url.port, isInTLS: isInTLS) {
            lane?.multi.secureConnections.note(connection, connectionName)
            if connection.isHTTP2 { lane?.multi.beginsUse(of: connectionName) }
        } else if let multi = lane?.multi, !multi.secureConnections.isEmpty {
            multi.secureConnections.forget(ifClosed: connectionName)
        }
    }

    /// Whether the answer to another request has still to come on the connection of HTTP/1.1 that curl has chosen. Once a
    /// server has spoken HTTP/2, curl (7.88 at least) has requests share its other connections, too, and each would get the
    /// answer that comes next, whosever it is.
    private var isConnectionTaken: Bool {
        guard let user = lane?.multi.secureConnections.lastUser(ofShared: connectionName), user != id else {
            return false
        }
        return transport._withUnsafeGuaranteedRef { $0.holds(user, connection: connectionName) }
    }

    /// Whether something has come, while nobody asked for anything, on the connection of HTTP/1.1 that curl has chosen: it would
    /// be taken for this request's answer, whosever it is. curl (7.88 at least) sends on such a connection.
    private var hasUnaskedAnswer: Bool { !isHTTP2 && lane?.multi.beginsUseWithUnread(of: connectionName) == true }

    /// Asked before that, as what may not be sent again does not begin anew either. curl sends a request whose kept connection
    /// ends without an answer on the next kept one, up to five times, and whatever its method. It goes on a new one instead,
    /// once; and nowhere where it may not be sent again. It is the connection before that counts, whatever the next one speaks.
    ///
    /// What HTTP/2 refuses curl sends as often again, on each kind of connection. It does so once: then a new connection has its
    /// turn, and at last one of its own: four times in all.
    private func stopsRepetition(after connectionBefore: SecureConnections.Connection?) -> Bool {
        guard let isHTTP2 = unansweredInHTTP2, !isEnded, connection != .unshared else { return false }
        // A server that floods the connection before is not asked again.
        var before = CurlOutcome(
            code: CURLE_RECV_ERROR, message: handle?.messageOfLastConnection ?? "", isHTTP2: isHTTP2,
            isFlooded: connectionBefore?.isFlooded ?? false,
            readBytes: readBytes(of: connectionBefore), strayBytes: lostStrayBytes)
        if CurlErrors.isFlood(before) {
            before.isFlooded = true
            ownFailure = CurlErrors.failure(before)
            abandon()
            return true
        }
        guard RetryRules.maySendAgain(request.method, inHTTP2: isHTTP2, after: .repeated, hasAnswer: false) else {
            ownFailure = Failure(
                .connectionLost,
                "the server closed the connection without an answer; \(request.method) is not sent again, since the server "
                    + "may have done what it asks")
            abandon()
            return true
        }
        switch connection {
        case .any where isHTTP2:
            guard isRepeated else {
                isRepeated = true
                return false
            }
            connection = .fresh
        case .any where handle?.newConnections == 0: connection = .fresh
        case .fresh where isHTTP2: connection = .unshared
        default: return false
        }
        isTurnedBack = true
        return true
    }

    /// Also asked for a connection that is used again.
    private func connected(to address: UnsafePointer<CChar>?) -> Bool {
        guard !isEnded else { return false }
        if let addressGuard {
            let text = address.map { String(cString: $0) } ?? ""
            if let refusal = addressGuard.refusal(ofAddress: text, host: request.url.host) {
                ownFailure = refusal
                return false
            }
        }
        lane?.multi.secureConnections[connectionName]?.serve(id) { other in
            transport._withUnsafeGuaranteedRef { $0.transfers[other]?.isEnded == false }
        }
        if server != nil, !holdsConnection {
            holdsConnection = true
            transport._withUnsafeGuaranteedRef { $0.connected(self) }
        }
        if isTunnelled { connectionsAtServer = handle?.newConnections }
        // curl asks again when it repeats the request because a kept connection turned out to be dead.
        if !isConnected {
            isConnected = true
            earlierError = handle?.systemError ?? 0
            tell { $0.transferConnected(id) }
        }
        return !isEnded
    }

    private func receiveHeader(_ line: UnsafeRawBufferPointer) -> Bool {
        guard !isEnded, ownFailure == nil else { return false }
        unansweredInHTTP2 = nil
        if isTunnelled, connectionsAtServer != handle?.newConnections { return receiveTunnelHeader(line) }
        if heldHead != nil, ResponseHeadParser.isStatusLine(line) {
            heldHead = nil
            answeredChallenges += 1
            guard answeredChallenges <= Self.maximumChallenges else {
                ownFailure = Failure(.protocolError, "the server asks for credentials again and again", status: status)
                return false
            }
            parser.restart()
        }
        switch parser.receive(line) {
        case .more:
            return true
        case .failed(let failure):
            ownFailure = failure
            return false
        case .complete:
            do throws(Failure) {
                var head = try parser.takeHead()
                if request.usesCookies { head.sentCookies = handle?.cookies }
                status = head.status
                server?.answers(inHTTP2: head.httpVersion >= 20)
                let setsCookies = takeCookies(head)
                guard !mayBeAnswered(head.status) else {
                    heldHead = head
                    if setsCookies, let handle { options.setFields(request, on: handle) }
                    return true
                }
                return report(head)
            } catch {
                ownFailure = error
                return false
            }
        }
    }

    /// curl reads what a proxy answers to CONNECT, and keeps it.
    private func receiveTunnelHeader(_ line: UnsafeRawBufferPointer) -> Bool {
        do throws(Failure) {
            try tunnelBudget.take(line, of: .tunnel)
            return true
        } catch {
            ownFailure = error
            return false
        }
    }

    /// Those of interim responses are passed over, and so are a proxy's, which speaks for no server. Whether there are any.
    private func takeCookies(_ head: ResponseHead) -> Bool {
        guard request.usesCookies, head.status != 407 else { return false }
        return options.cookies.receive(head, from: request.url, request.partition)
    }

    /// curl may ask again by itself, with the credentials that it has.
    private func mayBeAnswered(_ status: Int32) -> Bool {
        switch status {
        case 401: request.credential != nil && request.fields.first(named: "Authorization") == nil
        case 407: proxy != nil
        default: false
        }
    }

    private func report(_ head: consuming ResponseHead) -> Bool {
        if head.status == 407, proxy != nil {
            ownFailure = Failure(.proxyFailed, "the proxy answered 407: it wants other credentials", status: 407)
            return false
        }
        isChunked =
            head.httpVersion == 11 && head.contentLength == nil && head.first(named: "Transfer-Encoding") != nil
            && ResponseHeadParser.isChunked(head.fields)
        if head.httpVersion < 20, head.contentLength == nil, !isChunked, !head.isEncoded { head.bodyEnd = .closing }
        codings = head.isEncoded ? ResponseHeadParser.contentCodings(head.fields).compactMap(ContentCoding.init) : []
        decoder = nil
        tellOfMemory()
        encodedBytes = 0
        guard case .discard = tell({ $0.transferReceived(id, head: head) }) else { return !isEnded }
        isDiscarding = true
        announcedBytes = head.contentLength ?? 0
        // The beginning of an error page says what is wrong; that of a redirect says nothing.
        return !isEnded && (!(300...399).contains(head.status) || announcedBytes <= Int64(Self.discardLimit))
    }

    // MARK: Pausing

    /// Asked before each piece of a body.
    private var keepsBodyBack: Bool { holdsBody || decoder?.isBusy == true }

    /// Room for another piece in this turn of curl; else the transfer goes on when it has its turn in line.
    private var takesPiece: Bool { transport._withUnsafeGuaranteedRef { $0.takesPiece(of: self) } }

    /// Nobody takes the body at present.
    private var holdsBody: Bool { isPaused && !isDiscarding && !isEnded }

    /// False: curl keeps it.
    private func keep(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard CurlVersion.needsRoomInStreams, !isKeptByCurl, connectionSentOn?.isHTTP2 == true, kept.append(bytes)
        else {
            isKeptByCurl = true
            return false
        }
        tellOfMemory()
        return true
    }

    /// Lets it go on, if it is not paused and does not wait in line, and sends what curl has to say for it.
    func goOn() {
        if let decoder, decoder.isBusy, !holdsBody, !isInLine {
            guard decode({ body throws(Failure) in try decoder.resume(body) }) else { return stop() }
            if self.decoder?.isBusy == true { return }
        }
        guard kept.isEmpty || giveKept() else { return stop() }
        if end == nil { flush() }
    }

    /// As much as may go on. False stops the transfer.
    private func giveKept() -> Bool {
        while !kept.isEmpty, !keepsBodyBack, takesPiece {
            let piece = kept.take()
            tellOfMemory()
            guard piece.withUnsafeBytes({ receiveBody($0) }) else { return false }
        }
        return true
    }

    /// Outside of curl's callbacks.
    private func stop() {
        if transport._withUnsafeGuaranteedRef({ $0.stopsLater(self) }) { return }
        abandon()
        end = end ?? CURLE_WRITE_ERROR
    }

    /// Sends what curl has to say for it. Where a callback refuses what curl had kept of the body, curl does nothing more for it:
    /// it is ready to end then.
    func flush() {
        let wasAbandoned = isAbandoned
        lane?.multi.noteUse()
        isKeptByCurl = false
        handle?.flush()
        if isAbandoned, !wasAbandoned { end = end ?? CURLE_WRITE_ERROR }
    }

    /// Some of what has come is still to be given out or decoded. A transfer that was stopped gets no more of it.
    private var hasMore: Bool { !isEnded && !isAbandoned && (decoder?.isBusy == true || !kept.isEmpty) }

    /// False where its end is told when the rest of its body has been given out.
    func curlEnds(_ code: CURLcode) -> Bool {
        guard hasMore else { return true }
        end = code
        return false
    }

    /// Its end is to be told: curl is done with it and all is given out, or a callback has stopped it that curl did not wait for.
    var isReadyToEnd: Bool { end != nil && !isEnded && !hasMore }

    // MARK: The body

    private func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard !isEnded, ownFailure == nil else { return false }
        if let head = heldHead {
            heldHead = nil
            guard report(head) else { return false }
        }
        guard !codings.isEmpty else { return deliver(bytes) }
        if isDiscarding, discardedBytes >= BodyDisposition.previewBytes || isUndecodable {
            decoder = nil
            tellOfMemory()
            return discard(bytes.count)
        }
        guard let decoder = decoderOfBody() else { return isUndecodable && discard(bytes.count) }
        silentBytes += bytes.count
        guard isDiscarding || mayTake(bytes.count) else { return false }
        if transport._withUnsafeGuaranteedRef(\.decodesInLine) {
            decoder.keep(bytes)
            transport._withUnsafeGuaranteedRef { $0.goOnInLine(self) }
        } else {
            let goesOn = decode { body throws(Failure) in try decoder.decode(bytes, body) }
            transport._withUnsafeGuaranteedRef { $0.decoded(decoder.producedBytes, in: decoder.usedTime) }
            guard goesOn else { return false }
        }
        // A server that sends is not idle; one that sends what means nothing is.
        if (1...Self.maximumSilentBytes).contains(silentBytes), !isDiscarding { tell { $0.transferAdvanced(id) } }
        return !isEnded
    }

    /// Undoes the codings of as much as somebody takes, and as one turn allows. False stops the transfer.
    private func decode(
        _ step: ((UnsafeRawBufferPointer) -> Bool) throws(Failure) -> ContentDecoder.Outcome
    ) -> Bool {
        var goesOn = true
        do throws(Failure) {
            let outcome = try step { bytes in
                goesOn = deliver(bytes)
                return goesOn && !holdsBody
            }
            if goesOn, case .turnIsOver = outcome { transport._withUnsafeGuaranteedRef { $0.goOnInLine(self) } }
        } catch {
            goesOn = isDiscarding ? cannotDecode() : fail(error)
        }
        guard goesOn else { return false }
        // The transfer may be cancelled by whoever hears it.
        tellOfMemory()
        return !isEnded
    }

    /// A limit of the body holds for its codings, too: they can be as long as a server likes and mean nothing.
    private func mayTake(_ count: Int) -> Bool {
        encodedBytes += Int64(count)
        guard encodedBytes > ResponseRules.encodedAllowance(0) else { return true }
        // The limit is asked for each time: who takes the most may leave, and a challenge's body may become an answer's.
        let limit = tell { $0.bodyLimit(id) }
        guard encodedBytes > ResponseRules.encodedAllowance(limit) else { return true }
        return fail(ResponseRules.bodyLimit(limit, encoded: encodedBytes))
    }

    /// nil: there is none, and its failure is known or does not matter.
    private func decoderOfBody() -> ContentDecoder? {
        if let decoder { return decoder }
        do throws(Failure) {
            decoder = try ContentDecoder(codings)
        } catch {
            if isDiscarding { _ = cannotDecode() } else { _ = fail(error) }
        }
        return decoder
    }

    /// Tells what undoing codings takes, and what is kept, where they have changed.
    private func tellOfMemory() {
        let bytes = decoder?.heldBytes ?? 0
        if bytes != toldOfCodings, !isEnded {
            toldOfCodings = bytes
            tell { $0.transferHoldsCodings(id, bytes) }
        }
        if kept.count != toldOfKept, !isEnded {
            toldOfKept = kept.count
            tell { $0.transferHolds(id, kept.count, isEncoded: !codings.isEmpty) }
        }
    }

    private func fail(_ failure: Failure) -> Bool {
        ownFailure = failure
        return false
    }

    /// A body that nobody wants need not be understood.
    private func cannotDecode() -> Bool {
        isUndecodable = true
        decoder = nil
        return true
    }

    /// To whoever wants it, with its codings undone. False stops the transfer.
    private func deliver(_ bytes: UnsafeRawBufferPointer) -> Bool {
        silentBytes = 0
        guard isDiscarding else {
            if !bytes.isEmpty { tell { $0.transferReceived(id, body: bytes) } }
            return !isEnded
        }
        let preview = bytes.prefix(max(0, BodyDisposition.previewBytes - discardedBytes))
        if !preview.isEmpty { tell { $0.transferReceived(id, body: UnsafeRawBufferPointer(rebasing: preview)) } }
        return discard(bytes.count)
    }

    /// Of a body that nobody wants. False: the rest costs more than a new connection.
    private func discard(_ count: Int) -> Bool {
        discardedBytes += count
        let isKnownToBeLong = announcedBytes > Int64(Self.discardLimit)
        let limit = isKnownToBeLong ? BodyDisposition.previewBytes - 1 : Self.discardLimit
        return !isEnded && discardedBytes <= limit
    }

    // MARK: Waiting for a reset

    /// Bytes of a stream that waits for its reset. One that costs more than a reset is reset ahead of its turn, unless too
    /// many were.
    private func passOver(_ bytes: UnsafeRawBufferPointer) -> Bool {
        discardedBytes += bytes.count
        guard discardedBytes > Self.discardLimit, transport._withUnsafeGuaranteedRef({ $0.takeResetAhead(of: self) })
        else { return true }
        abandon()
        return false
    }

    /// A line that nobody reads, and that libcurl keeps: one that has too many is reset whatever the pace, since memory has
    /// to have a bound, and that is counted.
    private func passOver(header line: UnsafeRawBufferPointer) -> Bool {
        if parser.hasRoom(for: line) { return true }
        server?.resets.use(transport._withUnsafeGuaranteedRef(\.now))
        abandon()
        return false
    }

    private func sent(_ count: Int64) {
        guard !isEnded, count > sentBytes else { return }
        sentBytes = count
        // Frames that the server sends for each piece of a body belong to that.
        noteProgress(0)
        tell { $0.transferSent(id) }
    }

    private func openSocket(_ purpose: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
        guard allows(address), let lane else { return CURL_SOCKET_BAD }
        return lane.multi.noteSocket(ccurl_open_socket(purpose, address), for: handle?.easy)
    }

    private func allows(_ address: UnsafePointer<curl_sockaddr>) -> Bool {
        var bytes: UnsafePointer<UInt8>?
        let count = ccurl_address_bytes(address, &bytes)
        let refusal = addressGuard?.refusal(
            of: UnsafeBufferPointer(start: bytes, count: count), host: request.url.host)
        refusedAddress = refusal ?? refusedAddress
        return refusal == nil
    }
}
