import Glibc

/// A moment on the monotonic clock: what the log notes and what deadlines are made of.
package struct Instant: Comparable, Hashable, Sendable {
    package var nanoseconds: UInt64

    package static var now: Instant {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Instant(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }

    /// A duration too long to add gives the end of time.
    package static func + (start: Instant, length: Duration) -> Instant {
        let (seconds, attoseconds) = length.components
        guard seconds >= 0, seconds < 1_000_000_000 else { return Instant(nanoseconds: seconds < 0 ? 0 : .max) }
        return Instant(
            nanoseconds: start.nanoseconds + UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds) / 1_000_000_000)
    }

    package static func - (end: Instant, start: Instant) -> Duration {
        .nanoseconds(Int64(bitPattern: end.nanoseconds &- start.nanoseconds))
    }

    package static func < (a: Instant, b: Instant) -> Bool { a.nanoseconds < b.nanoseconds }
}

/// When a wait gives up. A test's deadline is a bound on failure, not a delay: success returns at once.
package struct Deadline: Hashable, Sendable {
    package var instant: Instant

    package static let never = Deadline(instant: Instant(nanoseconds: .max))
    package static func after(_ length: Duration) -> Deadline { Deadline(instant: .now + length) }
    /// Long enough for a loaded machine, short enough for a test that has failed.
    package static var patient: Deadline { .after(.seconds(10)) }
}
