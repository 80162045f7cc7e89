/// Writes the log. Every thread of an origin reports here; tests wait here for what they expect.
package final class Journal: Sendable {
    fileprivate struct State: Sendable {
        var log = Log()
        var firstSequence = 0
        /// Requests in flight by sequence number, those from before a reset included.
        var unfinished: [Int: Signals.Party] = [:]
        /// Connections which are open but only carried control requests so far.
        var hidden: [Int: Log.Connection] = [:]
        var isStopped = false
        /// Open connections that carried a request.
        var inUse = 0
    }

    private let state = Monitor(State())

    package init() {}

    package var log: Log { state.read(\.log) }

    package func wait(until deadline: Deadline, for condition: (Log) throws -> Bool) rethrows -> Bool {
        try state.wait(until: deadline) { try condition($0.log) ? true : $0.isStopped ? false : nil } ?? false
    }

    /// Nothing more will come: ends every wait.
    package func stop() { state.change { $0.isStopped = true } }

    /// Forgets all but the connections that are open and the requests in flight.
    package func reset() {
        state.change { state in
            state.firstSequence += state.log.arrivals.count
            var log = Log()
            log.connections = state.log.connections.filter(\.isOpen)
            log.openConnections = log.connections.count
            log.maxOpenConnections = state.inUse
            log.inFlight = state.log.inFlight
            log.maxInFlight = log.inFlight
            state.log = log
        }
    }

    // MARK: Connections

    package func opened(_ number: Int) {
        state.change { $0.log.insert(Log.Connection(number: number, opened: .now)) }
    }

    package func closed(_ number: Int, byClient: Bool) {
        state.change { state in
            state.hidden[number] = nil
            guard let index = state.log.connections.lastIndex(where: { $0.number == number }),
                state.log.connections[index].isOpen
            else { return }
            let now = Moment.now
            state.log.connections[index].closed = now
            if byClient { state.log.connections[index].closedByClient = now }
            if state.log.connections[index].requests > 0 { state.inUse -= 1 }
            state.log.openConnections -= 1
            state.abandon { $0.connection == number }
            for stream in state.log.streams.indices
            where state.log.streams[stream].connection == number && state.log.streams[stream].closed == nil {
                state.log.streams[stream].closed = now
            }
        }
    }

    func secured(_ number: Int, _ handshake: Log.Handshake) {
        state.change { $0.edit(number) { $0.handshake = handshake } }
    }

    func heldBack(_ number: Int, _ isHeldBack: Bool) {
        state.change { $0.edit(number) { $0.isHeldBack = isHeldBack } }
    }

    /// A connection that starts with a control question is no business of the log.
    func hide(_ number: Int) {
        state.change { state in
            guard let index = state.log.connections.lastIndex(where: { $0.number == number }),
                state.log.connections[index].requests == 0
            else { return }
            let connection = state.log.connections.remove(at: index)
            guard connection.isOpen else { return }
            state.hidden[number] = connection
            state.log.openConnections -= 1
        }
    }

    // MARK: Requests

    /// Enters the request and gives it its sequence number.
    package func arrived(_ request: Request) -> Request {
        state.change { state in
            var request = request
            request.sequence = state.firstSequence + state.log.arrivals.count
            if let hidden = state.hidden.removeValue(forKey: request.connection) { state.log.insert(hidden) }
            if let index = state.log.connections.lastIndex(where: { $0.number == request.connection }) {
                state.log.connections[index].requests += 1
                if state.log.connections[index].requests == 1, state.log.connections[index].isOpen { state.inUse += 1 }
                state.log.maxOpenConnections = max(state.log.maxOpenConnections, state.inUse)
            }
            state.log.arrivals.append(Log.Arrival(request: request, arrived: .now))
            state.log.counts[request.path, default: 0] += 1
            state.unfinished[request.sequence] = .init(connection: request.connection, stream: request.stream)
            state.log.inFlight += 1
            state.log.maxInFlight = max(state.log.maxInFlight, state.log.inFlight)
            return request
        }
    }

    /// So many body bytes more.
    package func sent(_ count: Int, of request: Request) {
        if count == 0 { return }
        state.change { state in
            guard request.sequence >= state.firstSequence else { return }
            state.log.arrivals[request.sequence - state.firstSequence].bytesSent += count
        }
    }

    package func finished(_ request: Request) {
        state.change { $0.end(request.sequence, abandoned: false) }
    }

    // MARK: Streams

    package func streamWeighed(_ id: Int32, on connection: Int, weight: Int32) {
        state.change { state in
            let index = state.log.streams.lastIndex { $0.id == id && $0.connection == connection }
            if let index { state.log.streams[index].weights.append(weight) }
        }
    }

    package func streamOpened(_ id: Int32, on connection: Int) {
        state.change { $0.log.streams.append(Log.Stream(connection: connection, id: id, opened: .now)) }
    }

    package func streamClosed(_ id: Int32, on connection: Int, resetByClient code: UInt32? = nil) {
        state.change { state in
            guard let index = state.log.streams.lastIndex(where: { $0.id == id && $0.connection == connection })
            else { return }
            if let code { state.log.streams[index].resetByClient = code }
            if state.log.streams[index].closed == nil { state.log.streams[index].closed = .now }
            state.abandon { $0.connection == connection && $0.stream == id }
        }
    }
}

extension Journal.State {
    fileprivate mutating func edit(_ number: Int, _ body: (inout Log.Connection) -> Void) {
        if let index = log.connections.lastIndex(where: { $0.number == number }) { body(&log.connections[index]) }
    }

    fileprivate mutating func end(_ sequence: Int, abandoned: Bool) {
        guard unfinished.removeValue(forKey: sequence) != nil else { return }
        log.inFlight -= 1
        guard sequence >= firstSequence else { return }  // Its entry was forgotten.
        log.arrivals[sequence - firstSequence].finished = .now
        log.arrivals[sequence - firstSequence].isAbandoned = abandoned
    }

    fileprivate mutating func abandon(where matches: (Signals.Party) -> Bool) {
        for (sequence, party) in unfinished where matches(party) { end(sequence, abandoned: true) }
    }
}

extension Log {
    fileprivate mutating func insert(_ connection: Connection) {
        let place = connections.lastIndex { $0.number < connection.number }.map { $0 + 1 } ?? 0
        connections.insert(connection, at: place)
        openConnections += 1
    }
}
