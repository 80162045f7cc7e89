import CCurl
import ImgdlCore

/// One of curl's easy handles with all that must live as long as a transfer on it. Used again: for a request that differs
/// in its URL alone as it is, for others after `reset`, which leaves its buffers.
final class EasyHandle {
    let easy: UnsafeMutableRawPointer
    private let errorBuffer: UnsafeMutablePointer<CChar>
    private var fields: TextList?
    private var addresses: TextList?
    /// Contents of files that libcurl reads where they are.
    private var files: [FileContents] = []
    /// What its connections resume.
    private let sessions: TLSSessions?
    /// What its options say, but for the URL; nil when it has none, or some for one transfer alone.
    var setup: HandleSetup?
    /// Which runs on it: what its callbacks report to. Not held: the transport does, until it has taken it off.
    var transfer: Unmanaged<CurlTransfer>?
    /// Which of the additions to its multi handle was its last one.
    var addition: UInt64 = 0
    /// The Cookie field that its transfer sends of a jar; nil: none.
    var cookies: [UInt8]?
    /// The parts of its URL, once it has been used again.
    var parts: OpaquePointer?
    /// Whether curl takes its URL from there.
    var usesParts = false
    /// Whether curl is told what to send in the request line.
    var usesTarget = false
    /// The TLS handshake that its transfer began, if any.
    private let handshake: UnsafeMutablePointer<OpaquePointer?>
    private var takenHandshake: OpaquePointer?
    private let stream: UnsafeMutablePointer<ccurl_stream>
    /// The first option that curl refused; options are set in a row and asked for once.
    private var status = CURLE_OK

    init(_ sessions: TLSSessions? = nil) throws(Failure) {
        guard let easy = curl_easy_init() else { throw Failure(.outOfMemory, "no memory for a transfer") }
        self.easy = easy
        self.sessions = sessions
        errorBuffer = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorBuffer.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        handshake = .allocate(capacity: 1)
        handshake.initialize(to: nil)
        stream = .allocate(capacity: 1)
        stream.initialize(to: ccurl_stream())
        setBufferSize()
        if let sessions { note(ccurl_set_share(easy, sessions.share)) }
    }

    deinit {
        curl_easy_cleanup(easy)
        curl_url_cleanup(parts)
        errorBuffer.deallocate()
        ccurl_forget_handshake(handshake)
        handshake.deallocate()
        stream.deallocate()
    }

    /// False when it cannot be used again: after a stream whose connection others still use, curl 7.88 keeps the receive
    /// buffer, and refuses to be told its size.
    func reset() -> Bool {
        curl_easy_reset(easy)
        fields = nil
        addresses = nil
        files = []
        dropParts()
        setup = nil
        cookies = nil
        forgetOutcome()
        setBufferSize()
        return status == CURLE_OK
    }

    /// Forgets what was said of the transfer before. `messageOfLastConnection` begins at either of the first two characters.
    func forgetOutcome() {
        errorBuffer.update(repeating: 0, count: 2)
        stream.pointee = ccurl_stream()
        status = CURLE_OK
        guard handshake.pointee != nil else { return }
        ccurl_forget_handshake(handshake)
        takenHandshake = nil
    }

    /// For `isTurnedAway`.
    func watchStream() { note(ccurl_watch_stream(easy, stream)) }

    /// A GOAWAY said that the server has not looked at its transfer's stream, if that is watched.
    var isTurnedAway: Bool { stream.pointee.is_turned_away }

    func watchHandshakes() { note(ccurl_watch_handshakes(easy, handshake)) }

    /// The connection of a handshake that has been begun since this was asked last. `isInTLS`: it goes through a proxy's.
    func takeConnection(port: UInt16, isInTLS: Bool) -> SecureConnections.Connection? {
        guard let begun = handshake.pointee, begun != takenHandshake else { return nil }
        takenHandshake = begun
        if !isInTLS { ccurl_leave_outer(begun) }
        return SecureConnections.Connection(begun, port: port)
    }

    var handshakeEnd: ccurl_handshake_end { ccurl_handshake_end(handshake.pointee) }
    /// Its server's certificate was not taken because of revocation lists.
    var isRevoked: Bool { ccurl_is_revoked(handshake.pointee) }

    /// The system's number for the last thing that failed on this handle, and none that ended well; 0 for none. Versions
    /// below 8.8 keep it over a transfer's end.
    var systemError: Int32 { Int32(ccurl_get_long(easy, CURLINFO_OS_ERRNO)) }

    var errorMessage: String { String(cString: errorBuffer) }

    /// curl's words about the connection before, once the transfer has another one: to be searched, not shown. From 8.19.0 on
    /// curl empties the buffer when it connects anew, but only the first character goes.
    var messageOfLastConnection: String {
        errorBuffer.pointee == 0 ? String(cString: errorBuffer + 1) : errorMessage
    }

    /// The proxy's answer to CONNECT.
    var proxyStatus: Int { ccurl_get_long(easy, CURLINFO_HTTP_CONNECTCODE) }

    /// What runs on the handle that this is the context of, which lives as long as curl has it. Neither is counted: each
    /// line of a header asks.
    @inline(__always)
    static func transfer(_ context: UnsafeMutableRawPointer) -> Unmanaged<CurlTransfer>? {
        Unmanaged<EasyHandle>.fromOpaque(context)._withUnsafeGuaranteedRef(\.transfer)
    }

    func set(_ option: CURLoption, _ value: Int) { note(ccurl_set_long(easy, option, value)) }

    func set(_ option: CURLoption, _ value: String?) {
        // An optional string would be copied for curl, which makes a copy of its own.
        guard let value else { return note(ccurl_set_string(easy, option, nil)) }
        value.withCString { note(ccurl_set_string(easy, option, $0)) }
    }

    /// Curl reads them where they are.
    func set(_ option: CURLoption, _ value: FileContents) {
        files.append(value)
        note(ccurl_set_blob(easy, option, value.bytes.baseAddress, value.bytes.count))
    }

    /// For this transfer, not for the next one like it.
    func setOnce(_ option: CURLoption, _ value: Int) {
        set(option, value)
        setup = nil
    }

    func setBody(_ bytes: [UInt8]) { note(ccurl_set_body(easy, bytes, bytes.count)) }

    func setErrorBuffer() { note(ccurl_set_error_buffer(easy, errorBuffer)) }

    /// The callbacks get this handle for their context, so they are set once for many transfers.
    func setCallbacks(body: curl_write_callback, header: curl_write_callback, connected: curl_prereq_callback) {
        note(ccurl_set_callbacks(easy, context, body, header, connected))
    }

    private var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    func setCloseSocket(_ context: UnsafeMutableRawPointer, _ close: curl_closesocket_callback) {
        note(ccurl_set_close_socket(easy, context, close))
    }

    /// With this handle's context.
    func setOpenSocket(_ open: curl_opensocket_callback) { note(ccurl_set_open_socket(easy, context, open)) }

    func setProgress(_ progress: curl_xferinfo_callback) {
        note(ccurl_set_progress(easy, context, progress))
    }

    /// Best effort, also while it runs: low 1, normal 16 as HTTP/2 has it, high 256.
    func setPriority(_ priority: Priority) {
        ccurl_set_long(easy, CURLOPT_STREAM_WEIGHT, priority == .normal ? 16 : priority == .high ? 256 : 1)
        setup = nil
    }

    /// Lines in curl's syntax: "Name: value", "Name;" for an empty value, "Name:" for none at all; in place of those before.
    /// nil: there was no memory for them.
    func setFields(_ lines: TextList?) {
        guard let lines else { return note(CURLE_OUT_OF_MEMORY) }
        note(ccurl_set_list(easy, CURLOPT_HTTPHEADER, lines.first))
        fields = lines
    }

    /// Tells curl a name's addresses. The plus sign makes them as short-lived as any others.
    func setAddresses(_ list: [String], of server: NamedServer) {
        let joined = list.map { $0.utf8.contains(UInt8(ascii: ":")) ? "[\($0)]" : $0 }.joined(separator: ",")
        guard let lines = TextList(["+\(server.host):\(server.port):\(joined)"]) else {
            return note(CURLE_OUT_OF_MEMORY)
        }
        note(ccurl_set_list(easy, CURLOPT_RESOLVE, lines.first))
        addresses = lines
    }

    /// Before an unfinished transfer ends: closes its connection unless others use it, too. curl 7.88 keeps an HTTP/2
    /// connection with the stream's RST_STREAM unsent in its buffer (curl issue 17611), and the server goes on sending.
    func forbidReuse() {
        ccurl_set_long(easy, CURLOPT_FORBID_REUSE, 1)
        setup = nil
    }

    /// Sends what curl has to say for this stream and has buffered for its connection (the other half of the
    /// work-around), and lets a paused transfer go on: the callback for the body may be called.
    func flush() { Self.flush(easy) }

    /// Has curl look at the transfer at once.
    static func flush(_ easy: UnsafeMutableRawPointer) {
        curl_easy_pause(easy, CURLPAUSE_RECV)
        curl_easy_pause(easy, CURLPAUSE_CONT)
    }

    /// Throws when curl refused one of the options set since `reset`.
    func check() throws(Failure) {
        guard status != CURLE_OK else { return }
        setup = nil
        let code: ErrorCode = status == CURLE_OUT_OF_MEMORY ? .outOfMemory : .internal
        throw Failure(code, "libcurl refuses an option: \(String(cString: curl_easy_strerror(status)))")
    }

    /// Bytes of a transfer that curl reads at once, and of HTTP/2 for each other stream, before it gives any of them out.
    static let bufferBytes = 64 << 10

    private func setBufferSize() { set(CURLOPT_BUFFERSIZE, Self.bufferBytes) }

    func note(_ code: CURLcode) {
        if status == CURLE_OK { status = code }
    }
}
