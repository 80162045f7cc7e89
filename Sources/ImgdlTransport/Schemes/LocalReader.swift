import ImgdlCore

/// The thread that reads what is on this machine, a piece of each transfer in turn: a disk may be slow, and the engine's
/// thread must not wait. It starts with the first read. Threads: any.
final class LocalReader: @unchecked Sendable {
    private let lock = Lock()
    private let workArrived: Condition
    // Under the lock:
    private var queue: [@Sendable () -> Void] = []
    private var thread: Thread?
    private var isClosed = false

    init() { workArrived = Condition(lock) }

    /// Throws `outOfMemory` when there is no thread to be had. Dropped after `close`.
    func submit(_ work: @escaping @Sendable () -> Void) throws(Failure) {
        try lock.withLock { () throws(Failure) in
            guard !isClosed else { return }
            if thread == nil { thread = try Thread.start(name: "imgdl-reader") { [unowned self] in run() } }
            queue.append(work)
            workArrived.signal()
        }
    }

    /// Waits for the read that runs.
    func close() {
        let (thread, dropped) = lock.withLock { () -> (Thread?, [@Sendable () -> Void]) in
            isClosed = true
            workArrived.broadcast()
            defer {
                self.thread = nil
                queue = []
            }
            return (self.thread, queue)
        }
        thread?.join()
        withExtendedLifetime(dropped) {}
    }

    private func run() {
        while let work = next() { work() }
    }

    private func next() -> (@Sendable () -> Void)? {
        lock.withLock {
            while queue.isEmpty, !isClosed { workArrived.wait() }
            return isClosed ? nil : queue.removeFirst()
        }
    }
}
