/// Names one stored response in one store, for good: a body that changes gets another.
package struct EntryID: Hashable, Sendable {
    package let rawValue: Int64

    package init(rawValue: Int64) { self.rawValue = rawValue }
}

/// What a store knew, when it gave an entry, of what others change there; the store's own business.
package struct ChangeMark: Equatable, Sendable {
    package var key: UInt32
    package var id: UInt32
    package var seen: UInt64

    /// Something has been changed in any case.
    package static let never = ChangeMark(seen: .max)

    package init(key: UInt32 = 0, id: UInt32 = 0, seen: UInt64 = 0) {
        self.key = key
        self.id = id
        self.seen = seen
    }
}

/// How often a store's programs had removed what is under a key, or everything; the store's own business.
package struct RemovalMark: Sendable {
    package struct Counts: Equatable, Sendable {
        package var all: UInt64 = 0
        package var first: UInt64 = 0
        package var second: UInt64 = 0

        package init() {}
    }

    /// In two sets of counters.
    package var buckets = (first: 0, second: 0)
    package var own = Counts()
    package var others = Counts()

    package init(_ buckets: (first: Int, second: Int)) { self.buckets = buckets }
}

/// What a store knew of a key when a request for it was sent; the store's own business.
package struct RequestMark: Sendable {
    package var removals: RemovalMark
    /// Of the key alone.
    package let changes: ChangeMark
    /// While somebody has it the store notes what takes the answer over.
    private let watch: (any AnyObject & Sendable)?

    package init(_ removals: RemovalMark, _ changes: ChangeMark, watch: (any AnyObject & Sendable)?) {
        self.removals = removals
        self.changes = changes
        self.watch = watch
    }
}

/// A stored response under its name. What its fields say is read out of them once, when it is first asked about, and kept
/// as long as the entry is. Threads: any.
package final class StoredEntry: Sendable {
    package let id: EntryID
    package let response: StoredResponse
    package let mark: ChangeMark
    private let known = OnceReference<Freshness>()

    package init(id: EntryID, response: StoredResponse, mark: ChangeMark) {
        self.id = id
        self.response = response
        self.mark = mark
    }

    /// The same one, as a validation has changed it. Length and extent are the body's, and stay.
    package func with(_ response: StoredResponse) -> StoredEntry {
        var response = response
        response.bodyLength = self.response.bodyLength
        response.extent = self.response.extent
        return StoredEntry(id: id, response: response, mark: mark)
    }

    /// `wallTime`: seconds since 1970, by which years of two digits are read the first time.
    func freshness(_ wallTime: Int64) -> Freshness {
        known.object { Freshness(response, wallTime: wallTime) }
    }
}
