import ImgdlCore

/// Transfers whose bodies take more work than one turn allows: to decode, or because they come in small pieces. All of them
/// together have a turn of the engine's thread for `transfersInTurn`, of which none begins once the time of one is over, so
/// that however many there are others are served in between.
///
/// In a turn of curl, which may give a body out in any number of pieces, no more is decoded at once than one transfer may in
/// a turn: what comes after it is decoded in line. Nor does it give out more than so many pieces, such as chunks of a byte,
/// nor any once it has taken its time: in one call curl reads a hundred buffers of each transfer that has as much. The rest
/// waits in curl, which puts it together.
struct BodyLine {
    private static let transfersInTurn = 4
    /// Where pieces are as large as usual, 8 MiB.
    static let piecesInTurnOfCurl = 512
    /// So many are taken between two looks at the clock, the first of which begins the time: a small body needs none.
    static let piecesUntimed = 8
    /// Nanoseconds of CPU time: commands and time limits wait for three such turns.
    static let timeOfPieces: Int64 = 2_500_000
    static let bytesInTurnOfCurl = ContentDecoder.bytesInTurn

    private var turnOfCurl: UInt64 = 0
    private var bytesInTurn = 0
    /// Nanoseconds of CPU time.
    private var timeInTurn: Int64 = 0
    private var piecesInTurn = 0
    /// When the clock was looked at first.
    private var piecesBegan: Int64 = 0
    private let now: () -> Int64
    private var line: [CurlTransfer] = []
    /// So many at its head are in line for the first time.
    private var newcomers = 0
    /// Out of it, altogether.
    private var taken = 0
    private var isAsked = false

    /// `now`: the thread's CPU time in nanoseconds.
    init(_ now: @escaping () -> Int64 = ThreadClock.now) { self.now = now }

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
        if piecesInTurn % Self.piecesUntimed == 0, isTimeOver() { piecesInTurn = Self.piecesInTurnOfCurl }
        return true
    }

    private mutating func isTimeOver() -> Bool {
        let now = now()
        if piecesInTurn == Self.piecesUntimed { piecesBegan = now }
        return now - piecesBegan >= Self.timeOfPieces
    }

    private mutating func begin(_ turn: UInt64) {
        if turn != turnOfCurl { (turnOfCurl, bytesInTurn, timeInTurn, piecesInTurn) = (turn, 0, 0, 0) }
    }

    /// Whether a turn is to be asked for. Who is in line for the first time goes before those that come again: what is left of
    /// a small body waits for no crowd of endless ones.
    mutating func join(_ transfer: CurlTransfer) -> Bool {
        guard !transfer.isInLine else { return false }
        transfer.isInLine = true
        if transfer.hasBeenInLine {
            line.append(transfer)
        } else {
            transfer.hasBeenInLine = true
            line.insert(transfer, at: newcomers)
            newcomers += 1
        }
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
        taken &+= 1
        // One of those that come again has its turn among so many of the others.
        let isOld = newcomers == 0 || newcomers < line.count && taken % Self.transfersInTurn == 0
        let first = line.remove(at: isOld ? newcomers : 0)
        if !isOld { newcomers -= 1 }
        first.isInLine = false
        return first
    }

    mutating func needsTurn() -> Bool {
        guard !line.isEmpty, !isAsked else { return false }
        isAsked = true
        return true
    }
}
