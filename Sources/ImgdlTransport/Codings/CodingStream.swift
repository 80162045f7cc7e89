/// One coded stream: what the libraries have in common.
protocol CodingStream: AnyObject {
    /// Takes bytes from the front of `input`, and writes what they mean to the front of `output`.
    func decode(_ input: inout UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> CodingStep
    /// For another stream of the same kind behind the one that has ended.
    func restart() -> Bool
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

/// The first bytes of a stream; each with the bits of it that count.
struct StreamBeginning {
    let bytes: [UInt8]
    var masks: [UInt8] = []

    func matches(_ byte: UInt8, at index: Int) -> Bool {
        let mask = index < masks.count ? masks[index] : 0xFF
        return index < bytes.count && byte & mask == bytes[index]
    }
}
