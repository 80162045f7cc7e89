import ImgdlCore

/// Changes that wait to be written together, in order.
struct Batch {
    private(set) var changes: [IndexChange] = []
    /// Of the last change.
    private(set) var number: Int64 = 0
    /// Bytes that the changes hold while they wait.
    private(set) var memory = QueuedMemory()
    /// Cost of rows that are changed in place.
    private(set) var updateCost: Int64 = 0
    /// Cost of all rows in the log, those of bodies and those that are changed.
    private(set) var rowCost: Int64 = 0

    /// So many that the disk did not take: simply everything is removed once it works.
    private static let maximumRetained = 10_000
    private static let maximumRetainedBytes = 1 << 20
    /// A transaction is in the log as a whole.
    private static let manyChanges = 128
    private static let manyRowBytes: Int64 = 512 << 10

    var isEmpty: Bool { changes.isEmpty }
    var isFull: Bool { changes.count >= Self.manyChanges || rowCost >= Self.manyRowBytes }

    var bodies: [DiskBody] {
        changes.compactMap {
            if case .insert(let body) = $0 { return body }
            return nil
        }
    }

    /// `cost`: of the row that it makes or changes.
    mutating func add(_ change: IndexChange, _ number: Int64, memory: Int, cost: Int64 = 0) {
        changes.append(change)
        self.number = max(self.number, number)
        if change.isRemoval { self.memory.removals += memory } else { self.memory.stores += memory }
        rowCost += cost
        if case .update = change { updateCost += cost }
    }

    /// Their memory stays counted until all of it is written or forgotten.
    mutating func withdraw(_ bodies: ArraySlice<DiskBody>) {
        let ids = Set(bodies.map(\.id))
        changes.removeAll { if case .insert(let body) = $0 { ids.contains(body.id) } else { false } }
    }

    /// What must not be forgotten although the disk does not work: what is removed stays removed.
    mutating func keepRemovals() {
        var kept = Batch()
        for change in changes {
            switch change {
            case .insert: continue
            // The response of before may not be used as if nothing had come since.
            case .update(let id, let response):
                let memory = DiskCommand.memory(of: response, "")
                if kept.memory.stores + memory <= Self.maximumRetainedBytes {
                    kept.add(change, number, memory: memory, cost: StorageCost.row(response, key: ""))
                } else {
                    kept.add(.remove(id), number, memory: DiskCommand.memory(ofRemoving: ""))
                }
            case .remove, .removeDamaged, .clear:
                kept.add(change, number, memory: DiskCommand.memory(ofRemoving: ""))
            case .removeKey(let key): kept.add(change, number, memory: DiskCommand.memory(ofRemoving: key))
            }
        }
        if kept.changes.count > Self.maximumRetained {
            kept = Batch()
            kept.add(.clear, number, memory: 0)
        }
        kept.number = number
        self = kept
    }
}
