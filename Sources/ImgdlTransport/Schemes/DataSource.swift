import ImgdlCore

/// The body in a data: URL (features R18, T32).
final class DataSource: LocalSource, @unchecked Sendable {
    private let url: ParsedURL
    private var bytes: [UInt8] = []
    private var position = 0

    init(_ url: ParsedURL) { self.url = url }

    func open() throws(Failure) -> ResponseHead {
        let data = try DataURL(url)
        bytes = data.bytes
        return head(200, length: bytes.count, type: data.mediaType)
    }

    func read() throws(Failure) -> [UInt8]? {
        guard position < bytes.count else { return nil }
        let piece = Array(bytes[position...].prefix(Self.pieceLength))
        position += piece.count
        return piece
    }
}
