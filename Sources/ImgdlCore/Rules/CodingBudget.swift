/// How much work it may be to undo the content codings of one body. What comes out in the end has a limit of its own
/// (`max_body_bytes`). What one of several codings hands to the next has none by itself, nor has the time that it takes: 650 KB
/// of gzip in gzip in gzip may be 126 GB of blocks that mean nothing, and tables of brotli may take 5 µs a byte. So both
/// are held against the bytes that have come and those that have come out.
///
/// An honest body is far below. A coding makes what it is given larger by hardly anything: by 8 bytes each where every byte is
/// flushed by itself in gzip, by some 20 where every byte is a member of its own. So of codings on top of each other, each
/// hands on little more than what comes out in the end, or less; and the slowest machines undo a coding at 10 MB a second or
/// more, most of them at hundreds.
package struct CodingBudget {
    /// Bytes that codings may hand to one another whatever comes out, and for each byte that has come or has come out.
    package static let freeInnerBytes: Int64 = 1 << 20
    package static let innerBytesPerByte: Int64 = 32
    /// Nanoseconds of CPU time, likewise.
    package static let freeTime: Int64 = 2_000_000_000
    package static let timePerByte: Int64 = 100
    /// Bytes that pay for time though nothing comes out of them: more mean nothing, such as members that are empty.
    package static let barrenBytes: Int64 = 256 << 10
    /// One that comes out is worth so many: an honest body has some 20 for it at most.
    package static let bytesForOne: Int64 = 1 << 10
    /// Bytes of memory that all codings of a body may hold: br and zstd with their largest windows on top of each other, or two
    /// of zstd.
    package static let heldBytes: Int64 = 25 << 20

    private var received: Int64 = 0
    /// Bytes that pay for time, and bytes that nothing has come out of yet.
    private var paying: Int64 = 0
    private var barren: Int64 = 0
    private var produced: Int64 = 0
    private var handedOn: Int64 = 0
    private var spent: Int64 = 0

    package init() {}

    /// So many bytes have come from the network.
    package mutating func receive(_ count: Int) {
        received = Self.sum(received, Int64(count))
        paying = Self.sum(paying, min(Int64(count), max(0, Self.barrenBytes - barren)))
        barren = Self.sum(barren, Int64(count))
    }

    /// So many have come out of the last coding.
    package mutating func produce(_ count: Int) {
        produced = Self.sum(produced, Int64(count))
        let (worth, overflow) = Int64(count).multipliedReportingOverflow(by: Self.bytesForOne)
        barren = overflow ? 0 : max(0, barren - worth)
    }

    /// So many have come out of another.
    package mutating func handOn(_ count: Int) { handedOn = Self.sum(handedOn, Int64(count)) }

    /// So many nanoseconds of CPU time were used.
    package mutating func spend(_ nanoseconds: Int64) { spent = Self.sum(spent, max(0, nanoseconds)) }

    /// They hold so much memory now.
    package func hold(_ bytes: Int) throws(Failure) {
        guard Int64(bytes) > Self.heldBytes else { return }
        throw Failure(
            .contentEncoding,
            "the body's codings hold \(bytes) bytes of memory, the limit is \(Self.heldBytes)")
    }

    /// Why no more may be done; nil while it may.
    package var failure: Failure? {
        if handedOn > Self.allowed(Self.freeInnerBytes, received, produced, Self.innerBytesPerByte) {
            return Failure(
                .contentEncoding,
                "the body's codings on top of each other hand on \(handedOn) bytes, while \(bytes): the limit is "
                    + "\(Self.freeInnerBytes), and \(Self.innerBytesPerByte) for each of these")
        }
        if spent > Self.allowed(Self.freeTime, paying, produced, Self.timePerByte) {
            return Failure(
                .contentEncoding,
                "to undo the body's coding has taken \(spent / 1_000_000) ms of CPU time, while \(bytes): the limit is "
                    + "\(Self.freeTime / 1_000_000) ms, and \(Self.timePerByte) ns for each of these, but for no more than "
                    + "\(Self.barrenBytes) of which nothing comes out")
        }
        return nil
    }

    private var bytes: String { "\(received) bytes have come and \(produced) have come out" }

    private static func allowed(_ base: Int64, _ came: Int64, _ cameOut: Int64, _ perByte: Int64) -> Int64 {
        let (product, overflow) = sum(came, cameOut).multipliedReportingOverflow(by: perByte)
        return overflow ? .max : sum(base, product)
    }

    private static func sum(_ one: Int64, _ other: Int64) -> Int64 {
        let (sum, overflow) = one.addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
