import ImgdlCore

/// What is stored for a URL. ABI: imgdl_cache_entry.
package struct CachedResponse: Equatable, Sendable {
    package var id: EntryID
    package var response: StoredResponse
    /// Seconds since 1970.
    package var storedTime: Int64
    package var usedTime: Int64

    /// As the host is told of it: a clock that ran ahead once says nothing of when that was.
    package func told(at wallTime: Int64) -> CachedResponse {
        var told = self
        told.storedTime = min(storedTime, wallTime)
        told.usedTime = min(usedTime, wallTime)
        return told
    }
}
