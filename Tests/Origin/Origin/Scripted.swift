/// What scripts of every protocol can wait for. A wait ends the script when its client leaves or the origin stops.
package protocol Scripted {
    var signals: Signals { get }
    var party: Signals.Party { get }
}

extension Scripted {
    package func gate(_ name: String) -> Gate { signals.gate(name) }

    /// Until the test opens the gate (or the deadline, which ends the wait but not the script).
    package func wait(_ gate: Gate, until deadline: Deadline = .never) throws {
        try proceed(signals.wait(gate: gate.name, party: party, until: deadline))
    }

    package func wait(_ gate: String, until deadline: Deadline = .never) throws {
        try wait(signals.gate(gate), until: deadline)
    }

    /// Lets time pass in this script only.
    package func pause(_ length: Duration) throws {
        guard length > .zero else { return }
        try proceed(signals.wait(gate: nil, party: party, until: .after(length)))
    }

    /// Silence until the client leaves or the origin stops; then the script ends.
    package func stall() throws -> Never {
        _ = signals.wait(gate: nil, party: party, until: .never)
        throw ConnectionEnded()
    }

    /// True when the client leaves before the deadline: it closes or resets the connection, or resets the stream.
    package func waitForClientClose(until deadline: Deadline = .patient) -> Bool {
        signals.wait(gate: nil, party: party, until: deadline) == .left
    }

    private func proceed(_ ending: Signals.Ending) throws {
        if ending == .left || ending == .stopped { throw ConnectionEnded() }
    }
}
