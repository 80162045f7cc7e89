/// The ends that the engine owes, by the slots of the rules' numbers: `ObjectTable`, whose objects are moved in and out with
/// what is owed of them.
struct OwedEnds: ~Copyable {
    /// Each is an end, which is a reference and nothing else in memory.
    private var slots = PlainTable<Unmanaged<Subscription>?>()
    private(set) var count = 0

    deinit { for slot in 0..<slots.count where slots[slot] != nil { _ = place(slot).move() } }

    /// Held by whoever asks.
    subscript(slot: Int) -> Subscription? { slot < slots.count ? slots[slot]?.takeUnretainedValue() : nil }

    /// As it lies there: `body` must not change the table. nil where nothing is.
    @inline(__always) func look<Result>(at slot: Int, _ body: (Subscription) -> Result) -> Result? {
        slot < slots.count ? slots[slot]?._withUnsafeGuaranteedRef(body) : nil
    }

    /// The slot must be free.
    mutating func put(_ end: consuming RequestEnd, at slot: Int) {
        slots.extend(to: slot + 1, with: nil)
        precondition(slots[slot] == nil, "a slot is one request's until that has ended")
        place(slot).initialize(to: end)
        count += 1
    }

    mutating func take(_ slot: Int) -> RequestEnd? {
        guard slot < slots.count, slots[slot] != nil else { return nil }
        let end = place(slot).move()
        slots[slot] = nil
        count -= 1
        if count == 0, slots.count > mostRoomKept { slots.reset() }
        return end
    }

    private func place(_ slot: Int) -> UnsafeMutablePointer<RequestEnd> {
        UnsafeMutableRawPointer(slots.start.unsafelyUnwrapped + slot).assumingMemoryBound(to: RequestEnd.self)
    }
}
