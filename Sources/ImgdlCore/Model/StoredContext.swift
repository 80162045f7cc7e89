/// A security context as it is kept with what is stored: keyed digests of its parts, which tell two contexts apart and do
/// not show them.
package struct StoredContext: Hashable, Sendable {
    package var trust: ContextDigest
    package var request: ContextDigest
    package var credentials: ContextDigest
    /// Number of the store's key that the digests were made with; 0: of no certain one. Comparing leaves it out.
    package var keyNumber: UInt64 = 0

    package init(trust: ContextDigest, request: ContextDigest, credentials: ContextDigest) {
        self.trust = trust
        self.request = request
        self.credentials = credentials
    }

    package static func == (one: StoredContext, other: StoredContext) -> Bool {
        one.trust == other.trust && one.request == other.request && one.credentials == other.credentials
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(trust)
        hasher.combine(request)
        hasher.combine(credentials)
    }

    /// Whether it was made with that key, as far as is known.
    package func isOfKey(_ number: UInt64) -> Bool { keyNumber == 0 || keyNumber == number }

    /// A place for the context of what is not stored yet.
    package static var blank: StoredContext {
        let digest = ContextDigest(high: 0, low: 0)
        return StoredContext(trust: digest, request: digest, credentials: digest)
    }
}

/// 128 bits of a keyed hash.
package struct ContextDigest: Hashable, Sendable {
    package var high: UInt64
    package var low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// For comparison with another of the same key.
    var text: String { "\(String(high, radix: 16))-\(String(low, radix: 16))" }
}
