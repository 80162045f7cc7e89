/// One coded stream: what the libraries have in common.
protocol CodingStream: AnyObject {
    /// Takes bytes from the front of `input`, and writes what they mean to the front of `output`.
    func decode(_ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> CodingStep
    /// For another stream of the same kind behind the one that has ended.
    func restart() -> Bool
    /// Memory that its library holds: up to a window of 8 or 16 MiB, as the stream asks for.
    var heldBytes: Int { get }
    /// So many bytes of input are given at most before somebody looks how long it takes.
    static var inputBytes: Int { get }
    /// What a stream of this kind begins with; none where it may begin with anything, and no other can follow.
    var beginnings: [StreamBeginning] { get }
}

struct CodingStep {
    enum Verdict {
        case goesOn
        /// The stream is complete.
        case ended
        case broken(String)
        case outOfMemory
    }

    var written = 0
    var verdict = Verdict.goesOn
}

/// Up to four bytes, as they came, the first one lowest. No array: a body may have a hundred thousand streams.
struct StreamPrefix: Equatable {
    private(set) var bits: UInt32 = 0
    private(set) var count = 0

    func followed(by byte: UInt8) -> StreamPrefix {
        var longer = self
        longer.bits |= UInt32(byte) << UInt32(8 * count)
        longer.count += 1
        return longer
    }
}

/// The first bytes of a stream, at most four, and the bits of them that count.
struct StreamBeginning {
    private let bits: UInt32
    private let mask: UInt32
    let count: Int

    init(_ bytes: [UInt8], masks: [UInt8] = []) {
        func lowestFirst(_ byte: (Int) -> UInt8) -> UInt32 {
            bytes.indices.reduce(0) { $0 | UInt32(byte($1)) << UInt32(8 * $1) }
        }
        count = bytes.count
        bits = lowestFirst { bytes[$0] }
        mask = lowestFirst { $0 < masks.count ? masks[$0] : 0xFF }
    }

    /// Whether a stream that begins with these bytes may be one.
    func matches(_ prefix: StreamPrefix) -> Bool {
        guard prefix.count <= count else { return false }
        let seen: UInt32 = prefix.count < 4 ? (1 << UInt32(8 * prefix.count)) - 1 : .max
        return (prefix.bits ^ bits) & mask & seen == 0
    }
}
