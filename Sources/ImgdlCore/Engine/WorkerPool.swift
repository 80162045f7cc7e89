import CSystem

/// The threads that decode: a fixed number for all downloads (features D13, B21), the highest priority first, of equals
/// what goes on with a picture before what begins one, and then the oldest. Threads start with the first work.
final class WorkerPool: @unchecked Sendable {
    private let lock = Lock()
    private let changed: Condition
    let width: Int
    /// For each of the three priorities what begins, and what goes on.
    private var queues = InlineArray<6, Queue<() -> Void>> { _ in Queue() }
    /// In all queues.
    private var waitingCount = 0
    private var idle = 0
    private var threads: [Thread] = []
    /// A thread has work, or will find some.
    private var isAtWork = false
    private var isClosing = false

    init(width: Int) {
        self.width = width
        changed = Condition(lock)
    }

    /// `goesOn`: with what holds memory already, a canvas above all, until it is done. False when there is no thread to do
    /// it.
    func submit(_ priority: Priority, goesOn: Bool = false, _ work: @escaping () -> Void) -> Bool {
        lock.withLock {
            // An idle thread has one piece of work, also while it wakes.
            if idle <= waitingCount, threads.count < width {
                if let thread = try? Thread.start(name: "imgdl-decode", { [unowned self] in run() }) {
                    threads.append(thread)
                } else if threads.isEmpty {
                    return false
                }
            }
            if !isAtWork { system_pixels_begin_work() }
            isAtWork = true
            queues[2 * priority.index + (goesOn ? 1 : 0)].append(work)
            waitingCount += 1
            changed.signal()
            return true
        }
    }

    /// Drops what waits, ends the threads, and waits for the work that runs. Memory that they kept for the next pictures
    /// goes back to the system.
    func close() {
        dropWaiting()
        for thread in threads { thread.join() }
        threads = []
        if isAtWork { system_pixels_end_work() }
        isAtWork = false
        system_pixels_release_kept()
    }

    /// Decoders end with it, which may be the host's: when this returns, and outside the lock.
    private func dropWaiting() {
        var waiting: [() -> Void] = []
        lock.withLock {
            isClosing = true
            for index in queues.indices { while let work = queues[index].popFirst() { waiting.append(work) } }
            waitingCount = 0
            changed.broadcast()
        }
        withExtendedLifetime(waiting) {}
    }

    private func run() {
        while let work = next() { work() }
    }

    private enum Turn {
        case work(() -> Void)
        /// There is nothing more to do for now: memory is given back outside the lock, which takes a while.
        case pause
        case end
    }

    private func next() -> (() -> Void)? {
        var isIdle = false
        while true {
            switch lock.withLock({ takeTurn(&isIdle) }) {
            case .work(let work): return work
            case .pause: system_pixels_end_work()
            case .end: return nil
            }
        }
    }

    /// Inside the lock.
    private func takeTurn(_ isIdle: inout Bool) -> Turn {
        while !isClosing {
            for index in queues.indices.reversed() {
                guard let work = queues[index].popFirst() else { continue }
                waitingCount -= 1
                if isIdle { idle -= 1 }
                return .work(work)
            }
            if !isIdle { idle += 1 }
            isIdle = true
            if isAtWork, idle == threads.count {
                isAtWork = false
                return .pause
            }
            changed.wait()
        }
        return .end
    }
}
