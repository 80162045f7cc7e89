import CSystem

/// The threads that decode: a fixed number for all downloads (features D13, B21), the highest priority first, and among
/// equals the oldest. Threads start with the first work.
final class WorkerPool: @unchecked Sendable {
    private let lock = Lock()
    private let changed: Condition
    let width: Int
    private var queues: [[() -> Void]] = [[], [], []]
    private var heads = [0, 0, 0]
    private var idle = 0
    private var threads: [Thread] = []
    /// A thread has work, or will find some.
    private var isAtWork = false
    private var isClosing = false

    init(width: Int) {
        self.width = width
        changed = Condition(lock)
    }

    /// False when there is no thread to do it.
    func submit(_ priority: Priority, _ work: @escaping () -> Void) -> Bool {
        lock.withLock {
            if idle == 0, threads.count < width {
                if let thread = try? Thread.start(name: "imgdl-decode", { [unowned self] in run() }) {
                    threads.append(thread)
                } else if threads.isEmpty {
                    return false
                }
            }
            if !isAtWork { system_pixels_begin_work() }
            isAtWork = true
            queues[priority.index].append(work)
            changed.signal()
            return true
        }
    }

    /// Drops what waits, ends the threads, and waits for the work that runs. Memory that they kept for the next pictures
    /// goes back to the system.
    func close() {
        lock.withLock {
            isClosing = true
            queues = [[], [], []]
            heads = [0, 0, 0]
            changed.broadcast()
        }
        for thread in threads { thread.join() }
        threads = []
        if isAtWork { system_pixels_end_work() }
        isAtWork = false
        system_pixels_release_kept()
    }

    private func run() {
        while let work = next() { work() }
    }

    private func next() -> (() -> Void)? {
        lock.withLock {
            while !isClosing {
                for index in [2, 1, 0] where heads[index] < queues[index].count {
                    let work = queues[index][heads[index]]
                    queues[index][heads[index]] = {}
                    heads[index] += 1
                    if heads[index] == queues[index].count {
                        queues[index].removeAll(keepingCapacity: true)
                        heads[index] = 0
                    } else if heads[index] >= 64, heads[index] * 2 >= queues[index].count {
                        queues[index].removeFirst(heads[index])
                        heads[index] = 0
                    }
                    return work
                }
                idle += 1
                if isAtWork, idle == threads.count {
                    isAtWork = false
                    system_pixels_end_work()
                }
                changed.wait()
                idle -= 1
            }
            return nil
        }
    }
}
