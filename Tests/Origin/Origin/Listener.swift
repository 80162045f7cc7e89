/// Accepts connections and gives each a thread of its own. Shared by the HTTP/1 and the HTTP/2 origin.
package final class Listener: @unchecked Sendable {
    package let journal: Journal
    package let signals: Signals
    package let port: UInt16

    private struct State {
        var connections: [Int: Connection] = [:]
        var last = 0
        var stopped = false
    }

    private let socket: Socket
    private let watch: DepartureWatch
    private let state = Monitor(State())
    private let threads = ThreadGroup()
    private let ownThreads = ThreadGroup()
    /// What `neverAnswer` filled the queue with.
    private let fillers = Monitor([Socket]())

    /// The port is taken at once; connections are refused until `start` or `neverAnswer`.
    package init(port: UInt16 = 0, journal: Journal, signals: Signals) throws {
        self.journal = journal
        self.signals = signals
        socket = try Socket.bound(to: port)
        self.port = socket.localPort
        watch = try DepartureWatch { [journal, signals] number in
            // Shutting down looks like a departure, too; but then it is ours.
            if signals.isStopped { return }
            journal.closed(number, byClient: true)
            signals.leave(.init(connection: number))
        }
    }

    /// `serve` runs on the connection's thread, after the handshake if there is an authority; the connection is closed
    /// when it returns.
    package func start(by authority: Authority? = nil, _ serve: @escaping (Connection) -> Void) throws {
        func serveSecurely(_ connection: Connection) {
            if let authority, (try? connection.secure(by: authority)) == nil { return }
            serve(connection)
        }
        try socket.listen()
        fillers.change { $0 = [] }
        try ownThreads.run { [watch] in watch.run() }
        try ownThreads.run { [self] in
            while !signals.isStopped {
                if let accepted = socket.accept() {
                    admit(accepted, serveSecurely)
                } else {
                    // Out of descriptors, unless it is the end: some may come back.
                    _ = signals.wait(gate: nil, party: nil, until: .after(.milliseconds(10)))
                }
            }
        }
    }

    /// Until `start`: the kernel drops whatever asks for a connection, since too many wait to be accepted already.
    package func neverAnswer() throws {
        try socket.listen(backlog: 0)
        // The one that the queue has room for. The kernel counts one more than the backlog.
        fillers.change { $0 = [try? Socket.connected(to: port)].compactMap { $0 } }
    }

    private func admit(_ accepted: Socket, _ serve: @escaping (Connection) -> Void) {
        let connection: Connection? = state.change { state in
            if state.stopped { return nil }
            state.last += 1
            let connection = Connection(
                number: state.last, socket: accepted, watch: watch, journal: journal, signals: signals)
            state.connections[state.last] = connection
            return connection
        }
        guard let connection else { return }
        journal.opened(connection.number)
        watch.add(accepted, number: connection.number)
        do {
            try threads.run { [self] in
                serve(connection)
                connection.close()
                _ = state.change { $0.connections.removeValue(forKey: connection.number) }
                signals.forget(.init(connection: connection.number))
            }
        } catch {
            connection.close()
        }
    }

    /// Ends every wait and every connection and joins all threads. Not to be called by a script.
    package func stop() {
        let first = state.change { state in
            defer { state.stopped = true }
            return !state.stopped
        }
        guard first else { return }
        signals.stop()
        journal.stop()
        socket.shutDown()
        for connection in state.read({ Array($0.connections.values) }) { connection.shutDown() }
        watch.stop()
        ownThreads.join()  // First the acceptor, so that no connection starts after the join.
        threads.join()
        socket.close()
        fillers.change { $0 = [] }
    }
}
