/// Many heaps over one table of nodes, the least key on top. A node is a number that the caller gives it and stands in
/// one heap at most; a heap is its root, -1 when it is empty, kept by the caller.
///
/// Pairing heaps: insertion is O(1), removal of any node O(log n) amortised, nothing is allocated for a node but its
/// place in the table.
package struct PairingHeaps: ~Copyable {
    private static let absent: Int32 = -2

    private struct Node {
        /// In halves: so a node has no gap, and there may be a million.
        private var upperKey: Int32 = 0
        private var lowerKey: UInt32 = 0
        var child: Int32 = -1
        /// The next of the parent's children.
        var next: Int32 = -1
        /// The one before it among the parent's children, the parent for the first, -1 for a root.
        var previous: Int32 = absent

        init() {}

        /// A root.
        init(key: Int64) {
            self.key = key
            previous = -1
        }

        var key: Int64 {
            get { Int64(upperKey) << 32 | Int64(lowerKey) }
            set {
                upperKey = Int32(truncatingIfNeeded: newValue >> 32)
                lowerKey = UInt32(truncatingIfNeeded: newValue)
            }
        }
    }

    private var nodes = PlainTable<Node>()

    package init() {}

    package func contains(_ node: Int) -> Bool { node < nodes.count && nodes[node].previous != Self.absent }

    package func key(_ node: Int) -> Int64 { nodes[node].key }

    /// The node must not be in a heap.
    package mutating func insert(_ node: Int, key: Int64, _ root: inout Int32) {
        nodes.extend(to: node + 1, with: Node())
        nodes[node] = Node(key: key)
        root = merge(root, Int32(node))
    }

    /// The node must be in this heap.
    package mutating func setKey(_ node: Int, _ key: Int64, _ root: inout Int32) {
        if nodes[node].key == key { return }
        // It is alone.
        if root == Int32(node), nodes[node].child < 0 { return nodes[node].key = key }
        remove(node, &root)
        insert(node, key: key, &root)
    }

    /// The node must be in this heap.
    package mutating func remove(_ node: Int, _ root: inout Int32) {
        let removed = nodes[node]
        let rest = removed.child < 0 ? -1 : mergeSiblings(removed.child)
        if root == Int32(node) {
            root = rest
        } else {
            if nodes[Int(removed.previous)].child == Int32(node) {
                nodes[Int(removed.previous)].child = removed.next
            } else {
                nodes[Int(removed.previous)].next = removed.next
            }
            if removed.next >= 0 { nodes[Int(removed.next)].previous = removed.previous }
            root = merge(root, rest)
        }
        nodes[node] = Node()
    }

    /// Of two roots, one of which may be -1.
    private mutating func merge(_ left: Int32, _ right: Int32) -> Int32 {
        guard left >= 0 else { return right }
        guard right >= 0 else { return left }
        let isLeftFirst = nodes[Int(left)].key <= nodes[Int(right)].key
        let (parent, child) = isLeftFirst ? (left, right) : (right, left)
        let second = nodes[Int(parent)].child
        nodes[Int(child)].next = second
        nodes[Int(child)].previous = parent
        if second >= 0 { nodes[Int(second)].previous = child }
        nodes[Int(parent)].child = child
        return parent
    }

    /// Pairs from left to right, then all together from right to left: that is what keeps removal cheap.
    private mutating func mergeSiblings(_ first: Int32) -> Int32 {
        var paired: Int32 = -1
        var rest = first
        while rest >= 0 {
            let left = rest
            let right = nodes[Int(left)].next
            rest = right >= 0 ? nodes[Int(right)].next : -1
            makeRoot(left)
            if right >= 0 { makeRoot(right) }
            let pair = merge(left, right)
            // The pairs are kept in a list by `next` until the second pass.
            nodes[Int(pair)].next = paired
            paired = pair
        }
        var root: Int32 = -1
        while paired >= 0 {
            let next = nodes[Int(paired)].next
            makeRoot(paired)
            root = merge(root, paired)
            paired = next
        }
        return root
    }

    private mutating func makeRoot(_ node: Int32) {
        nodes[Int(node)].next = -1
        nodes[Int(node)].previous = -1
    }
}
