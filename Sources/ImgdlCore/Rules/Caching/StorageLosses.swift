/// Answers that were to be stored and were not: each is counted, and the host is told of them, together and now and then.
package struct StorageLosses: Equatable, Sendable {
    package enum Cause: CaseIterable, Sendable {
        /// More came than the disk takes.
        case behind
        /// There was no room within the limit.
        case noRoom
        /// It would push out all others from memory, and there is no disk.
        case tooLarge
        /// Another program reads the index for long, and its log is full.
        case reader
        /// Another program writes to the index for long.
        case writer
        /// The folder's key is another program's now, and by that it would not be found.
        case otherKey
        /// The cache was closed before.
        case closed
        /// The disk does not work: of that the host is told in another way.
        case failure
    }

    /// How long those that follow wait to be told.
    package static let intervalMilliseconds: Int64 = 1_000

    package private(set) var total: Int64 = 0
    private var untold: [Cause: Int64] = [:]
    private var lastTold: Instant?

    package init() {}

    package mutating func count(_ cause: Cause) {
        total += 1
        if cause != .failure { untold[cause, default: 0] += 1 }
    }

    /// When the host is to be told; nil: there is nothing to tell.
    package var due: Instant? {
        if untold.isEmpty { return nil }
        return lastTold?.advanced(byMilliseconds: Self.intervalMilliseconds) ?? Instant(nanoseconds: 0)
    }

    /// What to tell of those that were not told; nil: there are none.
    package mutating func tell(_ now: Instant) -> String? {
        if untold.isEmpty { return nil }
        let count = untold.values.reduce(0, +)
        let causes = Cause.allCases.filter { untold[$0] != nil }.map { Self.reason($0, isOne: count == 1) }
        untold = [:]
        lastTold = now
        let subject = count == 1 ? "1 answer was" : "\(count) answers were"
        return "\(subject) not stored: \(causes.joined(separator: "; "))"
    }

    private static func reason(_ cause: Cause, isOne: Bool) -> String {
        switch cause {
        case .behind: "the disk takes \(isOne ? "answers" : "them") slower than they come"
        case .noRoom: "there is no room for \(isOne ? "it" : "them") within max_bytes"
        case .tooLarge: "\(isOne ? "it takes" : "they take") more of memory than max_memory_bytes allows one"
        case .reader: "another program reads the index for so long that its log is full"
        case .writer: "another program has been writing to the index for some seconds"
        case .otherKey: "another program has replaced the key of the folder"
        case .closed: "the cache was closed before \(isOne ? "it was" : "they were") written"
        case .failure: "the disk does not work"
        }
    }
}
