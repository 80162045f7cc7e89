/// Transfers whose bodies take more work than one turn allows: to decode, or because they come in small pieces. All of them
/// together have a turn of the engine's thread for `transfersInTurn`, of which none begins once the time of one is over, so
/// that however many there are others are served in between.
///
/// In a turn of curl, which may give a body out in any number of pieces, no more is decoded at once than one transfer may in
/// a turn: what comes after it is decoded in line. Nor does it give out more than so many pieces, such as chunks of a byte:
/// the rest waits in curl, which puts it together.
struct BodyLine {
    private static let transfersInTurn = 4
    /// Where pieces are as large as usual, 8 MiB.
    static let piecesInTurnOfCurl = 512
    static let bytesInTurnOfCurl = ContentDecoder.bytesInTurn

    private var turnOfCurl: UInt64 = 0
    private var bytesInTurn = 0
    /// Nanoseconds of CPU time.
    private var timeInTurn: Int64 = 0
    private var piecesInTurn = 0
    private var line: [CurlTransfer] = []
    private var isAsked = false

    /// Whether what comes in this turn of curl has to wait for its turn in line.
    mutating func isFull(inTurnOfCurl turn: UInt64) -> Bool {
        begin(turn)
        return !line.isEmpty || bytesInTurn >= Self.bytesInTurnOfCurl || timeInTurn >= DecodingTurn.limit
    }

    /// So many bytes were decoded in so many nanoseconds without a turn in line, since `isFull` was asked last.
    mutating func decoded(_ count: Int, in time: Int64 = 0) {
        bytesInTurn = min(bytesInTurn, Self.bytesInTurnOfCurl) + count
        timeInTurn = min(timeInTurn, DecodingTurn.limit) + time
    }

    /// A piece of a body has come. False: it and all that follow wait for their turn in line.
    mutating func takesPiece(inTurnOfCurl turn: UInt64) -> Bool {
        begin(turn)
        guard piecesInTurn < Self.piecesInTurnOfCurl else { return false }
        piecesInTurn += 1
        return true
    }

    private mutating func begin(_ turn: UInt64) {
        if turn != turnOfCurl { (turnOfCurl, bytesInTurn, timeInTurn, piecesInTurn) = (turn, 0, 0, 0) }
    }

    /// Whether a turn is to be asked for.
    mutating func join(_ transfer: CurlTransfer) -> Bool {
        guard !transfer.isInLine else { return false }
        transfer.isInLine = true
        line.append(transfer)
        return needsTurn()
    }

    /// How many may be taken in it.
    mutating func beginTurn() -> Int {
        isAsked = false
        piecesInTurn = 0
        return min(line.count, Self.transfersInTurn)
    }

    mutating func takeFirst() -> CurlTransfer? {
        guard !line.isEmpty else { return nil }
        let first = line.removeFirst()
        first.isInLine = false
        return first
    }

    mutating func needsTurn() -> Bool {
        guard !line.isEmpty, !isAsked else { return false }
        isAsked = true
        return true
    }
}
