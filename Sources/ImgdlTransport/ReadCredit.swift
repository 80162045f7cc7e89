/// How far a connection of HTTP/2 may be read as one that brings answers: by what has been heard of them. What comes beyond
/// that is no answer's. Places are counts of the encrypted bytes that have come.
struct ReadCredit {
    /// At the beginning, for what comes in front of answers.
    static let first: UInt64 = 64 << 10
    /// Ahead of what has come, however much has been heard.
    private static let most: UInt64 = 1 << 20
    /// For each piece of an answer, its frame and its record of TLS; and its bytes twice.
    private static let aroundPiece: UInt64 = 256
    /// For each stream that was reset from here: what was on its way.
    private static let afterReset: UInt64 = 1 << 20
    private static let mostAfterResets: UInt64 = 32 << 20

    /// The place up to which it is read so.
    private(set) var end = first
    /// What has come beyond it, altogether.
    private(set) var excess: UInt64 = 0

    /// A piece of an answer was heard of, of so many bytes, or some of a request was sent.
    mutating func receive(_ bytes: Int, at place: UInt64) {
        excess &+= place - min(place, end)
        extend(2 * min(UInt64(clamping: bytes), Self.most) + Self.aroundPiece, at: place, most: Self.most)
    }

    mutating func reset(at place: UInt64) { extend(Self.afterReset, at: place, most: Self.mostAfterResets) }

    /// What has come without it is no debt: it is an excess, and counted as one.
    private mutating func extend(_ bytes: UInt64, at place: UInt64, most: UInt64) {
        end = max(end, min(max(end, place) + bytes, place + most))
    }
}
