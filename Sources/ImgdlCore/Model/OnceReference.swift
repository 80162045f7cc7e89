import Synchronization

/// A reference that is set once and then read on any thread without a lock. `AtomicLazyReference` does the same, as a
/// generic type that is not specialized: several hundred instructions for each look.
struct OnceReference<Object: AnyObject>: ~Copyable, @unchecked Sendable {
    /// Retained from `set` to `deinit`.
    private let address = Atomic<UnsafeRawPointer?>(nil)

    deinit {
        if let set = address.load(ordering: .acquiring) { Unmanaged<Object>.fromOpaque(set).release() }
    }

    /// nil before it is set.
    var object: Object? {
        guard let set = address.load(ordering: .acquiring) else { return nil }
        return Unmanaged<Object>.fromOpaque(set).takeUnretainedValue()
    }

    /// As it lies there, not counted.
    @inline(__always) func look<Result>(_ body: (Object) -> Result) -> Result? {
        guard let set = address.load(ordering: .acquiring) else { return nil }
        return Unmanaged<Object>.fromOpaque(set)._withUnsafeGuaranteedRef(body)
    }

    /// What is set; where nothing is, it is made. Of several threads that make one at once, all get the same.
    func object(orSet make: () -> Object) -> Object {
        if let object { return object }
        let made = make()
        set(made)
        return object ?? made
    }

    /// The first one stays.
    func set(_ object: Object) {
        let retained = Unmanaged.passRetained(object)
        let isFirst = address.compareExchange(
            expected: nil, desired: UnsafeRawPointer(retained.toOpaque()), ordering: .acquiringAndReleasing
        ).exchanged
        if !isFirst { retained.release() }
    }
}
