/// Values under keys that are a slot and a generation: a key that was removed is never valid again, whatever takes its
/// slot. Look-up, insertion and removal are O(1). No key is 0.
package struct SlotTable<Element> {
    private var storage: Storage
    private var free: [UInt32] = []
    private let firstGeneration: UInt32
    package private(set) var count = 0

    package init() { self.init(firstGeneration: 1) }

    /// For the test of a slot's last generation.
    init(firstGeneration: UInt32) {
        self.firstGeneration = firstGeneration
        storage = Storage(capacity: 0)
    }

    package mutating func insert(_ element: Element) -> UInt64 {
        makeUnique()
        count += 1
        if let index = free.popLast() {
            storage.put(element, Int(index))
            return Self.key(storage.slots[Int(index)].generation, index)
        }
        if storage.count == storage.capacity { storage = storage.moved(capacity: max(4, 2 * storage.capacity)) }
        let index = storage.count
        storage.addSlot(Slot(generation: firstGeneration, isTaken: false))
        storage.put(element, index)
        return Self.key(firstGeneration, UInt32(index))
    }

    @discardableResult
    package mutating func remove(_ key: UInt64) -> Element? {
        guard let index = index(of: key) else { return nil }
        makeUnique()
        let element = storage.take(index)
        count -= 1
        // A slot whose generations are used up is left alone: a busy slot gets there within days.
        if storage.slots[index].generation < .max {
            storage.slots[index].generation += 1
            free.append(UInt32(index))
        }
        return element
    }

    /// In place, without a copy: an element may be large, and is looked at often. Traps for keys that are not in the table:
    /// for keys that the rules themselves hold.
    package subscript(_ key: UInt64) -> Element {
        unsafeAddress { address(of: key) }
        unsafeMutableAddress { mutableAddress(of: key) }
    }

    /// What subscripts by typed keys are made of.
    func address(of key: UInt64) -> UnsafePointer<Element> { UnsafePointer(storage.elements + index(of: key)!) }

    mutating func mutableAddress(of key: UInt64) -> UnsafeMutablePointer<Element> {
        makeUnique()
        return storage.elements + index(of: key)!
    }

    package func contains(_ key: UInt64) -> Bool { index(of: key) != nil }

    package func get(_ key: UInt64) -> Element? { index(of: key).map { storage.elements[$0] } }

    /// All keys, in the order of their slots.
    package var keys: [UInt64] {
        (0..<storage.count).compactMap { storage.slots[$0].isTaken ? key(of: $0) : nil }
    }

    /// The slot alone: an index for tables that run beside this one.
    package static func slot(_ key: UInt64) -> Int { Int(key & 0xFFFF_FFFF) }

    /// The key that the slot has now.
    package func key(of slot: Int) -> UInt64 {
        precondition(slot < storage.count)
        return Self.key(storage.slots[slot].generation, UInt32(slot))
    }

    private static func key(_ generation: UInt32, _ index: UInt32) -> UInt64 {
        UInt64(generation) << 32 | UInt64(index)
    }

    @inline(__always) private func index(of key: UInt64) -> Int? {
        let index = Self.slot(key)
        guard index < storage.count else { return nil }
        let slot = storage.slots[index]
        return slot.isTaken && slot.generation == UInt32(key >> 32) ? index : nil
    }

    private mutating func makeUnique() {
        if !isKnownUniquelyReferenced(&storage) { storage = storage.copied() }
    }

    private struct Slot {
        var generation: UInt32
        var isTaken: Bool
    }

    /// An array of optionals would copy an element each time it is looked at, and an array of slots would be looked up and
    /// checked: elements are found some two hundred times for each request.
    private final class Storage: @unchecked Sendable {
        /// The first `count`.
        let slots: UnsafeMutablePointer<Slot>
        private(set) var count = 0
        let elements: UnsafeMutablePointer<Element>
        let capacity: Int

        init(capacity: Int) {
            self.capacity = capacity
            elements = .allocate(capacity: capacity)
            slots = .allocate(capacity: capacity)
        }

        deinit {
            for index in 0..<count where slots[index].isTaken { (elements + index).deinitialize(count: 1) }
            elements.deallocate()
            slots.deallocate()
        }

        func addSlot(_ slot: Slot) {
            (slots + count).initialize(to: slot)
            count += 1
        }

        func put(_ element: Element, _ index: Int) {
            (elements + index).initialize(to: element)
            slots[index].isTaken = true
        }

        func take(_ index: Int) -> Element {
            slots[index].isTaken = false
            return (elements + index).move()
        }

        func moved(capacity: Int) -> Storage {
            let next = Storage(capacity: capacity)
            for index in 0..<count { next.addSlot(slots[index]) }
            for index in 0..<count where slots[index].isTaken {
                (next.elements + index).moveInitialize(from: elements + index, count: 1)
                slots[index].isTaken = false
            }
            return next
        }

        func copied() -> Storage {
            let copy = Storage(capacity: capacity)
            for index in 0..<count { copy.addSlot(slots[index]) }
            for index in 0..<count where slots[index].isTaken {
                (copy.elements + index).initialize(to: elements[index])
            }
            return copy
        }
    }
}
