import Glibc

/// Values under keys that are a slot and a generation: a key that was removed is never valid again, whatever takes its
/// slot. Look-up, insertion and removal are O(1). No key is 0.
///
/// Neither the table nor what is in it is ever copied: elements are found some two hundred times for each request, and
/// a table that could be shared would have to look each time whether it is.
package struct SlotTable<Element: ~Copyable>: ~Copyable {
    private var elements: UnsafeMutablePointer<Element>
    /// Of each slot how often it has been taken and left: odd while something is in it, and never 0.
    private var generations: UnsafeMutablePointer<UInt32>
    private var slotCount = 0
    private var capacity = 0
    private var free = PlainTable<UInt32>()
    private var firstGeneration: UInt32
    package private(set) var count = 0

    package init() { self.init(firstGeneration: 1) }

    /// For the test of a slot's last generation. Odd.
    init(firstGeneration: UInt32) {
        self.firstGeneration = firstGeneration
        elements = resized(nil, to: 0)
        generations = resized(nil, to: 0)
    }

    deinit {
        for index in 0..<slotCount where isTaken(index) {
            (elements + index).deinitialize(count: 1)
        }
        Glibc.free(elements)
        Glibc.free(generations)
    }

    package mutating func insert(_ element: consuming Element) -> UInt64 {
        let index: Int
        if let reused = free.popLast() {
            index = Int(reused)
            generations[index] += 1
        } else {
            if slotCount == capacity { grow() }
            index = slotCount
            generations[index] = firstGeneration
            slotCount += 1
        }
        (elements + index).initialize(to: element)
        count += 1
        return key(of: index)
    }

    @discardableResult
    package mutating func remove(_ key: UInt64) -> Element? {
        guard contains(key) else { return nil }
        let index = Self.slot(key)
        count -= 1
        // A slot whose generations are used up is left alone: a busy slot gets there within days.
        if generations[index] < UInt32.max {
            generations[index] += 1
            free.append(UInt32(index))
        } else {
            generations[index] = Self.usedUp
        }
        let removed = (elements + index).move()
        if count == 0, slotCount > mostRoomKept { giveBack() }
        return removed
    }

    /// How many there is room for.
    var room: Int { capacity }

    /// A crowd is over. Its slots go, and come back with generations that none of them has had: no key of it is valid again.
    @inline(never) private mutating func giveBack() {
        var latest = firstGeneration
        for slot in 0..<slotCount { latest = max(latest, generations[slot]) }
        // Slots that are left alone are to stay so.
        guard free.count == slotCount, latest < UInt32.max - 1 else { return }
        firstGeneration = latest + 1
        Glibc.free(elements)
        Glibc.free(generations)
        elements = resized(nil, to: 0)
        generations = resized(nil, to: 0)
        (slotCount, capacity) = (0, 0)
        free.reset()
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
        return index < slotCount && generations[index] == UInt32(truncatingIfNeeded: key >> 32)
    }

    /// Something is in the slot.
    package func isTaken(_ slot: Int) -> Bool { slot < slotCount && generations[slot] % 2 == 1 }

    /// All keys, in the order of their slots.
    package var keys: [UInt64] {
        (0..<slotCount).compactMap { isTaken($0) ? key(of: $0) : nil }
    }

    /// The slot alone: an index for tables that run beside this one.
    @inlinable package static func slot(_ key: UInt64) -> Int { Int(key & 0xFFFF_FFFF) }

    /// The key that the slot has now, which must not be free.
    package func key(of slot: Int) -> UInt64 {
        precondition(slot < slotCount)
        return UInt64(generations[slot]) << 32 | UInt64(slot)
    }

    /// Even: no key has it.
    private static var usedUp: UInt32 { 2 }

    private mutating func grow() {
        capacity = grown(capacity)
        elements = resized(elements, to: capacity)
        generations = resized(generations, to: capacity)
    }
}

extension SlotTable {
    package func get(_ key: UInt64) -> Element? { contains(key) ? self[key] : nil }
}
