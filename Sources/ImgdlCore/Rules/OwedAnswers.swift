/// Bodies that wait for the answers of hooks, by the hooks that owe them.
///
/// They count for those hooks alone and not for the budget of all: what an answer waits for may be another request. Once they
/// have reached their share, requests with the same hooks wait to begin until half of it has been answered for.
package struct OwedAnswers {
    package typealias Owner = ObjectIdentifier

    /// Which part of the budget may wait for the answers of the same hooks before none that has them begins any more.
    static let sharesOfBudget: Int64 = 4

    private struct Entry {
        var bytes: Int64 = 0
        /// Where it has reached its share: when no longer.
        var resumesAt: Int64?
    }

    /// Hooks that owe any.
    private var entries: [Owner: Entry] = [:]
    /// Bytes that wait, for whomever.
    package private(set) var total: Int64 = 0
    package private(set) var behindCount = 0

    package init() {}

    package func isBehind(_ owner: Owner) -> Bool { behindCount > 0 && entries[owner]?.resumesAt != nil }

    /// So many more bytes wait for the answers of these hooks, or less. They live as long as any do.
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
