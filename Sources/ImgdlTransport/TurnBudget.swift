import ImgdlCore

/// What turns of curl may take of the engine's thread, from samples that another thread takes of it. Time in the host's
/// code does not count, and each byte of a body or a header pays for itself, up to a bound: on slow machines a turn that
/// brings megabytes is a long one. So does each line of a header, since most are short: what headers pay is bounded by the
/// header limit of each request, too.
///
/// One turn may have what all of them have left of a second's allowance, and a little in any case: so a crowd of
/// connections, or one whose bursts are short, has not much more than one alone.
struct TurnBudget {
    /// Nanoseconds of CPU time, at most, for what brings nobody anything: of all turns, in a second.
    static let limit: Int64 = 50_000_000
    /// What a turn has when others have used that up. A server's certificates are read in less, and headers too.
    static let least: Int64 = 4_000_000
    /// Nanoseconds between two samples, as long as there is enough left, and later.
    static let longInterval: Int64 = 8_000_000
    static let shortInterval: Int64 = 1_000_000
    /// For each byte of an answer, what slow machines take to decrypt it. In frames of a byte it costs about half of that on
    /// fast ones: what bounds such a body is its turns (`BodyLine`) and its limit.
    static let nanosecondsPerByte: Int64 = 100
    #if DEBUG
        /// What is built for tests takes some times as long.
        static let slownessOfBuild: Int64 = 4
    #else
        static let slownessOfBuild: Int64 = 1
    #endif
    /// What a line of a header pays besides its bytes: HTTP/2 counts the size of a field so, too (RFC 9113 section 6.5.2).
    /// Newer versions of libcurl and nghttp2 take a microsecond for the shortest of them.
    static let bytesPerLine = 32
    /// Nanoseconds of CPU time, at most, whatever has come: a server that sends answers between its floods pays for no more.
    /// Pieces of 16 KiB of a hundred connections take 160 ms on slow machines.
    static let longest = 4 * limit
    /// A server that sends less is not what takes the time: loading the authorities, say, takes long on slow machines.
    static let leastBytes: Int64 = 64 << 10

    struct Sample {
        /// On the clock that all threads have.
        var instant = Instant(nanoseconds: 0)
        /// Which turn is under way; nil for none.
        var turn: UInt64?
        /// Of the thread, in nanoseconds: altogether, and what is known to be of no turn: in the host's code, and, while it is
        /// crowded, between turns.
        var time: Int64 = 0
        var otherTime: Int64 = 0
        /// The host's code runs: its time is not known yet.
        var isInHost = false
        /// Bytes of bodies and headers that have come, and `bytesPerLine`.
        var answerBytes: Int64 = 0
        /// Requests on connections of HTTP/2.
        var streams = 0
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

    /// By how much what is read costs more than in the library as it is shipped.
    private let slowness: Int64
    private var first: Sample?
    /// The last one in a turn, and when any was taken.
    private var last: Sample?
    private var lastInstant: Instant?
    /// Of the limit, in the last second, and of what may be read ahead.
    private(set) var spent: Int64 = 0
    /// Of that, what bytes that come now may still pay for: they are read before they are an answer's, of HTTP/2 for all
    /// streams before any of them hears of it. A server that sends both pays with its bodies as they come in any case.
    private var payable: Int64 = 0
    /// What was spent when the turn was seen first.
    private var spentBefore: Int64 = 0
    /// Of what is known of the turn: it is seen one interval after its beginning, and its excess one after it happened.
    private var lateness = 2 * longInterval

    init(slowness: Int64 = slownessOfBuild) { self.slowness = slowness }

    /// Half of the limit is gone: it is looked at more often, and who wants little goes first.
    var isCrowded: Bool { spent >= Self.limit / 2 }

    var interval: Int64 { isCrowded ? Self.shortInterval : Self.longInterval }

    mutating func judge(_ sample: Sample) -> Verdict {
        let elapsed = lastInstant.map { max(0, sample.instant.nanoseconds - $0.nanoseconds) } ?? 0
        lastInstant = sample.instant
        // At most a second counts, which gives all of it back.
        spent = max(0, min(most(sample), spent) - Self.limit / 1_000 * min(elapsed / 1_000_000, 1_000))
        let verdict = verdict(sample)
        charge(sample, within: elapsed)
        return verdict
    }

    /// Of the time since the last sample, what turns have had that no answer pays for. Between turns the thread does other
    /// things: no more than has passed since it was looked at can be of this one.
    private mutating func charge(_ sample: Sample, within elapsed: Int64) {
        guard sample.turn != nil, !sample.isInHost else { return }
        if let last {
            let balance = max(-min(payable, spent), min(Self.own(last, sample) - paid(last, sample), elapsed))
            spent = min(most(sample), spent + balance)
            payable = max(0, min(most(sample), payable + balance))
        }
        last = sample
    }

    private static func own(_ first: Sample, _ now: Sample) -> Int64 {
        (now.time - first.time) - (now.otherTime - first.otherTime)
    }

    private func paid(_ first: Sample, _ now: Sample) -> Int64 {
        slowness * Self.nanosecondsPerByte * (now.answerBytes - first.answerBytes)
    }

    /// What is spent, at most.
    private func most(_ sample: Sample) -> Int64 {
        Self.limit + min(timeAhead(sample.streams), slowness * Self.longest)
    }

    /// curl reads for all requests on a connection of HTTP/2 before any hears of it: so much longer may that take. Beyond what is
    /// spent at most and the longest turn, it makes no difference how much.
    private func timeAhead(_ streams: Int) -> Int64 {
        let each = slowness * Self.nanosecondsPerByte * Int64(EasyHandle.bufferBytes)
        let most = 2 * slowness * Self.longest / each + 1
        return each * min(Int64(streams), most)
    }

    /// Whether the turn has had more than it may, where so many requests are on the connection that is read.
    func isSpent(_ sample: Sample, streams: Int) -> Bool {
        guard let first else { return false }
        return Self.own(first, sample) > allowed(first, sample, streams: streams)
    }

    private func allowed(_ first: Sample, _ now: Sample, streams: Int) -> Int64 {
        let allowance = max(Self.least, Self.limit + timeAhead(streams) - spentBefore)
        return min(allowance + paid(first, now), slowness * Self.longest) - lateness
    }

    private mutating func verdict(_ sample: Sample) -> Verdict {
        guard let turn = sample.turn else {
            first = nil
            return .nothing
        }
        guard !sample.isInHost else { return .nothing }
        guard let first, first.turn == turn else {
            first = sample
            spentBefore = spent
            lateness = 2 * interval
            return .begins
        }
        return Self.own(first, sample) > allowed(first, sample, streams: 0) ? .isSpent : .goesOn
    }

    /// Which of the sockets has kept the thread busy; nil: none of them. Bytes read from each, when the turn was first
    /// seen and now; -1 where nobody knows.
    static func culprit(_ before: [Int32: Int64], _ now: [Int32: Int64]) -> Int32? {
        let read = now.compactMap { socket, bytes -> (socket: Int32, bytes: Int64)? in
            guard bytes >= 0, let earlier = before[socket], earlier >= 0 else { return nil }
            return (socket, bytes - earlier)
        }
        guard let most = read.max(by: { ($0.bytes, $0.socket) < ($1.bytes, $1.socket) }) else { return nil }
        return most.bytes >= leastBytes ? most.socket : nil
    }
}
