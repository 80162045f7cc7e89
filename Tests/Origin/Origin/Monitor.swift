import Glibc

/// State behind a mutex, and a condition variable that is signalled whenever the state may have changed.
/// All three stand at fixed addresses outside the object, because that is what ThreadSanitizer understands.
package final class Monitor<State>: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private let state = UnsafeMutablePointer<State>.allocate(capacity: 1)

    package init(_ state: State) {
        self.state.initialize(to: state)
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(changed, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
        state.deinitialize(count: 1)
        state.deallocate()
    }

    package func read<Result>(_ body: (State) throws -> Result) rethrows -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(state.pointee)
    }

    /// Changes the state and wakes everyone who waits for it.
    @discardableResult
    package func change<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
        pthread_mutex_lock(mutex)
        defer {
            pthread_cond_broadcast(changed)
            pthread_mutex_unlock(mutex)
        }
        return try body(&state.pointee)
    }

    /// What `condition` answers as soon as that is not nil; nil when the deadline comes first.
    /// `condition` runs under the mutex: it must not wait, nor touch this monitor.
    package func wait<Result>(until deadline: Deadline, for condition: (State) throws -> Result?) rethrows -> Result? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let result = try condition(state.pointee) { return result }
            if deadline == .never {
                pthread_cond_wait(changed, mutex)
                continue
            }
            if deadline.instant <= .now { return nil }
            var time = timespec(
                tv_sec: Int(deadline.instant.nanoseconds / 1_000_000_000),
                tv_nsec: Int(deadline.instant.nanoseconds % 1_000_000_000))
            pthread_cond_timedwait(changed, mutex, &time)
        }
    }
}
