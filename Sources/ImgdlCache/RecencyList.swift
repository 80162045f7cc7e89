/// Values in the order of their last use, with what each costs. Every operation takes constant time.
struct RecencyList<Key: Hashable, Value> {
    private struct Node {
        var key: Key
        var value: Value
        var cost: Int64
        var newer: Int
        var older: Int
    }

    private static var none: Int { -1 }

    private var slots: [Key: Int] = [:]
    private var nodes: [Node?] = []
    private var free: [Int] = []
    private var newest = none
    private var oldest = none
    private(set) var totalCost: Int64 = 0

    var count: Int { slots.count }

    /// The value, without using it.
    func value(_ key: Key) -> Value? { slots[key].flatMap { nodes[$0]?.value } }

    mutating func use(_ key: Key) -> Value? {
        guard let slot = slots[key] else { return nil }
        unlink(slot)
        linkAsNewest(slot)
        return nodes[slot]?.value
    }

    /// In place of what the key had.
    mutating func insert(_ key: Key, _ value: Value, cost: Int64) {
        remove(key)
        let node = Node(key: key, value: value, cost: cost, newer: Self.none, older: Self.none)
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

    /// Another value of the same cost; neither used nor moved.
    mutating func replace(_ key: Key, _ value: Value) {
        if let slot = slots[key] { nodes[slot]?.value = value }
    }

    @discardableResult
    mutating func remove(_ key: Key) -> Value? {
        guard let slot = slots.removeValue(forKey: key), let node = nodes[slot] else { return nil }
        unlink(slot)
        nodes[slot] = nil
        free.append(slot)
        totalCost -= node.cost
        return node.value
    }

    mutating func removeOldest() -> (key: Key, value: Value)? {
        guard oldest != Self.none, let node = nodes[oldest] else { return nil }
        remove(node.key)
        return (node.key, node.value)
    }

    mutating func removeAll() { self = RecencyList() }

    /// From the one that was used longest ago.
    func oldestFirst(_ body: (Key, Value) -> Bool) {
        var slot = oldest
        while slot != Self.none, let node = nodes[slot] {
            guard body(node.key, node.value) else { return }
            slot = node.newer
        }
    }

    private mutating func unlink(_ slot: Int) {
        guard let node = nodes[slot] else { return }
        if node.newer == Self.none { newest = node.older } else { nodes[node.newer]?.older = node.older }
        if node.older == Self.none { oldest = node.newer } else { nodes[node.older]?.newer = node.newer }
    }

    private mutating func linkAsNewest(_ slot: Int) {
        nodes[slot]?.older = newest
        nodes[slot]?.newer = Self.none
        if newest == Self.none { oldest = slot } else { nodes[newest]?.newer = slot }
        newest = slot
    }
}
