import ImgdlCache
import ImgdlCore

struct Random {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }

    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}

/// What belongs under a key in a version, and nothing else.
enum Pattern {
    static func response(_ version: Int64) -> StoredResponse {
        StoredResponse(
            status: 200, httpVersion: 11, fields: [HeaderField("ETag", "\"\(version)\"")], requestTime: version,
            responseTime: version, context: .blank)
    }

    static func bytes(_ key: Int, _ version: Int64) -> [UInt8] {
        var random = Random(state: UInt64(key) << 32 ^ UInt64(version))
        // Mostly small, sometimes more than a slice, sometimes nothing.
        let kind = random.below(20)
        let count = kind == 0 ? 0 : kind == 1 ? 1_100_000 + random.below(300_000) : random.below(60_000) + 1
        let start = random.next()
        return (0..<count).map { UInt8(truncatingIfNeeded: start &+ UInt64($0) &* 0x9E37_79B9 >> 7) }
    }

    static func body(_ key: Int, _ version: Int64) -> [BodySlice] {
        let bytes = bytes(key, version)
        var body = Body(expected: Int64(bytes.count))
        _ = bytes.withUnsafeBytes { body.append($0) }
        return body.slices(from: 0)
    }

    /// nil: it is what was given.
    static func problem(_ found: FoundEntry, _ key: Int) -> String? {
        let version = found.entry.response.responseTime
        var expected = response(version)
        let bytes = bytes(key, version)
        expected.bodyLength = Int64(bytes.count)
        if found.entry.response != expected {
            return "k\(key): another response than was given: \(found.entry.response)"
        }
        let served = found.body.flatMap { slice in slice.withBytes { Array($0) } }
        return served == bytes ? nil : "k\(key), version \(version): other bytes than were given"
    }
}
