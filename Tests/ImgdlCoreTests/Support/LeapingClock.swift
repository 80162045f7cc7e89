import Synchronization

@testable import ImgdlCore

/// Goes on by itself, and an hour at once when it is told to, as where the process is stopped, or where the machine sleeps.
final class LeapingClock: Clock, @unchecked Sendable {
    static let leap: Int64 = 3_600 * 1_000_000_000
    private let clock = MonotonicClock()
    private let leaps = Atomic<Int64>(0)
    private let sleeps = Atomic<Int64>(0)

    func leap() { leaps.add(Self.leap, ordering: .relaxed) }
    func sleep() { sleeps.add(Self.leap, ordering: .relaxed) }
    func now() -> Instant { Instant(nanoseconds: clock.now().nanoseconds + leaps.load(ordering: .relaxed)) }
    func wallTime() -> Int64 { clock.wallTime() }
    func wallMicroseconds() -> Int64 { clock.wallMicroseconds() }
    func timeWithSleep() -> Int64 { now().nanoseconds + sleeps.load(ordering: .relaxed) }
}
