/// Sockets that are ready at once have their turns on the engine's thread in rounds, between which commands and deadlines
/// are looked at. A round ends when its time is over, whoever pays for that: commands and deadlines wait for as long, and
/// for the two turns at most that are under way then, however many sockets have something to read.
///
/// Where they are too many for one round, whoever has had least of the thread goes first in every other round, and in those
/// between whoever has waited since an earlier one: so all have their turns. Nobody has been heard of before they have had them.
struct ReadyRounds: ~Copyable {
    /// Nanoseconds after which no turn begins in a round, but for the first of one that has much to read.
    static let longest: Int64 = 5_000_000
    /// More than an answer's header or a small picture.
    static let heavyBytes: Int32 = 64 << 10
    /// Nanoseconds since any have competed: what each has had matters no more.
    static let memory: Int64 = 1_000_000_000

    /// What came before this moment has had a turn.
    private(set) var heardUntil = Instant(nanoseconds: .min)
    /// When it was looked for what has its turns now, …
    private var lookedAt = Instant(nanoseconds: .min)
    /// … and those that were ready then and still wait for theirs.
    private var owed: [Int32] = []
    /// By socket.
    private var isOwed = PlainTable<Bool>()
    private var shares = TurnShares()
    /// When they competed last.
    private var competed = Instant(nanoseconds: .min)
    /// This round's order is that of those that wait.
    private var isOfOwed = false

    /// Some of those that were ready earlier still wait: it matters who goes first.
    var areOwed: Bool { !owed.isEmpty }

    /// It is looked anew for those that are ready. What comes while the thread sleeps is heard of as of the next look: the
    /// sleep may have been longer than it was to be.
    mutating func looks(_ now: Instant) {
        if owed.isEmpty { lookedAt = now }
        if !shares.isEmpty, now.nanoseconds - competed.nanoseconds > Self.memory { shares.forgetAll() }
    }

    /// Their places in order: those with little to read first, and among either kind, in turns, those that have had least of
    /// the thread or those that have waited since an earlier round. `light`: how many have little to read.
    mutating func order(_ sockets: [Int32], _ now: Instant, unread: (Int32) -> Int32) -> (places: [Int], light: Int) {
        competed = now
        shares.compete(sockets)
        isOfOwed.toggle()
        var light = 0
        // In one number, what decides first in its highest bits: there may be thousands.
        var ranks: [UInt64] = []
        ranks.reserveCapacity(sockets.count)
        for (place, socket) in sockets.enumerated() {
            let isHeavy = unread(socket) >= Self.heavyBytes
            let hasWaited = waits(socket)
            if !isHeavy { light += 1 }
            let kind: UInt64 = (isHeavy ? 2 : 0) + (isOfOwed && !hasWaited ? 1 : 0)
            let lag = UInt64(shares.lag(of: socket)) * 2 + (hasWaited ? 0 : 1)
            ranks.append(kind << 62 | lag << 32 | UInt64(place))
        }
        ranks.sort()
        return (ranks.map { Int($0 & 0xFFFF_FFFF) }, light)
    }

    private func waits(_ socket: Int32) -> Bool { socket < isOwed.count && isOwed[Int(socket)] }

    /// One of those that compete has had a turn of so many nanoseconds of CPU time.
    mutating func took(_ socket: Int32, _ time: Int64) { shares.took(socket, time) }

    mutating func closed(_ socket: Int32) { shares.forget(socket) }

    /// It is over. `socket`: of each place in its order.
    mutating func ends(_ round: Round, socket: (Int) -> Int32) {
        if !round.isComplete {
            let isFirst = owed.isEmpty
            var still: [Int32] = []
            for place in round.left where isFirst || waits(socket(place)) { still.append(socket(place)) }
            owe(still)
        } else if !owed.isEmpty {
            owe([])
        }
        if owed.isEmpty { heardUntil = lookedAt }
    }

    private mutating func owe(_ sockets: [Int32]) {
        for socket in owed { isOwed[Int(socket)] = false }
        owed = sockets
        for socket in sockets {
            isOwed.extend(to: Int(socket) + 1, with: false)
            isOwed[Int(socket)] = true
        }
    }

    /// One of them: `ready` sockets in order, of which the first `light` have little to read, or are taken for such.
    struct Round {
        let ready: Int
        let light: Int
        /// Only one of those with much to read has its turn.
        let isCrowded: Bool
        private var began: Instant?
        private var lightTurns = 0
        private var heavyTurns = 0

        init(ready: Int, light: Int, isCrowded: Bool) {
            (self.ready, self.light, self.isCrowded) = (ready, light, isCrowded)
        }

        /// Whose turn it is, by its place in the order; nil: the round is over. In each round somebody has one, and where
        /// one with much to read is ready, one of those.
        mutating func next(_ now: Instant) -> Int? {
            if began == nil { began = now }
            let isOver = began.map { now.nanoseconds - $0.nanoseconds >= ReadyRounds.longest } ?? false
            if lightTurns < light, !isOver {
                lightTurns += 1
                return lightTurns - 1
            }
            guard light + heavyTurns < ready, heavyTurns == 0 || !(isOver || isCrowded) else { return nil }
            heavyTurns += 1
            return light + heavyTurns - 1
        }

        /// All have had their turn.
        var isComplete: Bool { lightTurns == light && light + heavyTurns == ready }

        /// The places of those that had none.
        var left: [Int] { Array(lightTurns..<light) + Array(light + heavyTurns..<ready) }
    }
}
