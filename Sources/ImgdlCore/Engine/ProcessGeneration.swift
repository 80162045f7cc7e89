import Synchronization

/// Which process this is, counted from the first: fork() begins the next generation in the child. What was made in an
/// earlier one has threads, connections and TLS state that are the parent's.
package enum ProcessGeneration {
    private static let counter = Atomic<Int>(0)

    package static var current: Int { counter.load(ordering: .relaxed) }

    /// In the child, before anything else runs.
    package static func advance() { counter.wrappingAdd(1, ordering: .relaxed) }
}
