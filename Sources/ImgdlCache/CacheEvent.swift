/// Something the host may want to know of its cache; the library goes on. ABI: imgdl_cache_event.
package struct CacheEvent: Equatable, Sendable {
    package enum Kind: UInt32, Sendable {
        /// The index was corrupt, foreign or newer: it was renamed, and begun anew.
        case movedAside = 1
        /// The disk is full, read-only or broken: nothing is stored until it works again.
        case unwritable = 2
        case writable = 3
        /// Answers that came could not be stored: the disk is behind, or has no room for them.
        case notStored = 4
    }

    package let kind: Kind
    /// Names the file and the cause.
    package let message: String

    package init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }
}
