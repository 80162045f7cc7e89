/// What one turn of curl may take of the engine's thread, from samples that another thread takes of it. Time in the host's
/// code does not count, and each byte of a body pays for itself, up to a bound: on slow machines a turn that brings
/// megabytes is a long one.
struct TurnBudget {
    /// Nanoseconds of CPU time, at most, for what brings nobody anything.
    static let limit: Int64 = 50_000_000
    /// Nanoseconds between two samples.
    static let interval: Int64 = 8_000_000
    /// A turn is first seen one interval after its beginning, and its excess one after it happened.
    static let allowance = limit - 2 * interval
    /// For each byte of a body, what slow machines take to decrypt it.
    static let nanosecondsPerByte: Int64 = 100
    /// Nanoseconds of CPU time, at most, whatever has come: a server that sends bodies between its floods pays for no more.
    /// A turn empties a receive buffer, which Linux lets grow to 6 MiB: that is 60 ns for each byte.
    static let longest = 8 * limit
    /// A server that sends less is not what takes the time: loading the authorities, say, takes long on slow machines.
    static let floodBytes: Int64 = 64 << 10

    struct Sample {
        /// Which turn is under way; nil for none.
        var turn: UInt64?
        /// Of the thread, in nanoseconds: altogether, and in the host's code.
        var time: Int64 = 0
        var hostTime: Int64 = 0
        /// The host's code runs: its time is not known yet.
        var isInHost = false
        /// Of bodies that have come.
        var bodyBytes: Int64 = 0
    }

    enum Verdict {
        /// No turn, or none whose time is known.
        case nothing
        /// It is seen for the first time.
        case begins
        case goesOn
        /// It has had more than it may.
        case isSpent
    }

    private var first: Sample?

    mutating func judge(_ sample: Sample) -> Verdict {
        guard let turn = sample.turn else {
            first = nil
            return .nothing
        }
        guard !sample.isInHost else { return .nothing }
        guard let first, first.turn == turn else {
            first = sample
            return .begins
        }
        let own = (sample.time - first.time) - (sample.hostTime - first.hostTime)
        let paid = Self.nanosecondsPerByte * (sample.bodyBytes - first.bodyBytes)
        let allowed = min(Self.allowance + paid, Self.longest - 2 * Self.interval)
        return own > allowed ? .isSpent : .goesOn
    }

    /// Which of the sockets has kept the thread busy; nil: none of them. Bytes read from each, when the turn was first
    /// seen and now; -1 where nobody knows.
    static func culprit(_ before: [Int32: Int64], _ now: [Int32: Int64]) -> Int32? {
        let read = now.compactMap { socket, bytes -> (socket: Int32, bytes: Int64)? in
            guard bytes >= 0, let earlier = before[socket], earlier >= 0 else { return nil }
            return (socket, bytes - earlier)
        }
        guard let most = read.max(by: { ($0.bytes, $0.socket) < ($1.bytes, $1.socket) }) else { return nil }
        return most.bytes >= floodBytes ? most.socket : nil
    }
}
