import CSystem
import Glibc

/// A thread of the library's own. All signals are blocked on it: they belong to the host's threads. It cannot be cancelled:
/// its end would leave a lock taken.
///
/// Whoever starts it ends it with `join` or `detach`, once; letting go of it without either detaches it.
@usableFromInline package final class Thread: @unchecked Sendable {
    private let identifier: pthread_t
    private var isJoinable = true

    private init(_ identifier: pthread_t) { self.identifier = identifier }

    deinit {
        if isJoinable { pthread_detach(identifier) }
    }

    /// Throws `outOfMemory` when the system gives no more threads. The kernel keeps 15 bytes of `name`.
    package static func start(name: String, _ body: @escaping () -> Void) throws(Failure) -> Thread {
        var hostsMask = sigset_t()
        system_thread_get_hosts_mask(&hostsMask)
        let start = Unmanaged.passRetained(Start(name: name, hostsMask: hostsMask, body: body))
        // The new thread inherits the mask, so there is no moment in which it could be chosen for a signal.
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        var identifier = pthread_t()
        let status = pthread_create(&identifier, nil, { Start.run($0) }, start.toOpaque())
        pthread_sigmask(SIG_SETMASK, &before, nil)
        guard status == 0 else {
            start.release()
            throw Failure(.outOfMemory, "no new thread: \(String(cString: strerror(status)))")
        }
        return Thread(identifier)
    }

    /// Whether the calling thread is one that `start` made.
    package static var isLibraryThread: Bool { system_thread_is_library() != 0 }

    /// For what may take long and holds no lock that a child of fork() needs: fork() does not wait for who is in it.
    @inlinable package static func resting<Result>(_ body: () -> Result) -> Result {
        let before = system_thread_enter(0)
        defer { system_thread_restore(before) }
        return body()
    }

    /// The same in two calls on one thread, of which the second gets what the first gave.
    @inlinable package static func beginRest() -> Int32 { system_thread_enter(0) }
    @inlinable package static func beginWork() -> Int32 { system_thread_enter(1) }
    @inlinable package static func restore(_ before: Int32) { system_thread_restore(before) }

    /// For what holds such locks, within a rest or a call of the host's: fork() waits for it.
    @inlinable package static func working<Result>(_ body: () -> Result) -> Result {
        let before = system_thread_enter(1)
        defer { system_thread_restore(before) }
        return body()
    }

    /// Between two pieces of work, where no lock is held: who forks need not wait for all of them.
    @inlinable package static func letForkPass() { system_thread_let_fork_pass() }

    /// For who rests, and can end what another thread is at.
    @inlinable package static var isForkNear: Bool { system_fork_is_near() != 0 }

    package var isCurrent: Bool { pthread_equal(pthread_self(), identifier) != 0 }

    /// Waits until the thread's body has returned. A thread of the host's does so no longer than exit() waits: what the body
    /// has called of the host's may not return.
    package func join() {
        precondition(isJoinable && !isCurrent, "a thread is joined once, by another")
        isJoinable = false
        let isJoined = Self.resting { () -> Bool in
            while !HostCode.isAbandoned || Self.isLibraryThread {
                if system_thread_join(identifier, HostCode.lookMilliseconds) != 0 { return true }
            }
            return false
        }
        if !isJoined { pthread_detach(identifier) }
    }

    /// Lets the thread end by itself.
    package func detach() {
        precondition(isJoinable, "joined or detached already")
        isJoinable = false
        pthread_detach(identifier)
    }
}

/// What a new thread needs to know, on its way there.
private final class Start {
    let name: String
    var hostsMask: sigset_t
    let body: () -> Void

    init(name: String, hostsMask: sigset_t, body: @escaping () -> Void) {
        self.name = name
        self.hostsMask = hostsMask
        self.body = body
    }

    static func run(_ opaque: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        let start = Unmanaged<Start>.fromOpaque(opaque!).takeRetainedValue()
        system_thread_become_library(&start.hostsMask)
        Thread.working {
            // A longer name would be refused as a whole.
            let name = start.name.utf8.prefix(15).map { CChar(bitPattern: $0) } + [0]
            system_thread_set_name(name)
            start.body()
        }
        return nil
    }
}
