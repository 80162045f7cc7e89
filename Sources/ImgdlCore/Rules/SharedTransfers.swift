/// Which transfers a new request for the same bytes joins, by the slots and the hashes of their requests. A hash table
/// whose chains run through one array: eight bytes for each, where a dictionary takes three dozen. All operations are
/// O(1).
struct SharedTransfers: ~Copyable {
    /// Slots, and 1 more: 0 is none. As many chains as a power of two says.
    private var first: [UInt32] = []
    private var next = PlainTable<UInt32>()
    private(set) var count = 0

    /// The slot for which `isSame` holds.
    func find(_ hash: Int, _ isSame: (Int) -> Bool) -> Int? {
        guard !first.isEmpty else { return nil }
        var link = first[chain(hash)]
        while link != 0 {
            if isSame(Int(link) - 1) { return Int(link) - 1 }
            link = next[Int(link) - 1]
        }
        return nil
    }

    /// Nothing can be inserted before it has grown.
    var isFull: Bool { count == first.count }

    /// The slot must not be there.
    mutating func insert(_ slot: Int, _ hash: Int) {
        next.extend(to: slot + 1, with: 0)
        link(slot, hash)
        count += 1
    }

    /// Does nothing for a slot that is not there.
    mutating func remove(_ slot: Int, _ hash: Int) {
        guard !first.isEmpty else { return }
        let chain = chain(hash)
        let removed = UInt32(slot + 1)
        if first[chain] == removed {
            first[chain] = next[slot]
        } else {
            var link = first[chain]
            while link != 0, next[Int(link) - 1] != removed { link = next[Int(link) - 1] }
            guard link != 0 else { return }
            next[Int(link) - 1] = next[slot]
        }
        count -= 1
        if count == 0, first.count > mostRoomKept { giveBack() }
    }

    /// A crowd is over.
    private mutating func giveBack() {
        first = []
        next.reset()
    }

    private func chain(_ hash: Int) -> Int { hash & (first.count - 1) }

    private mutating func link(_ slot: Int, _ hash: Int) {
        let chain = chain(hash)
        next[slot] = first[chain]
        first[chain] = UInt32(slot + 1)
    }

    /// `hashOf`: of those that are there.
    mutating func grow(_ hashOf: (Int) -> Int) {
        let old = first
        first = Array(repeating: 0, count: max(16, 2 * old.count))
        for var rest in old {
            while rest != 0 {
                let slot = Int(rest) - 1
                rest = next[slot]
                link(slot, hashOf(slot))
            }
        }
    }
}
