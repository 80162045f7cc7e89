/// A security context as it is kept with what is stored: keyed digests of its parts, which tell two contexts apart and do
/// not show them.
package struct StoredContext: Hashable, Sendable {
    package var trust: ContextDigest
    package var request: ContextDigest
    package var credentials: ContextDigest

    package init(trust: ContextDigest, request: ContextDigest, credentials: ContextDigest) {
        self.trust = trust
        self.request = request
        self.credentials = credentials
    }

    /// Of what is not stored yet.
    package static let blank = StoredContext(
        trust: ContextDigest(high: 0, low: 0), request: ContextDigest(high: 0, low: 0),
        credentials: ContextDigest(high: 0, low: 0))

    /// nil: what is answered in it is not stored, and nothing that is stored answers it.
    package init?(_ context: SecurityContext, _ digest: (ContextMessage) -> ContextDigest) {
        guard context.isVerified else { return nil }
        trust = digest(context.trust)
        request = digest(context.request)
        credentials = digest(context.credentials)
    }

    /// Whether what was answered in this context may answer another. `isForAll`: the response says so itself (public,
    /// RFC 9111 section 5.2.2.9).
    func answers(_ asked: StoredContext, isForAll: Bool) -> Bool {
        trust == asked.trust && request == asked.request && (isForAll || credentials == asked.credentials)
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
