import ImgdlCore

/// How fast streams of one server may be reset. Servers close a connection whose client opens and resets streams as in an
/// attack (CVE-2023-44487, "Rapid Reset"): common ones allow 33 a second, once their first thousand is used up.
struct ResetPace {
    /// At once, after a rest.
    static let burst = 100
    /// So many of streams that go on sending may be ahead of their turn: together with a burst less than half of that
    /// thousand. The others wait until they are made good.
    static let ahead = 300
    /// Nanoseconds until there may be another.
    static let interval: Int64 = 1_000_000_000 / 30

    /// When the whole burst is there again.
    private var full = Instant(nanoseconds: .min)

    /// When the next one may be, if not at once.
    func next(_ now: Instant) -> Instant {
        let start = full.nanoseconds.subtractingReportingOverflow(Int64(Self.burst - 1) * Self.interval)
        return Instant(nanoseconds: max(now.nanoseconds, start.overflow ? .min : start.partialValue))
    }

    /// The whole burst is there: nothing is lost with it.
    func isRested(_ now: Instant) -> Bool { full <= now }

    /// There was one, whether it was allowed or not: the others wait for it, and for such ones never longer than behind a
    /// burst.
    mutating func use(_ now: Instant) {
        use(now, atMost: Self.burst)
    }

    /// One ahead of its turn. False: too many were.
    mutating func takeAhead(_ now: Instant) -> Bool {
        let count = Self.burst + Self.ahead
        guard full.nanoseconds <= now.nanoseconds + Int64(count - 1) * Self.interval else { return false }
        use(now, atMost: count)
        return true
    }

    private mutating func use(_ now: Instant, atMost count: Int) {
        let next = max(full.nanoseconds, now.nanoseconds) + Self.interval
        full = Instant(nanoseconds: max(full.nanoseconds, min(next, now.nanoseconds + Int64(count) * Self.interval)))
    }

    /// False: not yet.
    mutating func take(_ now: Instant) -> Bool {
        guard next(now) <= now else { return false }
        use(now)
        return true
    }
}
