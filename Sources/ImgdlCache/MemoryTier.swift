import ImgdlCore

/// Encoded bodies in memory, within a byte limit; the one used longest ago goes first. Threads: any.
final class MemoryTier: @unchecked Sendable {
    private final class Item {
        let key: String
        /// Guarded by the lock, as the next.
        var entry: StoredEntry
        let body: [BodySlice]
        var usedTime: Int64
        /// When the disk was last told; nil: never.
        var toldTime: Int64?

        init(key: String, entry: StoredEntry, body: [BodySlice], usedTime: Int64) {
            self.key = key
            self.entry = entry
            self.body = body
            self.usedTime = usedTime
        }
    }

    /// What is kept under one key, the newest first. The entries once more, as they are handed out for each look.
    private struct Shelf {
        private(set) var items: [Item]
        private(set) var entries: [StoredEntry]

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
    private var items = RecencyList<EntryID, Item>()
    private var shelves: [String: Shelf] = [:]
    private var partialBytes: Int64 = 0
    private var partialCount: Int64 = 0

    /// What a body costs besides its bytes: fields, tables.
    private static let overhead: Int64 = 512

    init(maximumBytes: Int64, maximumPartialBytes: Int64, maximumAge: Int64?, changes: SharedChanges) {
        self.changes = changes
        self.maximumBytes = maximumBytes
        self.maximumPartialBytes = maximumPartialBytes
        self.maximumAge = maximumAge
    }

    /// Bodies longer than this are never kept: one would push out all others.
    var maximumBodyBytes: Int64 { maximumBytes / 2 }

    struct Totals {
        var count: Int64
        var bytes: Int64
        var partialCount: Int64
        var partialBytes: Int64
    }

    var totals: Totals {
        lock.withLock {
            Totals(
                count: Int64(items.count), bytes: items.totalCost - Int64(items.count) * Self.overhead,
                partialCount: partialCount, partialBytes: partialBytes)
        }
    }

    func find(_ key: String, wallTime: Int64, _ choose: (borrowing [StoredEntry]) -> StoreChoice) -> FoundEntry? {
        let found = lock.withLock { () -> Shelf? in
            guard let shelf = shelves[key] else { return nil }
            guard isCurrent(shelf) else {
                for entry in shelf.entries { drop(entry.id) }
                return nil
            }
            guard let maximumAge else { return shelf }
            // A clock that ran ahead keeps nothing for longer.
            for item in shelf.items where item.usedTime > wallTime { item.usedTime = wallTime }
            let young = shelf.items.filter { wallTime - $0.usedTime <= maximumAge }
            return young.count == shelf.items.count ? shelf : Shelf(young)
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

    func newest(_ key: String) -> CachedResponse? {
        lock.withLock {
            guard let item = shelves[key]?.items.first else { return nil }
            let response = item.entry.response
            return CachedResponse(
                id: item.entry.id, response: response, storedTime: response.responseTime, usedTime: item.usedTime)
        }
    }

    /// In place of what it replaces. nil for `body`: it is not kept here, but what it replaces goes. Gives what went.
    func insert(_ entry: StoredEntry, key: String, body: [BodySlice]?, wallTime: Int64) -> Removed {
        lock.withLock {
            var removed = Removed()
            for older in shelves[key]?.entries ?? []
            where older.id == entry.id || entry.response.replaces(older.response) {
                drop(older.id)
                removed.replaced.append(older.id)
            }
            let bytes = entry.response.bodyLength
            guard let body, bytes <= maximumBodyBytes else { return removed }
            if entry.response.isBeginning, bytes > maximumPartialBytes { return removed }
            let item = Item(key: key, entry: entry, body: body, usedTime: wallTime)
            items.insert(entry.id, item, cost: bytes + Self.overhead)
            shelves[key] = Shelf((shelves[key]?.items ?? []) + [item])
            if entry.response.isBeginning {
                partialBytes += bytes
                partialCount += 1
            }
            shrink(&removed)
            return removed
        }
    }

    struct Removed {
        var replaced: [EntryID] = []
        var evicted: [EntryID] = []
    }

    func update(_ id: EntryID, _ response: StoredResponse, wallTime: Int64) {
        lock.withLock {
            guard let item = items.value(id) else { return }
            var response = response
            response.bodyLength = item.entry.response.bodyLength
            item.entry = StoredEntry(id: id, response: response, mark: item.entry.mark)
            item.usedTime = wallTime
            if let shelf = shelves[item.key] { shelves[item.key] = Shelf(shelf.items) }
        }
    }

    /// Whether the disk is to be told; false when it was told in this second.
    func use(_ id: EntryID, wallTime: Int64) -> Bool {
        lock.withLock {
            guard let item = items.use(id) else { return true }
            item.usedTime = wallTime
            defer { item.toldTime = wallTime }
            return item.toldTime != wallTime
        }
    }

    func remove(_ id: EntryID) { lock.withLock { drop(id) } }

    func remove(key: String) -> [EntryID] {
        lock.withLock {
            let ids = shelves[key]?.entries.map(\.id) ?? []
            for id in ids { drop(id) }
            return ids
        }
    }

    /// What was last used before that time.
    func remove(usedBefore time: Int64) -> [EntryID] {
        lock.withLock {
            var ids: [EntryID] = []
            items.oldestFirst { id, item in
                if item.usedTime < time { ids.append(id) }
                return true
            }
            for id in ids { drop(id) }
            return ids
        }
    }

    func removeAll() {
        lock.withLock {
            items.removeAll()
            shelves = [:]
            partialBytes = 0
            partialCount = 0
        }
    }

    private func shrink(_ removed: inout Removed) {
        while items.totalCost > maximumBytes, let oldest = items.removeOldest() {
            forget(oldest.value)
            removed.evicted.append(oldest.key)
        }
        while partialBytes > maximumPartialBytes {
            var victim: EntryID?
            items.oldestFirst { id, item in
                if item.entry.response.isBeginning { victim = id }
                return victim == nil
            }
            guard let victim else { return }
            drop(victim)
            removed.evicted.append(victim)
        }
    }

    private func drop(_ id: EntryID) {
        if let item = items.remove(id) { forget(item) }
    }

    private func forget(_ item: Item) {
        if item.entry.response.isBeginning {
            partialBytes -= item.entry.response.bodyLength
            partialCount -= 1
        }
        let rest = shelves[item.key]?.items.filter { $0 !== item } ?? []
        shelves[item.key] = rest.isEmpty ? nil : Shelf(rest)
    }
}
