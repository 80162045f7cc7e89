/// Streams that are all tables and no contents: what a server can make a decoder do for each byte.
enum CodingTables {
    private static func repeated(_ bytes: [UInt8], _ count: Int) -> [UInt8] {
        var all: [UInt8] = []
        all.reserveCapacity(bytes.count * count)
        for _ in 0..<count { all += bytes }
        return all
    }

    /// A brotli stream of blocks with a byte each, 256 types of literals, and the largest context map, of zeros.
    static func contextMaps(count: Int) -> [UInt8] {
        var block: [UInt8] = []
        func write(_ value: Int, _ bits: Int) { for bit in 0..<bits { block.append(UInt8(value >> bit & 1)) } }
        // Not the last one, of one byte, compressed.
        for (value, bits) in [(0, 1), (0, 2), (0, 16), (0, 1)] { write(value, bits) }
        // 256 types of literals, of which one comes, in blocks of one length.
        for (value, bits) in [(1, 1), (7, 3), (127, 7), (1, 2), (0, 2), (0, 9), (1, 2), (0, 2), (0, 5), (0, 2)] {
            write(value, bits)
        }
        // One type of commands and of distances; their postfix; 256 context modes.
        for (value, bits) in [(0, 1), (0, 1), (0, 2), (0, 4)] { write(value, bits) }
        for _ in 0..<256 { write(0, 2) }
        // Two trees of literals, and which entry has which: a run of 16,384 zeros, to be moved to the front.
        for (value, bits) in [(1, 1), (0, 3), (1, 1), (15, 4), (1, 2), (0, 2), (14, 5), (0, 14), (1, 1)] {
            write(value, bits)
        }
        // One tree of distances. Then codes of one symbol each.
        write(0, 1)
        for _ in 0..<2 { for (value, bits) in [(1, 2), (0, 2), (65, 8)] { write(value, bits) } }
        for (value, bits) in [(1, 2), (0, 2), (8, 10), (1, 2), (0, 2), (0, 6)] { write(value, bits) }
        let stream = [0] + repeated(block, count) + [1, 1]
        return stride(from: 0, to: stream.count, by: 8).map { start in
            (start..<min(start + 8, stream.count)).reduce(0) { $0 | stream[$1] << UInt8($1 - start) }
        }
    }

    /// A zstd frame of blocks with one literal each, and a Huffman tree for it.
    static func huffmanTrees(count: Int) -> [UInt8] {
        let tree: [UInt8] = [138, 0xBA, 0x98, 0x76, 0x54, 0x32, 0x10, 0x03]
        let literals = 2 | 1 << 4 | tree.count << 14
        let content = (0..<3).map { UInt8(truncatingIfNeeded: literals >> (8 * $0)) } + tree + [0]
        let head = 2 << 1 | content.count << 3
        let block = (0..<3).map { UInt8(truncatingIfNeeded: head >> (8 * $0)) } + content
        return [0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x38] + repeated(block, count) + [1, 0, 0]
    }

    /// A gzip stream of so many dynamic blocks, by the eight, without contents: their tables are as deep as can be.
    static func prefixCodes(count: Int) -> [UInt8] {
        let head: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF]
        // An empty block that is stored, and the checksum and length of nothing.
        let end: [UInt8] = [1, 0, 0, 0xFF, 0xFF] + [UInt8](repeating: 0, count: 8)
        return head + repeated(eightBlocks, count / 8) + end
    }

    /// Which are whole bytes. Lengths of codes from 1 to 15 bits, in runs.
    private static let eightBlocks: [UInt8] = {
        let digits =
            "04ef0182244992244902128b9a4756cfdeff9f7b80c4a2e691d5b377ff7f82f700419224499224018945cd23ab67efff"
            + "cf3d406251f3c8ead9bbff3fc17b8020499224499280c4a2e691d5b3f7ffe71e20b1a87964f5ecddff9fe03d40902449"
            + "922449406251f3c8ead9fbff730f9058d43cb27af6eeff4ff01e2048922449922420b1a87964f5ecfdffb907482c6a1e"
            + "593d7bf7ff27780f102449922449129058d43cb27af6feffdc032416358fac9ebdfbff13bc0708922449922409482c6a"
            + "1e593d7bff7fee01128b9a4756cfdefdff09de03044992244992042416358fac9ebdff3ff7008945cd23ab67effeff"
        var bytes: [UInt8] = []
        var rest = digits[...]
        while let byte = UInt8(rest.prefix(2), radix: 16), !rest.isEmpty {
            bytes.append(byte)
            rest = rest.dropFirst(2)
        }
        return bytes
    }()
}
