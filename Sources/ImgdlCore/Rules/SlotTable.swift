import Glibc

/// Values under keys that are a slot and a generation: a key that was removed is never valid again, whatever takes its
/// slot. Look-up, insertion and removal are O(1). No key is 0.
///
/// Neither the table nor what is in it is ever copied: elements are found some two hundred times for each request, and
/// a table that could be shared would have to look each time whether it is.
package struct SlotTable<Element: ~Copyable>: ~Copyable {
    private var elements: UnsafeMutablePointer<Element>
    /// Of each slot the key that it has now; of a free one its generation with a slot that no table has.
    private var current: UnsafeMutablePointer<UInt64>
    private var slotCount = 0
    private var capacity = 0
    private var free: [UInt32] = []
    private let firstGeneration: UInt32
    package private(set) var count = 0

    package init() { self.init(firstGeneration: 1) }

    /// For the test of a slot's last generation.
    init(firstGeneration: UInt32) {
        self.firstGeneration = firstGeneration
        elements = resized(nil, to: 0)
        current = resized(nil, to: 0)
    }

    deinit {
        for index in 0..<slotCount where current[index] & Self.noSlot != Self.noSlot {
            (elements + index).deinitialize(count: 1)
        }
        Glibc.free(elements)
        Glibc.free(current)
    }

    package mutating func insert(_ element: consuming Element) -> UInt64 {
        let key: UInt64
        if let index = free.popLast() {
            key = current[Int(index)] & ~Self.noSlot | UInt64(index)
        } else {
            if slotCount == capacity { grow() }
            key = UInt64(firstGeneration) << 32 | UInt64(slotCount)
            slotCount += 1
        }
        let index = Self.slot(key)
        (elements + index).initialize(to: element)
        current[index] = key
        count += 1
        return key
    }

    @discardableResult
    package mutating func remove(_ key: UInt64) -> Element? {
        guard contains(key) else { return nil }
        let index = Self.slot(key)
        let generation = key >> 32
        count -= 1
        // A slot whose generations are used up is left alone: a busy slot gets there within days.
        if generation < UInt32.max {
            current[index] = (generation + 1) << 32 | Self.noSlot
            free.append(UInt32(index))
        } else {
            current[index] = Self.noSlot
        }
        return (elements + index).move()
    }

    /// In place: an element may be large, and is looked at often. Traps for keys that are not in the table: for keys
    /// that the rules themselves hold.
    package subscript(_ key: UInt64) -> Element {
        @inline(__always) unsafeAddress { address(of: key) }
        @inline(__always) unsafeMutableAddress { mutableAddress(of: key) }
    }

    /// What subscripts by typed keys are made of.
    @inline(__always) func address(of key: UInt64) -> UnsafePointer<Element> {
        precondition(contains(key))
        return UnsafePointer(elements + Self.slot(key))
    }

    @inline(__always) mutating func mutableAddress(of key: UInt64) -> UnsafeMutablePointer<Element> {
        precondition(contains(key))
        return elements + Self.slot(key)
    }

    @inline(__always) package func contains(_ key: UInt64) -> Bool {
        let index = Self.slot(key)
        return index < slotCount && current[index] == key
    }

    /// All keys, in the order of their slots.
    package var keys: [UInt64] {
        (0..<slotCount).compactMap { current[$0] & Self.noSlot != Self.noSlot ? current[$0] : nil }
    }

    /// The slot alone: an index for tables that run beside this one.
    @inline(__always) package static func slot(_ key: UInt64) -> Int { Int(key & noSlot) }

    /// The key that the slot has now, which must not be free.
    package func key(of slot: Int) -> UInt64 {
        precondition(slot < slotCount)
        return current[slot]
    }

    private static var noSlot: UInt64 { 0xFFFF_FFFF }

    private mutating func grow() {
        capacity = grown(capacity)
        elements = resized(elements, to: capacity)
        current = resized(current, to: capacity)
    }
}

extension SlotTable {
    package func get(_ key: UInt64) -> Element? { contains(key) ? self[key] : nil }
}
