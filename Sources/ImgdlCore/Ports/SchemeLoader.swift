import Synchronization

/// Port: the host's own way to load what a scheme names (features K6, T06, T32, B23).
package protocol SchemeLoader: AnyObject, Sendable {
    /// It hears when a body that was to wait may go on: its `LoadControls` have `resume`.
    var waits: Bool { get }
    /// Begins one transfer and reports to `receiver`, inside the call or later. On the engine's thread: it does not wait.
    func start(_ request: OutgoingRequest, _ receiver: any LoadReceiver) -> LoadControls
}

/// What a loader hears of a transfer that it has begun, on the engine's thread: none of it waits, and none begins after
/// `LoadReceiver.end` has returned.
package struct LoadControls: Sendable {
    /// Nobody wants it any more. Called once at most, and nothing after it.
    package let cancel: @Sendable () -> Void
    /// What `receive` has refused with `notReady` may be reported again. Called once for one or more refusals.
    package let resume: (@Sendable () -> Void)?

    package init(cancel: @escaping @Sendable () -> Void, resume: (@Sendable () -> Void)? = nil) {
        self.cancel = cancel
        self.resume = resume
    }
}

/// Hears of a transfer that a loader runs: head, body …, end. Threads: any, one after the other. Reports of a transfer
/// that nobody wants any more go nowhere; such that come out of order throw `invalidOperation`.
package protocol LoadReceiver: AnyObject, Sendable {
    func receive(_ head: ResponseHead) throws(Failure)
    /// A Content-Encoding has been undone. `taken` is called on the engine's thread when these bytes are with whom they
    /// are for, which takes its time while the transfer is paused; not if it has ended before. Throws `notReady` where as
    /// much is held as may be, to a loader that `waits`; to others `bodyLimit`, and the transfer ends.
    func receive(_ body: [UInt8], taken: (@Sendable () -> Void)?) throws(Failure)
    /// nil: that was the whole body. Returns when `cancel`, if another thread is in it, has returned, too.
    func end(_ failure: Failure?) throws(Failure)
}

/// The loaders that the host registered with one downloader. Threads: any.
package final class SchemeLoaders: @unchecked Sendable {
    private let lock = Lock()
    private var loaders: [String: any SchemeLoader] = [:]
    /// Without the lock: most programs have none, and each request asks.
    private let hasAny = Atomic<Bool>(false)
    private var isClosed = false
    private var isExiting = false

    package init() {}

    package var areNone: Bool { !hasAny.load(ordering: .acquiring) }

    package func loader(for scheme: String) -> (any SchemeLoader)? {
        areNone ? nil : lock.withLock { loaders[scheme] }
    }

    /// `scheme` in lower case; nil takes the loader out. Throws `shutDown` once the downloader has ended.
    package func set(_ loader: (any SchemeLoader)?, for scheme: String) throws(Failure) {
        // The old one may end here, with the host's destructor: outside the lock.
        let (isTaken, old) = lock.withLock { () -> (Bool, (any SchemeLoader)?) in
            if isClosed { return (false, nil) }
            let old = loaders[scheme]
            loaders[scheme] = loader
            hasAny.store(!loaders.isEmpty, ordering: .releasing)
            return (true, old)
        }
        withExtendedLifetime(old) {}
        if !isTaken { throw Failure(.shutDown, "the downloader is shut down") }
    }

    /// The process exits: no function of the host's is called any more.
    package func abandon() { lock.withLock { isExiting = true } }

    package var areAbandoned: Bool { lock.withLock { isExiting } }

    /// Lets go of all of them.
    package func close() {
        let old = lock.withLock { () -> [String: any SchemeLoader] in
            defer { loaders = [:] }
            isClosed = true
            return loaders
        }
        withExtendedLifetime(old) {}
    }
}
