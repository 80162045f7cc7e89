/// Resets of streams that a server may see: a burst, and so many a second after it.
enum Resets {
    /// Since then, and one more for the moment at which they are counted.
    static func allowed(since began: ContinuousClock.Instant) -> Int {
        let past = (ContinuousClock.now - began).components
        return 101 + Int(30 * (Double(past.seconds) + Double(past.attoseconds) / 1e18))
    }
}
