import Synchronization

/// What other threads have for the engine, in the order in which they said it.
enum Message: ~Copyable {
    case submit(RequestEnd)
    /// These, which no `submit` has brought, end.
    case end(UnsubmittedRequests)
    case command(Command)
}

/// What they want of it; nobody's end goes with that.
enum Command {
    case cancel(Subscription)
    case setPriority(Subscription, Priority)
    case cancelAll
    case setMaximumConcurrent(Int)
    case setMaximumPerHost(Int)
    case setOrder(ExecutionOrder)
    case setSuspended(Bool)
    /// Milliseconds; nil: without end.
    indirect case enterBackground(grace: Int64?)
    case enterForeground
    case networkChanged
    /// Somebody else answers for URLs of this scheme from now on.
    case loaderChanged(scheme: String)
    case invalidate(cancelling: Bool)
    /// Cancel everything and go on with this.
    indirect case reconfigure(any Transport, Limits, CacheSettings)
    /// The store has been looked into.
    indirect case found(TransferID, UInt64, CacheChoice, FoundEntry?)
    indirect case decodeStepped(DecodeReport)
    case memoryReleased
    indirect case answered(TransferID, UInt64, HookReply)
    indirect case setObserver((any TransferObserver)?)
    case perform(@Sendable () -> Void)
    /// What the transport keeps for later goes.
    case trimTransport(connections: Bool)
    /// No more submits will come: end when there is nothing left.
    case shutDown(cancelling: Bool)
}

/// Carries messages to the engine's thread: one wake-up for many of them.
final class Mailbox: @unchecked Sendable {
    private let networkChangeCount = Atomic<UInt64>(0)
    private let backgroundEntryCount = Atomic<UInt64>(0)
    private let lock = Lock()
    private var messages = Queue<Message>()
    private var intake = Intake.open
    private var isClosed = false
    private let wakeLock = Lock()
    private let wake: () -> Void
    /// Guarded by `wakeLock`: the engine's descriptors may be gone.
    private var isEngineGone = false
    private var rest = Rest.awake
    /// There is something else than requests.
    private var isUrgent = false

    enum Rest {
        case awake
        /// The engine has looked, and new requests can wait a moment.
        case naps
        /// It has looked, and is not awake any more.
        case sleeps
    }

    private enum Intake {
        case open
        case invalidated
        case shutDown
        case processExits
    }

    init(wake: @escaping () -> Void) { self.wake = wake }

    /// After `close` commands are dropped, with false.
    @discardableResult
    func post(_ command: Command) -> Bool {
        let (isTaken, mustWake) = lock.withLock { () -> (Bool, Bool) in
            isClosed ? (false, false) : (true, append(.command(command)))
        }
        if mustWake { wakeEngine() }
        return isTaken
    }

    /// `accept` runs before the engine can see the message, and gives what goes with it. Throws `shutDown`, `invalidOperation`
    /// once the downloader takes no more requests.
    func submit(_ accept: () -> RequestEnd) throws(Failure) {
        let mustWake = try lock.withLock { () throws(Failure) in
            if intake != .open { throw refusal }
            return append(.submit(accept()))
        }
        if mustWake { wakeEngine() }
    }

    /// False after `close`: they are still whose who asks.
    func end(_ requests: UnsubmittedRequests) -> Bool {
        let (isTaken, mustWake) = lock.withLock { () -> (Bool, Bool) in
            isClosed ? (false, false) : (true, append(.end(requests)))
        }
        if mustWake { wakeEngine() }
        return isTaken
    }

    /// False where it takes none for good.
    func invalidate(cancelling: Bool) -> Bool {
        let (isTaken, mustWake) = lock.withLock { () -> (Bool, Bool) in
            guard !isOver else { return (false, false) }
            intake = .invalidated
            return (true, append(.command(.invalidate(cancelling: cancelling))))
        }
        if mustWake { wakeEngine() }
        return isTaken
    }

    /// Throws what `submit` does.
    func checkIsOpen() throws(Failure) {
        try lock.withLock { () throws(Failure) in if intake != .open { throw refusal } }
    }

    /// Throws `shutDown` where `reconfigure` does.
    func checkIsNotOver() throws(Failure) {
        try lock.withLock { () throws(Failure) in if isOver { throw refusal } }
    }

    /// How often the host has told of a network change: what is sent from then on does not wait for the command.
    var networkChanges: UInt64 { networkChangeCount.load(ordering: .sequentiallyConsistent) }

    func networkChanged() {
        networkChangeCount.wrappingAdd(1, ordering: .sequentiallyConsistent)
        post(.networkChanged)
    }

    /// How often the host has entered the background: what is not sent by then does not go out before the command is heard.
    var backgroundEntries: UInt64 { backgroundEntryCount.load(ordering: .sequentiallyConsistent) }

    func enterBackground(grace: Int64?) {
        backgroundEntryCount.wrappingAdd(1, ordering: .sequentiallyConsistent)
        post(.enterBackground(grace: grace))
    }

    /// Takes requests again, which go to this transport. Throws `shutDown`.
    func reconfigure(_ transport: any Transport, _ limits: Limits, _ cache: CacheSettings) throws(Failure) {
        let mustWake = try lock.withLock { () throws(Failure) in
            if isOver { throw refusal }
            intake = .open
            return append(.command(.reconfigure(transport, limits, cache)))
        }
        if mustWake { wakeEngine() }
    }

    /// The error of whoever asks for more. Inside the lock.
    private var refusal: Failure {
        switch intake {
        case .open, .invalidated: Self.isInvalidated
        case .shutDown: Failure(.shutDown, "the downloader is shut down")
        case .processExits: .processExits
        }
    }

    static var isInvalidated: Failure { Failure(.invalidOperation, "the downloader's session is invalidated") }

    /// Inside the lock.
    private var isOver: Bool { intake == .shutDown || intake == .processExits }

    func shutDown(cancelling: Bool) {
        lock.withLock { if !isOver { intake = .shutDown } }
        post(.shutDown(cancelling: cancelling))
    }

    /// The process exits: from now on nothing is taken, wherever the engine is.
    func refuse() { lock.withLock { intake = .processExits } }

    /// Naps where it may and nothing but requests waits, sleeps where nothing does, and stays awake otherwise. When it sleeps
    /// the next command wakes it, when it naps the next that is no request.
    func letRest(naps: Bool) -> Rest {
        lock.withLock {
            rest = naps && !isUrgent ? .naps : messages.isEmpty ? .sleeps : .awake
            return rest
        }
    }

    /// `spare`: empty; the next ones get its memory.
    func takeAll(reusing spare: consuming Queue<Message> = Queue()) -> Queue<Message> {
        lock.withLock {
            rest = .awake
            isUrgent = false
            swap(&messages, &spare)
        }
        return spare
    }

    /// What has not been taken, and will not be.
    func close() -> Queue<Message> {
        var left = Queue<Message>()
        lock.withLock {
            isClosed = true
            if !isOver { intake = .shutDown }
            swap(&messages, &left)
        }
        wakeLock.withLock { isEngineGone = true }
        return left
    }

    /// Whether `wakeEngine` has to follow, outside the lock: the engine would wait for that as soon as it is awake.
    private func append(_ message: consuming Message) -> Bool {
        switch message {
        case .submit: break
        case .end: isUrgent = true
        case .command: isUrgent = true
        }
        messages.append(message)
        guard rest == .sleeps || rest == .naps && isUrgent else { return false }
        rest = .awake
        return true
    }

    /// After `close` nobody is about to touch the engine's descriptors.
    private func wakeEngine() { wakeLock.withLock { if !isEngineGone { wake() } } }
}
