/// Values in the order of their last use, with what each costs. Every operation takes constant time, but those on
/// all of them.
struct RecencyList<Key: Hashable, Value> {
    /// Looked at in place: a copy would retain what it holds.
    private struct Node {
        var key: Key
        /// nil: free.
        var value: Value?
        var cost: Int64
        var newer = RecencyList.none
        var older = RecencyList.none
    }

    private static var none: Int { -1 }

    private var slots: [Key: Int] = [:]
    private var nodes: [Node] = []
    private var free: [Int] = []
    private var newest = none
    private var oldest = none
    private(set) var totalCost: Int64 = 0

    var count: Int { slots.count }

    /// The value, without using it.
    func value(_ key: Key) -> Value? { slots[key].flatMap { nodes[$0].value } }

    mutating func use(_ key: Key) -> Value? {
        guard let slot = slots[key] else { return nil }
        if slot != newest {
            unlink(slot)
            linkAsNewest(slot)
        }
        return nodes[slot].value
    }

    /// In place of what the key had.
    mutating func insert(_ key: Key, _ value: Value, cost: Int64) {
        remove(key)
        let node = Node(key: key, value: value, cost: cost)
        let slot: Int
        if let empty = free.popLast() {
            slot = empty
            nodes[slot] = node
        } else {
            slot = nodes.count
            nodes.append(node)
        }
        slots[key] = slot
        totalCost += cost
        linkAsNewest(slot)
    }

    mutating func setCost(_ key: Key, _ cost: Int64) {
        guard let slot = slots[key] else { return }
        totalCost += cost - nodes[slot].cost
        nodes[slot].cost = cost
    }

    @discardableResult
    mutating func remove(_ key: Key) -> Value? {
        guard let slot = slots.removeValue(forKey: key) else { return nil }
        unlink(slot)
        free.append(slot)
        totalCost -= nodes[slot].cost
        return nodes[slot].value.take()
    }

    /// The one that was used longest ago, without using it.
    var leastRecent: Value? { oldest == Self.none ? nil : nodes[oldest].value }

    mutating func removeOldest() -> (key: Key, value: Value)? {
        guard oldest != Self.none else { return nil }
        let key = nodes[oldest].key
        return remove(key).map { (key, $0) }
    }

    mutating func removeAll() { self = RecencyList() }

    /// From the one that was used longest ago.
    func oldestFirst(_ body: (Key, Value) -> Void) {
        var slot = oldest
        while slot != Self.none, let value = nodes[slot].value {
            body(nodes[slot].key, value)
            slot = nodes[slot].newer
        }
    }

    private mutating func unlink(_ slot: Int) {
        let (newer, older) = (nodes[slot].newer, nodes[slot].older)
        if newer == Self.none { newest = older } else { nodes[newer].older = older }
        if older == Self.none { oldest = newer } else { nodes[older].newer = newer }
    }

    private mutating func linkAsNewest(_ slot: Int) {
        nodes[slot].older = newest
        nodes[slot].newer = Self.none
        if newest == Self.none { oldest = slot } else { nodes[newest].newer = slot }
        newest = slot
    }
}
