/// Fair queueing of the sockets that compete for the engine's thread: whoever has had least of it goes first, however much
/// lies ready to be read at that moment. Of a crowd that sends as fast as it is read, each is soon behind a request that has
/// had nothing yet.
///
/// What each has had is held near to what the others have had. Who was silent, or is new, is ahead by `lead` and no more; who
/// had a turn that took long, perhaps in the host's code, is behind by `debt` and no more.
struct TurnShares: ~Copyable {
    /// Nanoseconds of CPU time. A handshake of TLS, an answer and what they lead to take less, on slow machines too.
    static let lead: Int64 = 20_000_000
    /// About one turn of each of the others: turns of a crowd take less.
    static let debt: Int64 = 5_000_000

    private static let nothing = Int64.min

    /// What those have had, at least, who compete.
    private var level: Int64 = 0
    /// By socket.
    private var had = PlainTable<Int64>()

    var isEmpty: Bool { had.isEmpty }

    /// These compete now.
    mutating func compete(_ sockets: [Int32]) {
        // Those with whom it begins are equal.
        let newcomer = had.isEmpty ? level : Self.nothing
        var least = Int64.max
        for socket in sockets {
            had.extend(to: Int(socket) + 1, with: Self.nothing)
            if had[Int(socket)] != Self.nothing { least = min(least, had[Int(socket)]) }
        }
        if least != .max { level = max(level, least) }
        for socket in sockets {
            let time = had[Int(socket)]
            had[Int(socket)] = held(time == Self.nothing ? newcomer : time)
        }
    }

    /// By how much it is behind one that has had nothing yet, in nanoseconds, at most `lead` and `debt`.
    func lag(of socket: Int32) -> Int64 { isKnown(socket) ? had[Int(socket)] - (level - Self.lead) : 0 }

    /// One that competes has had a turn of so many nanoseconds.
    mutating func took(_ socket: Int32, _ time: Int64) {
        guard isKnown(socket) else { return }
        // Of those that take no time either, whoever had a turn is behind those that had none.
        had[Int(socket)] = held(had[Int(socket)] + min(max(1, time), Self.lead + Self.debt))
    }

    private func isKnown(_ socket: Int32) -> Bool { socket < had.count && had[Int(socket)] != Self.nothing }

    private func held(_ time: Int64) -> Int64 { min(max(time, level - Self.lead), level + Self.debt) }

    /// It was closed: whoever gets its number has had nothing.
    mutating func forget(_ socket: Int32) { if isKnown(socket) { had[Int(socket)] = Self.nothing } }

    mutating func forgetAll() {
        had.removeAll()
        level = 0
    }
}
