import ImgdlCore

/// Looks names up on a few threads of its own, since getaddrinfo blocks. Each name is looked up once at a time,
/// however many wait for it; threads start with the first look-ups and end with `close`.
///
/// It lives, with its threads, until it is closed. No lock is held while a completion runs.
package final class ThreadedResolver: Resolver, @unchecked Sendable {
    package typealias Completion = @Sendable (Result<[String], Failure>) -> Void

    private final class Worker {
        var thread: Thread?
        var isLookingUp = false
    }

    private let lock = Lock()
    private let workArrived: Condition
    private let clock: any Clock
    private let maximumWorkers: Int
    private let lookUp: @Sendable (String) -> Result<[String], Failure>
    // Under the lock:
    private var waiting: [String: [Completion]] = [:]
    /// Names no worker has taken yet, in order; each is also a key of `waiting`, so it is as bounded as its callers.
    private var queue: [String] = []
    private var workers: [Worker] = []
    private var idleWorkers = 0
    private var cache: AddressCache
    private var isClosed = false

    /// `lookUp` is called on the resolver's threads and may block.
    package init(
        clock: any Clock = MonotonicClock(), maximumWorkers: Int = 4, cacheCapacity: Int = 256,
        cacheMilliseconds: Int64 = 60_000,
        lookUp: @escaping @Sendable (String) -> Result<[String], Failure> = { AddressLookup.getaddrinfo($0) }
    ) {
        self.clock = clock
        self.maximumWorkers = max(1, maximumWorkers)
        self.lookUp = lookUp
        workArrived = Condition(lock)
        cache = AddressCache(capacity: cacheCapacity, lifetimeMilliseconds: cacheMilliseconds)
    }

    /// Completes inside the call when the answer is known already.
    package func resolve(_ host: String, completion: @escaping Completion) {
        let known: Result<[String], Failure>? = lock.withLock {
            if isClosed { return .failure(Self.closed) }
            if let addresses = cache.addresses(of: host, at: clock.now()) { return .success(addresses) }
            if waiting[host] != nil {
                waiting[host]!.append(completion)
                return nil
            }
            if queue.count >= idleWorkers, workers.count < maximumWorkers, let failure = startWorker(),
                workers.isEmpty
            {
                return .failure(failure)
            }
            waiting[host] = [completion]
            queue.append(host)
            workArrived.signal()
            return nil
        }
        if let known { completion(known) }
    }

    package func close() {
        var abandoned: [Completion] = []
        var joinable: [Thread] = []
        lock.withLock {
            guard !isClosed else { return }
            isClosed = true
            abandoned = waiting.values.flatMap { $0 }
            waiting = [:]
            queue = []
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

    private static var closed: Failure {
        Failure(.shutDown, "the name was not looked up: the downloader is shut down")
    }

    /// Under the lock. The failure when no thread could be had.
    private func startWorker() -> Failure? {
        let worker = Worker()
        do {
            worker.thread = try Thread.start(name: "imgdl-resolver") { [self] in work(worker) }
        } catch {
            return error
        }
        workers.append(worker)
        idleWorkers += 1
        return nil
    }

    private func work(_ worker: Worker) {
        while let host = nextHost(worker) {
            let result = lookUp(host)
            let completions: [Completion] = lock.withLock {
                if case .success(let addresses) = result, !isClosed {
                    cache.insert(addresses, for: host, at: clock.now())
                }
                return waiting.removeValue(forKey: host) ?? []
            }
            for completion in completions { completion(result) }
        }
    }

    /// Blocks until there is one; nil when closed.
    private func nextHost(_ worker: Worker) -> String? {
        lock.withLock {
            if worker.isLookingUp {
                worker.isLookingUp = false
                idleWorkers += 1
            }
            while !isClosed, queue.isEmpty { workArrived.wait() }
            guard !isClosed else { return nil }
            worker.isLookingUp = true
            idleWorkers -= 1
            return queue.removeFirst()
        }
    }
}
