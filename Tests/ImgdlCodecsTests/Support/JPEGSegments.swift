/// A JPEG cut into its segments, so that some can be put in, taken out and changed.
struct JPEGSegments {
    /// Marker and content of each segment ahead of the first scan.
    var segments: [(marker: UInt8, content: [UInt8])] = []
    /// From the first scan header to the end.
    var scans: [UInt8] = []

    init(_ bytes: [UInt8]) {
        var at = 2
        while at + 4 <= bytes.count, bytes[at + 1] != 0xDA {
            let length = Int(bytes[at + 2]) << 8 | Int(bytes[at + 3])
            segments.append((bytes[at + 1], Array(bytes[at + 4..<at + 2 + length])))
            at += 2 + length
        }
        scans = Array(bytes[at...])
    }

    var bytes: [UInt8] {
        [0xFF, 0xD8] + segments.flatMap { Self.segment($0.marker, $0.content) } + scans
    }

    static func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
        [0xFF, marker, UInt8((content.count + 2) >> 8), UInt8((content.count + 2) & 255)] + content
    }

    mutating func remove(_ marker: UInt8) { segments.removeAll { $0.marker == marker } }

    mutating func insert(_ marker: UInt8, _ content: [UInt8], at index: Int = 0) {
        segments.insert((marker, content), at: index)
    }

    /// "Adobe", with a version and the transform.
    static func adobe(_ transform: UInt8) -> [UInt8] { Array("Adobe".utf8) + [0, 100, 0, 0, 0, 0, transform] }

    /// The first directory names one orientation or none, the second, the thumbnail's, another.
    static func exif(_ first: UInt8?, thumbnail: UInt8? = nil) -> [UInt8] {
        func directory(_ value: UInt8?, next: UInt8) -> [UInt8] {
            let tag: UInt8 = value == nil ? 0x13 : 0x12
            return [1, 0, tag, 1, 3, 0, 1, 0, 0, 0, value ?? 1, 0, 0, 0, next, 0, 0, 0]
        }
        let head = Array("Exif\0\0".utf8) + [0x49, 0x49, 42, 0, 8, 0, 0, 0]
        return head + directory(first, next: thumbnail == nil ? 0 : 26)
            + (thumbnail.map { directory($0, next: 0) } ?? [])
    }
}
