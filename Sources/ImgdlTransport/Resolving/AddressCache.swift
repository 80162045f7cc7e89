import ImgdlCore

/// What names were found to be a short while ago: their addresses, or that they have none.
struct AddressCache {
    /// Seconds: what a server wants kept for longer, or not at all, is kept for so long.
    static let lifetimes: ClosedRange<Int64> = 1...300
    /// Milliseconds. Long enough for those that ask at the same time, and short enough for a retry to ask again.
    static let absenceLifetime: Int64 = 1_000
    /// Addresses of one name: more are not tried.
    static let maximumAddresses = 32

    private struct Entry {
        var answer: Result<[String], Failure>
        var expiry: Instant
    }

    private var entries: [String: Entry] = [:]
    private let capacity: Int

    init(capacity: Int) { self.capacity = capacity }

    var count: Int { entries.count }

    /// Milliseconds for what has this time to live, in seconds. RFC 2181 section 8: one with its first bit set is 0.
    static func lifetime(ofSeconds seconds: Int32) -> Int64 {
        min(max(Int64(seconds), lifetimes.lowerBound), lifetimes.upperBound) * 1_000
    }

    mutating func answer(for host: String, at now: Instant) -> Result<[String], Failure>? {
        guard let entry = entries[host] else { return nil }
        guard now < entry.expiry else {
            entries[host] = nil
            return nil
        }
        return entry.answer
    }

    mutating func removeAll() { entries = [:] }

    /// The entry closest to its end makes room for a new one.
    mutating func insert(_ found: AddressAnswer, for host: String, at now: Instant) {
        guard capacity > 0, found.lifetime > 0 else { return }
        if entries[host] == nil, entries.count >= capacity,
            let oldest = entries.min(by: { $0.value.expiry < $1.value.expiry })
        {
            entries[oldest.key] = nil
        }
        entries[host] = Entry(answer: found.result, expiry: now.advanced(byMilliseconds: found.lifetime))
    }
}

/// What a look-up came to, and for how long that holds.
struct AddressAnswer: Equatable, Sendable {
    /// At least one numeric address, and no more than `AddressCache.maximumAddresses`.
    var result: Result<[String], Failure>
    /// Milliseconds; 0: it is not kept.
    var lifetime: Int64

    init(_ result: Result<[String], Failure>, lifetime: Int64) {
        self.result = result
        self.lifetime = lifetime
    }

    /// Of addresses as they were found, some perhaps more than once.
    init(addresses: [String], host: String, lifetime: Int64) {
        var kept: [String] = []
        for address in addresses where !kept.contains(address) {
            guard kept.count < AddressCache.maximumAddresses else { break }
            kept.append(address)
        }
        guard !kept.isEmpty else {
            self.init(host: host, cause: "it has no address", isCertain: true)
            return
        }
        self.init(.success(kept), lifetime: lifetime)
    }

    /// `isCertain`: whoever knows said so, so that asking again at once would be in vain.
    init(host: String, cause: String, isCertain: Bool) {
        let failure = Failure(.resolveFailed, "could not resolve host “\(host)”: \(cause)")
        self.init(.failure(failure), lifetime: isCertain ? AddressCache.absenceLifetime : 0)
    }
}
