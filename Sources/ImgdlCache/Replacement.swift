import ImgdlCore

extension StoredResponse {
    /// More of one URL are kept nowhere, in no tier: each look-up goes through them all.
    static let maximumVariants = 32

    /// Whether this, newly stored under the same key, takes the place of `older`: of what was asked for with the same
    /// varying fields (RFC 9111 section 4.1), in the same context. The beginning of a body replaces only another: a whole one, even a stale
    /// one, may still be of use.
    func replaces(_ older: StoredResponse) -> Bool {
        if isBeginning, !older.isBeginning { return false }
        return context == older.context && varying == older.varying
    }

    /// Whether that goes when this is stored.
    func displaces(_ other: StoredResponse, wallTime: Int64) -> Bool {
        replaces(other) && !isOlder(than: other, wallTime: wallTime)
    }

    /// Whether this is not stored, since that is there: the answer to a later question has come sooner.
    func isOvertaken(by other: StoredResponse, wallTime: Int64) -> Bool {
        other.replaces(self) && isOlder(than: other, wallTime: wallTime)
    }

    var isBeginning: Bool {
        if case .beginning = extent { return true }
        return false
    }
}

extension StoredEntry {
    func isNewer(than other: StoredEntry) -> Bool { response.rank(id) > other.response.rank(other.id) }
}

extension CachedResponse {
    /// Whether this is newer than another that is stored under the same key, whatever the two were asked for. A time that
    /// lies in the future is of a clock that ran ahead: then Date tells, and where it does not, what has a time is newer.
    func isNewer(than other: CachedResponse, wallTime: Int64) -> Bool {
        if other.response.isOlder(than: response, wallTime: wallTime) { return true }
        if response.isOlder(than: other.response, wallTime: wallTime) { return false }
        let isPast = response.responseTime <= wallTime
        guard isPast == (other.response.responseTime <= wallTime) else { return isPast }
        return response.rank(id) > other.response.rank(other.id)
    }
}

extension [CachedResponse] {
    func newest(wallTime: Int64) -> CachedResponse? {
        guard var newest = first else { return nil }
        for other in dropFirst() where other.isNewer(than: newest, wallTime: wallTime) { newest = other }
        return newest
    }
}

extension StoredResponse {
    fileprivate func rank(_ id: EntryID) -> (seconds: Int64, fraction: Int64, id: Int64) {
        (responseTime, fractions?.response ?? 0, id.rawValue)
    }
}

extension [StoredEntry] {
    mutating func sortNewestFirst() {
        guard count > 1 else { return }
        sort { $0.isNewer(than: $1) }
    }
}
