/// The silence of a transfer that nothing has come of for a while, as its transport knows it.
package struct Silence {
    /// The host whose addresses it still waits for; nil: none.
    package var nameLookedUp: String?
    /// Bytes that its connection has brought since anything came of an answer on it, and that gave nothing of one.
    package var strayBytes: UInt64 = 0

    /// So many are a flood. A connection that waits for an answer brings some dozens; but nothing of a header may show before the
    /// whole of it has come, and it may have 256 KiB.
    package static let floodBytes: UInt64 = 384 << 10

    package init(nameLookedUp: String? = nil, strayBytes: UInt64 = 0) {
        self.nameLookedUp = nameLookedUp
        self.strayBytes = strayBytes
    }

    package var isFlood: Bool { strayBytes >= Self.floodBytes }
}
