/// Everything that ends a script's wait: a gate that the test opens, a client that leaves, the origin that stops.
/// One monitor holds all three, so a script waits for whichever comes first.
package final class Signals: Sendable {
    /// Who is at the other end: a connection, or one stream of an HTTP/2 connection.
    package struct Party: Hashable, Sendable {
        package var connection: Int
        package var stream: Int32 = 0
        package init(connection: Int, stream: Int32 = 0) {
            self.connection = connection
            self.stream = stream
        }
    }

    package enum Ending: Sendable { case opened, left, stopped, deadline }

    struct GateState: Sendable {
        var isOpen = false
        var waiting = 0
        var reached = 0
    }

    struct State: Sendable {
        var gates: [String: GateState] = [:]
        var left: Set<Party> = []
        var stopped = false
    }

    let monitor = Monitor(State())

    package init() {}

    package func gate(_ name: String) -> Gate { Gate(name: name, signals: self) }

    package func leave(_ party: Party) { monitor.change { _ = $0.left.insert(party) } }
    package func forget(_ party: Party) { monitor.change { _ = $0.left.remove(party) } }
    package func hasLeft(_ party: Party) -> Bool { monitor.read { $0.left.contains(party) } }

    package func stop() { monitor.change { $0.stopped = true } }
    package var isStopped: Bool { monitor.read(\.stopped) }

    /// Waits on behalf of a script. Without a gate only departure, stop or the deadline end the wait.
    package func wait(gate name: String?, party: Party?, until deadline: Deadline) -> Ending {
        if let name {
            monitor.change {
                $0.gates[name, default: GateState()].waiting += 1
                $0.gates[name, default: GateState()].reached += 1
            }
        }
        defer {
            if let name { monitor.change { $0.gates[name, default: GateState()].waiting -= 1 } }
        }
        return monitor.wait(until: deadline) { state -> Ending? in
            if state.stopped { return .stopped }
            if let party, state.left.contains(party) { return .left }
            if let name, state.gates[name]?.isOpen == true { return .opened }
            return nil
        } ?? .deadline
    }
}

/// A named place where scripts wait until the test lets them go on. It stays open once opened.
package struct Gate: Sendable {
    package let name: String
    let signals: Signals

    package func open() { signals.monitor.change { $0.gates[name, default: .init()].isOpen = true } }
    package func close() { signals.monitor.change { $0.gates[name, default: .init()].isOpen = false } }

    package var isOpen: Bool { signals.monitor.read { $0.stopped || $0.gates[name]?.isOpen == true } }
    /// How many scripts stand at the gate now.
    package var waiting: Int { signals.monitor.read { $0.gates[name]?.waiting ?? 0 } }

    /// True when the gate is open (or the origin stops) before the deadline.
    @discardableResult
    package func wait(until deadline: Deadline = .never) -> Bool {
        signals.wait(gate: name, party: nil, until: deadline) != .deadline
    }

    /// True once scripts have come to the gate `count` times, whether they still wait or not. Ends when the origin stops.
    @discardableResult
    package func waitUntilReached(_ count: Int = 1, until deadline: Deadline = .patient) -> Bool {
        signals.monitor.wait(until: deadline) { state in
            (state.gates[name]?.reached ?? 0) >= count ? true : state.stopped ? false : nil
        } ?? false
    }
}
