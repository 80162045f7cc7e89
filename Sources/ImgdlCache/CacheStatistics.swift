import ImgdlCore

/// ABI: imgdl_cache_stats.
package struct CacheStatistics: Equatable, Sendable {
    package var isWritable = false
    /// On disk, those of all processes. Bytes are what counts for the limits: bodies, headers, and what each takes besides.
    package var entries: Int64 = 0
    package var bytes: Int64 = 0
    package var partialEntries: Int64 = 0
    package var partialBytes: Int64 = 0
    package var memoryEntries: Int64 = 0
    package var memoryBytes: Int64 = 0
    package var imageEntries: Int64 = 0
    package var imageBytes: Int64 = 0

    // Since it was opened, by this process: each answered by one of these.
    package var hits: Int64 = 0
    package var memoryHits: Int64 = 0
    package var imageHits: Int64 = 0
    package var validated: Int64 = 0
    package var stale: Int64 = 0
    package var misses: Int64 = 0
    package var resumed: Int64 = 0

    package var stored: Int64 = 0
    package var evicted: Int64 = 0
    /// Checksum or length wrong, or file gone: removed.
    package var damaged: Int64 = 0
    /// Answers that were to be stored: the disk was behind, had no room for them, or did not work.
    package var notStored: Int64 = 0
    /// Stored, and lost if the power went now.
    package var unflushed: Int64 = 0

    package init() {}

    mutating func count(_ outcome: StoreOutcome) {
        switch outcome {
        case .hit: hits += 1
        case .memoryHit: memoryHits += 1
        case .imageHit: imageHits += 1
        case .validated: validated += 1
        case .stale: stale += 1
        case .miss: misses += 1
        case .resumed: resumed += 1
        }
    }
}
