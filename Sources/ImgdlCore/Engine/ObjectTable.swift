/// Objects by the slots of the rules' numbers. They are looked at a dozen times for each request, and to count that up and
/// down would take longer than what is done with them.
struct ObjectTable<Object: AnyObject>: ~Copyable {
    /// Each is held by the table.
    private var slots = PlainTable<Unmanaged<Object>?>()

    deinit { for slot in 0..<slots.count { slots[slot]?.release() } }

    /// Held by whoever asks.
    subscript(slot: Int) -> Object? { slot < slots.count ? slots[slot]?.takeUnretainedValue() : nil }

    /// As it lies there: `body` must not change the table. nil where nothing is.
    @inline(__always)
    func look<Result>(at slot: Int, _ body: (Object) -> Result) -> Result? {
        slot < slots.count ? slots[slot]?._withUnsafeGuaranteedRef(body) : nil
    }

    func isTaken(_ slot: Int) -> Bool { slot < slots.count && slots[slot] != nil }

    /// The slot must be free.
    mutating func put(_ object: consuming Object, at slot: Int) {
        slots.extend(to: slot + 1, with: nil)
        precondition(slots[slot] == nil, "a slot is one object's until it is taken out")
        slots[slot] = .passRetained(object)
    }

    @discardableResult
    mutating func take(_ slot: Int) -> Object? { slot < slots.count ? slots[slot].take()?.takeRetainedValue() : nil }
}
