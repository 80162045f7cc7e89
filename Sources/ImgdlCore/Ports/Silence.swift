/// The silence of a transfer that nothing has come of for a while, as its transport knows it.
package struct Silence {
    /// The host whose addresses it still waits for; nil: none.
    package var nameLookedUp: String?
    /// Bytes that its connection has brought since anything came of an answer: of no request on it.
    package var strayBytes: UInt64 = 0

    /// So many are a flood. A connection that waits for an answer brings some dozens; nothing of a header may show
    /// before the whole of it has come, which is seldom as long.
    package static let floodBytes: UInt64 = 64 << 10

    package init() {}

    package var isFlood: Bool { strayBytes >= Self.floodBytes }
}
