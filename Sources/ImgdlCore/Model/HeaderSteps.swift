#if DEBUG
    import Synchronization
#endif

/// Counts what is done with header fields, so that tests see how it grows with the header. In release builds it does nothing.
package enum HeaderSteps {
    #if DEBUG
        private static let taken = Atomic<Int>(0)

        /// Of all threads.
        package static var count: Int { taken.load(ordering: .relaxed) }
    #endif

    @inline(__always)
    package static func take(_ steps: Int = 1) {
        #if DEBUG
            taken.add(steps, ordering: .relaxed)
        #endif
    }
}
