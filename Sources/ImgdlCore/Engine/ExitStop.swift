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
    /// Somebody writes what the downloader leaves behind, beside the engine's thread, until it is written.
    private let legacyLock = Lock()
    private let written: Condition
    private var isWriting = false

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
        written = Condition(legacyLock)
    }

    /// The child of a fork has none of the threads.
    private var isHere: Bool { processGeneration == ProcessGeneration.current }

    /// Takes no more requests, and has the engine's thread stop as it stands: no callbacks. Whoever waits for a download
    /// waits no longer. Where exit() was called on that thread, it never comes to its end: what it would write there is
    /// written from now on.
    package func begin() {
        guard isHere else { return }
        mailbox.refuse()
        loaders.abandon()
        outstanding.abandon()
        lock.withLock { ended.broadcast() }
        if thread.isCurrent { beginWriting() } else { engine.stop() }
    }

    /// The host's functions have had their time, and whoever comes back from one later does not go on: where the engine's
    /// thread is in one, what it would write is written from now on.
    package func hostIsAbandoned(_ now: Instant) {
        if isHere, !thread.isCurrent, !engine.waitUntilStopped(until: now) { beginWriting() }
    }

    /// Until all is written.
    package func wait(until deadline: Instant) {
        guard isHere else { return }
        if !thread.isCurrent { engine.waitUntilStopped(until: deadline) }
        legacyLock.withLock { while isWriting, written.wait(until: deadline) {} }
    }

    /// On a thread of its own, since a disk may take longer than exit() waits; where the system gives none, here.
    private func beginWriting() {
        guard let legacy = engine.takeLegacy() else { return }
        legacyLock.withLock { isWriting = true }
        let write = { [self] in
            legacy()
            legacyLock.withLock {
                isWriting = false
                written.broadcast()
            }
        }
        do throws(Failure) {
            try Thread.start(name: "imgdl-exit", write).detach()
        } catch {
            write()
        }
    }
}
