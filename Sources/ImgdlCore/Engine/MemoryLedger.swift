import Synchronization

/// Memory that was counted for pictures and bodies and is let go again, on whatever thread, and the numbers for those
/// who ask. The engine takes what has come back with its next command; it is woken only when somebody waits for it.
final class MemoryLedger: @unchecked Sendable {
    private let returned = Atomic<Int64>(0)
    private let wakes = Atomic<Bool>(false)
    private let current = Atomic<Int64>(0)
    private let highest = Atomic<Int64>(0)
    private let wake: () -> Void

    init(wake: @escaping () -> Void) { self.wake = wake }

    /// Bytes; threads: any.
    var inUse: Int64 { max(0, current.load(ordering: .relaxed) - returned.load(ordering: .relaxed)) }
    var peak: Int64 { highest.load(ordering: .relaxed) }

    /// The engine's thread.
    func note(inUse: Int64, peak: Int64) {
        current.store(inUse, ordering: .relaxed)
        highest.store(peak, ordering: .relaxed)
    }

    /// What has come back since the last time. The engine's thread.
    func take() -> Int64 {
        returned.load(ordering: .relaxed) == 0 ? 0 : returned.exchange(0, ordering: .sequentiallyConsistent)
    }

    /// From now on what comes back wakes the engine, once; true when something has come back already.
    func wakeOnReturn() -> Bool {
        wakes.store(true, ordering: .sequentiallyConsistent)
        return returned.load(ordering: .sequentiallyConsistent) != 0
    }

    fileprivate func giveBack(_ bytes: Int64) {
        returned.add(bytes, ordering: .sequentiallyConsistent)
        if wakes.exchange(false, ordering: .sequentiallyConsistent) { wake() }
    }
}

/// Bytes counted as in use for as long as somebody holds this: a decoder at work, its transfer, and the terminals that
/// carry its picture.
final class MemoryCharge: @unchecked Sendable {
    private let bytes: Int64
    /// Counted once, up and down, and not for the call besides.
    private let ledger: Unmanaged<MemoryLedger>

    init(_ bytes: Int64, _ ledger: MemoryLedger) {
        self.bytes = bytes
        self.ledger = .passRetained(ledger)
    }

    deinit {
        ledger._withUnsafeGuaranteedRef { $0.giveBack(bytes) }
        ledger.release()
    }
}
