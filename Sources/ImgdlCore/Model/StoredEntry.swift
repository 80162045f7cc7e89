/// Names one stored response in one store, for good: a body that changes gets another.
package struct EntryID: Hashable, Sendable {
    package let rawValue: Int64

    package init(rawValue: Int64) { self.rawValue = rawValue }
}

/// A stored response under its name. What its fields say is read out of them once, when it is first asked about, and kept
/// as long as the entry is. Threads: any.
package final class StoredEntry: Sendable {
    package let id: EntryID
    package let response: StoredResponse
    private let known = OnceReference<Freshness>()

    package init(id: EntryID, response: StoredResponse) {
        self.id = id
        self.response = response
    }

    /// `wallTime`: seconds since 1970, by which years of two digits are read the first time.
    func freshness(_ wallTime: Int64) -> Freshness {
        known.object { Freshness(response, wallTime: wallTime) }
    }
}
