/// Transfers that have more to decode than one turn allows. All of them together have a turn of the engine's thread for
/// `transfersInTurn`, so that however many there are others are served in between.
struct DecodingLine {
    private static let transfersInTurn = 4

    private var line: [CurlTransfer] = []
    private var isAsked = false

    var isEmpty: Bool { line.isEmpty }

    /// Whether a turn is to be asked for.
    mutating func join(_ transfer: CurlTransfer) -> Bool {
        guard !transfer.isInLine else { return false }
        transfer.isInLine = true
        line.append(transfer)
        return needsTurn()
    }

    mutating func takeTurn() -> [CurlTransfer] {
        isAsked = false
        let first = Array(line.prefix(Self.transfersInTurn))
        line.removeFirst(first.count)
        for transfer in first { transfer.isInLine = false }
        return first
    }

    mutating func needsTurn() -> Bool {
        guard !line.isEmpty, !isAsked else { return false }
        isAsked = true
        return true
    }
}
