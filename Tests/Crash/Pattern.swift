import CacheTesting
import ImgdlCache
import ImgdlCore

/// What a URL's answers are like. Each tenth URL is of the same kind.
enum Kind: Int, CaseIterable {
    case empty, small, medium, large, varying, beginning, updated, redirect, removed, contexts

    init(_ key: Int) { self = Kind(rawValue: key % Kind.allCases.count) ?? .small }

    /// Several answers are stored side by side: other fields were asked with, or others asked.
    var sides: Int { self == .varying || self == .contexts ? 2 : 1 }
}

/// What belongs under a key in a version, and nothing else.
enum Pattern {
    /// `body`: the version whose body it is, which validations do not change.
    static func response(_ key: Int, _ side: Int, _ version: Int64, body: Int64) -> StoredResponse {
        let kind = Kind(key)
        let digest = ContextDigest(high: 7, low: kind == .contexts ? UInt64(side) + 1 : 0)
        var extent = StoredResponse.Extent.whole
        if kind == .beginning { extent = .beginning(total: 200_000) }
        if kind == .redirect { extent = .headAlone }
        return StoredResponse(
            status: kind == .redirect ? 301 : 200, httpVersion: 11,
            fields: [HeaderField("ETag", "\"\(body)\""), HeaderField("X-Key", "\(key) \(side)")], requestTime: version,
            responseTime: version,
            varying: kind == .varying ? [VaryingField(name: "accept", value: "\(side)")] : [],
            context: StoredContext(trust: digest, request: digest, credentials: digest), extent: extent)
    }

    static func bytes(_ key: Int, _ side: Int, _ version: Int64) -> [UInt8] {
        var random = SeededRandom(state: UInt64(key) << 32 ^ UInt64(version) ^ UInt64(side) << 60)
        let count =
            switch Kind(key) {
            case .empty, .redirect: 0
            case .large: 1_100_000 + random.below(3_000_000)
            case .medium: random.below(400_000) + 1
            default: random.below(60_000) + 1
            }
        let start = random.next()
        return [UInt8](unsafeUninitializedCapacity: count) { memory, initialized in
            for index in 0..<count {
                memory[index] = UInt8(truncatingIfNeeded: start &+ UInt64(index) &* 0x9E37_79B9 >> 7)
            }
            initialized = count
        }
    }

    static func body(_ key: Int, _ side: Int, _ version: Int64) -> [BodySlice] {
        let bytes = bytes(key, side, version)
        if bytes.isEmpty { return [] }
        var body = Body(expected: Int64(bytes.count))
        _ = bytes.withUnsafeBytes { body.append($0) }
        return body.slices(from: 0)
    }

    /// Of this side alone, as the rules would.
    static func choose(_ key: Int, _ side: Int, _ entries: [StoredEntry]) -> StoreChoice {
        let wanted = response(key, side, 0, body: 0)
        let place = entries.firstIndex {
            $0.response.context == wanted.context && $0.response.varying == wanted.varying
        }
        return place.map { .entry($0, withBody: true) } ?? .nothing
    }

    /// nil: it is what was given.
    static func problem(_ found: FoundEntry, _ key: Int, _ side: Int) -> String? {
        let version = found.entry.response.responseTime
        let tag = found.entry.response.fields.first?.value.dropFirst().dropLast() ?? ""
        guard let body = Int64(tag), body == version || Kind(key) == .updated else {
            return "k\(key): the fields of one version with the times of another: \(found.entry.response)"
        }
        var expected = response(key, side, version, body: body)
        let bytes = bytes(key, side, body)
        expected.bodyLength = Int64(bytes.count)
        if found.entry.response != expected {
            return "k\(key): another response than was given: \(found.entry.response)"
        }
        let served = found.body.flatMap { slice in slice.withBytes { Array($0) } }
        return served == bytes ? nil : "k\(key), version \(version): other bytes than were given"
    }
}
