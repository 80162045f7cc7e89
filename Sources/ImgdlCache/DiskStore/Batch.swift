import ImgdlCore

/// Changes that wait to be written together, in order.
struct Batch {
    private(set) var changes: [IndexChange] = []
    /// Of the last change.
    private(set) var number: Int64 = 0

    /// So many that the disk did not take: simply everything is removed once it works.
    private static let maximumRetained = 10_000

    var isEmpty: Bool { changes.isEmpty }

    var bodies: [DiskBody] {
        changes.compactMap {
            if case .insert(let body) = $0 { return body }
            return nil
        }
    }

    mutating func add(_ change: IndexChange, _ number: Int64) {
        changes.append(change)
        self.number = max(self.number, number)
    }

    /// What must not be forgotten although the disk does not work: what is removed stays removed.
    mutating func keepRemovals() {
        changes.removeAll {
            if case .insert = $0 { return true }
            return false
        }
        if changes.count > Self.maximumRetained { changes = [.clear] }
    }
}
