import ImgdlCore

/// Transfers by their number, whose slot is an index: the engine has no two at once in one slot.
struct RunningTransfers: ~Copyable {
    private var transfers = ObjectTable<CurlTransfer>()

    subscript(id: TransferID) -> CurlTransfer? { has(id) ? transfers[id.slot] : nil }

    mutating func insert(_ transfer: __owned CurlTransfer, _ id: TransferID) { transfers.put(transfer, at: id.slot) }

    /// As it lies there: `body` must not have it removed.
    func look(_ id: TransferID, _ body: (CurlTransfer) -> Void) { transfers.look(at: id.slot, body) }

    @discardableResult
    mutating func remove(_ id: TransferID) -> CurlTransfer? { has(id) ? transfers.take(id.slot) : nil }

    mutating func removeAll() { for slot in 0..<transfers.count { transfers.take(slot) } }

    var all: [CurlTransfer] { (0..<transfers.count).compactMap { transfers[$0] } }

    private func has(_ id: TransferID) -> Bool { transfers.look(at: id.slot) { $0.id == id } == true }
}
