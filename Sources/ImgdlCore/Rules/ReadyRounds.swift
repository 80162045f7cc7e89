/// Sockets that are ready at once have their turns on the engine's thread in rounds, between which commands and deadlines
/// are looked at. A round ends when its time is over, whoever pays for that: commands and deadlines wait for as long, and
/// for the two turns at most that are under way then, however many sockets have something to read.
///
/// Those that had no turn go first in the next round, and nobody has been heard of before they have had theirs.
struct ReadyRounds {
    /// Nanoseconds after which no turn begins in a round, but for the first of one that has much to read.
    static let longest: Int64 = 5_000_000
    /// More than an answer's header or a small picture.
    static let heavyBytes: Int32 = 64 << 10

    /// What came before this moment has had a turn.
    private(set) var heardUntil = Instant(nanoseconds: .min)
    /// When it was looked for what has its turns now, …
    private var lookedAt = Instant(nanoseconds: .min)
    /// … and those that were ready then and still wait for theirs.
    private var owed: Set<Int32> = []

    /// Some of those that were ready earlier still wait: it matters who goes first.
    var areOwed: Bool { !owed.isEmpty }

    /// It is looked anew for those that are ready. What comes while the thread sleeps is heard of as of the next look: the
    /// sleep may have been longer than it was to be.
    mutating func looks(_ now: Instant) {
        if owed.isEmpty { lookedAt = now }
    }

    /// Their places in order: those with little to read first, and among either kind those that have waited since an earlier
    /// round. `light`: how many have little to read.
    func order(_ sockets: [Int32], unread: (Int32) -> Int32) -> (places: [Int], light: Int) {
        guard sockets.count > 1 else {
            return (Array(sockets.indices), sockets.count { unread($0) < Self.heavyBytes })
        }
        var parts: [[Int]] = [[], [], [], []]
        for (place, socket) in sockets.enumerated() {
            parts[(unread(socket) >= Self.heavyBytes ? 2 : 0) + (owed.contains(socket) ? 0 : 1)].append(place)
        }
        return (Array(parts.joined()), parts[0].count + parts[1].count)
    }

    /// It is over. `socket`: of each place in its order.
    mutating func ends(_ round: Round, socket: (Int) -> Int32) {
        if round.isComplete {
            if !owed.isEmpty { owed = [] }
        } else {
            let left = round.left.map(socket)
            if owed.isEmpty { owed = Set(left) } else { owed.formIntersection(left) }
        }
        if owed.isEmpty { heardUntil = lookedAt }
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
