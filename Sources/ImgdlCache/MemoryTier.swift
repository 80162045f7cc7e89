import ImgdlCore

/// Encoded bodies in memory, within a byte limit; the one used longest ago goes first. Threads: any.
final class MemoryTier: @unchecked Sendable {
    private final class Item {
        let key: String
        /// Guarded by the lock, as the next.
        var entry: StoredEntry
        let body: [BodySlice]
        var usedTime: Int64

        init(key: String, entry: StoredEntry, body: [BodySlice], usedTime: Int64) {
            self.key = key
            self.entry = entry
            self.body = body
            self.usedTime = usedTime
        }
    }

    private let lock = Lock()
    private let maximumBytes: Int64
    private let maximumPartialBytes: Int64
    private let maximumAge: Int64?
    private var items = RecencyList<EntryID, Item>()
    private var keys: [String: [EntryID]] = [:]
    private var partialBytes: Int64 = 0
    private var partialCount: Int64 = 0

    /// What a body costs besides its bytes: fields, tables.
    private static let overhead: Int64 = 512

    init(maximumBytes: Int64, maximumPartialBytes: Int64, maximumAge: Int64?) {
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
        var entries: [StoredEntry] = []
        var bodies: [(id: EntryID, body: [BodySlice])] = []
        lock.withLock {
            for id in keys[key] ?? [] {
                guard let item = items.value(id), maximumAge.map({ wallTime - item.usedTime <= $0 }) ?? true else {
                    continue
                }
                entries.append(item.entry)
                bodies.append((id, item.body))
            }
        }
        guard !entries.isEmpty else { return nil }
        entries.sortNewestFirst()
        guard case .entry(let index, let withBody) = choose(entries), entries.indices.contains(index) else {
            return nil
        }
        let entry = entries[index]
        let body = withBody ? bodies.first { $0.id == entry.id }?.body : []
        return body.map { FoundEntry(entry: entry, body: $0, isFromMemory: true) }
    }

    func newest(_ key: String) -> CachedResponse? {
        lock.withLock {
            let found = (keys[key] ?? []).compactMap { items.value($0) }
            var entries = found.map(\.entry)
            entries.sortNewestFirst()
            guard let first = entries.first, let item = found.first(where: { $0.entry.id == first.id }) else {
                return nil
            }
            return CachedResponse(
                id: first.id, response: first.response, storedTime: first.response.responseTime, usedTime: item.usedTime
            )
        }
    }

    /// In place of what it replaces. nil for `body`: it is not kept here, but what it replaces goes. Gives what went.
    func insert(_ entry: StoredEntry, key: String, body: [BodySlice]?, wallTime: Int64) -> Removed {
        lock.withLock {
            var removed = Removed()
            for id in keys[key] ?? [] {
                if let older = items.value(id)?.entry, older.id == entry.id || entry.response.replaces(older.response) {
                    drop(id)
                    removed.replaced.append(id)
                }
            }
            let bytes = entry.response.bodyLength
            guard let body, bytes <= maximumBodyBytes else { return removed }
            if entry.response.isBeginning, bytes > maximumPartialBytes { return removed }
            items.insert(
                entry.id, Item(key: key, entry: entry, body: body, usedTime: wallTime), cost: bytes + Self.overhead)
            keys[key, default: []].append(entry.id)
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
            item.entry = StoredEntry(id: id, response: response)
            item.usedTime = wallTime
        }
    }

    func use(_ id: EntryID, wallTime: Int64) {
        lock.withLock { items.use(id)?.usedTime = wallTime }
    }

    func remove(_ id: EntryID) { lock.withLock { drop(id) } }

    func remove(key: String) -> [EntryID] {
        lock.withLock {
            let ids = keys[key] ?? []
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
            keys = [:]
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
        keys[item.key]?.removeAll { $0 == item.entry.id }
        if keys[item.key]?.isEmpty ?? false { keys[item.key] = nil }
    }
}
