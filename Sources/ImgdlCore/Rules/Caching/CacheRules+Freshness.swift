extension CacheRules {
    /// For how many more seconds a stored response is fresh; 0 and below: stale for so many (RFC 9111 section 4.2), or for
    /// nobody knows how many.
    package static func remainingFreshness(of stored: StoredResponse, wallTime: Int64) -> Int64 {
        let freshness = Freshness(stored, wallTime: wallTime)
        guard freshness.hasAge(wallTime) else { return 0 }
        return freshness.staleness(wallTime).map { -$0 } ?? freshness.remaining(wallTime)
    }
}
