/// What waits for executors: bytes of pictures and bodies that were delivered there, and that their hosts have not taken.
///
/// They count for the budget of all, until an executor is behind: because it has reached its share, or because nothing else
/// could make room. From then on they count for that executor alone, whose own requests wait for it until it has taken half.
/// So a host that takes nothing holds up itself, and holds the budget once at most besides.
package struct Backlogs {
    /// Whoever has none, such as a callback that runs at once, has number 0.
    package typealias Executor = UInt32

    /// Which part of the budget may wait for one executor before it is behind.
    static let sharesOfBudget: Int64 = 4

    private struct Entry {
        var bytes: Int64 = 0
        /// Where it is behind: when it is so no longer.
        var resumesAt: Int64?
    }

    private var entries: [Entry] = []
    /// Bytes that wait, for whomever.
    package private(set) var total: Int64 = 0
    /// Of those, what waits for executors that are behind.
    package private(set) var excused: Int64 = 0
    package private(set) var behindCount = 0

    package init() {}

    package func isBehind(_ executor: Executor) -> Bool {
        executor < entries.count && entries[Int(executor)].resumesAt != nil
    }

    /// Whether one that is not behind has something to take.
    package var areSomeAhead: Bool { total > excused }

    package mutating func add(_ bytes: Int64, to executor: Executor, budget: Int64) {
        guard executor > 0, bytes > 0 else { return }
        let number = Int(executor)
        while entries.count <= number { entries.append(Entry()) }
        entries[number].bytes += bytes
        total += bytes
        if entries[number].resumesAt != nil { excused += bytes }
        let share = budget / Self.sharesOfBudget
        if entries[number].bytes >= share { fallBehind(number, share: share) }
    }

    /// True when it has been behind, and is so no longer.
    package mutating func take(_ bytes: Int64, from executor: Executor) -> Bool {
        guard executor < entries.count, bytes > 0 else { return false }
        let number = Int(executor)
        entries[number].bytes -= bytes
        total -= bytes
        guard let resumesAt = entries[number].resumesAt else { return false }
        excused -= bytes
        guard entries[number].bytes <= resumesAt else { return false }
        excused -= entries[number].bytes
        entries[number].resumesAt = nil
        behindCount -= 1
        return true
    }

    /// All that have something to take are behind.
    package mutating func fallBehind() { for number in entries.indices { fallBehind(number, share: .max) } }

    private mutating func fallBehind(_ number: Int, share: Int64) {
        guard entries[number].bytes > 0, entries[number].resumesAt == nil else { return }
        entries[number].resumesAt = min(entries[number].bytes, share) / 2
        excused += entries[number].bytes
        behindCount += 1
    }
}
