/// Values under keys that are a slot and a generation: a key that was removed is never valid again, whatever takes its
/// slot. Look-up, insertion and removal are O(1). No key is 0.
package struct SlotTable<Element> {
    private struct Slot {
        var generation: UInt32
        var element: Element?
    }

    private var slots: [Slot] = []
    private var free: [UInt32] = []
    private let firstGeneration: UInt32
    package private(set) var count = 0

    package init() { firstGeneration = 1 }

    /// For the test of a slot's last generation.
    init(firstGeneration: UInt32) { self.firstGeneration = firstGeneration }

    package mutating func insert(_ element: Element) -> UInt64 {
        count += 1
        if let index = free.popLast() {
            slots[Int(index)].element = element
            return Self.key(slots[Int(index)].generation, index)
        }
        slots.append(Slot(generation: firstGeneration, element: element))
        return Self.key(firstGeneration, UInt32(slots.count - 1))
    }

    @discardableResult
    package mutating func remove(_ key: UInt64) -> Element? {
        guard let index = index(of: key), let element = slots[index].element else { return nil }
        slots[index].element = nil
        count -= 1
        // A slot whose generations are used up is left alone: a busy slot gets there within days.
        if slots[index].generation < .max {
            slots[index].generation += 1
            free.append(UInt32(index))
        }
        return element
    }

    /// In place, without a copy. Traps for keys that are not in the table: for keys that the rules themselves hold.
    package subscript(_ key: UInt64) -> Element {
        _read { yield slots[index(of: key)!].element! }
        _modify { yield &slots[index(of: key)!].element! }
    }

    package func contains(_ key: UInt64) -> Bool { index(of: key) != nil }

    package func get(_ key: UInt64) -> Element? { index(of: key).flatMap { slots[$0].element } }

    /// All keys, in the order of their slots.
    package var keys: [UInt64] {
        slots.indices.compactMap { slots[$0].element == nil ? nil : key(of: $0) }
    }

    /// The slot alone: an index for tables that run beside this one.
    package static func slot(_ key: UInt64) -> Int { Int(key & 0xFFFF_FFFF) }

    /// The key that the slot has now.
    package func key(of slot: Int) -> UInt64 { Self.key(slots[slot].generation, UInt32(slot)) }

    private static func key(_ generation: UInt32, _ index: UInt32) -> UInt64 {
        UInt64(generation) << 32 | UInt64(index)
    }

    private func index(of key: UInt64) -> Int? {
        let index = Self.slot(key)
        guard index < slots.count, slots[index].generation == UInt32(key >> 32), slots[index].element != nil else {
            return nil
        }
        return index
    }
}
