import ImgdlCore

@testable import ImgdlTransport

private let codings = [ContentCoding.gzip, .deflate, .brotli, .zstd]
/// Of what comes out: what is behind is not looked at.
private let mostOutput = 1 << 20

/// The first byte says which codings, in layers; the rest is what was sent. In one piece and in many it means the same.
func fuzzContentCoding(_ bytes: UnsafeRawBufferPointer) throws {
    guard let first = bytes.first else { return }
    let layers = (0...Int(first >> 6) % 3).map { codings[Int(first) >> (2 * $0) & 3] }
    let sent = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
    let whole = try Undone(layers) { try $0.take(sent) }
    let pieces = try Undone(layers) { undone in try sent.forEachPiece(seed: bytes.seed) { try undone.take($0) } }
    if whole.isCut || pieces.isCut { return }
    try require(whole.code == pieces.code, "\(String(describing: pieces.code)) in pieces")
    // Of a stream that breaks in a piece libbrotlidec and libzstd may keep back what they had of it.
    let mayKeepBack = layers.contains(.brotli) || layers.contains(.zstd)
    let isKeptBack = whole.code != nil && mayKeepBack && pieces.output.starts(with: whole.output)
    try require(
        whole.output == pieces.output || isKeptBack,
        "\(pieces.output.count) bytes in pieces, not \(whole.output.count)")
}

private final class Undone {
    private let decoder: ContentDecoder
    private(set) var output: [UInt8] = []
    private(set) var code: ErrorCode?
    private(set) var isCut = false

    init(_ layers: [ContentCoding], _ body: (Undone) throws -> Void) throws {
        decoder = try ContentDecoder(layers, usesBrotli: true)
        try body(self)
        if code == nil, !isCut { note { () throws(Failure) in try decoder.finish() } }
    }

    func take(_ piece: UnsafeRawBufferPointer) throws {
        var result = step { (body) throws(Failure) in try decoder.decode(piece, body) }
        var turns = 0
        while result, decoder.isBusy {
            turns += 1
            try require(turns < 100_000, "\(turns) turns for \(piece.count) bytes")
            result = step { (body) throws(Failure) in try decoder.resume(body) }
        }
    }

    /// False when there is nothing more to look at.
    private func step(
        _ decode: ((UnsafeRawBufferPointer) -> Bool) throws(Failure) -> ContentDecoder.Outcome
    ) -> Bool {
        guard code == nil, !isCut else { return false }
        var pieces: [UInt8] = []
        note { () throws(Failure) in
            _ = try decode { bytes in
                pieces += bytes
                return true
            }
        }
        output += pieces
        isCut = output.count > mostOutput
        return code == nil && !isCut
    }

    private func note(_ body: () throws(Failure) -> Void) {
        do throws(Failure) { try body() } catch { code = error.code }
    }
}
