/// Transfers that have more to decode than one turn allows. All of them together have a turn of the engine's thread for
/// `transfersInTurn`, so that however many there are others are served in between.
///
/// In a turn of curl, which may give a body out in any number of pieces, no more is decoded at once than one transfer may in
/// a turn: what comes after it is decoded in line.
struct DecodingLine {
    private static let transfersInTurn = 4
    static let bytesInTurnOfCurl = ContentDecoder.stepsInTurn * CodingLayer.outputBytes

    private var turnOfCurl: UInt64 = 0
    private var bytesInTurn = 0
    private var line: [CurlTransfer] = []
    private var isAsked = false

    /// Whether what comes in this turn of curl has to wait for its turn in line.
    mutating func isFull(inTurnOfCurl turn: UInt64) -> Bool {
        if turn != turnOfCurl { (turnOfCurl, bytesInTurn) = (turn, 0) }
        return !line.isEmpty || bytesInTurn >= Self.bytesInTurnOfCurl
    }

    /// So many bytes were decoded without a turn in line, since `isFull` was asked last.
    mutating func decoded(_ count: Int) { bytesInTurn = min(bytesInTurn, Self.bytesInTurnOfCurl) + count }

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
