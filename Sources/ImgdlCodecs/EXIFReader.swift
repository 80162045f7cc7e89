/// Reads the orientation out of an EXIF block (a TIFF header and its first directory), and nothing else. The block
/// comes from the network: every offset is checked, and what makes no sense counts as upright.
struct EXIFReader {
    private static let orientationTag = 0x0112
    private static let entrySize = 12

    private let block: UnsafeRawBufferPointer
    private var isBigEndian = false

    /// 1 to 8, as stored. The first entry that names an orientation decides.
    static func orientation(of block: UnsafeRawBufferPointer) -> Int {
        // WebP files hold the block with and without the name that JPEG puts before it.
        let name: StaticString = "Exif\0\0"
        let isNamed = name.withUTF8Buffer { block.starts(with: $0) }
        var reader = EXIFReader(block: isNamed ? UnsafeRawBufferPointer(rebasing: block.dropFirst(6)) : block)
        return reader.readOrientation()
    }

    private init(block: UnsafeRawBufferPointer) { self.block = block }

    private mutating func readOrientation() -> Int {
        guard block.count >= 8 else { return 1 }
        switch (block[0], block[1]) {
        case (0x49, 0x49): isBigEndian = false
        case (0x4D, 0x4D): isBigEndian = true
        default: return 1
        }
        guard number(at: 2, bytes: 2) == 42, let directory = number(at: 4, bytes: 4),
            let count = number(at: directory, bytes: 2)
        else { return 1 }
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
