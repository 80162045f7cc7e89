/// How a cache is made.
package struct CacheConfiguration: Sendable {
    package static let defaultBytes: Int64 = 256 << 20
    package static let defaultMemoryBytes: Int64 = 32 << 20

    /// nil: in memory alone.
    package var directory: String?
    /// Of bodies on disk.
    package var maximumBytes = defaultBytes
    /// Of bodies in memory; 0: none.
    package var maximumMemoryBytes: Int64 = 0
    /// Of decoded images; 0: none.
    package var maximumImageBytes: Int64 = 0
    /// Of bodies that broke off, within `maximumBytes`.
    package var maximumPartialBytes = defaultBytes / 8
    /// Seconds since an entry was used or validated; nil: for ever.
    package var maximumAge: Int64?

    package init() {}
}
