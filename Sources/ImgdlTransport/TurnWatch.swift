import CSystem
import Glibc
import ImgdlCore
import Synchronization

/// Keeps one server from having the engine's thread to itself: libcurl reads from a connection for as long as something
/// comes that is not for a transfer (PING, SETTINGS, WINDOW_UPDATE and the like), and no time limit of ours passes
/// meanwhile. A thread looks at the turns of curl from outside, and shuts down the socket that has kept one busy.
///
/// It looks while turns follow each other, and sleeps otherwise. Whoever runs curl says so with `during`, and tells of
/// sockets as they are opened and before they are closed.
final class TurnWatch: @unchecked Sendable {
    /// Nanoseconds without a new turn after which it sleeps.
    private static let patience: Int64 = 512_000_000

    /// A socket that was shut down, and the name of its connection.
    struct Stop {
        let socket: Int32
        let connection: UInt64
    }

    private let lock = Lock()
    private let wake: Condition
    private let turn = Atomic<UInt64>(0)
    private let isUnderWay = Atomic<Bool>(false)
    private let isAsleep = Atomic<Bool>(true)
    private let isSampled = Atomic<Bool>(false)
    private let hasStopped = Atomic<Bool>(false)
    private let answerBytes = Atomic<Int64>(0)
    private let isCrowdedNow = Atomic<Bool>(false)
    /// Nanoseconds of the thread outside of turns and outside of the host's code, as far as they were measured.
    private let timeBetween = Atomic<Int64>(0)
    // The engine's thread's own:
    /// What its clock said as the last turn ended, while connections crowd.
    private var timeAtEnd: Int64?
    // Under the lock:
    private var sockets: Set<Int32> = []
    /// Requests on connections of HTTP/2, by these connections' names.
    private var streams: [UInt64: Int] = [:]
    private var streamCount = 0
    private var stopped: [Stop] = []
    private var thread: Thread?
    private var isClosed = false
    /// The thread that is watched: since its first turn.
    private var watched: (clock: clockid_t, rest: OpaquePointer)?
    // The watching thread's own:
    private var budget = TurnBudget()
    private var readBefore: [Int32: Int64] = [:]

    init() { wake = Condition(lock) }

    deinit { close() }

    // MARK: The engine's thread

    func opened(_ socket: Int32) { _ = lock.withLock { sockets.insert(socket) } }

    /// Before it is closed: its number may come back at once, also within the turn in which it was shut down. Then that is
    /// told here, and not at the turn's end.
    @discardableResult
    func closes(_ socket: Int32) -> Stop? {
        lock.withLock {
            sockets.remove(socket)
            return stopped.firstIndex { $0.socket == socket }.map { stopped.remove(at: $0) }
        }
    }

    /// Connections have lately taken much of the thread's time for what is for no request. Threads: any.
    var isCrowded: Bool { isCrowdedNow.load(ordering: .relaxed) }

    /// Bytes that have been received, of bodies and headers, since the first turn, and what each line of a header pays besides.
    /// For the thread of the turns.
    var receivedBytes: Int64 { answerBytes.load(ordering: .relaxed) }

    /// A line of a header has come in this turn. For the thread of the turns.
    func receivedLine(_ bytes: Int) { received(bytes &+ TurnBudget.bytesPerLine) }

    /// Bytes of a body have come in this turn. For the thread of the turns.
    func received(_ bytes: Int) {
        answerBytes.store(answerBytes.load(ordering: .relaxed) &+ Int64(bytes), ordering: .relaxed)
    }

    /// So many more requests are on a connection of HTTP/2, or fewer.
    func streams(of connection: UInt64, by change: Int) {
        lock.withLock {
            let count = (streams[connection] ?? 0) + change
            streams[connection] = count == 0 ? nil : count
            streamCount += change
        }
    }

    /// Number of the turn that is under way or was last. For the thread of the turns.
    var turnNumber: UInt64 { turn.load(ordering: .relaxed) }

    /// A turn. Says which sockets were shut down in it. Always on the same thread.
    func during(_ body: () -> Void) -> [Stop] {
        if let timeAtEnd, let now = ownTime() {
            timeBetween.store(timeBetween.load(ordering: .relaxed) &+ now &- timeAtEnd, ordering: .relaxed)
        }
        turn.store(turn.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
        isUnderWay.store(true, ordering: .sequentiallyConsistent)
        if isAsleep.load(ordering: .sequentiallyConsistent) { start() }
        body()
        // Only while it is crowded: it is a system call, and as long as little is gone it does not matter whose time it was.
        timeAtEnd = isCrowded ? ownTime() : nil
        isUnderWay.store(false, ordering: .sequentiallyConsistent)
        // By the next sample, which may be taken here already, nothing is under way.
        guard isSampled.load(ordering: .sequentiallyConsistent) || hasStopped.load(ordering: .sequentiallyConsistent)
        else { return [] }
        // Not before a shutdown that is under way has ended.
        return lock.withLock {
            hasStopped.store(false, ordering: .sequentiallyConsistent)
            defer { stopped = [] }
            return stopped
        }
    }

    /// Nanoseconds of CPU time of this thread, without the host's code; nil: they are not known.
    private func ownTime() -> Int64? {
        var time = timespec()
        guard clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0, let rest = system_thread_rest() else {
            return nil
        }
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec) - system_rest_nanoseconds(rest)
    }

    /// Waits for the thread.
    func close() {
        let thread = lock.withLock { () -> Thread? in
            isClosed = true
            wake.signal()
            return self.thread.take()
        }
        thread?.join()
    }

    private func start() {
        lock.withLock {
            guard !isClosed else { return }
            if watched == nil {
                var clock = clockid_t()
                guard pthread_getcpuclockid(pthread_self(), &clock) == 0, let rest = system_thread_rest() else {
                    return
                }
                watched = (clock, rest)
            }
            // Without a thread nobody looks: the next turn tries again.
            if thread == nil { thread = try? Thread.start(name: "imgdl-watch") { [unowned self] in run() } }
            isAsleep.store(thread == nil, ordering: .sequentiallyConsistent)
            wake.signal()
        }
    }

    // MARK: The watching thread

    private func run() {
        var last: UInt64 = 0
        var unchanged: Int64 = 0
        lock.withLock {
            while !isClosed {
                if isAsleep.load(ordering: .sequentiallyConsistent) {
                    wake.wait()
                    continue
                }
                let interval = budget.interval
                _ = wake.wait(until: Instant(nanoseconds: MonotonicClock().now().nanoseconds + interval))
                look()
                let turn = turn.load(ordering: .relaxed)
                unchanged = turn == last ? unchanged + interval : 0
                last = turn
                if unchanged >= Self.patience, !isUnderWay.load(ordering: .sequentiallyConsistent) { rest() }
            }
        }
    }

    /// A turn that begins meanwhile sees it asleep, or is seen.
    private func rest() {
        isCrowdedNow.store(false, ordering: .relaxed)
        isAsleep.store(true, ordering: .sequentiallyConsistent)
        if isUnderWay.load(ordering: .sequentiallyConsistent) {
            isAsleep.store(false, ordering: .sequentiallyConsistent)
        }
    }

    private func look() {
        guard let sample = sample() else { return }
        let verdict = budget.judge(sample)
        isCrowdedNow.store(budget.isCrowded, ordering: .relaxed)
        isSampled.store(sample.turn != nil, ordering: .sequentiallyConsistent)
        switch verdict {
        case .nothing: break
        case .begins: readBefore = budget.isCrowded ? read() : [:]
        case .goesOn: if readBefore.isEmpty { readBefore = read() }
        case .isSpent:
            // All its time may have gone between two samples: then the next one finds out who is read from.
            if readBefore.isEmpty {
                readBefore = read()
            } else if let socket = TurnBudget.culprit(readBefore, read()),
                budget.isSpent(sample, streams: streams[system_socket_name(socket)] ?? 0)
            {
                stop(socket, in: sample.turn)
            }
        }
    }

    /// Unless that turn has ended: the sockets are not what they were then.
    private func stop(_ socket: Int32, in turn: UInt64?) {
        guard self.turn.load(ordering: .relaxed) == turn, isUnderWay.load(ordering: .sequentiallyConsistent),
            !stopped.contains(where: { $0.socket == socket })
        else { return }
        hasStopped.store(true, ordering: .sequentiallyConsistent)
        stopped.append(Stop(socket: socket, connection: system_socket_name(socket)))
        Self.disconnect(socket)
    }

    /// A connection by its name.
    static func disconnect(_ connection: UInt64, among sockets: [Int32]) {
        for socket in sockets where system_socket_name(socket) == connection { disconnect(socket) }
    }

    /// What has come and was not read is gone, too: after `shutdown` there may be megabytes of it, to be read to their end.
    private static func disconnect(_ socket: Int32) {
        var nobody = sockaddr()
        nobody.sa_family = sa_family_t(AF_UNSPEC)
        if connect(socket, &nobody, socklen_t(MemoryLayout<sockaddr>.size)) != 0 { shutdown(socket, Int32(SHUT_RDWR)) }
    }

    private func sample() -> TurnBudget.Sample? {
        guard let watched else { return nil }
        let isUnderWay = isUnderWay.load(ordering: .sequentiallyConsistent)
        let instant = MonotonicClock().now()
        guard isUnderWay else { return TurnBudget.Sample(instant: instant) }
        let rest = watched.rest
        system_rest_measure(rest, 1)
        let hostTime = system_rest_nanoseconds(rest)
        let turn = turn.load(ordering: .relaxed)
        let timeBetween = timeBetween.load(ordering: .relaxed)
        var isInHost = system_rest_is_under_way(rest) != 0
        var time = timespec()
        guard clock_gettime(watched.clock, &time) == 0 else { return nil }
        // These belong together where no other turn and no call of the host's code has begun or ended meanwhile.
        isInHost = isInHost || system_rest_is_under_way(rest) != 0 || system_rest_nanoseconds(rest) != hostTime
        guard self.turn.load(ordering: .sequentiallyConsistent) == turn else { return nil }
        return TurnBudget.Sample(
            instant: instant, turn: turn, time: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec),
            otherTime: hostTime &+ timeBetween, isInHost: isInHost, answerBytes: answerBytes.load(ordering: .relaxed),
            streams: streamCount)
    }

    private func read() -> [Int32: Int64] {
        Dictionary(uniqueKeysWithValues: sockets.map { ($0, system_socket_taken($0)) })
    }
}
