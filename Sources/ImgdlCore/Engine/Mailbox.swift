/// What other threads want of the engine, in the order in which they said it.
enum Command {
    case submit(Subscription)
    case cancel(Subscription)
    case setPriority(Subscription, Priority)
    /// These, which no `submit` has brought, end so.
    case end([Subscription], Failure?)
    case cancelAll
    case setMaximumConcurrent(Int)
    case setOrder(ExecutionOrder)
    case setSuspended(Bool)
    case decodeStepped(DecodeReport)
    case setObserver((any TransferObserver)?)
    case perform(@Sendable () -> Void)
    /// No more submits will come: end when there is nothing left.
    case shutDown(cancelling: Bool)
}

/// Carries commands to the engine's thread: one wake-up for many of them.
final class Mailbox: @unchecked Sendable {
    private let lock = Lock()
    private let wake: () -> Void
    private var commands: [Command] = []
    private var acceptsSubmits = true
    private var isClosed = false

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

    /// False once the downloader takes no more requests. `accepted` runs before the engine can see the command.
    func submit(_ subscription: Subscription, accepted: () -> Void) -> Bool {
        lock.withLock {
            guard acceptsSubmits, !isClosed else { return false }
            accepted()
            append(.submit(subscription))
            return true
        }
    }

    func shutDown(cancelling: Bool) {
        lock.withLock { acceptsSubmits = false }
        post(.shutDown(cancelling: cancelling))
    }

    func takeAll() -> [Command] {
        lock.withLock {
            guard !commands.isEmpty else { return [] }
            defer { commands = [] }
            return commands
        }
    }

    /// What has not been taken, and will not be.
    func close() -> [Command] {
        lock.withLock {
            isClosed = true
            acceptsSubmits = false
            defer { commands = [] }
            return commands
        }
    }

    /// Wakes inside the lock: after `close` nobody is about to touch the engine's descriptors.
    private func append(_ command: Command) {
        commands.append(command)
        if commands.count == 1 { wake() }
    }
}
