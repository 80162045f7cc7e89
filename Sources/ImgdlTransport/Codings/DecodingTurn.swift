import ImgdlCore

/// How long may be decoded without a break, of one transfer, and of one after the other: so much CPU time of this thread.
/// The size of what comes in or goes out says little of it: a few bytes of brotli, zstd or deflate may be tables that take
/// thousands of steps to read, and mean nothing.
struct DecodingTurn {
    /// Nanoseconds: others of the line have as much, and the time limits of all transfers have to pass in between.
    static let limit: Int64 = 5_000_000

    private let now: () -> Int64
    private let begin: Int64
    private let limit: Int64

    /// `now`: the thread's CPU time in nanoseconds.
    init(_ now: @escaping () -> Int64 = ThreadClock.now, limit: Int64 = limit) {
        self.now = now
        self.limit = limit
        begin = now()
    }

    var time: Int64 { now() - begin }
    var isOver: Bool { time >= limit }
}
