import ImgdlCore

/// The index of all entries: SQLite in WAL mode. One connection, used by one thread; others, of this process and of
/// others, read and write at the same time.
final class Index {
    let database: Database
    /// Nothing was there before.
    let isNew: Bool
    var emptying = StorageLog.Emptying()
    var check: Check
    /// Pages that were given back since the log was brought in for them.
    var shrunkPages: Int64 = 0
    private let select: Statement
    private let insertion: Statement
    private let deletion: Statement
    private let updating: Statement
    private let using: Statement
    private let bounding: Statement
    private let later: Statement
    private let existing: Statement
    private let selectByID: Statement
    private let oldest: Statement
    private let oldestBeginnings: Statement
    private let totalling: Statement
    private let reserving: Statement
    private let summing: Statement

    init(_ database: Database, isNew: Bool = false) throws(DatabaseError) {
        self.database = database
        self.isNew = isNew
        check = isNew ? .isDone : .isDue
        let columns = "id, key, length, checksum, stored, used, response"
        select = try database.prepare("SELECT \(columns) FROM entries WHERE key_hash = ?1 AND key = ?2")
        selectByID = try database.prepare("SELECT \(columns) FROM entries WHERE id = ?1")
        insertion = try database.prepare(
            """
            INSERT INTO entries (
                id, key_hash, key, kind, length, checksum, stored, used, response, cost, row_cost)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9, ?10)
            """)
        deletion = try database.prepare("DELETE FROM entries WHERE id = ?1")
        updating = try database.prepare(
            "UPDATE entries SET response = ?2, used = ?3, cost = cost + ?4 - row_cost, row_cost = ?4 WHERE id = ?1")
        using = try database.prepare("UPDATE entries SET used = ?2 WHERE id = ?1 AND (used < ?2 OR used > ?3)")
        bounding = try database.prepare(
            "UPDATE entries SET used = ?1 WHERE id IN (SELECT id FROM entries WHERE used > ?1 LIMIT ?2)")
        later = try database.prepare("SELECT 1 FROM entries WHERE used > ?1 LIMIT 1")
        existing = try database.prepare("SELECT cost FROM entries WHERE id = ?1")
        oldest = try database.prepare("SELECT id, cost FROM entries WHERE used < ?1 ORDER BY used LIMIT ?2")
        oldestBeginnings = try database.prepare(
            "SELECT id, cost FROM entries WHERE kind = 1 ORDER BY used LIMIT ?1")
        totalling = try database.prepare("SELECT kind, entries, bytes, row_bytes FROM totals")
        reserving = try database.prepare("INSERT OR REPLACE INTO writers (name, reserved) VALUES (?1, ?2)")
        summing = try database.prepare("SELECT reserved FROM writers")
    }

    // MARK: Reading

    /// Everything under the key; `damaged`: what does not agree with itself.
    func rows(
        _ key: String, damaged: (EntryID) -> Void, mark: (EntryID) -> ChangeMark = { _ in ChangeMark() }
    ) throws(DatabaseError) -> [Row] {
        select.bind(1, Checksum.of(key))
        select.bind(2, key)
        defer { select.reset() }
        var rows: [Row] = []
        while try select.step() {
            let id = EntryID(rawValue: select.integer(0))
            if let row = row(select, key: key, mark) { rows.append(row) } else { damaged(id) }
        }
        return rows
    }

    /// Whether there is anything, damaged or not.
    func hasRows(_ key: String) throws(DatabaseError) -> Bool {
        select.bind(1, Checksum.of(key))
        select.bind(2, key)
        defer { select.reset() }
        return try select.step()
    }

    private func row(
        _ statement: Statement, key: String, _ mark: (EntryID) -> ChangeMark = { _ in ChangeMark() }
    ) -> Row? {
        let identity = RowIdentity(
            id: EntryID(rawValue: statement.integer(0)), key: key, length: statement.integer(2),
            checksum: statement.integer(3))
        guard let response = statement.bytes(6, { ResponseCoding.decode($0, identity) }) else { return nil }
        return Row(
            entry: StoredEntry(id: identity.id, response: response, mark: mark(identity.id)),
            checksum: identity.checksum,
            storedTime: statement.integer(4), usedTime: statement.integer(5))
    }

    func contains(_ id: EntryID) throws(DatabaseError) -> Bool {
        existing.bind(1, id.rawValue)
        defer { existing.reset() }
        return try existing.step()
    }

    func totals() throws(DatabaseError) -> Totals {
        defer { totalling.reset() }
        var totals = Totals()
        while try totalling.step() {
            let entries = totalling.number(1)
            let bytes = totalling.number(2)
            totals.entries = Totals.sum(totals.entries, entries)
            totals.bytes = Totals.sum(totals.bytes, bytes)
            totals.rowBytes = Totals.sum(totals.rowBytes, totalling.number(3))
            if totalling.integer(0) == 1 {
                totals.partialEntries = Totals.sum(0, entries)
                totals.partialBytes = Totals.sum(0, bytes)
            }
        }
        return totals
    }

    // MARK: Room

    /// All that lies in the folder, `others` besides.
    func use(others: Int64) throws(DatabaseError) -> StorageUse {
        let totals = try totals()
        var reserved: Int64 = 0
        defer { summing.reset() }
        while try summing.step() { reserved = Totals.sum(reserved, summing.number(0)) }
        return StorageUse(
            entries: totals.bytes, rows: totals.rowBytes, reserved: reserved, index: try fileBytes(), others: others)
    }

    private func fileBytes() throws(DatabaseError) -> Int64 {
        let bytes = CheckedNumber(try database.integer("PRAGMA page_count")) * CheckedNumber(Self.pageBytes)
        return bytes?.clamped(to: 0...Totals.greatest) ?? Totals.greatest
    }

    /// What a writer may fill besides what is stored.
    func reserve(_ bytes: Int64, for writer: String) throws(DatabaseError) {
        reserving.bind(1, writer)
        reserving.bind(2, bytes)
        try reserving.run()
    }

    /// At most so many as bring room for a change of the index. `except`: those of which nobody has told it that they were used
    /// later.
    func oldest(usedBefore time: Int64, except isUsed: (EntryID) -> Bool) throws(DatabaseError) -> [EntryID] {
        oldest.bind(1, time)
        oldest.bind(2, Int64.max)
        defer { oldest.reset() }
        var ids: [EntryID] = []
        while ids.count < 1_000 {
            guard try oldest.step() else { break }
            let id = EntryID(rawValue: oldest.integer(0))
            if !isUsed(id) { ids.append(id) }
        }
        return ids
    }

    // MARK: Writing, inside a transaction

    /// Gives the entries whose place it takes; nil, and nothing has changed: a newer one is there. `now`: seconds since
    /// 1970, as is `time`, when it came.
    func insert(
        _ entry: StoredEntry, key: String, checksum: Int64, time: Int64, now: Int64
    ) throws(DatabaseError) -> Removal? {
        var replaced: [EntryID] = []
        var others: [EntryID] = []
        for row in try rows(key, damaged: { replaced.append($0) }) {
            if entry.response.isOvertaken(by: row.entry.response, wallTime: now) { return nil }
            if entry.response.displaces(row.entry.response, wallTime: now) {
                replaced.append(row.entry.id)
            } else {
                others.append(row.entry.id)
            }
        }
        if others.count >= StoredResponse.maximumVariants {
            others.sort { $0.rawValue < $1.rawValue }
            replaced += others.prefix(others.count - StoredResponse.maximumVariants + 1)
        }
        var removal = Removal()
        for id in replaced { try remove(id, &removal) }
        let identity = RowIdentity(id: entry.id, key: key, length: entry.response.bodyLength, checksum: checksum)
        insertion.bind(1, entry.id.rawValue)
        insertion.bind(2, Checksum.of(key))
        insertion.bind(3, key)
        insertion.bind(4, kind(entry.response))
        insertion.bind(5, identity.length)
        insertion.bind(6, checksum)
        insertion.bind(7, time)
        insertion.bind(8, ResponseCoding.encode(entry.response, identity))
        let row = StorageCost.row(entry.response, key: key)
        insertion.bind(9, StorageCost.file(identity.length) + row)
        insertion.bind(10, row)
        try insertion.run()
        return removal
    }

    private func kind(_ response: StoredResponse) -> Int64 {
        switch response.extent {
        case .whole: 0
        case .beginning: 1
        case .headAlone: 2
        case .part: 0
        }
    }

    /// Length and extent stay as they are: they are the body's. `versions`: it is changed where
    /// it is one of these; none: in any case. `time`: of the use that this is; nil: it is none.
    func update(_ id: EntryID, _ response: StoredResponse, of versions: [StoredResponse.Version], time: Int64?)
        throws(DatabaseError)
    {
        selectByID.bind(1, id.rawValue)
        defer { selectByID.reset() }
        guard try selectByID.step() else { return }
        let key = selectByID.bytes(1) { String(decoding: $0, as: UTF8.self) }
        guard let row = row(selectByID, key: key) else { return }
        guard versions.isEmpty || versions.contains(row.entry.response.version) else { return }
        let response = row.entry.with(response).response
        let identity = RowIdentity(id: id, key: key, length: response.bodyLength, checksum: row.checksum)
        updating.bind(1, id.rawValue)
        updating.bind(2, ResponseCoding.encode(response, identity))
        updating.bind(3, time ?? row.usedTime)
        updating.bind(4, StorageCost.row(response, key: key))
        try updating.run()
    }

    /// `now`: what was used later than that was so by a clock that ran ahead.
    func use(_ id: EntryID, time: Int64, now: Int64) throws(DatabaseError) {
        using.bind(1, id.rawValue)
        using.bind(2, min(time, now))
        using.bind(3, now)
        try using.run()
    }

    /// Whether something was used later than that.
    func hasUses(after time: Int64) throws(DatabaseError) -> Bool {
        later.bind(1, time)
        defer { later.reset() }
        return try later.step()
    }

    /// Uses later than that, so many of them at most, count as of then. Inside a transaction.
    func boundUses(_ time: Int64, count: Int) throws(DatabaseError) {
        bounding.bind(1, time)
        bounding.bind(2, Int64(count))
        try bounding.run()
        // Others may have done it before.
        if try hasUses(after: time) { try checkChanged("a use in the future") }
    }

    /// Rows that were found have been changed, or would be found again without end.
    func checkChanged(_ what: String) throws(DatabaseError) {
        guard database.changedRows == 0 else { return }
        throw .damaged(database.path, "\(what) is found, and is not where it should be")
    }

    /// As the table says, and not what orders it.
    private func hasEntries() throws(DatabaseError) -> Bool {
        try database.integer("SELECT 1 FROM entries NOT INDEXED LIMIT 1") != 0
    }

    private func delete(_ id: EntryID) throws(DatabaseError) {
        deletion.bind(1, id.rawValue)
        try deletion.run()
        try checkChanged("an entry")
    }

    /// Where it is there.
    func remove(_ id: EntryID, _ removal: inout Removal) throws(DatabaseError) {
        existing.bind(1, id.rawValue)
        defer { existing.reset() }
        guard try existing.step() else { return }
        removal.add(id, existing.number(0))
        existing.reset()
        try delete(id)
    }

    func remove(key: String) throws(DatabaseError) -> Removal {
        var ids: [EntryID] = []
        for row in try rows(key, damaged: { ids.append($0) }) { ids.append(row.entry.id) }
        var removal = Removal()
        for id in ids { try remove(id, &removal) }
        return removal
    }

    /// All of them. The pages that they are on go as they are, and take next to nothing of the log. nil, and nothing has
    /// changed: there are more than `count`.
    func removeAll(atMost count: Int) throws(DatabaseError) -> Removal? {
        // As the table says, and not what orders it.
        let all = try database.prepare("SELECT id, cost FROM entries NOT INDEXED LIMIT ?1")
        all.bind(1, Int64(count) + 1)
        defer { all.reset() }
        var removal = Removal()
        while try all.step() { removal.add(EntryID(rawValue: all.integer(0)), all.number(1)) }
        all.reset()
        if removal.ids.count > count { return nil }
        try database.executeWithoutTriggers(
            "DELETE FROM entries; UPDATE totals SET entries = 0, bytes = 0, row_bytes = 0")
        return removal
    }

    /// Those used longest ago, `count` at most, and of them no more than needed to have `bytes` less.
    func removeOldest(_ selection: Selection, count: Int, bytes: Int64) throws(DatabaseError) -> Removal {
        let statement: Statement
        switch selection {
        case .all:
            statement = oldest
            statement.bind(1, Int64.max)
            statement.bind(2, Int64(count))
        case .usedBefore(let time):
            statement = oldest
            statement.bind(1, time)
            statement.bind(2, Int64(count))
        case .beginnings:
            statement = oldestBeginnings
            statement.bind(1, Int64(count))
        }
        var removal = Removal()
        defer { statement.reset() }
        while removal.cost < bytes, try statement.step() {
            removal.add(EntryID(rawValue: statement.integer(0)), statement.number(1))
        }
        statement.reset()
        for id in removal.ids { try delete(id) }
        if case .all = selection, removal.ids.isEmpty, try hasEntries() {
            throw .damaged(database.path, "entries are there, and not in their order")
        }
        return removal
    }
}
