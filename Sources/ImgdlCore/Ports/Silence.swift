/// The silence of a transfer that nothing has come of for a while, as its transport knows it.
package struct Silence {
    /// The host whose addresses it still waits for; nil: none.
    package var nameLookedUp: String?
    /// Bytes that its connection has brought since anything came of an answer on it, and that gave nothing of one.
    package var strayBytes: UInt64 = 0
    /// Its server has no room for all that is to be sent to it.
    package var hasUnsent = false

    /// So many are a flood. A connection that waits for an answer brings some dozens; but nothing of a header may show before the
    /// whole of it has come, of which libcurl takes 128 KiB at once.
    package static let floodBytes: UInt64 = 192 << 10
    /// So many are one where the server takes no answers: then libcurl stops reading before long.
    package static let unansweredBytes: UInt64 = 64 << 10

    package init(nameLookedUp: String? = nil, strayBytes: UInt64 = 0, hasUnsent: Bool = false) {
        self.nameLookedUp = nameLookedUp
        self.strayBytes = strayBytes
        self.hasUnsent = hasUnsent
    }

    package var isFlood: Bool { strayBytes >= (hasUnsent ? Self.unansweredBytes : Self.floodBytes) }
}
