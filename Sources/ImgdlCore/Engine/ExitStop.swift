/// What of a downloader is stopped when the process exits.
///
/// An object of its own, since the process points to it weakly: whatever is pointed to so has its references counted in a
/// table besides, at four times the cost, and each request counts some of its downloader.
package final class ExitStop: @unchecked Sendable {
    private let engine: Engine
    private let mailbox: Mailbox
    private let thread: Thread
    private let loaders: SchemeLoaders
    private let outstanding: Outstanding
    /// What those wait for that end it.
    private let lock: Lock
    private let ended: Condition
    private let processGeneration = ProcessGeneration.current

    init(
        _ engine: Engine, _ mailbox: Mailbox, on thread: Thread, _ loaders: SchemeLoaders, _ outstanding: Outstanding,
        _ lock: Lock, _ ended: Condition
    ) {
        self.engine = engine
        self.mailbox = mailbox
        self.thread = thread
        self.loaders = loaders
        self.outstanding = outstanding
        self.lock = lock
        self.ended = ended
    }

    /// The child of a fork has none of the threads.
    private var isHere: Bool { processGeneration == ProcessGeneration.current }

    /// Takes no more requests, and has the engine's thread stop as it stands: no callbacks. Whoever waits for a download
    /// waits no longer.
    package func begin() {
        guard isHere else { return }
        mailbox.refuse()
        loaders.abandon()
        outstanding.abandon()
        lock.withLock { ended.broadcast() }
        if !thread.isCurrent { engine.stop() }
    }

    /// Until it has. Not for itself.
    package func wait(until deadline: Instant) {
        if isHere, !thread.isCurrent { engine.waitUntilStopped(until: deadline) }
    }
}
