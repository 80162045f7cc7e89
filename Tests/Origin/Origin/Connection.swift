/// One accepted connection, used by its own thread.
package final class Connection: @unchecked Sendable {
    package let number: Int
    package let socket: Socket
    package let journal: Journal
    package let signals: Signals
    private let watch: DepartureWatch

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

    package func receive(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        do {
            let count = try socket.receive(into: buffer)
            if count == 0 { noteEndOfStream() }
            return count
        } catch {
            noteEndOfStream()
            throw error
        }
    }

    private func noteEndOfStream() {
        if !signals.isStopped { journal.closed(number, byClient: true) }
    }

    /// At most `segment` bytes per system call, so that they also arrive apart.
    package func send(_ bytes: UnsafeRawBufferPointer, segment: Int? = nil) throws {
        let step = max(1, segment ?? bytes.count)
        var start = 0
        do {
            while start < bytes.count {
                let end = min(start + step, bytes.count)
                try socket.send(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
                start = end
            }
        } catch {
            noteEndOfStream()
            throw error
        }
    }

    /// Noted first, then done: a client that sees the end finds it in the log.
    package func close() {
        journal.closed(number, byClient: false)
        socket.close()
    }

    /// Noted and said at once; what the client still sends is read and dropped until it has closed, too.
    package func closeAfterReading() {
        journal.closed(number, byClient: false)
        socket.shutDownSending()
        var rest = [UInt8](repeating: 0, count: 4096)
        while let count = try? rest.withUnsafeMutableBytes({ try socket.receive(into: $0) }), count > 0 {}
    }

    /// RST. Bytes that the client has not yet had room for are given time to arrive, since a reset discards them.
    func reset() {
        while socket.unsent > 0,
            signals.wait(gate: nil, party: party, until: .after(.milliseconds(1))) == .deadline
        {}
        journal.closed(number, byClient: false)
        socket.reset()
    }

    func shutDown() { socket.shutDown() }
}
