import Glibc

/// A moment on the monotonic clock: what the log notes and what deadlines are made of.
package struct Moment: Comparable, Hashable, Sendable {
    package var nanoseconds: UInt64

    package static var now: Moment {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Moment(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }

    /// A duration too long to add gives the end of time.
    package static func + (start: Moment, length: Duration) -> Moment {
        let (seconds, attoseconds) = length.components
        guard seconds >= 0, seconds < 1_000_000_000 else { return Moment(nanoseconds: seconds < 0 ? 0 : .max) }
        return Moment(
            nanoseconds: start.nanoseconds + UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds) / 1_000_000_000)
    }

    package static func - (end: Moment, start: Moment) -> Duration {
        .nanoseconds(Int64(bitPattern: end.nanoseconds &- start.nanoseconds))
    }

    package static func < (a: Moment, b: Moment) -> Bool { a.nanoseconds < b.nanoseconds }
}

/// When a wait gives up. A test's deadline is a bound on failure, not a delay: success returns at once.
package struct Deadline: Hashable, Sendable {
    package var instant: Moment

    package static let never = Deadline(instant: Moment(nanoseconds: .max))
    package static func after(_ length: Duration) -> Deadline { Deadline(instant: .now + length) }
    /// Long enough for a loaded machine, short enough for a test that has failed.
    package static var patient: Deadline { .after(.seconds(30)) }
}

/// As in `Retry-After` and `Date`.
package func httpDate(secondsFromNow seconds: Int) -> String {
    var moment = time(nil) + seconds
    var parts = tm()
    gmtime_r(&moment, &parts)
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { text in
        // No test process sets a locale: the names are English.
        strftime(text.baseAddress!, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
        return String(cString: text.baseAddress!)
    }
}
