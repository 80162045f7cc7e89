import ImgdlCore

/// Encoded bodies in memory with their headers, within a byte limit; the one used longest ago goes first. Threads: any.
final class MemoryTier: @unchecked Sendable {
    private final class Item {
        let key: String
        /// Guarded by the lock, as the next.
        var entry: StoredEntry
        let body: [BodySlice]
        /// What body, headers and all that belongs to it take.
        var cost: Int64
        let storedTime: Int64
        var usedTime: Int64
        /// When the disk was last told; nil: never.
        var toldTime: Int64?

        init(key: String, entry: StoredEntry, body: [BodySlice], cost: Int64, usedTime: Int64) {
            self.key = key
            self.entry = entry
            self.body = body
            self.cost = cost
            storedTime = entry.response.responseTime
            self.usedTime = usedTime
        }
    }

    /// What is kept under one key, the newest first. The entries once more, as they are handed out for each look.
    private struct Shelf {
        let items: [Item]
        let entries: [StoredEntry]

        init(_ items: [Item]) {
            self.items = items.count < 2 ? items : items.sorted { $0.entry.isNewer(than: $1.entry) }
            entries = self.items.map(\.entry)
        }
    }

    private let changes: SharedChanges
    private let lock = Lock()
    private let maximumBytes: Int64
    private let maximumPartialBytes: Int64
    private let maximumAge: Int64?
    /// The last that was told, in seconds since 1970.
    private var wallTime: Int64 = .min
    private var items = RecencyList<EntryID, Item>()
    /// Of these the beginnings of bodies once more.
    private var beginnings = RecencyList<EntryID, Item>()
    private var shelves: [String: Shelf] = [:]
    private var isClosed = false

    init(maximumBytes: Int64, maximumPartialBytes: Int64, maximumAge: Int64?, changes: SharedChanges) {
        self.changes = changes
        self.maximumBytes = maximumBytes
        self.maximumPartialBytes = maximumPartialBytes
        self.maximumAge = maximumAge
    }

    /// What takes more, with its headers, is never kept: one would push out all others.
    var maximumEntryBytes: Int64 { maximumBytes / 2 }

    struct Totals {
        var count: Int64
        var bytes: Int64
        var partialCount: Int64
        var partialBytes: Int64
    }

    var totals: Totals {
        lock.withLock {
            Totals(
                count: Int64(items.count), bytes: items.totalCost, partialCount: Int64(beginnings.count),
                partialBytes: beginnings.totalCost)
        }
    }

    func find(_ key: String, _ choose: (borrowing [StoredEntry]) -> StoreChoice) -> FoundEntry? {
        changes.check()
        let found = lock.withLock { () -> Shelf? in
            guard let shelf = shelves[key] else { return nil }
            guard isCurrent(shelf) else {
                for entry in shelf.entries { drop(entry.id) }
                return nil
            }
            return shelf
        }
        guard let found, !found.entries.isEmpty,
            case .entry(let index, let withBody) = choose(found.entries), found.entries.indices.contains(index)
        else { return nil }
        return FoundEntry(
            entry: found.entries[index], body: withBody ? found.items[index].body : [], isFromMemory: true)
    }

    /// Nobody else has changed anything under the key.
    private func isCurrent(_ shelf: Shelf) -> Bool {
        for index in shelf.entries.indices where !changes.isCurrent(shelf.entries[index].mark) { return false }
        return true
    }

    func newest(_ key: String, wallTime: Int64) -> CachedResponse? {
        changes.check()
        return lock.withLock {
            guard let shelf = shelves[key], isCurrent(shelf) else { return nil }
            let all = shelf.items.map {
                CachedResponse(
                    id: $0.entry.id, response: $0.entry.response, storedTime: $0.storedTime, usedTime: $0.usedTime)
            }
            return all.newest(wallTime: wallTime)
        }
    }

    /// In place of what it replaces. nil for `body`: it is not kept here. What it replaces goes, unless nobody keeps it. Gives
    /// what went. `since`: as of `Store.write`; nil: it was found on the disk.
    func insert(
        _ entry: StoredEntry, key: String, body: [BodySlice]?, wallTime: Int64, since mark: RemovalMark? = nil,
        isOnDisk: Bool = true
    ) -> Removed {
        let body = body.map { Self.isWasteful($0) ? $0.compacted : $0 }
        let cost = Self.cost(of: entry.response, key, body ?? [])
        let isTooLarge =
            cost > maximumEntryBytes || entry.response.isBeginning && cost > maximumPartialBytes
        let kept = isTooLarge ? nil : body
        return lock.withLock {
            note(wallTime)
            var removed = Removed()
            let others = shelves[key]?.entries ?? []
            removed.isRefused =
                isClosed || mark.map(changes.isRemoved) ?? false
                || others.contains { other in
                    other.id != entry.id && entry.response.isOvertaken(by: other.response, wallTime: wallTime)
                }
            if removed.isRefused || kept == nil && !isOnDisk { return removed }
            for other in others
            where other.id == entry.id || entry.response.displaces(other.response, wallTime: wallTime) {
                drop(other.id)
                removed.replaced.append(other.id)
            }
            guard let kept else { return removed }
            if let older = shelves[key]?.items, older.count >= StoredResponse.maximumVariants, let last = older.last {
                drop(last.entry.id)
                removed.evicted.append(last.entry.id)
            }
            let item = Item(key: key, entry: entry, body: kept, cost: cost, usedTime: wallTime)
            items.insert(entry.id, item, cost: cost)
            if entry.response.isBeginning { beginnings.insert(entry.id, item, cost: cost) }
            shelves[key] = Shelf((shelves[key]?.items ?? []) + [item])
            shrink(&removed)
            removed.isKept = items.value(entry.id) != nil
            return removed
        }
    }

    private static func cost(of response: StoredResponse, _ key: String, _ body: [BodySlice]) -> Int64 {
        StorageCost.memory(response, key: key) + Int64(body.memoryBytes)
    }

    /// A few bytes keep much memory, as where their length was not known beforehand.
    private static func isWasteful(_ body: [BodySlice]) -> Bool {
        body.memoryBytes > 2 * body.reduce(0) { $0 + $1.count } + 1_024
    }

    struct Removed {
        /// It is not kept, and nothing went: it was removed meanwhile, a newer one is there, or the cache is closed.
        var isRefused = false
        /// It is here now.
        var isKept = false
        var replaced: [EntryID] = []
        var evicted: [EntryID] = []
    }

    /// Gives what went for it.
    func update(_ id: EntryID, _ response: StoredResponse, of known: StoredResponse.Version?, wallTime: Int64)
        -> Removed
    {
        lock.withLock {
            var removed = Removed()
            note(wallTime)
            guard let item = items.value(id), known == nil || item.entry.response.version == known else {
                return removed
            }
            item.entry = item.entry.with(response)
            if response.overtakenTime == nil {
                _ = items.use(id)
                if response.isBeginning { _ = beginnings.use(id) }
                item.usedTime = wallTime
            }
            item.cost = Self.cost(of: response, item.key, item.body)
            items.setCost(id, item.cost)
            beginnings.setCost(id, item.cost)
            if let shelf = shelves[item.key] { shelves[item.key] = Shelf(shelf.items) }
            if item.cost > maximumEntryBytes {
                drop(id)
                removed.evicted.append(id)
            }
            shrink(&removed)
            return removed
        }
    }

    /// Whether the disk is to be told; false when it was told in this second.
    func use(_ id: EntryID, wallTime: Int64) -> Bool {
        lock.withLock {
            note(wallTime)
            guard let item = items.use(id) else { return true }
            item.usedTime = wallTime
            if item.entry.response.isBeginning { _ = beginnings.use(id) }
            defer { item.toldTime = wallTime }
            return item.toldTime != wallTime
        }
    }

    func remove(_ id: EntryID) { lock.withLock { drop(id) } }

    func remove(_ ids: [EntryID]) { lock.withLock { for id in ids { drop(id) } } }

    func remove(key: String) -> [EntryID] {
        lock.withLock {
            let ids = shelves[key]?.entries.map(\.id) ?? []
            for id in ids { drop(id) }
            return ids
        }
    }

    /// What was last used before that time.
    func remove(usedBefore time: Int64, wallTime: Int64) -> [EntryID] {
        lock.withLock {
            note(wallTime)
            var ids: [EntryID] = []
            items.oldestFirst { id, item in if item.usedTime < time { ids.append(id) } }
            for id in ids { drop(id) }
            return ids
        }
    }

    /// What has not been used for longer than it may. Gives what went. To be called before anything is looked for.
    func removeOld(wallTime: Int64) -> [EntryID] {
        guard let maximumAge else { return [] }
        return lock.withLock {
            note(wallTime)
            var ids: [EntryID] = []
            while let oldest = items.leastRecent, wallTime - oldest.usedTime > maximumAge {
                drop(oldest.entry.id)
                ids.append(oldest.entry.id)
            }
            return ids
        }
    }

    /// A clock that ran ahead keeps nothing for longer, and who was used longest ago was used first. Threads come here in any
    /// order: a second is none.
    private func note(_ time: Int64) {
        guard time < wallTime else { return wallTime = time }
        guard time < wallTime - 1 else { return }
        items.oldestFirst { _, item in item.usedTime = min(item.usedTime, time) }
        wallTime = time
    }

    func removeAll() { empty(closing: false) }

    /// The same, and nothing is kept any more.
    func close() { empty(closing: true) }

    private func empty(closing: Bool) {
        // Freed outside the lock, as it takes its time.
        var old = (items: RecencyList<EntryID, Item>(), shelves: [String: Shelf]())
        lock.withLock {
            swap(&old.items, &items)
            swap(&old.shelves, &shelves)
            beginnings.removeAll()
            if closing { isClosed = true }
        }
    }

    private func shrink(_ removed: inout Removed) {
        while items.totalCost > maximumBytes, let oldest = items.removeOldest() {
            forget(oldest.value)
            removed.evicted.append(oldest.key)
        }
        while beginnings.totalCost > maximumPartialBytes, let oldest = beginnings.removeOldest() {
            drop(oldest.key)
            removed.evicted.append(oldest.key)
        }
    }

    private func drop(_ id: EntryID) {
        if let item = items.remove(id) { forget(item) }
    }

    private func forget(_ item: Item) {
        beginnings.remove(item.entry.id)
        let rest = shelves[item.key]?.items.filter { $0 !== item } ?? []
        shelves[item.key] = rest.isEmpty ? nil : Shelf(rest)
    }
}
