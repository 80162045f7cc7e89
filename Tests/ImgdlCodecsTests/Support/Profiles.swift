import TestPictures

/// A profile, and what lcms2 alone makes of pixels with it.
struct Profile {
    let kind: picture_profile_kind
    let bytes: [UInt8]

    init(_ kind: picture_profile_kind) {
        self.kind = kind
        var size = 0
        guard let memory = picture_profile(kind.rawValue, &size) else {
            bytes = []
            return
        }
        defer { picture_free(memory) }
        bytes = Array(UnsafeBufferPointer(start: memory, count: size))
    }

    /// As many bytes, of which those behind the profile's own mean nothing.
    func padded(to count: Int) -> [UInt8] {
        PNGFile.number(count) + bytes.dropFirst(4) + [UInt8](repeating: 0, count: count - bytes.count)
    }

    /// Four samples a pixel, in words or bytes.
    func converted<Sample: FixedWidthInteger>(_ pixels: [Sample]) -> [Sample] {
        var result = pixels
        picture_to_srgb(
            bytes, bytes.count, kind.rawValue, UInt32(MemoryLayout<Sample>.size), pixels, &result, pixels.count / 4)
        return result
    }
}

// Files with a profile put into them.

extension Array where Element == UInt8 {
    func big(_ number: Int, _ count: Int) -> [UInt8] {
        (0..<count).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }

    /// Behind SOI, in so many APP2 segments, in this order of their numbers.
    func withAPP2(_ profile: [UInt8], order: [Int] = [1], count: Int? = nil) -> [UInt8] {
        let count = count ?? order.count
        let each = (profile.count + count - 1) / count
        var segments = [UInt8]()
        for number in order {
            let start = Swift.min((number - 1) * each, profile.count)
            let part = Array(profile[start..<Swift.min(start + each, profile.count)])
            segments +=
                [0xFF, 0xE2] + big(part.count + 16, 2) + Array("ICC_PROFILE\0".utf8)
                + [UInt8(number), UInt8(count)] + part
        }
        return Array(self[..<2]) + segments + Array(self[2...])
    }

    private var adler: UInt32 {
        var (a, b) = (UInt32(1), UInt32(0))
        for byte in self {
            a = (a + UInt32(byte)) % 65521
            b = (b + a) % 65521
        }
        return b << 16 | a
    }

    private var crc: UInt32 {
        var sum = UInt32.max
        for byte in self {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 0 ? sum >> 1 : sum >> 1 ^ 0xEDB8_8320 }
        }
        return ~sum
    }

    /// Behind IHDR.
    func withChunk(_ name: String, _ data: [UInt8]) -> [UInt8] {
        let body = Array(name.utf8) + data
        return Array(self[..<33]) + big(data.count, 4) + body + big(Int(body.crc), 4) + Array(self[33...])
    }

    /// In an iCCP chunk, deflated without compression.
    func withICCP(_ profile: [UInt8]) -> [UInt8] {
        var stream: [UInt8] = [0x78, 0x01]
        for start in stride(from: 0, to: profile.count, by: 60_000) {
            let part = Array(profile[start..<Swift.min(start + 60_000, profile.count)])
            let isLast = start + part.count == profile.count
            stream += [isLast ? 1 : 0] + big(part.count, 2).reversed() + big(~part.count & 0xFFFF, 2).reversed() + part
        }
        stream += big(Int(profile.adler), 4)
        return withChunk("iCCP", Array("p".utf8) + [0, 0] + stream)
    }

    /// The same, compressed.
    func withPackedICCP(_ profile: [UInt8]) -> [UInt8] {
        withChunk("iCCP", Array("p".utf8) + [0, 0] + PNGFile.deflated(profile))
    }

    /// A simple WebP in a VP8X container with an ICCP chunk, or another in the file's own.
    func withICCPChunk(_ profile: [UInt8], width: Int, height: Int, alpha: Bool) -> [UInt8] {
        func little(_ number: Int, _ count: Int) -> [UInt8] { big(number, count).reversed() }
        let chunk = Array("ICCP".utf8) + little(profile.count, 4) + profile + (profile.count % 2 == 0 ? [] : [0])
        var body: [UInt8]
        if Array(self[12..<16]) == Array("VP8X".utf8) {
            body = Array(self[12..<30]) + chunk + Array(self[30...])
            body[8] |= 0x20
        } else {
            body =
                Array("VP8X".utf8) + little(10, 4) + [alpha ? 0x30 : 0x20, 0, 0, 0] + little(width - 1, 3)
                + little(height - 1, 3) + chunk + Array(self[12...])
        }
        return Array("RIFF".utf8) + little(body.count + 4, 4) + Array("WEBP".utf8) + body
    }
}
