import ImgdlCore

/// The head of a RIFF chunk: its name, and how many bytes follow. Sizes have 32 bits, so that lengths around them can be added.
struct RIFFChunk {
    static let headLength = 8

    let name: String
    let size: Int
    /// With the byte that makes an odd size even.
    let padded: Int

    init(head: UnsafeRawBufferPointer) throws(Failure) {
        let stored = CheckedNumber(littleEndian: head, at: 4, count: 4)
        guard let size = stored?.count(upTo: Int(UInt32.max)),
            let padded = stored?.roundedUp(to: 2)?.count(upTo: Int(UInt32.max) + 1)
        else { throw Failure(.badImageData, "the WebP is broken: a chunk has an impossible length") }
        (self.size, self.padded) = (size, padded)
        name = String(decoding: head.prefix(4), as: UTF8.self)
    }
}
