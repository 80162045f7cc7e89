import Glibc

/// A moment on the monotonic clock, in nanoseconds. Rules get it as an argument; nothing below the engine reads a clock.
package struct Instant: Hashable, Comparable, Sendable, BitwiseCopyable {
    package var nanoseconds: Int64

    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    package static func < (left: Instant, right: Instant) -> Bool { left.nanoseconds < right.nanoseconds }

    package func advanced(byMilliseconds milliseconds: Int64) -> Instant {
        let (span, overflow) = milliseconds.multipliedReportingOverflow(by: 1_000_000)
        let (sum, sumOverflow) = nanoseconds.addingReportingOverflow(overflow ? .max : span)
        return Instant(nanoseconds: sumOverflow ? .max : sum)
    }

    package func milliseconds(since earlier: Instant) -> Int64 { (nanoseconds - earlier.nanoseconds) / 1_000_000 }
}

/// Port: what time it is.
package protocol Clock: Sendable {
    func now() -> Instant
    /// Seconds since 1970, as the host's calendar has it: for dates that servers send.
    func wallTime() -> Int64
    /// The same in microseconds: for what is compared with others of this machine's.
    func wallMicroseconds() -> Int64
    /// Nanoseconds of a clock that goes on while the machine sleeps, as `now` does not.
    func timeWithSleep() -> Int64
}

package struct MonotonicClock: Clock {
    package init() {}

    package func now() -> Instant {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    package func wallTime() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec)
    }

    package func wallMicroseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000
    }

    package func timeWithSleep() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

/// CPU time of the thread that asks.
package enum ThreadClock {
    /// In nanoseconds.
    package static func now() -> Int64 {
        var time = timespec()
        guard clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0 else { return 0 }
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
