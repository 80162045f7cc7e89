import ImgdlCore

/// Changes that wait to be written together, in order.
struct Batch {
    struct Item {
        let change: IndexChange
        let number: Int64
        /// Bytes that it holds while it waits.
        let memory: QueuedMemory
        /// Cost of the row that it makes or changes.
        let cost: Int64

        fileprivate var updateCost: Int64 { if case .update = change { cost } else { 0 } }

        /// The entry goes instead of being changed.
        fileprivate func removing(_ id: EntryID) -> Item {
            let memory = QueuedMemory(stores: 0, removals: DiskCommand.memory(ofRemoving: ""))
            return Item(change: .remove(id), number: number, memory: memory, cost: 0)
        }
    }

    private(set) var items: [Item] = []
    /// Of the last change.
    private(set) var number: Int64 = 0
    private(set) var memory = QueuedMemory()
    /// Cost of rows that are changed in place.
    private(set) var updateCost: Int64 = 0
    /// Cost of all rows in the log, those of bodies and those that are changed.
    private var rowCost: Int64 = 0

    /// Headers that the disk did not take: what has no room here is removed instead.
    private static let maximumRetainedBytes = 1 << 20

    var isEmpty: Bool { items.isEmpty }
    /// Full: as much as one transaction takes.
    var isFull: Bool {
        items.count >= StorageLog.Room.most.changes || rowCost >= StorageLog.Room.most.rowBytes
    }

    var changes: [IndexChange] { items.map(\.change) }

    /// Everything goes: also what the index does not know.
    var isClearing: Bool { items.contains { if case .clear = $0.change { true } else { false } } }

    /// The host has asked for that.
    var isAskedToClear: Bool { items.contains { if case .clear(isAsked: true) = $0.change { true } else { false } } }

    var bodies: [DiskBody] {
        items.compactMap {
            if case .insert(let body) = $0.change { return body }
            return nil
        }
    }

    var hasBodies: Bool { items.contains { if case .insert = $0.change { true } else { false } } }

    /// `cost`: of the row that it makes or changes.
    mutating func add(_ change: IndexChange, _ number: Int64, memory: Int, cost: Int64 = 0) {
        let memory =
            change.isRemoval ? QueuedMemory(stores: 0, removals: memory) : QueuedMemory(stores: memory, removals: 0)
        add(Item(change: change, number: number, memory: memory, cost: cost))
    }

    private mutating func add(_ item: Item) {
        items.append(item)
        number = max(number, item.number)
        memory += item.memory
        rowCost += item.cost
        updateCost += item.updateCost
    }

    /// The first so many, which wait no more.
    mutating func take(_ count: Int) -> Batch {
        let (all, last) = (items, number)
        self = Batch()
        var part = Batch()
        for item in all.prefix(count) { part.add(item) }
        for item in all.dropFirst(count) { add(item) }
        number = last
        return part
    }

    /// Gives the memory that they held.
    mutating func withdraw(_ bodies: ArraySlice<DiskBody>) -> QueuedMemory {
        let ids = Set(bodies.map(\.id))
        let (all, before) = (items, memory)
        self = Batch()
        for item in all {
            if case .insert(let body) = item.change, ids.contains(body.id) {
                number = max(number, item.number)
            } else {
                add(item)
            }
        }
        return before - memory
    }

    /// Removals of that key wait no more: there is nothing to remove. Gives them. nil: something waits that is stored under it.
    mutating func dropRemovals(of key: String) -> Batch? {
        if bodies.contains(where: { $0.key == key }) { return nil }
        let (all, last) = (items, number)
        self = Batch()
        var dropped = Batch()
        for item in all {
            if case .removeKey(key) = item.change { dropped.add(item) } else { add(item) }
        }
        number = last
        return dropped
    }

    /// Removals and new headers stay, whatever the disk does: what is removed stays removed. Of several changes of the same
    /// entry or key the last says it all.
    mutating func keepRemovals() {
        var kept: [Item] = []
        var bytes = 0
        var ids: Set<EntryID> = []
        var keys: Set<String> = []
        for item in items.reversed() {
            switch item.change {
            case .insert: continue
            case .update(let id, let response, _):
                if ids.contains(id) { continue }
                let memory = DiskCommand.memory(of: response, "")
                // The response of before may not be used as if nothing had come since.
                if bytes + memory > Self.maximumRetainedBytes {
                    kept.append(item.removing(id))
                    ids.insert(id)
                } else {
                    kept.append(item)
                    bytes += memory
                }
            case .remove(let id), .removeDamaged(let id): if ids.insert(id).inserted { kept.append(item) }
            case .removeKey(let key): if keys.insert(key).inserted { kept.append(item) }
            case .clear: kept.append(item)
            }
        }
        let last = number
        self = Batch()
        for item in kept.reversed() { add(item) }
        number = last
    }
}
