import ImgdlCore

/// Addresses found a short while ago. Failures are not kept: a retry is meant to ask again.
struct AddressCache {
    private struct Entry {
        var addresses: [String]
        var expiry: Instant
    }

    private var entries: [String: Entry] = [:]
    private let capacity: Int
    private let lifetimeMilliseconds: Int64

    init(capacity: Int, lifetimeMilliseconds: Int64) {
        self.capacity = capacity
        self.lifetimeMilliseconds = lifetimeMilliseconds
    }

    var count: Int { entries.count }

    mutating func addresses(of host: String, at now: Instant) -> [String]? {
        guard let entry = entries[host] else { return nil }
        guard now < entry.expiry else {
            entries[host] = nil
            return nil
        }
        return entry.addresses
    }

    /// The entry closest to its end makes room for a new one.
    mutating func insert(_ addresses: [String], for host: String, at now: Instant) {
        guard capacity > 0 else { return }
        if entries[host] == nil, entries.count >= capacity,
            let oldest = entries.min(by: { $0.value.expiry < $1.value.expiry })
        {
            entries[oldest.key] = nil
        }
        entries[host] = Entry(addresses: addresses, expiry: now.advanced(byMilliseconds: lifetimeMilliseconds))
    }
}
