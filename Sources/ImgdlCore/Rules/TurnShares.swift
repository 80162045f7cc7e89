/// Fair queueing of the sockets that compete for the engine's thread: whoever has had least of it goes first, however much
/// lies ready to be read at that moment. Of a crowd that sends as fast as it is read, each is soon behind a request that has
/// had nothing yet.
///
/// What each has had is held near to what the others have had. Who was silent, or is new, is ahead by `lead` and no more; who
/// had a turn that took long, perhaps in the host's code, is behind by `debt` and no more.
struct TurnShares {
    /// Nanoseconds of CPU time. A handshake of TLS, an answer and what they lead to take less, on slow machines too.
    static let lead: Int64 = 20_000_000
    /// What turns of a crowd take each.
    static let debt: Int64 = 5_000_000

    /// What those have had, at least, who compete.
    private var level: Int64 = 0
    /// By socket.
    private var had: [Int32: Int64] = [:]

    var isEmpty: Bool { had.isEmpty }

    /// These compete now.
    mutating func compete(_ sockets: [Int32]) {
        level = max(level, sockets.compactMap { had[$0] }.min() ?? level)
        // Those with whom it begins are equal.
        let newcomer = had.isEmpty ? level : .min
        for socket in sockets { had[socket] = held(had[socket] ?? newcomer) }
    }

    /// What it has had, for one that competes.
    func time(of socket: Int32) -> Int64 { had[socket] ?? level - Self.lead }

    /// It has had a turn of so many nanoseconds.
    mutating func took(_ socket: Int32, _ time: Int64) {
        // Of those that take no time either, whoever had a turn is behind those that had none.
        had[socket] = held(self.time(of: socket) + min(max(1, time), Self.lead + Self.debt))
    }

    private func held(_ time: Int64) -> Int64 { min(max(time, level - Self.lead), level + Self.debt) }

    /// It was closed: whoever gets its number has had nothing.
    mutating func forget(_ socket: Int32) { had[socket] = nil }

    mutating func forgetAll() {
        had.removeAll(keepingCapacity: true)
        level = 0
    }
}
