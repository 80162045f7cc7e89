import CSystem

/// The one way out to functions of the host's: callbacks, hooks, observers, destructors, allocators, codecs, loaders.
/// No lock of ours is held, and fork() does not wait for them. Once exit() has begun in the library, none is begun.
package enum HostCode {
    /// Says whether `function` ran.
    @inlinable @discardableResult
    package static func run(_ function: () -> Void) -> Bool { ask(function) != nil }

    /// nil: the process exits, and it is not asked any more.
    @inlinable @discardableResult
    package static func ask<Answer>(_ function: () -> Answer) -> Answer? {
        #if DEBUG
            precondition(system_locks_held() == 0, "a function of the host's is called with a lock held")
        #endif
        let before = system_thread_enter(0)
        defer { system_thread_restore(before) }
        guard system_host_code_begin() != 0 else { return nil }
        defer { system_host_code_end() }
        return function()
    }

    /// exit() waits no longer for those that run.
    package static var isAbandoned: Bool { system_host_code_is_abandoned() != 0 }

    /// How often who waits for one of them looks whether that is so.
    package static let lookMilliseconds: Int32 = 100

    package static var isOver: Bool { system_host_code_is_over() != 0 }
}
