import CSystem

/// The one way out to functions of the host's: callbacks, hooks, observers, destructors, allocators, codecs, loaders.
package enum HostCode {
    /// No lock of ours is held. fork() does not wait for it.
    @inlinable package static func run<Result>(_ function: () -> Result) -> Result {
        #if DEBUG
            precondition(system_locks_held() == 0, "a function of the host's is called with a lock held")
        #endif
        system_host_code_begin()
        defer { system_host_code_end() }
        return function()
    }
}
