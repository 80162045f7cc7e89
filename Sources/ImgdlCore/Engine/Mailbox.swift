/// What other threads want of the engine, in the order in which they said it.
enum Command {
    case submit(Subscription)
    case cancel(Subscription)
    case setPriority(Subscription, Priority)
    /// These, which no `submit` has brought, end so.
    indirect case end([Subscription], Failure?)
    case cancelAll
    case setMaximumConcurrent(Int)
    case setMaximumPerHost(Int)
    case setOrder(ExecutionOrder)
    case setSuspended(Bool)
    /// Milliseconds; nil: without end.
    indirect case enterBackground(grace: Int64?)
    case enterForeground
    case invalidate(cancelling: Bool)
    /// Cancel everything and go on with this.
    indirect case reconfigure(any Transport, Limits, CacheSettings)
    /// The store has been looked into.
    indirect case found(TransferID, UInt32, CacheChoice, FoundEntry?)
    indirect case decodeStepped(DecodeReport)
    case memoryReleased
    indirect case answered(TransferID, UInt32, HookReply)
    indirect case setObserver((any TransferObserver)?)
    case perform(@Sendable () -> Void)
    /// No more submits will come: end when there is nothing left.
    case shutDown(cancelling: Bool)
}

/// Carries commands to the engine's thread: one wake-up for many of them.
final class Mailbox: @unchecked Sendable {
    private let lock = Lock()
    private let wake: () -> Void
    private var commands: [Command] = []
    private var intake = Intake.open
    private var isClosed = false
    /// The engine has looked, and is not awake any more.
    private var mustWake = false

    private enum Intake {
        case open
        case invalidated
        case shutDown
    }

    init(wake: @escaping () -> Void) { self.wake = wake }

    /// After `close` commands are dropped, with false.
    @discardableResult
    func post(_ command: Command) -> Bool {
        lock.withLock {
            guard !isClosed else { return false }
            append(command)
            return true
        }
    }

    /// `accepted` runs before the engine can see the command. Throws `shutDown`, `invalidOperation` once the downloader
    /// takes no more requests.
    func submit(_ subscription: Subscription, accepted: () -> Void) throws(Failure) {
        try lock.withLock { () throws(Failure) in
            try checkIntake()
            if intake == .invalidated {
                throw Failure(.invalidOperation, "the downloader's session is invalidated")
            }
            accepted()
            append(.submit(subscription))
        }
    }

    func invalidate(cancelling: Bool) {
        lock.withLock {
            guard intake != .shutDown, !isClosed else { return }
            intake = .invalidated
            append(.invalidate(cancelling: cancelling))
        }
    }

    /// Takes requests again, which go to this transport. Throws `shutDown`.
    func reconfigure(_ transport: any Transport, _ limits: Limits, _ cache: CacheSettings) throws(Failure) {
        try lock.withLock { () throws(Failure) in
            try checkIntake()
            intake = .open
            append(.reconfigure(transport, limits, cache))
        }
    }

    private func checkIntake() throws(Failure) {
        if intake == .shutDown || isClosed { throw Failure(.shutDown, "the downloader is shut down") }
    }

    func shutDown(cancelling: Bool) {
        lock.withLock { intake = .shutDown }
        post(.shutDown(cancelling: cancelling))
    }

    /// False when there is something to take. After true the next command wakes.
    func letSleep() -> Bool {
        lock.withLock {
            mustWake = commands.isEmpty
            return mustWake
        }
    }

    /// `spare`: an empty array whose memory the next ones get.
    func takeAll(reusing spare: consuming [Command]) -> [Command] {
        lock.withLock {
            mustWake = false
            swap(&commands, &spare)
        }
        return spare
    }

    /// What has not been taken, and will not be.
    func close() -> [Command] {
        lock.withLock {
            isClosed = true
            intake = .shutDown
            defer { commands = [] }
            return commands
        }
    }

    /// Wakes inside the lock: after `close` nobody is about to touch the engine's descriptors.
    private func append(_ command: Command) {
        commands.append(command)
        guard mustWake else { return }
        mustWake = false
        wake()
    }
}
