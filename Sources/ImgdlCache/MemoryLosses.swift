import ImgdlCore

/// Answers that a cache in memory alone does not keep: the host is told of them as one with a disk tells it, on a thread
/// that begins with the first. Where the system gives none, who closes the cache tells of those that were not told.
///
/// Threads: any.
final class MemoryLosses: @unchecked Sendable {
    private let events: @Sendable (CacheEvent) -> Void
    private let startThread: CacheTuning.ThreadStart
    private let lock = Lock()
    private let wakes: Condition
    /// The thread has ended.
    private let ended: Condition
    private var losses = StorageLosses()
    /// nil: nothing was lost yet, or there was no thread to be had.
    private var thread: Thread?
    private var isRunning = false
    private var isClosing = false

    init(_ startThread: @escaping CacheTuning.ThreadStart, _ events: @escaping @Sendable (CacheEvent) -> Void) {
        self.events = events
        self.startThread = startThread
        wakes = Condition(lock)
        ended = Condition(lock)
    }

    var total: Int64 { lock.withLock { losses.total } }

    var isOwnThread: Bool { lock.withLock { thread?.isCurrent ?? false } }

    func count(_ cause: StorageLosses.Cause) {
        lock.withLock {
            losses.count(cause)
            if !isClosing { beginTelling() }
            wakes.signal()
        }
    }

    /// Within the lock.
    private func beginTelling() {
        guard thread == nil else { return }
        thread = try? startThread { self.run() }
        isRunning = thread != nil
    }

    private func tell() { while let message = next() { events(CacheEvent(.notStored, message)) } }

    private func run() {
        tell()
        lock.withLock {
            isRunning = false
            ended.broadcast()
        }
    }

    /// Waits until it is to be told. nil: the end, when all has been told.
    private func next() -> String? {
        lock.withLock {
            while true {
                guard let due = losses.due else {
                    if isClosing { return nil }
                    wakes.wait()
                    continue
                }
                let now = MonotonicClock().now()
                if isClosing || now >= due { return losses.tell(now) }
                _ = wakes.wait(until: due)
            }
        }
    }

    /// Losses that have not been told are told now.
    func beginClosing() {
        lock.withLock {
            isClosing = true
            // The system may have refused the thread before.
            if losses.due != nil { beginTelling() }
            wakes.signal()
        }
    }

    /// Waits for that, unless this is the thread that tells it. Tells it here where there is no thread to be had.
    func close() {
        beginClosing()
        guard let thread = lock.withLock({ thread }) else { return tell() }
        if thread.isCurrent { thread.detach() } else { thread.join() }
    }

    /// Waits no longer than that.
    func wait(until deadline: Instant) {
        if isOwnThread { return }
        lock.withLock { while isRunning, ended.wait(until: deadline) {} }
    }
}
