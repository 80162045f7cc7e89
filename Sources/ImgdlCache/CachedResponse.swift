import ImgdlCore

/// What is stored for a URL. ABI: imgdl_cache_entry.
package struct CachedResponse: Equatable, Sendable {
    package var id: EntryID
    package var response: StoredResponse
    /// Seconds since 1970.
    package var storedTime: Int64
    package var usedTime: Int64

    /// Nothing of it is of the future: a clock that ran ahead once says nothing of when that was.
    func clamped(to wallTime: Int64) -> CachedResponse {
        var clamped = self
        clamped.storedTime = min(storedTime, wallTime)
        clamped.usedTime = min(usedTime, wallTime)
        return clamped
    }
}
