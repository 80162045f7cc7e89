/// Bytes of a body that nobody takes yet, where curl is not to keep it: below 8.14 it forgets the end of a body of HTTP/2
/// whose buffer fills meanwhile (`CurlVersion.needsRoomInStreams`).
struct KeptBody {
    /// What is longer than that, curl keeps all the same, and has the server wait.
    static let maximumBytes = 1 << 20
    /// As curl gives them out.
    private static let pieceBytes = 16 << 10
    /// Its memory grows by so much, and is not doubled: `count` is what memory_budget knows of.
    private static let growth = 64 << 10

    private var bytes: [UInt8] = []
    private var givenBytes = 0

    var count: Int { bytes.count - givenBytes }
    var isEmpty: Bool { count == 0 }

    /// False: there is no room for it, and it is not kept.
    mutating func append(_ piece: UnsafeRawBufferPointer) -> Bool {
        guard piece.count <= Self.maximumBytes - count else { return false }
        if givenBytes > bytes.count / 2 {
            bytes.removeFirst(givenBytes)
            givenBytes = 0
        }
        if bytes.count + piece.count > bytes.capacity {
            bytes.reserveCapacity((bytes.count + piece.count + Self.growth - 1) / Self.growth * Self.growth)
        }
        bytes.append(contentsOf: piece)
        return true
    }

    /// The next piece; it is gone then.
    mutating func take() -> [UInt8] {
        let piece = Array(bytes[givenBytes...].prefix(Self.pieceBytes))
        givenBytes += piece.count
        if isEmpty { self = KeptBody() }
        return piece
    }
}
