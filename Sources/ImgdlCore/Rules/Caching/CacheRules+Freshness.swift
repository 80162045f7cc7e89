extension CacheRules {
    /// For how many more seconds a stored response is fresh; 0 and below: stale for so many (RFC 9111 section 4.2).
    package static func remainingFreshness(of stored: StoredResponse, wallTime: Int64) -> Int64 {
        Freshness(stored, wallTime: wallTime).remaining(wallTime)
    }
}
