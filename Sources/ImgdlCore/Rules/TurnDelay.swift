/// How late a turn of the engine's thread begins: time in which nobody looked at what had come, since the host's code ran,
/// the process was stopped, or the machine slept.
package struct TurnDelay: Equatable, Sendable {
    /// Nanoseconds. Every turn takes some time: only what is more than this is given back to clocks, so that they get on
    /// even where each turn is late.
    package static let grace: Int64 = 100_000_000
    /// Nanoseconds after which idle connections may be dead without a word.
    package static let networkPatience: Int64 = 10_000_000_000

    /// Nanoseconds that the clocks of timeouts have counted meanwhile.
    package var awake: Int64
    /// Those that only the machine's own clock has.
    package var asleep: Int64

    package init(awake: Int64 = 0, asleep: Int64 = 0) {
        self.awake = awake
        self.asleep = asleep
    }

    /// Nanoseconds that are given back to idle clocks.
    package var excess: Int64 { max(0, awake - Self.grace) }

    package var outlivesConnections: Bool { awake > Self.networkPatience || asleep > Self.networkPatience }

    package var matters: Bool { excess > 0 || outlivesConnections }
}

/// Measures it, turn by turn.
package struct TurnMeter: Sendable {
    /// When the last turn began, on both clocks, and ended.
    private var woke: Instant
    private var wokeWithSleep: Int64
    private var slept: Instant
    /// When the sleep was to end; nil: when something happens.
    private var due: Instant?

    package init(_ now: Instant, withSleep: Int64) {
        woke = now
        slept = now
        wokeWithSleep = withSleep
    }

    /// The thread looks what is ready, and sleeps until then at most.
    package mutating func sleeps(_ now: Instant, until due: Instant?) {
        slept = now
        self.due = due
    }

    /// Its next turn begins. `wasStopped`: at some moment of the sleep the process was, and nobody knows when.
    package mutating func wakes(_ now: Instant, withSleep: Int64, wasStopped: Bool = false) -> TurnDelay {
        let busy = slept.nanoseconds - woke.nanoseconds
        let end = wasStopped ? slept : due.map { max($0, slept) } ?? now
        let overslept = now.nanoseconds - end.nanoseconds
        let asleep = (withSleep - wokeWithSleep) - (now.nanoseconds - woke.nanoseconds)
        woke = now
        wokeWithSleep = withSleep
        return TurnDelay(awake: max(0, busy) + max(0, overslept), asleep: max(0, asleep))
    }
}
