import ImgdlCore

/// What is stored under a key, seen through what is not in the index yet.
struct Candidates {
    enum Place {
        /// On its way to the disk.
        case body(DiskBody)
        case file(checksum: Int64)
    }

    struct Candidate {
        var entry: StoredEntry
        var place: Place
        var storedTime: Int64
        var usedTime: Int64
    }

    /// The newest first.
    private(set) var list: [Candidate] = []

    /// `changes` and `uses` must be older than what `index` says: an entry may come into the index between the two
    /// looks, and is then found in both.
    init(
        _ key: String, _ changes: PendingChanges, _ uses: [EntryID: Int64], _ index: Index?, usedSince: Int64?,
        damaged: (EntryID) -> Void
    ) throws(DatabaseError) {
        for body in changes.bodies(key) {
            let entry = changes.latest(StoredEntry(id: body.id, response: body.response))
            let usedTime = max(body.time, uses[body.id] ?? 0)
            if let usedSince, usedTime < usedSince { continue }
            list.append(Candidate(entry: entry, place: .body(body), storedTime: body.time, usedTime: usedTime))
        }
        if let index, !changes.hidesIndex(key) {
            for row in try index.rows(key, damaged: damaged) {
                guard let entry = changes.current(row.entry, key: key) else { continue }
                let usedTime = max(row.usedTime, uses[entry.id] ?? 0)
                if let usedSince, usedTime < usedSince { continue }
                list.append(
                    Candidate(
                        entry: entry, place: .file(checksum: row.checksum), storedTime: row.storedTime,
                        usedTime: usedTime))
            }
        }
        if list.count > 1 {
            list.sort {
                ($0.entry.response.responseTime, $0.entry.id.rawValue) > (
                    $1.entry.response.responseTime, $1.entry.id.rawValue
                )
            }
        }
    }

    mutating func remove(_ position: Int) { list.remove(at: position) }
}
