/// How stale a response may be that answers all the same, whatever would allow it: the request's max-stale, the server's
/// stale-while-revalidate and stale-if-error, a server that cannot be reached, or a program that asks for what is stored
/// alone. Freshness counts in seconds, and so does this.
package struct StaleLimit: Hashable, Sendable {
    private let greatest: Int64

    package init(seconds: Int64) { greatest = max(0, seconds) }

    private init(_ greatest: Int64) { self.greatest = greatest }

    package static let none = StaleLimit(Int64.max)
    /// Only what is fresh answers.
    package static let never = StaleLimit(Int64(-1))

    /// `staleness`: for how many seconds it has been stale.
    func allows(_ staleness: Int64) -> Bool { staleness <= greatest }

    /// Until when what is stale for so long at `wallTime` may be used, in seconds since 1970.
    func end(_ staleness: Int64, _ wallTime: Int64) -> Int64 {
        guard self != .none else { return .max }
        let end = CheckedNumber(wallTime) + (CheckedNumber(greatest) - CheckedNumber(staleness))
        return end?.clamped(to: Int64.min...Int64.max) ?? .max
    }
}
