import ImgdlCore

/// What is read from the index, and what is told of what went.
extension Index {
    struct Row {
        let entry: StoredEntry
        let checksum: Int64
        let storedTime: Int64
        let usedTime: Int64

        /// With a mark that is never current.
        var unmarked: Row {
            let entry = StoredEntry(id: entry.id, response: entry.response, mark: .never)
            return Row(entry: entry, checksum: checksum, storedTime: storedTime, usedTime: usedTime)
        }
    }

    /// As the index says: of a forged one, no more than can be computed with. Bytes are costs (`StorageCost`).
    struct Totals: Equatable {
        static let greatest = StorageUse.greatest

        var entries: Int64 = 0
        var bytes: Int64 = 0
        /// Of `bytes`: what the index itself takes.
        var rowBytes: Int64 = 0
        var partialEntries: Int64 = 0
        var partialBytes: Int64 = 0

        static func sum(_ total: Int64, _ part: CheckedNumber) -> Int64 {
            (CheckedNumber(total) + part)?.clamped(to: 0...greatest) ?? greatest
        }
    }

    /// What goes first, of the entries that were used longest ago.
    enum Selection {
        case all
        case usedBefore(Int64)
        case beginnings
    }

    /// Entries that went, and what their files and rows took.
    struct Removal {
        private(set) var ids: [EntryID] = []
        private(set) var cost: Int64 = 0

        mutating func add(_ id: EntryID, _ cost: CheckedNumber) {
            ids.append(id)
            self.cost = Totals.sum(self.cost, cost)
        }

        static func += (all: inout Removal, more: Removal) {
            all.ids += more.ids
            all.cost = Totals.sum(all.cost, CheckedNumber(more.cost))
        }
    }
}
