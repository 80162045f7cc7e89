import CSystem

/// An occupation of the calling thread, one within the other: waiting there for one of them to be over would wait for the
/// thread itself. Each stands on the thread's stack while it lasts.
struct Occupation {
    enum Matter {
        /// An event of it is delivered, or its end is dealt with.
        case delivery(Unmanaged<Subscription>)
        /// Its callbacks run, or those that wait for it are dropped.
        case pumping(Unmanaged<PumpedExecutor>)
    }

    private let matter: Matter
    private let outer: UnsafePointer<Occupation>?
    private let processGeneration = ProcessGeneration.current

    private static var innermost: UnsafePointer<Occupation>? {
        system_thread_occupation()?.assumingMemoryBound(to: Occupation.self)
    }

    /// Occupations of the parent are over in a child: its thread, forked in one, is in the middle of nothing that is new there.
    private var isOfThisProcess: Bool { processGeneration == ProcessGeneration.current }

    @inline(__always)
    static func with<Result, Problem: Error>(
        _ matter: Matter, _ body: () throws(Problem) -> Result
    ) throws(Problem) -> Result {
        let outer = innermost
        var occupation = Occupation(matter: matter, outer: outer)
        return try withUnsafePointer(to: &occupation) { (occupation) throws(Problem) in
            system_thread_set_occupation(occupation)
            defer { system_thread_set_occupation(outer) }
            return try body()
        }
    }

    /// Whether the thread is in the middle of any.
    static var isAny: Bool { innermost?.pointee.isOfThisProcess == true }

    /// Whether the thread is in the middle of one of these.
    static func includes(_ isMeant: (Matter) -> Bool) -> Bool {
        var next = innermost
        while let occupation = next, occupation.pointee.isOfThisProcess {
            if isMeant(occupation.pointee.matter) { return true }
            next = occupation.pointee.outer
        }
        return false
    }
}
