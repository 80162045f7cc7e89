/// How a request uses the HTTP cache (features O2, O3, X15). ABI: imgdl_cache_mode, less one.
package enum CacheMode: UInt8, Sendable {
    /// Neither read nor written.
    case off
    /// As RFC 9111 says.
    case use
    /// From the server, whatever is stored; the answer is stored.
    case reload
    /// What is stored, however old; nothing is sent.
    case only
    /// Validated with the server even where it is fresh.
    case refresh
}

/// Where a response is from. ABI: IMGDL_CACHE_OUTCOME_….
package enum CacheOutcome: UInt32, Sendable {
    case network
    /// Stored, and fresh.
    case hit
    /// Stored; the server said that it is still good.
    case validated
    /// Stored, and stale.
    case stale
    /// Its beginning was kept of a transfer that had broken off.
    case resumed
}
