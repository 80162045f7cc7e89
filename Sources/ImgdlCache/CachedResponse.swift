import ImgdlCore

/// What is stored for a URL. ABI: imgdl_cache_entry.
package struct CachedResponse: Equatable, Sendable {
    package var id: EntryID
    package var response: StoredResponse
    /// Seconds since 1970.
    package var storedTime: Int64
    package var usedTime: Int64
}
