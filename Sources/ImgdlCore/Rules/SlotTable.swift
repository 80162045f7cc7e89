/// Values under keys that are a slot and a generation: a key that was removed is never valid again, whatever takes its
/// slot. Look-up, insertion and removal are O(1).
package struct SlotTable<Element> {
    private struct Slot {
        var generation: UInt32 = 1
        var element: Element?
    }

    private var slots: [Slot] = []
    private var free: [UInt32] = []
    package private(set) var count = 0

    package init() {}

    package mutating func insert(_ element: Element) -> UInt64 {
        count += 1
        if let index = free.popLast() {
            slots[Int(index)].element = element
            return Self.key(slots[Int(index)].generation, index)
        }
        slots.append(Slot(element: element))
        return Self.key(1, UInt32(slots.count - 1))
    }

    @discardableResult
    package mutating func remove(_ key: UInt64) -> Element? {
        guard let index = index(of: key), let element = slots[index].element else { return nil }
        slots[index].element = nil
        slots[index].generation &+= 1
        free.append(UInt32(index))
        count -= 1
        return element
    }

    /// Traps for keys that are not in the table: for keys that the rules themselves hold.
    package subscript(_ key: UInt64) -> Element {
        get { slots[Self.slot(key)].element.unsafelyUnwrapped }
        _modify { yield &slots[Self.slot(key)].element! }
    }

    package func contains(_ key: UInt64) -> Bool { index(of: key) != nil }

    package func get(_ key: UInt64) -> Element? { index(of: key).flatMap { slots[$0].element } }

    /// All keys, in the order of their slots.
    package var keys: [UInt64] {
        slots.indices.compactMap { slots[$0].element == nil ? nil : Self.key(slots[$0].generation, UInt32($0)) }
    }

    /// The slot alone: an index for tables that run beside this one.
    package static func slot(_ key: UInt64) -> Int { Int(key & 0xFFFF_FFFF) }

    private static func key(_ generation: UInt32, _ index: UInt32) -> UInt64 { UInt64(generation) << 32 | UInt64(index) }

    private func index(of key: UInt64) -> Int? {
        let index = Self.slot(key)
        guard index < slots.count, slots[index].generation == UInt32(key >> 32), slots[index].element != nil else {
            return nil
        }
        return index
    }
}
