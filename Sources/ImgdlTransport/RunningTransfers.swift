import ImgdlCore

/// Transfers by their number, whose slot is an index: the engine has no two at once in one slot.
struct RunningTransfers {
    private var slots: [CurlTransfer?] = []

    subscript(id: TransferID) -> CurlTransfer? {
        let slot = Self.slot(id)
        guard slot < slots.count, let transfer = slots[slot] else { return nil }
        return transfer.id.rawValue == id.rawValue ? transfer : nil
    }

    mutating func insert(_ transfer: __owned CurlTransfer) {
        let slot = Self.slot(transfer.id)
        while slots.count <= slot { slots.append(nil) }
        precondition(slots[slot] == nil, "a transfer's slot is its own until it has ended")
        slots[slot] = transfer
    }

    @discardableResult
    mutating func remove(_ id: TransferID) -> CurlTransfer? {
        let slot = Self.slot(id)
        guard slot < slots.count, slots[slot]?.id.rawValue == id.rawValue else { return nil }
        return slots[slot].take()
    }

    mutating func removeAll() { slots = [] }

    var all: [CurlTransfer] { slots.compactMap { $0 } }

    private static func slot(_ id: TransferID) -> Int { SlotTable<CurlTransfer>.slot(id.rawValue) }
}
