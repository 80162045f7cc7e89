/// How long the log of the index may become. What is in it is brought into the index now and then, which takes a moment when
/// no other program reads. Where one reads for long the log stays as it is, and only what has room in it is written.
package enum StorageLog {
    /// At this length it is brought into the index.
    package static let usualBytes: Int64 = 3 << 20
    /// From here on nothing begins.
    package static let lastBytes: Int64 = 4 << 20

    package enum Purpose: Sendable {
        /// To store more, or what can do without.
        case adding
        /// To remove what is stored, or to change it: until later than the other.
        case changing
    }

    /// Room for one transaction.
    package struct Room: Equatable, Sendable {
        /// Each change of an entry writes some pages, all over the index.
        package let changes: Int
        /// Bytes of rows, with which no other row begins.
        package let rowBytes: Int64

        /// As much as there is when the log is short.
        package static let most = Room(changes: 128, rowBytes: 512 << 10)
        static let last = Room(changes: 32, rowBytes: 128 << 10)
    }

    /// nil: none, until it is shorter.
    package static func room(for purpose: Purpose, length: Int64) -> Room? {
        if length <= usualBytes { return .most }
        if purpose == .changing, length <= lastBytes { return .last }
        return nil
    }

    /// Attempts to empty the log. Readers that end soon are waited for, as this library's are, and so are writers. One that
    /// stays longer is not waited for again, until nothing was tried for a while.
    package struct Emptying: Sendable {
        package static let patienceMilliseconds: Int64 = 2_000
        package static let forgettingMilliseconds: Int64 = 10_000

        /// The first and the last attempt since the log was emptied that somebody was in the way of.
        private var failures: (first: Instant, last: Instant)?

        package init() {}

        /// Until when others are waited for.
        package func end(now: Instant) -> Instant {
            first(now).advanced(byMilliseconds: Self.patienceMilliseconds)
        }

        private func first(_ now: Instant) -> Instant {
            guard let failures, now < failures.last.advanced(byMilliseconds: Self.forgettingMilliseconds) else {
                return now
            }
            return failures.first
        }

        /// Somebody was in the way whenever it was tried, from some time until so much later.
        package func isReadForLong(now: Instant) -> Bool {
            guard let failures, now < failures.last.advanced(byMilliseconds: Self.forgettingMilliseconds) else {
                return false
            }
            return failures.last >= failures.first.advanced(byMilliseconds: Self.patienceMilliseconds)
        }

        package mutating func failed(since start: Instant, now: Instant) { failures = (first(start), now) }

        package mutating func succeeded() { failures = nil }
    }
}
