/// A WebP made of chunks; those of a file that libwebp wrote can be had.
struct WebPFile {
    struct Chunk {
        var name: String
        var data: [UInt8]

        var bytes: [UInt8] {
            Array(name.utf8) + WebPFile.number(data.count, 4) + data + (data.count % 2 == 0 ? [] : [0])
        }
    }

    var chunks: [Chunk] = []

    init() {}

    init(_ bytes: [UInt8]) { chunks = Self.chunks(Array(bytes.dropFirst(12))) }

    static func chunks(_ bytes: [UInt8]) -> [Chunk] {
        var chunks: [Chunk] = []
        var at = 0
        while at + 8 <= bytes.count {
            let length = (0..<4).reduce(0) { $0 | Int(bytes[at + 4 + $1]) << (8 * $1) }
            let data = Array(bytes[at + 8..<min(bytes.count, at + 8 + length)])
            chunks.append(Chunk(name: String(decoding: bytes[at..<at + 4], as: UTF8.self), data: data))
            at += 8 + length + length % 2
        }
        return chunks
    }

    subscript(_ name: String) -> [UInt8] { chunks.first { $0.name == name }?.data ?? [] }

    mutating func add(_ name: String, _ data: [UInt8]) { chunks.append(Chunk(name: name, data: data)) }

    /// `excess`: how much more, or less, the header says than there is.
    func bytes(excess: Int = 0) -> [UInt8] {
        let body = chunks.flatMap(\.bytes)
        return Array("RIFF".utf8) + Self.number(body.count + 4 + excess, 4) + Array("WEBP".utf8) + body
    }

    static func number(_ value: Int, _ length: Int) -> [UInt8] { (0..<length).map { UInt8(value >> (8 * $0) & 255) } }

    /// Flags: 0x02 animated, 0x08 EXIF, 0x10 alpha.
    static func extended(_ flags: UInt8, width: Int, height: Int) -> [UInt8] {
        [flags, 0, 0, 0] + number(width - 1, 3) + number(height - 1, 3)
    }

    /// `picture` is a frame's own chunks; x and y are even.
    static func frame(x: Int = 0, y: Int = 0, width: Int, height: Int, _ picture: [UInt8], flags: UInt8 = 0) -> [UInt8]
    {
        number(x / 2, 3) + number(y / 2, 3) + number(width - 1, 3) + number(height - 1, 3) + number(100, 3) + [flags]
            + picture
    }
}
