import ImgdlCore

/// Reads the orientation and the thumbnail out of an EXIF block (a TIFF header and its first two directories), and nothing
/// else. The block comes from the network: every offset is checked, and what makes no sense counts as upright.
struct EXIFReader {
    private static let orientationTag: CheckedNumber = 0x0112
    private static let thumbnailStartTag: CheckedNumber = 0x0201
    private static let thumbnailLengthTag: CheckedNumber = 0x0202
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
        let first = number(at: 4, bytes: 4)
        let entriesLength = number(at: first, bytes: 2) * CheckedNumber(Self.entrySize)
        guard let second = number(at: first + 2 + entriesLength, bytes: 4), second > 0 else { return nil }
        var start: CheckedNumber?
        var length: CheckedNumber?
        for entry in entries(of: second) {
            guard let tag = number(at: CheckedNumber(entry), bytes: 2),
                let value = number(at: CheckedNumber(entry) + 8, bytes: 4)
            else { break }
            if tag == Self.thumbnailStartTag { start = value }
            if tag == Self.thumbnailLengthTag { length = value }
        }
        guard let begin = start?.count(upTo: block.count), let end = (start + length)?.count(upTo: block.count),
            begin < end
        else { return nil }
        return UnsafeRawBufferPointer(rebasing: block[begin..<end])
    }

    /// The offsets of its entries, as many as the directory says it has: those behind the block's end are for the caller to stop at.
    private func entries(of directory: CheckedNumber?) -> StrideTo<Int> {
        let count = number(at: directory, bytes: 2)
        guard let first = (directory + 2)?.count(upTo: block.count),
            let end = (CheckedNumber(first) + count * CheckedNumber(Self.entrySize))?.count(upTo: .max)
        else { return stride(from: 0, to: 0, by: Self.entrySize) }
        return stride(from: first, to: end, by: Self.entrySize)
    }

    private var orientation: Int {
        for entry in entries(of: number(at: 4, bytes: 4)) {
            guard let tag = number(at: CheckedNumber(entry), bytes: 2) else { break }
            if tag == Self.orientationTag { return value(of: CheckedNumber(entry)) }
        }
        return 1
    }

    private func value(of entry: CheckedNumber) -> Int {
        let widths: [CheckedNumber: Int] = [1: 1, 3: 2, 4: 4]
        guard let type = number(at: entry + 2, bytes: 2), let width = widths[type],
            let value = number(at: entry + 8, bytes: width)?.count(upTo: 8), value > 0
        else { return 1 }
        return value
    }

    private func number(at offset: CheckedNumber?, bytes: Int) -> CheckedNumber? {
        isBigEndian
            ? CheckedNumber(bigEndian: block, at: offset, count: bytes)
            : CheckedNumber(littleEndian: block, at: offset, count: bytes)
    }
}
