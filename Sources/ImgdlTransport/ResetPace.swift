import ImgdlCore

/// How fast streams of one server may be reset. Servers close a connection whose client opens and resets streams as in an
/// attack (CVE-2023-44487, "Rapid Reset"): common ones allow 33 a second, once their first thousand is used up.
struct ResetPace {
    /// At once, after a rest.
    static let burst = 100
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

    /// There was one, whether it was allowed or not: the others wait for it, and never longer than behind a burst.
    mutating func use(_ now: Instant) {
        let next = max(full.nanoseconds, now.nanoseconds) + Self.interval
        full = Instant(nanoseconds: min(next, now.nanoseconds + Int64(Self.burst) * Self.interval))
    }

    /// False: not yet.
    mutating func take(_ now: Instant) -> Bool {
        guard next(now) <= now else { return false }
        use(now)
        return true
    }
}
