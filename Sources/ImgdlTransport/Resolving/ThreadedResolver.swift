import ImgdlCore

/// Looks names up on threads of its own, since getaddrinfo blocks. There is a thread for each name that is looked up, up
/// to a bound, so that dead names hold up no others; a few stay for later, and all end with `close`.
///
/// It lives, with its threads, until it is closed. No lock is held while a completion runs.
package final class ThreadedResolver: Resolver, @unchecked Sendable {
    package static let maximumWorkers = 32
    private static let maximumIdleWorkers = 4

    private final class Worker {
        var thread: Thread?
        var isLookingUp = false
    }

    private let lock = Lock()
    private let workArrived: Condition
    private let clock: any Clock
    private let maximumWorkers: Int
    private let cacheMilliseconds: Int64
    private let lookUp: @Sendable (String) -> Result<[String], Failure>
    // Under the lock:
    private var line: LookUpLine
    private var completions: [LookUpID: Completion] = [:]
    private var lastID: UInt64 = 0
    /// Names whose turn it is, and that no worker has taken yet.
    private var work: [String] = []
    private var workers: [Worker] = []
    private var idleWorkers = 0
    /// Of workers that were not needed any more, at their last instructions.
    private var leaving: [Thread] = []
    private var cache: AddressCache
    /// Changes of the network.
    private var networks = 0
    private var isClosed = false

    /// `lookUp` is called on the resolver's threads and may block.
    package init(
        clock: any Clock = MonotonicClock(), maximumWorkers: Int = ThreadedResolver.maximumWorkers,
        cacheCapacity: Int = 256, cacheMilliseconds: Int64 = 60_000,
        lookUp: @escaping @Sendable (String) -> Result<[String], Failure> = { AddressLookup.getaddrinfo($0) }
    ) {
        self.clock = clock
        self.maximumWorkers = max(1, maximumWorkers)
        self.cacheMilliseconds = cacheMilliseconds
        self.lookUp = lookUp
        workArrived = Condition(lock)
        line = LookUpLine(.init(prompt: self.maximumWorkers, total: self.maximumWorkers))
        cache = AddressCache(capacity: cacheCapacity)
    }

    /// Threads; for tests.
    var workerCount: Int { lock.withLock { workers.count } }

    package func resolve(_ host: String, completion: @escaping Completion) -> LookUpID? {
        var known: Result<[String], Failure>?
        var ended: [Thread] = []
        let id: LookUpID? = lock.withLock {
            swap(&ended, &leaving)
            known = isClosed ? .failure(Self.closed) : cache.answer(for: host, at: clock.now())
            guard known == nil else { return nil }
            lastID += 1
            let id = LookUpID(rawValue: lastID)
            completions[id] = completion
            line.join(host, id)
            guard let failure = beginWork() else { return id }
            // Without a single thread nobody else waits either.
            _ = line.removeAll()
            work = []
            completions[id] = nil
            known = .failure(failure)
            return nil
        }
        for thread in ended { thread.join() }
        if let known { completion(known) }
        return id
    }

    package func abandon(_ id: LookUpID) {
        lock.withLock {
            guard completions.removeValue(forKey: id) != nil else { return }
            // The kernel cannot be told to stop: what it finds out is kept for whoever asks next.
            _ = line.leave(id)
        }
    }

    /// What is looked up now cannot be asked anew; it is not kept.
    package func networkChanged() {
        lock.withLock {
            networks += 1
            cache.removeAll()
        }
    }

    /// It has threads, and nothing in the loop.
    package var deadline: Instant? { nil }
    package func deadlineReached(_ now: Instant) {}
    package func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) -> Bool { false }

    package func close() {
        var abandoned: [Completion] = []
        var joinable: [Thread] = []
        lock.withLock {
            guard !isClosed else { return }
            isClosed = true
            abandoned = line.removeAll().compactMap { completions[$0] }
            completions = [:]
            work = []
            joinable = leaving
            leaving = []
            for worker in workers {
                // One in the kernel may stay there for half a minute: it ends by itself and touches nobody.
                if worker.isLookingUp {
                    worker.thread?.detach()
                } else if let thread = worker.thread {
                    joinable.append(thread)
                }
                worker.thread = nil
            }
            workers = []
            workArrived.broadcast()
        }
        for completion in abandoned { completion(.failure(Self.closed)) }
        for thread in joinable { thread.join() }
    }

    static var closed: Failure {
        Failure(.shutDown, "the name was not looked up: the downloader is shut down")
    }

    /// Under the lock. The failure when there is work and not a single thread could be had for it.
    private func beginWork() -> Failure? {
        for case .begin(let host) in line.next(at: clock.now()) {
            work.append(host)
            workArrived.signal()
        }
        while work.count > idleWorkers, workers.count < maximumWorkers {
            do throws(Failure) {
                try startWorker()
            } catch {
                return workers.isEmpty ? error : nil
            }
        }
        return nil
    }

    /// Under the lock.
    private func startWorker() throws(Failure) {
        let worker = Worker()
        worker.thread = try Thread.start(name: "imgdl-resolver") { [self] in run(worker) }
        workers.append(worker)
        idleWorkers += 1
    }

    private func run(_ worker: Worker) {
        while let host = nextHost(worker) {
            let network = lock.withLock { networks }
            let result = lookUp(host)
            let answered: [Completion] = lock.withLock {
                if case .success = result, !isClosed, network == networks {
                    cache.insert(AddressAnswer(result, lifetime: cacheMilliseconds), for: host, at: clock.now())
                }
                let ended = line.end(host).compactMap { completions.removeValue(forKey: $0) }
                if !isClosed { _ = beginWork() }
                return ended
            }
            for completion in answered { completion(result) }
        }
    }

    /// Blocks until there is one; nil when closed, or when others are idle already.
    private func nextHost(_ worker: Worker) -> String? {
        lock.withLock {
            if worker.isLookingUp {
                worker.isLookingUp = false
                idleWorkers += 1
            }
            while !isClosed, work.isEmpty {
                if idleWorkers > Self.maximumIdleWorkers {
                    idleWorkers -= 1
                    workers.removeAll { $0 === worker }
                    if let thread = worker.thread.take() { leaving.append(thread) }
                    return nil
                }
                workArrived.wait()
            }
            guard !isClosed else { return nil }
            worker.isLookingUp = true
            idleWorkers -= 1
            return work.removeFirst()
        }
    }
}
