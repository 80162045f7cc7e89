/// A GIF written block by block, so that each oddity can be had.
struct GIFFile {
    var bytes: [UInt8]

    /// Four colours: black, red, green, blue.
    static let palette: [UInt8] = [0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255]

    init(width: Int, height: Int, palette: [UInt8] = Self.palette) {
        bytes = Array("GIF89a".utf8) + Self.number(width) + Self.number(height)
        bytes += [palette.isEmpty ? 0 : 0x80 | UInt8((palette.count / 3).trailingZeroBitCount - 1), 0, 0] + palette
    }

    mutating func add(_ raw: [UInt8]) { bytes += raw }

    mutating func addControl(disposal: UInt8 = 0, delay: Int = 0, transparent: UInt8? = nil) {
        bytes +=
            [0x21, 0xF9, 4, disposal << 2 | (transparent == nil ? 0 : 1)] + Self.number(delay) + [transparent ?? 0, 0]
    }

    mutating func addLoops(_ count: Int) {
        bytes += [0x21, 0xFF, 11] + Array("NETSCAPE2.0".utf8) + [3, 1] + Self.number(count) + [0]
    }

    mutating func addFrame(
        x: Int = 0, y: Int = 0, width: Int, height: Int, _ indices: [UInt8], interlaced: Bool = false,
        palette: [UInt8] = [], codeSize: Int = 2, data: [UInt8]? = nil
    ) {
        bytes.append(0x2C)
        for value in [x, y, width, height] { bytes += Self.number(value) }
        let local = palette.isEmpty ? 0 : 0x80 | UInt8((palette.count / 3).trailingZeroBitCount - 1)
        bytes += [local | (interlaced ? 0x40 : 0)] + palette + [UInt8(codeSize)]
        bytes += Self.blocks(data ?? Self.encoded(indices, codeSize: codeSize))
    }

    func ended() -> [UInt8] { bytes + [0x3B] }

    /// Sub-blocks of at most that many bytes.
    static func blocks(_ data: [UInt8], length: Int = 255) -> [UInt8] {
        var blocks: [UInt8] = []
        for start in stride(from: 0, to: data.count, by: length) {
            let part = data[start..<min(data.count, start + length)]
            blocks += [UInt8(part.count)] + part
        }
        return blocks + [0]
    }

    /// Codes of growing width; with `clears` the table is cleared when it is full, else it stays as it is.
    static func encoded(_ indices: [UInt8], codeSize: Int, clears: Bool = false) -> [UInt8] {
        var codes = CodeWriter()
        let clear = 1 << codeSize
        var (width, next) = (codeSize + 1, clear + 2)
        var table: [Int: Int] = [:]
        codes.write(clear, width)
        guard var prefix = indices.first.map({ Int($0) }) else {
            codes.write(clear + 1, width)
            return codes.ended()
        }
        for index in indices.dropFirst() {
            let key = prefix << 8 | Int(index)
            if let known = table[key] {
                prefix = known
                continue
            }
            codes.write(prefix, width)
            if next < 4096 {
                table[key] = next
                next += 1
                if next > 1 << width, width < 12 { width += 1 }
            } else if clears {
                codes.write(clear, width)
                (width, next) = (codeSize + 1, clear + 2)
                table.removeAll()
            }
            prefix = Int(index)
        }
        codes.write(prefix, width)
        // The reader adds one more string before it reads the end code.
        if next < 4096, next + 1 > 1 << width, width < 12 { width += 1 }
        codes.write(clear + 1, width)
        return codes.ended()
    }

    private static func number(_ value: Int) -> [UInt8] { [UInt8(value & 255), UInt8(value >> 8)] }
}

/// Codes as GIF packs them.
struct CodeWriter {
    private var bytes: [UInt8] = []
    private var bits = 0
    private var count = 0

    mutating func write(_ code: Int, _ width: Int) {
        bits |= code << count
        count += width
        while count >= 8 {
            bytes.append(UInt8(bits & 255))
            bits >>= 8
            count -= 8
        }
    }

    func ended() -> [UInt8] { count > 0 ? bytes + [UInt8(bits & 255)] : bytes }
}
