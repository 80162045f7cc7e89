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

    /// Looks into the index, then at the changes: what a batch carried from these into the index between the two looks would
    /// be missed, so that they are taken again. `number`: of the last change that was seen.
    static func find(
        _ key: String, in store: DiskStore, usedSince: Int64?, damaged: (EntryID) -> Void,
        index: (Int) throws(DatabaseError) -> Index?
    ) throws(DatabaseError) -> (candidates: Candidates, number: Int64) {
        while true {
            let (settlements, indexNumber, isHidden) = store.withState {
                ($0.changes.settlements, $0.indexNumber, $0.changes.hidesIndex(key))
            }
            let index = try index(indexNumber)
            let rows = isHidden ? [] : try rows(key, index, store.changes, damaged)
            let found = store.withState { state -> (Candidates, Int64)? in
                guard state.changes.settlements == settlements, state.indexNumber == indexNumber else { return nil }
                state.changes.withdraw(key) { store.changes.isRemovedByOthers($0.removalMark) }
                let wallTime = store.clock.wallTime()
                return (
                    Candidates(key, rows, state.changes, state.uses, usedSince, wallTime: wallTime),
                    state.changes.lastNumber
                )
            }
            if let found { return found }
        }
    }

    /// Not what another program is removing: the index may not know it yet.
    private static func rows(
        _ key: String, _ index: Index?, _ changes: SharedChanges, _ damaged: (EntryID) -> Void
    ) throws(DatabaseError) -> [Index.Row] {
        guard let index else { return [] }
        changes.follow()
        let before = changes.markOfAll()
        let rows = try index.rows(key, damaged: damaged) { changes.mark(key, $0) }
        // What was changed while this was looked at may not be seen in it: it is not for memory.
        let isCurrent = changes.isCurrent(before)
        return rows.compactMap { row in
            if changes.isBeingRemoved(key, row.entry.id) { return nil }
            return isCurrent ? row : row.unmarked
        }
    }

    private init(
        _ key: String, _ rows: [Index.Row], _ changes: PendingChanges, _ uses: [EntryID: Int64], _ usedSince: Int64?,
        wallTime: Int64
    ) {
        let stored = (changes.hidesIndex(key) ? [] : rows).compactMap { row in
            changes.current(row.entry, key: key, wallTime: wallTime).map { (row: row, entry: $0) }
        }
        for body in changes.bodies(key) {
            let entry = changes.latest(StoredEntry(id: body.id, response: body.response, mark: body.mark))
            // Another program was asked later, and has written it already.
            if stored.contains(where: { entry.response.isOvertaken(by: $0.entry.response, wallTime: wallTime) }) {
                continue
            }
            append(
                Candidate(entry: entry, place: .body(body), storedTime: body.time, usedTime: body.time), uses, usedSince
            )
        }
        for (row, entry) in stored where !changes.wasRemoved(row, key: key) {
            let place = Place.file(checksum: row.checksum)
            append(
                Candidate(entry: entry, place: place, storedTime: row.storedTime, usedTime: row.usedTime), uses,
                usedSince)
        }
        if list.count > 1 {
            list.sort { $0.entry.isNewer(than: $1.entry) }
        }
    }

    private mutating func append(_ candidate: Candidate, _ uses: [EntryID: Int64], _ usedSince: Int64?) {
        var candidate = candidate
        candidate.usedTime = max(candidate.usedTime, uses[candidate.entry.id] ?? 0)
        if let usedSince, candidate.usedTime < usedSince { return }
        list.append(candidate)
    }

    mutating func remove(_ position: Int) { list.remove(at: position) }
}
