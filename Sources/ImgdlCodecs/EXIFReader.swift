/// Reads the orientation and the thumbnail out of an EXIF block (a TIFF header and its first two directories), and nothing
/// else. The block comes from the network: every offset is checked, and what makes no sense counts as upright.
struct EXIFReader {
    private static let orientationTag = 0x0112
    private static let thumbnailStartTag = 0x0201
    private static let thumbnailLengthTag = 0x0202
    private static let entrySize = 12

    private let block: UnsafeRawBufferPointer
    private let isBigEndian: Bool

    /// 1 to 8, as stored. The first entry that names an orientation decides.
    static func orientation(of block: UnsafeRawBufferPointer) -> Int {
        EXIFReader(block)?.orientation ?? 1
    }

    /// The JPEG file within, as the block has it; nil: there is none.
    static func thumbnail(in block: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        EXIFReader(block)?.thumbnail
    }

    /// nil: this is no such block.
    private init?(_ block: UnsafeRawBufferPointer) {
        // WebP files hold the block with and without the name that JPEG puts before it.
        let name: StaticString = "Exif\0\0"
        let isNamed = name.withUTF8Buffer { block.starts(with: $0) }
        self.block = isNamed ? UnsafeRawBufferPointer(rebasing: block.dropFirst(6)) : block
        guard self.block.count >= 8 else { return nil }
        switch (self.block[0], self.block[1]) {
        case (0x49, 0x49): isBigEndian = false
        case (0x4D, 0x4D): isBigEndian = true
        default: return nil
        }
        guard number(at: 2, bytes: 2) == 42 else { return nil }
    }

    private var thumbnail: UnsafeRawBufferPointer? {
        guard let first = number(at: 4, bytes: 4), let count = number(at: first, bytes: 2),
            let second = number(at: first + 2 + count * Self.entrySize, bytes: 4), second > 0,
            let secondCount = number(at: second, bytes: 2)
        else { return nil }
        var start: Int?
        var length: Int?
        for index in 0..<secondCount {
            let entry = second + 2 + index * Self.entrySize
            guard let tag = number(at: entry, bytes: 2), let value = number(at: entry + 8, bytes: 4) else { break }
            if tag == Self.thumbnailStartTag { start = value }
            if tag == Self.thumbnailLengthTag { length = value }
        }
        guard let start, let length, length > 0, start <= block.count, length <= block.count - start else { return nil }
        return UnsafeRawBufferPointer(rebasing: block[start..<start + length])
    }

    private var orientation: Int {
        guard let directory = number(at: 4, bytes: 4), let count = number(at: directory, bytes: 2) else { return 1 }
        for index in 0..<count {
            let entry = directory + 2 + index * Self.entrySize
            guard let tag = number(at: entry, bytes: 2) else { break }
            if tag == Self.orientationTag { return value(ofEntry: entry) }
        }
        return 1
    }

    private func value(ofEntry entry: Int) -> Int {
        guard let type = number(at: entry + 2, bytes: 2), let width = [1: 1, 3: 2, 4: 4][type],
            let value = number(at: entry + 8, bytes: width), (1...8).contains(value)
        else { return 1 }
        return value
    }

    /// Offsets are 32-bit numbers and small sums of them: Int holds them all.
    private func number(at offset: Int, bytes: Int) -> Int? {
        guard offset >= 0, offset <= block.count - bytes else { return nil }
        var number = 0
        for index in 0..<bytes {
            number = number << 8 | Int(block[offset + (isBigEndian ? index : bytes - 1 - index)])
        }
        return number
    }
}
