import CNghttp2
import COrigin
import Glibc
import Origin

/// One HTTP/2 connection. Its thread reads, writes and waits; scripts on other threads submit frames under the lock
/// and wake it. nghttp2 calls back with the lock held, so callbacks touch fields directly and never lock.
final class HTTP2Session: StreamCarrier, @unchecked Sendable {
    final class Stream {
        var request: Request
        /// What the script has sent and nghttp2 has not yet taken, as far as it is not before `start`.
        var unsent: [UInt8] = []
        var start = 0
        var hasEnded = false
        var isDeferred = false
        var runsScript = false
        /// What a script asked for after its bytes: done when none are left.
        var afterwards: [() -> Void] = []
        init(_ request: Request) { self.request = request }
    }

    let connection: Connection
    var signals: Signals { connection.signals }
    var streams: [Int32: Stream] = [:]
    let script: (String) -> HTTP2Origin.Script
    private let lock = Monitor(())
    private let scripts = ThreadGroup()
    private let wake: Int32
    private var session: OpaquePointer?
    private var isClosed = false
    private var closesWhenFlushed = false
    /// To be done by the connection's thread when all that is due has been sent.
    private var afterwards: [() -> Void] = []

    init?(
        _ connection: Connection, maxConcurrentStreams: Int,
        script: @escaping (String) -> HTTP2Origin.Script
    ) {
        self.connection = connection
        self.script = script
        wake = corigin_wake_new()
        guard wake >= 0 else { return nil }
        session = makeNghttp2Session(for: self)
        guard let session else { return nil }
        let settings = [
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue),
                value: UInt32(maxConcurrentStreams))
        ]
        nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), settings, settings.count)
    }

    deinit {
        nghttp2_session_del(session)
        close(wake)
    }

    // MARK: The connection's thread

    func run() {
        do {
            // The client's first frames may have come with the end of its handshake.
            try receivePending()
            while try flush() {
                var waits = [
                    pollfd(fd: connection.socket.descriptor, events: Int16(POLLIN), revents: 0),
                    pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
                ]
                guard poll(&waits, 2, -1) >= 0 || errno == EINTR else { break }
                if waits[1].revents != 0 { corigin_wake_clear(wake) }
                if waits[0].revents != 0 { try receive() }
            }
            // Closing with bytes of the client unread would be a reset, which takes from it what it has not read yet.
            connection.closeAfterReading()
        } catch {
            // The client has gone or speaks no HTTP/2: either way this connection is over.
        }
        connection.close()
        lock.change { _ in
            isClosed = true
            for (id, stream) in streams { leave(id, stream) }
        }
        scripts.join()
    }

    private func receive() throws {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        let count = try buffer.withUnsafeMutableBytes { try connection.receive(into: $0) }
        if count == 0 { throw ConnectionEnded() }
        try process(buffer[..<count])
        try receivePending()
    }

    private func receivePending() throws {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = try buffer.withUnsafeMutableBytes { try connection.receivePending(into: $0) }
            if count == 0 { return }
            try process(buffer[..<count])
        }
    }

    private func process(_ bytes: ArraySlice<UInt8>) throws {
        try lock.change { _ in
            let done = bytes.withUnsafeBufferPointer { nghttp2_session_mem_recv(session, $0.baseAddress, $0.count) }
            guard done >= 0 else { throw ConnectionEnded() }
        }
    }

    /// Sends whatever is due. False when the connection is to be closed.
    private func flush() throws -> Bool {
        while true {
            let (bytes, isOver): ([UInt8], Bool) = try lock.change { _ in
                var plain: [UInt8] = []
                repeat {
                    while plain.count < 256 << 10 {
                        var part: UnsafePointer<UInt8>?
                        let count = nghttp2_session_mem_send(session, &part)
                        if count < 0 { throw ConnectionEnded() }
                        if count == 0 { break }
                        plain += UnsafeBufferPointer(start: part, count: count)
                    }
                } while submitAfterwards()
                let isOver =
                    closesWhenFlushed
                    || (nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0)
                return (plain, isOver)
            }
            if bytes.isEmpty {
                for action in afterwards { action() }
                afterwards = []
                return !isOver
            }
            try bytes.withUnsafeBytes { try connection.send($0) }
        }
    }

    private func submitAfterwards() -> Bool {
        var submitted = false
        for stream in streams.values where stream.start == stream.unsent.count && !stream.afterwards.isEmpty {
            for action in stream.afterwards { action() }
            stream.afterwards = []
            submitted = true
        }
        return submitted
    }

    // MARK: Steps, from the scripts' threads

    func sendHead(_ id: Int32, status: Int, headers: Headers) throws {
        try step(id) { stream in
            var fields: Headers = [":status": String(status)]
            for field in headers { fields.add(field.name.lowercased(), field.value) }
            withNameValues(fields) { fields in
                if status < 200 {
                    nghttp2_submit_headers(
                        session, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, nil, fields.baseAddress, fields.count, nil)
                } else {
                    var provider = nghttp2_data_provider()
                    provider.read_callback = provideBody
                    nghttp2_submit_response(session, id, fields.baseAddress, fields.count, &provider)
                }
            }
        }
    }

    func sendBody(_ id: Int32, _ bytes: [UInt8]) throws {
        try step(id) { stream in
            stream.unsent += bytes
            resume(id, stream)
        }
    }

    func endBody(_ id: Int32) throws {
        try step(id) { stream in
            stream.hasEnded = true
            resume(id, stream)
        }
    }

    /// `action` runs on the connection's thread, with the lock, when the stream's bytes are sent.
    func afterBody(_ id: Int32, _ action: @escaping () -> Void) throws {
        try step(id) { $0.afterwards.append(action) }
    }

    /// Also for a stream that is gone already, as after a GOAWAY that did not count it.
    func closeAfterBody(_ id: Int32) {
        lock.change { _ in
            if let stream = streams[id] {
                stream.afterwards.append { [self] in closesWhenFlushed = true }
            } else {
                closesWhenFlushed = true
            }
        }
        corigin_wake(wake)
    }

    func sayGoodbyeAfterBody(_ id: Int32) throws {
        try afterBody(id) { [self] in connection.sayGoodbye() }
    }

    func shutDownAfterBody(_ id: Int32) throws {
        try afterBody(id) { [self] in afterwards.append { self.connection.socket.shutDownSending() } }
    }

    private func step(_ id: Int32, _ body: (Stream) -> Void) throws {
        try lock.change { _ in
            guard !isClosed, let stream = streams[id] else { throw ConnectionEnded() }
            body(stream)
        }
        corigin_wake(wake)
    }

    private func resume(_ id: Int32, _ stream: Stream) {
        guard stream.isDeferred else { return }
        stream.isDeferred = false
        nghttp2_session_resume_data(session, id)
    }

    func resetAfterBody(_ id: Int32, _ code: HTTP2Error) throws {
        try afterBody(id) { [self] in submitReset(id, code) }
    }

    func goAwayAfterBody(_ id: Int32, _ last: Int32?, _ code: HTTP2Error) throws {
        try afterBody(id) { [self] in submitGoAway(last, code) }
    }

    func refuseAfterBody(_ id: Int32, others: Bool, _ code: HTTP2Error, _ ending: ConnectionEnding) throws {
        try afterBody(id) { [self] in
            submitGoAway(nil, .noError)
            for stream in others ? Array(streams.keys) : [id] { submitReset(stream, code) }
            afterwards.append { [self] in
                switch ending {
                case .none: break
                case .shutDown: connection.socket.shutDownSending()
                case .goodbye: connection.sayGoodbye()
                case .close: closesWhenFlushed = true
                }
            }
        }
    }

    private func submitReset(_ id: Int32, _ code: HTTP2Error) {
        if let stream = streams[id] { connection.journal.finished(stream.request) }
        nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, code.rawValue)
    }

    private func submitGoAway(_ last: Int32?, _ code: HTTP2Error) {
        nghttp2_submit_goaway(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), last ?? nghttp2_session_get_last_proc_stream_id(session),
            code.rawValue, nil, 0)
    }

    // MARK: Events, from the callbacks

    func requestIsComplete(_ id: Int32) {
        guard let stream = streams[id], !stream.runsScript else { return }
        connection.noteDepartures()
        stream.request = connection.journal.arrived(stream.request)
        stream.runsScript = true
        let exchange = StreamExchange(stream.request, on: self)
        let script = script(stream.request.path)
        do {
            try scripts.run { [self] in
                do { try script(exchange) } catch {
                    if !(error is ConnectionEnded) { try? exchange.reset() }
                }
                scriptEnded(id, stream, exchange.party)
            }
        } catch {
            nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, HTTP2Error.internalError.rawValue)
        }
    }

    /// A script that ends without an end leaves its stream as it is: whoever wants a reset says so.
    private func scriptEnded(_ id: Int32, _ stream: Stream, _ party: Signals.Party) {
        lock.change { _ in
            stream.runsScript = false
            connection.signals.forget(party)
        }
    }

    func streamIsClosed(_ id: Int32) {
        guard let stream = streams.removeValue(forKey: id) else { return }
        connection.journal.streamClosed(id, on: connection.number)
        leave(id, stream)
    }

    private func leave(_ id: Int32, _ stream: Stream) {
        if stream.runsScript { connection.signals.leave(.init(connection: connection.number, stream: id)) }
    }
}
