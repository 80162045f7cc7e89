/// Bytes that wait for somebody, by whom they wait for: hooks that owe answers, or sources that send next to nothing.
///
/// They count for that one alone and not for the budget of all. Once they have reached its share, its own requests wait to begin
/// until only half of it is left.
package struct Shares<Owner: Hashable> {
    /// Which part of the budget may wait for the same one before nothing that needs it begins any more.
    private static var sharesOfBudget: Int64 { 4 }

    private struct Entry {
        var bytes: Int64 = 0
        /// Where it has reached its share: when no longer.
        var resumesAt: Int64?
    }

    /// Of those that something waits for.
    private var entries: [Owner: Entry] = [:]
    /// Bytes that wait, for whomever.
    package private(set) var total: Int64 = 0
    package private(set) var behindCount = 0

    package init() {}

    package func isBehind(_ owner: Owner) -> Bool { behindCount > 0 && entries[owner]?.resumesAt != nil }

    /// So many more bytes wait for this one, or less. It lives as long as any do.
    package mutating func change(_ bytes: Int64, of owner: Owner, budget: Int64) {
        var entry = entries[owner] ?? Entry()
        entry.bytes += bytes
        total += bytes
        let share = budget / Self.sharesOfBudget
        if let resumesAt = entry.resumesAt {
            if entry.bytes <= resumesAt {
                entry.resumesAt = nil
                behindCount -= 1
            }
        } else if bytes > 0, entry.bytes >= share {
            entry.resumesAt = share / 2
            behindCount += 1
        }
        entries[owner] = entry.bytes == 0 ? nil : entry
    }
}
