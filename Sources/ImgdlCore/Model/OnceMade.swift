import Synchronization

/// An object that is made when it is first asked for, and kept. Where several threads ask at once each may make one, and
/// all get the same. Threads: any.
///
/// `AtomicLazyReference` does the same in some six hundred instructions: nothing of it is inlined.
struct OnceMade<Value: AnyObject & Sendable>: ~Copyable, Sendable {
    /// The address of an object that is held; 0: none yet.
    private let address = Atomic<UInt>(0)

    init() {}

    deinit {
        if let known = Self.object(at: address.load(ordering: .acquiring)) { known.release() }
    }

    borrowing func value(_ make: () -> Value) -> Value {
        if let known = Self.object(at: address.load(ordering: .acquiring)) { return known.takeUnretainedValue() }
        let made = Unmanaged.passRetained(make())
        let (isFirst, other) = address.compareExchange(
            expected: 0, desired: UInt(bitPattern: made.toOpaque()), ordering: .acquiringAndReleasing)
        guard !isFirst, let known = Self.object(at: other) else { return made.takeUnretainedValue() }
        made.release()
        return known.takeUnretainedValue()
    }

    private static func object(at address: UInt) -> Unmanaged<Value>? {
        UnsafeRawPointer(bitPattern: address).map { Unmanaged.fromOpaque($0) }
    }
}
