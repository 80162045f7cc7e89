import Synchronization

/// Memory that was counted for pictures and bodies and is let go again, on whatever thread, and the numbers for those
/// who ask. The engine takes what has come back with its next command; it is woken only when somebody waits for it.
final class MemoryLedger: @unchecked Sendable {
    private let returned = Atomic<Int64>(0)
    private let wakes = Atomic<Bool>(false)
    private let current = Atomic<Int64>(0)
    private let highest = Atomic<Int64>(0)
    private let hasTaken = Atomic<Bool>(false)
    private let lock = Lock()
    /// What hosts have taken of what waited for them, since the last time.
    private var taken: [(executor: Backlogs.Executor, bytes: Int64)] = []
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

    /// What has been taken since the last time, if anything. The engine's thread.
    func takeTaken() -> [(executor: Backlogs.Executor, bytes: Int64)]? {
        guard hasTaken.load(ordering: .relaxed) else { return nil }
        hasTaken.store(false, ordering: .sequentiallyConsistent)
        return lock.withLock {
            defer { taken = [] }
            return taken
        }
    }

    /// From now on what comes back wakes the engine, once; true when something has come back already.
    func wakeOnReturn() -> Bool {
        wakes.store(true, ordering: .sequentiallyConsistent)
        return returned.load(ordering: .sequentiallyConsistent) != 0
            || hasTaken.load(ordering: .sequentiallyConsistent)
    }

    fileprivate func take(_ bytes: Int64, by executor: Backlogs.Executor) {
        lock.withLock { taken.append((executor, bytes)) }
        hasTaken.store(true, ordering: .sequentiallyConsistent)
        if wakes.exchange(false, ordering: .sequentiallyConsistent) { wake() }
    }

    fileprivate func giveBack(_ bytes: Int64) {
        returned.add(bytes, ordering: .sequentiallyConsistent)
        if wakes.exchange(false, ordering: .sequentiallyConsistent) { wake() }
    }
}

/// Bytes counted as in use for as long as somebody holds this: a decoder at work, its transfer, and the terminals that
/// carry its picture.
final class MemoryCharge: @unchecked Sendable {
    /// The engine's thread alone changes and asks it, while it holds the charge itself; other threads only let go.
    private(set) var bytes: Int64
    /// Counted once, up and down, and not for the call besides.
    private let ledger: Unmanaged<MemoryLedger>

    init(_ bytes: Int64, _ ledger: MemoryLedger) {
        self.bytes = bytes
        self.ledger = .passRetained(ledger)
    }

    /// So many more are counted, by the engine's thread, whose decoder has said that it needs them.
    func grow(by more: Int64) { bytes += more }

    deinit {
        ledger._withUnsafeGuaranteedRef { $0.giveBack(bytes) }
        ledger.release()
    }
}

/// Bytes that wait for an executor for as long as somebody holds this: the terminals there that carry them.
final class WaitingCharge: @unchecked Sendable {
    let executor: Backlogs.Executor
    private let bytes: Int64
    private let ledger: Unmanaged<MemoryLedger>

    init(_ bytes: Int64, for executor: Backlogs.Executor, _ ledger: MemoryLedger) {
        self.bytes = bytes
        self.executor = executor
        self.ledger = .passRetained(ledger)
    }

    deinit {
        ledger._withUnsafeGuaranteedRef { $0.take(bytes, by: executor) }
        ledger.release()
    }
}
