import CAres
import ImgdlCore

/// Looks names up with c-ares: in /etc/hosts and with name servers, on the engine's own loop, without a thread.
///
/// Threads: the engine's; completions run on it, and may ask again.
final class AresResolver: Resolver {
    private let loop: any TransportLoop
    private let environment: NameEnvironment
    private let servers: NameServers?
    private var line = LookUpLine(.queries)
    private var cache: AddressCache
    private var completions: [LookUpID: Completion] = [:]
    private var lastID: UInt64 = 0
    private var queries: [String: AresQuery] = [:]
    private var owners: [Int32: AresQuery] = [:]
    private var isClosed = false

    /// Never taken down: the host may use c-ares, too.
    private static let libraryStatus = cares_library_init()

    /// `servers`: nil for those of /etc/resolv.conf. Throws `internal` when c-ares does not start.
    init(
        loop: any TransportLoop, environment: NameEnvironment, servers: NameServers? = nil, cacheCapacity: Int = 256
    ) throws(Failure) {
        guard Self.libraryStatus == CARES_SUCCESS else {
            throw Failure(.internal, "c-ares does not start: \(String(cString: cares_message(Self.libraryStatus)))")
        }
        self.loop = loop
        self.environment = environment
        self.servers = servers
        cache = AddressCache(capacity: cacheCapacity)
    }

    /// Look-ups that run; for tests.
    var queryCount: Int { queries.count }
    /// Names that are looked up or wait for it; for tests.
    var nameCount: Int { line.count }

    func resolve(_ host: String, completion: @escaping Completion) -> LookUpID? {
        if let known = isClosed ? .failure(ThreadedResolver.closed) : cache.answer(for: host, at: loop.now) {
            completion(known)
            return nil
        }
        lastID += 1
        let id = LookUpID(rawValue: lastID)
        completions[id] = completion
        line.join(host, id)
        goOn()
        return completions[id] == nil ? nil : id
    }

    func abandon(_ id: LookUpID) {
        guard completions.removeValue(forKey: id) != nil, let host = line.leave(id) else { return }
        stop(host)
        goOn()
    }

    func networkChanged() {
        cache.removeAll()
        for host in Array(queries.keys) {
            stop(host)
            begin(host)
        }
        goOn()
    }

    func close() {
        isClosed = true
        for host in Array(queries.keys) { stop(host) }
        let abandoned = line.removeAll().compactMap { completions.removeValue(forKey: $0) }
        for completion in abandoned { completion(.failure(ThreadedResolver.closed)) }
    }

    var deadline: Instant? {
        let own = line.deadline
        let next = queries.values.compactMap(\.deadline).min()
        guard let own, let next else { return own ?? next }
        return min(own, next)
    }

    func deadlineReached(_ now: Instant) {
        for query in Array(queries.values) {
            guard let due = query.deadline, due <= now else { continue }
            query.timeReached()
        }
        goOn()
    }

    func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) -> Bool {
        guard let query = owners[descriptor] else { return false }
        query.descriptorReady(descriptor, readable: readable, writable: writable)
        if query.answer != nil { goOn() }
        return true
    }

    /// Tells what has come, and begins what may begin, until there is neither.
    private func goOn() {
        while true {
            let told = endAnswered()
            for (completion, result) in told { completion(result) }
            let steps = isClosed ? [] : line.next(at: loop.now)
            for step in steps {
                switch step {
                case .begin(let host): begin(host)
                case .stop(let host): stop(host)
                }
            }
            if told.isEmpty, steps.isEmpty { return }
        }
    }

    private func endAnswered() -> [(Completion, Result<[String], Failure>)] {
        var told: [(Completion, Result<[String], Failure>)] = []
        for (host, query) in queries {
            guard let answer = query.answer else { continue }
            queries[host] = nil
            query.close()
            cache.insert(answer, for: host, at: loop.now)
            for id in line.end(host) {
                if let completion = completions.removeValue(forKey: id) { told.append((completion, answer.result)) }
            }
        }
        return told
    }

    private func begin(_ host: String) {
        // With servers of its own, the system's order does not matter.
        var services = "fb"
        if servers == nil, case .ares(let named) = environment.answerer(of: host) { services = named }
        let query = AresQuery(host, loop: loop) { [unowned self] query, descriptor, isWatched in
            owners[descriptor] = isWatched ? query : nil
        }
        queries[host] = query
        query.begin(services: services, servers: servers, family: environment.family)
    }

    private func stop(_ host: String) { queries.removeValue(forKey: host)?.close() }
}
