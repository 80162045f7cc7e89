/// How a cache is made.
package struct CacheConfiguration: Sendable {
    package static let defaultBytes: Int64 = 256 << 20
    package static let defaultMemoryBytes: Int64 = 32 << 20

    /// nil: in memory alone.
    package var directory: String?
    /// On disk, of all that is stored takes: bodies, headers, rows of the index, and what is reserved for more.
    package var maximumBytes = defaultBytes
    /// Bytes of bodies in memory, with their headers; 0: none.
    package var maximumMemoryBytes: Int64 = 0
    /// Bytes of decoded images, with their headers; 0: none.
    package var maximumImageBytes: Int64 = 0
    /// Bytes of bodies that broke off, with their headers, within `maximumBytes`.
    package var maximumPartialBytes = defaultBytes / 8
    /// Seconds since an entry was used or validated; nil: for ever.
    package var maximumAge: Int64?

    package init() {}
}
