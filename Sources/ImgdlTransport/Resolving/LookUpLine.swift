import ImgdlCore

/// Names that somebody waits for: which are being looked up, and which come next. Each name is looked up once, however
/// many wait for it, and takes its turn once, so that a name that many wait for does not hold up one that a single
/// transfer waits for. A name that nobody waits for any more leaves.
///
/// Dead names hold up no others for long: one without an answer for `patience` does not count among the `prompt` any
/// more, and where `total` are looked up, the one that has been at it the longest gives way after `turn`, and begins again
/// behind those that wait.
struct LookUpLine {
    struct Bounds {
        /// Of look-ups that cost a query to a name server, and can be stopped.
        static let queries = Bounds(prompt: 32, total: 128, turn: 2_000)

        /// Names looked up at a time while answers come soon; at least 1.
        var prompt: Int
        /// All that are looked up at a time; at least `prompt`.
        var total: Int
        /// Milliseconds.
        var patience: Int64 = 250
        /// Milliseconds; nil: a look-up cannot be stopped, and keeps its place to its end.
        var turn: Int64?
    }

    enum Step: Equatable {
        case begin(String)
        case stop(String)
    }

    private struct Name {
        var waiters: Set<LookUpID> = []
        /// nil while it waits for its turn.
        var began: Instant?
        /// Of its last entry in the queue.
        var place = 0
    }

    private let bounds: Bounds
    private var names: [String: Name] = [:]
    private var hosts: [LookUpID: String] = [:]
    /// Those that wait for their turn, and some that have left since.
    private var queue: [(host: String, place: Int)] = []
    private var queueStart = 0
    private var lastPlace = 0
    /// The longest running first.
    private var running: [String] = []

    init(_ bounds: Bounds) { self.bounds = bounds }

    /// All that are looked up, or wait for it.
    var count: Int { names.count }
    var runningCount: Int { running.count }
    /// Entries; for tests.
    var queueCount: Int { queue.count }
    private var waitingCount: Int { names.count - running.count }

    /// `next` says what follows from it.
    mutating func join(_ host: String, _ waiter: LookUpID) {
        hosts[waiter] = host
        if names[host] == nil {
            names[host] = Name()
            enqueue(host)
        }
        names[host]!.waiters.insert(waiter)
    }

    /// The name whose look-up is to be stopped, since it was the last to wait for it. One that cannot be stopped goes on.
    mutating func leave(_ waiter: LookUpID) -> String? {
        guard let host = hosts.removeValue(forKey: waiter) else { return nil }
        names[host]!.waiters.remove(waiter)
        guard names[host]!.waiters.isEmpty else { return nil }
        guard names[host]!.began != nil else {
            names[host] = nil
            shortenQueue()
            return nil
        }
        guard bounds.turn != nil else { return nil }
        remove(host)
        return host
    }

    /// The look-up of that name is over: who waited for it, in the order in which they came.
    mutating func end(_ host: String) -> [LookUpID] {
        guard let name = names[host] else { return [] }
        remove(host)
        for waiter in name.waiters { hosts[waiter] = nil }
        return name.waiters.sorted()
    }

    /// Everybody leaves.
    mutating func removeAll() -> [LookUpID] {
        let all = hosts.keys.sorted()
        self = LookUpLine(bounds)
        return all
    }

    /// What is to be done now; it counts as done.
    mutating func next(at now: Instant) -> [Step] {
        var steps: [Step] = []
        while waitingCount > 0 {
            if running.count < bounds.total {
                guard promptCount(now) < bounds.prompt else { break }
            } else {
                guard let turn = bounds.turn, let longest = running.first,
                    names[longest]!.began!.advanced(byMilliseconds: turn) <= now
                else { break }
                running.removeFirst()
                names[longest]!.began = nil
                steps.append(.stop(longest))
                steps.append(.begin(takeFirst(now)))
                enqueue(longest)
                continue
            }
            steps.append(.begin(takeFirst(now)))
        }
        return steps
    }

    /// When `next` is to be asked again, if nothing happens before.
    var deadline: Instant? {
        guard waitingCount > 0 else { return nil }
        guard running.count < bounds.total else {
            guard let turn = bounds.turn, let longest = running.first else { return nil }
            return names[longest]!.began!.advanced(byMilliseconds: turn)
        }
        // Less than `prompt` are left when this one has waited in vain.
        guard running.count >= bounds.prompt else { return nil }
        return names[running[running.count - bounds.prompt]]!.began!.advanced(byMilliseconds: bounds.patience)
    }

    private func promptCount(_ now: Instant) -> Int {
        running.reversed().prefix { names[$0]!.began!.advanced(byMilliseconds: bounds.patience) > now }.count
    }

    private mutating func enqueue(_ host: String) {
        lastPlace += 1
        names[host]!.place = lastPlace
        queue.append((host, lastPlace))
    }

    /// Somebody waits.
    private mutating func takeFirst(_ now: Instant) -> String {
        while true {
            let entry = queue[queueStart]
            queueStart += 1
            guard isWaiting(entry) else { continue }
            names[entry.host]!.began = now
            running.append(entry.host)
            shortenQueue()
            return entry.host
        }
    }

    private func isWaiting(_ entry: (host: String, place: Int)) -> Bool {
        guard let name = names[entry.host] else { return false }
        return name.began == nil && name.place == entry.place
    }

    private mutating func remove(_ host: String) {
        names[host] = nil
        running.removeAll { $0 == host }
    }

    /// What has left takes no more room than what waits.
    private mutating func shortenQueue() {
        guard queue.count > 2 * waitingCount + 16 else { return }
        queue = queue[queueStart...].filter(isWaiting)
        queueStart = 0
    }
}
