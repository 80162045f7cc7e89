/// In which order waiting transfers start. Values are ABI.
package enum ExecutionOrder: UInt32, Sendable {
    case fifo = 0
    case lifo = 1
}

/// Transfers that wait for their turn: one list for each priority, each a real queue or stack (features B13, I22).
/// Every operation is O(1); a transfer is known by its slot.
package struct WaitingQueue {
    private struct Link {
        var previous: Int32 = -1
        var next: Int32 = -1
        /// -1: not waiting.
        var list: Int8 = -1
    }

    private var links: [Link] = []
    private var heads: [Int32] = [-1, -1, -1]
    private var tails: [Int32] = [-1, -1, -1]
    package private(set) var count = 0

    package init() {}

    package mutating func insert(_ slot: Int, priority: Priority, order: ExecutionOrder) {
        while links.count <= slot { links.append(Link()) }
        let list = priority.index
        let slot32 = Int32(slot)
        count += 1
        links[slot].list = Int8(list)
        switch order {
        case .fifo:
            links[slot].previous = tails[list]
            links[slot].next = -1
            if tails[list] >= 0 { links[Int(tails[list])].next = slot32 } else { heads[list] = slot32 }
            tails[list] = slot32
        case .lifo:
            links[slot].next = heads[list]
            links[slot].previous = -1
            if heads[list] >= 0 { links[Int(heads[list])].previous = slot32 } else { tails[list] = slot32 }
            heads[list] = slot32
        }
    }

    /// Does nothing for a slot that does not wait.
    package mutating func remove(_ slot: Int) {
        guard slot < links.count, links[slot].list >= 0 else { return }
        let link = links[slot]
        let list = Int(link.list)
        if link.previous >= 0 { links[Int(link.previous)].next = link.next } else { heads[list] = link.next }
        if link.next >= 0 { links[Int(link.next)].previous = link.previous } else { tails[list] = link.previous }
        links[slot] = Link()
        count -= 1
    }

    /// Who goes next: the first of the highest priority.
    package mutating func popFirst() -> Int? {
        for list in [2, 1, 0] where heads[list] >= 0 {
            let slot = Int(heads[list])
            remove(slot)
            return slot
        }
        return nil
    }
}
