import CSystem
import Glibc

/// A mutex for the leaves that several threads touch (mailbox, queues, tables). Never held while the host's code runs:
/// what may be the last reference to something of the host's is taken out inside and let go of outside.
///
/// Over `pthread_mutex_t` in memory that does not move: ThreadSanitizer knows these calls, while it reports false races
/// over `Synchronization.Mutex`, whose futex it cannot see.
@usableFromInline package final class Lock: @unchecked Sendable {
    @usableFromInline package let mutex: UnsafeMutablePointer<pthread_mutex_t>

    package init() {
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        let status = pthread_mutex_init(mutex, nil)
        precondition(status == 0, "pthread_mutex_init: \(status)")
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deinitialize(count: 1)
        mutex.deallocate()
    }

    /// Held across fork(), so that the child finds it free; `leaveFork` follows in parent and child.
    package func enterFork() { pthread_mutex_lock(mutex) }
    package func leaveFork() { pthread_mutex_unlock(mutex) }

    /// Inlined: other modules would go through unspecialised code.
    @inlinable package func withLock<Result: ~Copyable, Problem: Error>(
        _ body: () throws(Problem) -> Result
    ) throws(Problem) -> Result {
        pthread_mutex_lock(mutex)
        #if DEBUG
            system_lock_taken()
        #endif
        defer {
            #if DEBUG
                system_lock_left()
            #endif
            pthread_mutex_unlock(mutex)
        }
        return try body()
    }
}

/// Waits for something that changes under a `Lock`. All methods are called inside that lock's `withLock`; a wait lets
/// go of it meanwhile and may end for no reason, so it stands in a loop that tests what was waited for.
package final class Condition: @unchecked Sendable {
    private let lock: Lock
    private let condition: UnsafeMutablePointer<pthread_cond_t>

    package init(_ lock: Lock) {
        self.lock = lock
        condition = .allocate(capacity: 1)
        Self.initialize(condition)
    }

    private static func initialize(_ condition: UnsafeMutablePointer<pthread_cond_t>) {
        condition.initialize(to: pthread_cond_t())
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        // The same clock as `Instant`: setting the date must not shorten or stretch a wait.
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        let status = pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
        precondition(status == 0, "pthread_cond_init: \(status)")
    }

    deinit {
        pthread_cond_destroy(condition)
        condition.deinitialize(count: 1)
        condition.deallocate()
    }

    package func wait() {
        _ = resting { pthread_cond_wait(condition, lock.mutex) }
    }

    /// False when `deadline`, on the monotonic clock, has passed.
    package func wait(until deadline: Instant) -> Bool {
        let nanoseconds = max(0, deadline.nanoseconds)
        var time = timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
        return resting { pthread_cond_timedwait(condition, lock.mutex, &time) != ETIMEDOUT }
    }

    /// Whoever has to wait for a fork afterwards lets go of the lock: another thread that works may want it, and the fork
    /// would wait for that one.
    private func resting<Result>(_ body: () -> Result) -> Result {
        let before = system_thread_enter(0)
        let result = body()
        if system_thread_try_restore(before) == 0 {
            pthread_mutex_unlock(lock.mutex)
            system_thread_restore(before)
            pthread_mutex_lock(lock.mutex)
        }
        return result
    }

    /// In the child of a fork, where those who waited are not: nothing would wake, and a broadcast could wait for them.
    package func forgetWaiters() { Self.initialize(condition) }

    package func signal() { pthread_cond_signal(condition) }

    package func broadcast() { pthread_cond_broadcast(condition) }
}
