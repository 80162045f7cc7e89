/// Bodies that wait for the answers of hooks (`Shares`), and requests that wait until hooks have given some. As with executors,
/// what runs is received to its end; what has not begun waits.
extension Downloads {
    /// Brings the count in line with what it is asked and with the bytes that it holds.
    mutating func updateOwed(_ id: TransferID) {
        countOwed(id, transfers[id].question == nil ? 0 : transfers[id].countedBytes)
        // It has no place: it does nothing but wait.
        countTransforming(id, transfers[id].question?.kind == .body)
    }

    /// It is over, or begins anew: what a hook says of it now goes nowhere.
    mutating func forgetOwed(_ id: TransferID) {
        countOwed(id, 0)
        countTransforming(id, false)
    }

    private mutating func countOwed(_ id: TransferID, _ bytes: Int64) {
        let change = bytes - transfers[id].owedBytes
        guard change != 0, let hooks = transfers[id].request.hooks else { return }
        transfers[id].owedBytes = bytes
        owedAnswers.change(change, of: ObjectIdentifier(hooks), budget: memory.budget)
        if change < 0 { hasRoom = true }
        updateSlow(id)
        excuse()
    }

    private mutating func countTransforming(_ id: TransferID, _ isTransforming: Bool) {
        guard transfers[id].isTransforming != isTransforming else { return }
        transfers[id].isTransforming = isTransforming
        transformingCount += isTransforming ? 1 : -1
    }

    /// Whether its hooks owe so much that it does not begin.
    func waitsForAnswers(_ id: TransferID) -> Bool {
        guard owedAnswers.behindCount > 0, let hooks = transfers[id].request.hooks else { return false }
        return owedAnswers.isBehind(ObjectIdentifier(hooks))
    }

    /// What waits for hosts, and counts for them alone.
    mutating func excuse() {
        memory.setExcused(backlogs.excused + heldForExecutorsBytes + owedAnswers.total + slow.total)
    }
}
