/// Objects by the slots of the rules' numbers. They are looked at a dozen times for each request, and to count that up and
/// down would take longer than what is done with them.
///
/// Inlined: other modules would go through unspecialised code.
@frozen @usableFromInline package struct ObjectTable<Object: AnyObject>: ~Copyable {
    /// Each is held by the table.
    @usableFromInline var slots = PlainTable<Unmanaged<Object>?>()
    @usableFromInline var objectCount = 0

    @inlinable package init() {}

    @inlinable deinit { for slot in 0..<slots.count { slots[slot]?.release() } }

    /// Held by whoever asks.
    @inlinable package subscript(slot: Int) -> Object? { slot < slots.count ? slots[slot]?.takeUnretainedValue() : nil }

    /// As it lies there: `body` must not change the table. nil where nothing is.
    @inlinable @inline(__always)
    package func look<Result>(at slot: Int, _ body: (Object) -> Result) -> Result? {
        slot < slots.count ? slots[slot]?._withUnsafeGuaranteedRef(body) : nil
    }

    @inlinable package func isTaken(_ slot: Int) -> Bool { slot < slots.count && slots[slot] != nil }

    /// The slot must be free.
    @inlinable package mutating func put(_ object: consuming Object, at slot: Int) {
        slots.extend(to: slot + 1, with: nil)
        precondition(slots[slot] == nil, "a slot is one object's until it is taken out")
        place(slot).initialize(to: object)
        objectCount += 1
    }

    @inlinable package var count: Int { slots.count }

    @discardableResult
    @inlinable package mutating func take(_ slot: Int) -> Object? {
        guard isTaken(slot) else { return nil }
        let object = place(slot).move()
        slots[slot] = nil
        objectCount -= 1
        if objectCount == 0, slots.count > mostRoomKept { slots.reset() }
        return object
    }

    /// The place of a slot that there is, as one of an object that it holds: what is moved in or out is not counted.
    @inlinable func place(_ slot: Int) -> UnsafeMutablePointer<Object> {
        UnsafeMutableRawPointer(slots.start.unsafelyUnwrapped + slot).assumingMemoryBound(to: Object.self)
    }
}
