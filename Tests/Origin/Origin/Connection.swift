import COriginTLS

/// One accepted connection, used by its own thread.
package final class Connection: @unchecked Sendable {
    package let number: Int
    package let socket: Socket
    package let journal: Journal
    package let signals: Signals
    private let watch: DepartureWatch
    /// Its own thread's.
    private var channel: SecureChannel?

    init(number: Int, socket: Socket, watch: DepartureWatch, journal: Journal, signals: Signals) {
        self.number = number
        self.socket = socket
        self.watch = watch
        self.journal = journal
        self.signals = signals
    }

    package var party: Signals.Party { .init(connection: number) }

    /// Notes what other clients did before the event that the caller is about to note.
    package func noteDepartures() { watch.drain() }

    /// The handshake, before anything else. Whatever comes and goes afterwards is encrypted.
    package func secure(by authority: Authority) throws {
        let channel = SecureChannel(authority)
        do {
            while try !channel.handshake() {
                try flush(channel)
                if try receiveEncrypted(channel) == 0 { throw ConnectionEnded() }
            }
        } catch {
            try? flush(channel)  // The alert that says why.
            throw error
        }
        // Noted before the client can know.
        journal.secured(number, channel.outcome)
        self.channel = channel
        try flush(channel)
    }

    /// What ALPN agreed on.
    package var protocolName: String? { channel?.outcome.protocolName }

    /// 0 at the end of the stream.
    package func receive(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        guard let channel else { return try receiveRaw(into: buffer) }
        while true {
            let count = try receivePending(into: buffer)
            if count > 0 { return count }
            try flush(channel)
            if try receiveEncrypted(channel) == 0 { return 0 }
        }
    }

    /// What has come and was not yet taken; 0 when there is nothing. Never waits.
    package func receivePending(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        guard let channel else { return 0 }
        do { return try channel.read(into: buffer) } catch {
            try? flush(channel)
            noteEndOfStream()
            throw ConnectionEnded()
        }
    }

    private func receiveEncrypted(_ channel: SecureChannel) throws -> Int {
        try withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 1) { part in
            let count = try receiveRaw(into: part)
            channel.put(UnsafeRawBufferPointer(rebasing: part[..<count]))
            return count
        }
    }

    private func receiveRaw(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        do {
            let count = try socket.receive(into: buffer)
            if count == 0 { noteEndOfStream() }
            return count
        } catch {
            noteEndOfStream()
            throw error
        }
    }

    private func flush(_ channel: SecureChannel, segment: Int? = nil) throws {
        try channel.takeEncrypted().withUnsafeBytes { try sendRaw($0, segment: segment) }
    }

    private func noteEndOfStream() {
        if !signals.isStopped { journal.closed(number, byClient: true) }
    }

    /// At most `segment` bytes per system call, so that they also arrive apart.
    package func send(_ bytes: UnsafeRawBufferPointer, segment: Int? = nil) throws {
        guard let channel else { return try sendRaw(bytes, segment: segment) }
        try channel.encrypt(bytes)
        try flush(channel, segment: segment)
    }

    func say(_ message: Exchange.Aside, _ count: Int) throws {
        guard let channel else { return }
        for _ in 0..<count {
            switch message {
            case .keyUpdate: try channel.say(CORIGIN_TLS_KEY_UPDATE)
            case .ticket: try channel.say(CORIGIN_TLS_TICKET)
            case .helloRequest: try channel.say(CORIGIN_TLS_HELLO_REQUEST)
            case .renegotiation: try renegotiate(channel)
            }
        }
        try flush(channel)
    }

    private func renegotiate(_ channel: SecureChannel) throws {
        try channel.say(CORIGIN_TLS_HELLO_REQUEST)
        try withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { nothing in
            var hasBegun = false
            while !hasBegun || channel.isInHandshake {
                try flush(channel)
                guard try receiveEncrypted(channel) > 0 else { throw ConnectionEnded() }
                _ = try channel.read(into: nothing)
                hasBegun = hasBegun || channel.isInHandshake
            }
        }
    }

    private func sendRaw(_ bytes: UnsafeRawBufferPointer, segment: Int?) throws {
        let step = max(1, segment ?? bytes.count)
        var start = 0
        do {
            while start < bytes.count {
                let end = min(start + step, bytes.count)
                try socket.send(UnsafeRawBufferPointer(rebasing: bytes[start..<end])) { isHeldBack in
                    journal.heldBack(number, isHeldBack)
                }
                start = end
            }
        } catch {
            noteEndOfStream()
            throw error
        }
    }

    /// Without the goodbye of TLS.
    package func hangUp() {
        journal.closed(number, byClient: false)
        socket.close()
    }

    /// Noted first, then done: a client that sees the end finds it in the log.
    package func close() {
        journal.closed(number, byClient: false)
        sayGoodbye()
        socket.close()
    }

    /// That of TLS, where it is spoken; the connection stays.
    package func sayGoodbye() {
        guard let channel else { return }
        channel.sayGoodbye()
        _ = channel.takeEncrypted().withUnsafeBytes { socket.offer($0) }
    }

    /// Noted and said at once; what the client still sends is read and dropped until it has closed, too.
    package func closeAfterReading() {
        journal.closed(number, byClient: false)
        sayGoodbye()
        socket.shutDownSending()
        var rest = [UInt8](repeating: 0, count: 4096)
        while let count = try? rest.withUnsafeMutableBytes({ try socket.receive(into: $0) }), count > 0 {}
    }

    /// RST. Bytes that the client has not yet had room for are given time to arrive, since a reset discards them.
    package func reset() {
        while socket.unsent > 0,
            signals.wait(gate: nil, party: party, until: .after(.milliseconds(1))) == .deadline
        {}
        journal.closed(number, byClient: false)
        socket.reset()
    }

    func shutDown() { socket.shutDown() }
}
