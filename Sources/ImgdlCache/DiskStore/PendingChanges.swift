import ImgdlCore

/// What has been changed and is not in the index yet: look-ups of this process see the index through
/// it. Each change has a number; `settle` forgets those that the index has.
struct PendingChanges {
    private(set) var lastNumber: Int64 = 0
    /// How often changes have gone from here into the index.
    private(set) var settlements = 0
    private var added: [String: [DiskBody]] = [:]
    /// Bodies that other programs have removed meanwhile: nobody gets them, nor what they have taken the place of.
    private var withdrawn: [String: [DiskBody]] = [:]
    private var updated: [EntryID: Update] = [:]
    private var removed: [EntryID: Int64] = [:]
    private var removedKeys: [String: Int64] = [:]
    private var cleared: Int64?

    private struct Update {
        var number: Int64
        let response: StoredResponse
        /// Versions that this has been made of, one after another; none: it is made of whatever is stored.
        let versions: [StoredResponse.Version]
    }

    var isEmpty: Bool {
        added.isEmpty && withdrawn.isEmpty && updated.isEmpty && removed.isEmpty && removedKeys.isEmpty
            && cleared == nil
    }

    private mutating func next() -> Int64 {
        lastNumber += 1
        return lastNumber
    }

    /// Whether something newer is on its way to the index.
    func isOvertaken(_ response: StoredResponse, _ key: String, wallTime: Int64) -> Bool {
        bodies(key).contains { body in
            response.isOvertaken(by: updated[body.id]?.response ?? body.response, wallTime: wallTime)
        }
    }

    mutating func insert(_ body: DiskBody, _ response: StoredResponse, wallTime: Int64) -> Int64 {
        let number = next()
        body.number = number
        body.response = response
        added[body.key]?.removeAll { response.displaces($0.response, wallTime: wallTime) }
        added[body.key, default: []].append(body)
        // The index will not keep more of them, either.
        if let count = added[body.key]?.count, count > StoredResponse.maximumVariants {
            added[body.key]?.removeFirst(count - StoredResponse.maximumVariants)
        }
        return number
    }

    /// Whether it may still be that version.
    func mayBe(_ known: StoredResponse.Version?, _ id: EntryID) -> Bool {
        known == nil || updated[id].map { $0.response.version == known } ?? true
    }

    /// Versions in the index of which that is an update; nil: there have been too many on the way.
    func versions(_ id: EntryID, _ known: StoredResponse.Version?) -> [StoredResponse.Version]? {
        guard let known else { return [] }
        guard let before = updated[id] else { return [known] }
        if before.versions.isEmpty { return [] }
        return before.versions.count < Self.mostVersions ? before.versions + [known] : nil
    }

    private static let mostVersions = 32

    mutating func update(_ id: EntryID, _ response: StoredResponse, of versions: [StoredResponse.Version]) -> Int64 {
        let number = next()
        updated[id] = Update(number: number, response: response, versions: versions)
        return number
    }

    mutating func remove(_ id: EntryID) -> Int64 {
        let number = next()
        removed[id] = number
        return number
    }

    mutating func remove(key: String) -> Int64 {
        let number = next()
        added[key] = nil
        withdrawn[key] = nil
        removedKeys[key] = number
        return number
    }

    mutating func clear() -> Int64 {
        let number = next()
        added = [:]
        withdrawn = [:]
        updated = [:]
        removed = [:]
        removedKeys = [:]
        cleared = number
        return number
    }

    /// A body that could not be stored, or that the index has.
    mutating func drop(_ body: DiskBody) {
        added[body.key]?.removeAll { $0 === body }
        if added[body.key]?.isEmpty ?? false { added[body.key] = nil }
        withdrawn[body.key]?.removeAll { $0 === body }
        if withdrawn[body.key]?.isEmpty ?? false { withdrawn[body.key] = nil }
    }

    /// Bodies under the key of which that is so.
    mutating func withdraw(_ key: String, where isRemoved: (DiskBody) -> Bool) {
        guard let bodies = added[key] else { return }
        let gone = bodies.filter(isRemoved)
        if gone.isEmpty { return }
        let rest = bodies.filter { body in !gone.contains { $0 === body } }
        added[key] = rest.isEmpty ? nil : rest
        withdrawn[key, default: []] += gone
    }

    /// The index has the batch, and so everything up to its number.
    mutating func settle(_ batch: Batch) {
        settlements += 1
        for change in batch.changes {
            switch change {
            case .insert(let body): drop(body)
            case .update(let id, _, _): settle(id, batch.number)
            case .remove(let id), .removeDamaged(let id):
                settle(id, batch.number)
                if let number = removed[id], number <= batch.number { removed[id] = nil }
            case .removeKey(let key):
                if let number = removedKeys[key], number <= batch.number { removedKeys[key] = nil }
            case .clear:
                if let cleared, cleared <= batch.number { self.cleared = nil }
            }
        }
    }

    private mutating func settle(_ id: EntryID, _ number: Int64) {
        if let update = updated[id], update.number <= number { updated[id] = nil }
    }

    /// Entries on their way to the index whose number is a later one.
    func added(after number: Int64) -> Set<EntryID> {
        var ids: Set<EntryID> = []
        for bodies in added.values { for body in bodies where body.number > number { ids.insert(body.id) } }
        return ids
    }

    // MARK: Seeing through it

    /// What is stored under the key and not in the index.
    func bodies(_ key: String) -> [DiskBody] {
        (added[key] ?? []).filter { removed[$0.id] == nil }
    }

    /// Whether the index still says the truth about anything under the key.
    func hidesIndex(_ key: String) -> Bool { cleared != nil || removedKeys[key] != nil }

    /// Whether another program has removed it, with what had taken its place.
    func wasRemoved(_ row: Index.Row, key: String) -> Bool {
        withdrawn[key]?.contains { $0.outdates(row) } ?? false
    }

    /// What became of an entry of the index; nil: it is gone.
    func current(_ entry: StoredEntry, key: String, wallTime: Int64) -> StoredEntry? {
        if removed[entry.id] != nil { return nil }
        // It may have come into the index between two looks.
        for body in added[key] ?? []
        where body.id == entry.id || body.response.displaces(entry.response, wallTime: wallTime) {
            return nil
        }
        return latest(entry)
    }

    /// With what a validation has changed.
    func latest(_ entry: StoredEntry) -> StoredEntry {
        guard let update = updated[entry.id],
            update.versions.isEmpty || update.versions.contains(entry.response.version)
        else { return entry }
        return entry.with(update.response)
    }
}
