import CZlib

/// A PNG written chunk by chunk: eight bits, RGBA unless said otherwise.
struct PNGFile {
    private(set) var bytes: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    init() {}

    init(width: Int, height: Int, colorType: UInt8 = 6, depth: UInt8 = 8, isInterlaced: Bool = false) {
        add("IHDR", Self.number(width) + Self.number(height) + [depth, colorType, 0, 0, isInterlaced ? 1 : 0])
    }

    mutating func add(_ name: String, _ data: [UInt8] = []) {
        let chunk = Array(name.utf8) + data
        let sum = crc32(0, chunk, UInt32(chunk.count))
        bytes += Self.number(data.count) + chunk + Self.number(Int(sum))
    }

    func ended() -> [UInt8] {
        var file = self
        file.add("IEND")
        return file.bytes
    }

    static func number(_ value: Int) -> [UInt8] {
        [UInt8(value >> 24 & 255), UInt8(value >> 16 & 255), UInt8(value >> 8 & 255), UInt8(value & 255)]
    }

    /// The same with checksums that fit, as far as its chunks go.
    static func withChecksums(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        var at = 8
        while at + 12 <= bytes.count {
            let length = bytes[at..<at + 4].reduce(0) { $0 << 8 | Int($1) }
            guard length <= bytes.count - at - 12 else { break }
            let chunk = Array(bytes[at + 4..<at + 8 + length])
            let sum = crc32(0, chunk, UInt32(chunk.count))
            bytes.replaceSubrange(at + 8 + length..<at + 12 + length, with: number(Int(sum)))
            at += 12 + length
        }
        return bytes
    }

    /// Rows of one colour each, with their filter bytes, deflated.
    static func rows(width: Int, _ colors: [[UInt8]]) -> [UInt8] {
        deflated(colors.flatMap { color in [0] + Array(repeating: color, count: width).joined() })
    }

    /// Level 0 is without compression.
    static func deflated(_ data: [UInt8], level: Int32 = 9) -> [UInt8] {
        var length = compressBound(UInt(data.count))
        var result = [UInt8](repeating: 0, count: Int(length))
        guard compress2(&result, &length, data, UInt(data.count), level) == Z_OK else { return [] }
        return Array(result[..<Int(length)])
    }

    static func control(
        _ sequence: Int, width: Int, height: Int, x: Int = 0, y: Int = 0, disposal: UInt8 = 0, blend: UInt8 = 0
    ) -> [UInt8] {
        number(sequence) + number(width) + number(height) + number(x) + number(y) + [0, 1, 0, 10, disposal, blend]
    }
}
