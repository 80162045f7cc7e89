/// The clock of the engine's thread: what follows one event, such as the callbacks of one call of libcurl, belongs to one
/// moment, for which the clock is read once. Reading it takes as long as counting four references.
///
/// Threads: the engine's.
final class TurnClock {
    /// For other threads, and for what is to be measured.
    let source: any Clock
    /// nil: not asked for since time has passed.
    private var moment: Instant?

    init(_ source: any Clock) { self.source = source }

    func now() -> Instant {
        if let moment { return moment }
        let read = source.now()
        moment = read
        return read
    }

    func wallTime() -> Int64 { source.wallTime() }

    func wallMicroseconds() -> Int64 { source.wallMicroseconds() }

    func timeWithSleep() -> Int64 { source.timeWithSleep() }

    /// Whoever asks next is told a new moment: the thread has slept, turns to something else, or the host's code has run.
    func passes() { moment = nil }
}
