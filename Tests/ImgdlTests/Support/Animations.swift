/// Animations of two frames, 64 × 64, the first red, the second blue; small, and stored without compression, so that
/// rows can be seen before the others have come.
enum Animations {
    static let side = 64
    static let red: [UInt8] = [255, 0, 0, 255]
    static let blue: [UInt8] = [0, 0, 255, 255]

    static func pixels(_ color: [UInt8]) -> [UInt8] {
        (0..<side * side).reduce(into: [UInt8]()) { pixels, _ in pixels += color }
    }

    // MARK: GIF

    /// 50 and 0 ms; three plays.
    static var gif: [UInt8] {
        let size = [UInt8(side), 0]
        var bytes = Array("GIF89a".utf8) + size + size + [0x80, 0, 0, 255, 0, 0, 0, 0, 255]
        bytes += [0x21, 0xFF, 11] + Array("NETSCAPE2.0".utf8) + [3, 1, 2, 0, 0]
        for (index, delay) in [(UInt8(0), UInt8(5)), (1, 0)] {
            bytes += [0x21, 0xF9, 4, 0, delay, 0, 0, 0, 0x2C, 0, 0, 0, 0] + size + size + [0, 7]
            // Codes of eight bits: the table is cleared before they grow.
            var codes: [UInt8] = []
            for pixel in 0..<side * side {
                if pixel % 100 == 0 { codes.append(0x80) }
                codes.append(index)
            }
            codes.append(0x81)
            for start in stride(from: 0, to: codes.count, by: 255) {
                let block = codes[start..<min(codes.count, start + 255)]
                bytes += [UInt8(block.count)] + block
            }
            bytes.append(0)
        }
        return bytes + [0x3B]
    }

    // MARK: APNG

    /// 1/20 s and 0; three plays.
    static var apng: [UInt8] {
        var bytes: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        bytes += chunk("IHDR", number(side) + number(side) + [8, 2, 0, 0, 0]) + chunk("acTL", number(2) + number(3))
        bytes += control(sequence: 0, numerator: 1, denominator: 20) + chunk("IDAT", zlib(rows([255, 0, 0])))
        bytes += control(sequence: 1, numerator: 0, denominator: 0)
        bytes += chunk("fdAT", number(2) + zlib(rows([0, 0, 255])))
        return bytes + chunk("IEND", [])
    }

    private static func control(sequence: Int, numerator: UInt8, denominator: UInt8) -> [UInt8] {
        let area = number(side) + number(side) + number(0) + number(0)
        return chunk("fcTL", number(sequence) + area + [0, numerator, 0, denominator, 0, 0])
    }

    private static func rows(_ color: [UInt8]) -> [UInt8] {
        let row = (0..<side).reduce(into: [UInt8(0)]) { row, _ in row += color }
        return (0..<side).reduce(into: [UInt8]()) { rows, _ in rows += row }
    }

    private static func zlib(_ data: [UInt8]) -> [UInt8] {
        let length = [UInt8(data.count & 255), UInt8(data.count >> 8)]
        var (a, b) = (1, 0)
        for byte in data {
            a = (a + Int(byte)) % 65521
            b = (b + a) % 65521
        }
        return [0x78, 0x01, 0x01] + length + length.map { ~$0 } + data + number(b << 16 | a)
    }

    private static func chunk(_ name: String, _ data: [UInt8]) -> [UInt8] {
        var sum = UInt32.max
        for byte in Array(name.utf8) + data {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 0 ? sum >> 1 : sum >> 1 ^ 0xEDB8_8320 }
        }
        return number(data.count) + Array(name.utf8) + data + number(Int(~sum))
    }

    private static func number(_ value: Int) -> [UInt8] {
        stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: value >> $0) }
    }
}
