/// Deadlines in order of time. An entry is not taken out when its owner goes: whoever pops it asks whether it still
/// means something. Whoever inserts throws such leftovers out when it is crowded, so that at most half of a large heap are
/// some.
package struct DeadlineHeap<Owner> {
    private static var fewest: Int { 64 }
    private var entries: [(instant: Instant, owner: Owner)] = []
    private var compactsAt = fewest

    package init() {}

    package var count: Int { entries.count }
    package var earliest: Instant? { entries.first?.instant }

    /// It has become twice as large since leftovers were thrown out: time to `compact`.
    package var isCrowded: Bool { entries.count >= compactsAt }

    /// O(log n).
    package mutating func insert(_ instant: Instant, _ owner: Owner) {
        entries.append((instant, owner))
        var child = entries.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard entries[child].instant < entries[parent].instant else { break }
            entries.swapAt(child, parent)
            child = parent
        }
    }

    /// The earliest owner whose time has come.
    package mutating func popDue(_ now: Instant) -> Owner? {
        guard let first = entries.first, first.instant <= now else { return nil }
        entries.swapAt(0, entries.count - 1)
        entries.removeLast()
        siftDown(0)
        return first.owner
    }

    package mutating func removeAll() { entries.removeAll(keepingCapacity: entries.capacity <= Self.fewest) }

    /// O(n), which is shared among the insertions.
    package mutating func compact(keeping isLive: (Owner) -> Bool) {
        entries.removeAll { !isLive($0.owner) }
        for parent in stride(from: entries.count / 2 - 1, through: 0, by: -1) { siftDown(parent) }
        compactsAt = max(Self.fewest, 2 * entries.count)
    }

    private mutating func siftDown(_ start: Int) {
        var parent = start
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < entries.count && entries[child].instant < entries[least].instant {
                least = child
            }
            guard least != parent else { return }
            entries.swapAt(parent, least)
            parent = least
        }
    }
}
