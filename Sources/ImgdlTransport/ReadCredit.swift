import ImgdlCore

/// How far a connection of HTTP/2 may be read as one that brings answers: by what has been heard of them. What comes beyond
/// that is no answer's. Places are counts of the encrypted bytes that have come.
struct ReadCredit {
    /// At the beginning, for what comes in front of answers.
    static let first: UInt64 = 64 << 10
    /// libcurl's largest window, of a stream and of a connection: so much may come that nobody hears of.
    static let window: UInt64 = 32 << 20
    /// Ahead of what has come, however much has been heard.
    private static let most: UInt64 = 1 << 20
    /// For each piece of an answer, its frame and its record of TLS.
    private static let aroundPiece: UInt64 = 256
    /// For each byte of one: a piece may be of many frames, of a byte each.
    private static let forEachByte: UInt64 = 10

    /// The place up to which it is read so.
    private(set) var end = first
    /// What has come beyond it, altogether.
    private(set) var excess: UInt64 = 0

    /// A piece of an answer was heard of, of so many bytes, or some of a request was sent.
    mutating func receive(_ bytes: Int, at place: UInt64) {
        count(place)
        let bytes = Self.forEachByte * min(UInt64(clamping: bytes), Self.most) + Self.aroundPiece
        end = max(end, min(end + bytes, place + Self.most))
    }

    /// A stream was reset from here. As much as a window of the connection is on its way, however many of its streams are reset.
    mutating func reset(at place: UInt64) { expectUnheard(Self.window, at: place) }

    /// Curl keeps a body, anew or again, of so many now: the server may fill the window of each while nobody hears of it.
    mutating func keep(_ bodies: UInt64, at place: UInt64) { expectUnheard(bodies * Self.window, at: place) }

    private mutating func expectUnheard(_ bytes: UInt64, at place: UInt64) {
        count(place)
        end = max(end, place + bytes)
    }

    /// What has come without it is no debt: it is an excess, and counted as one.
    private mutating func count(_ place: UInt64) {
        excess &+= place - min(place, end)
        end = max(end, place)
    }
}

/// How many bytes in a second are no answer's: looked at with each piece of an answer, however late that comes.
struct ExcessRate {
    /// In a second.
    static let most: Int64 = 8 << 20

    private var begin: Instant?
    private var before: UInt64 = 0
    private(set) var isTooMuch = false

    /// `excess`: that of its `ReadCredit`.
    mutating func note(_ excess: UInt64, _ now: Instant) {
        let since = begin ?? now
        if begin == nil { begin = now }
        let second: Int64 = 1_000_000_000
        let seconds = max(1, Double(now.nanoseconds - since.nanoseconds) / Double(second))
        isTooMuch = Double(excess &- before) > Double(Self.most) * seconds
        guard now.nanoseconds - since.nanoseconds >= second else { return }
        (begin, before) = (now, excess)
    }
}
