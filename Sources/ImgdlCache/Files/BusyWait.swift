import ImgdlCore

/// How long somebody waits for others, a connection for those that write, say: moments that become longer, until an end that
/// was set when the first one began. Asleep it may be for longer than it asked for, and that counts.
struct BusyWait {
    private static let longestMoment: Int64 = 25

    private var end = Instant(nanoseconds: 0)

    /// The next moment, in milliseconds; nil: it has been long enough. `count`: of the moments before in the same call.
    mutating func moment(_ count: Int32, patience: Int32, _ now: Instant) -> Int64? {
        if count == 0 { end = now.advanced(byMilliseconds: Int64(patience)) }
        let moment = min(1 << Int64(min(count, 5)), Self.longestMoment, end.milliseconds(since: now))
        return moment > 0 ? moment : nil
    }
}
