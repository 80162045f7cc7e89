import ImgdlCodecs
import ImgdlCore
import XCTest

/// How a decode in pieces ended: the picture, or why there is none and what could be had of it.
struct PieceOutcome: Equatable {
    var verdict: Verdict
    var salvaged: Verdict?
    var ready: PixelRectangle?

    init(_ bytes: [UInt8], _ options: DecodeOptions, pieces: Int, looks: Bool) {
        let decoder = BuiltInCodec().makeDecoder(options)
        do throws(Failure) {
            try feed(decoder, bytes, pieces: pieces) { _ in if looks { _ = decoder.partialImage() } }
            verdict = Verdict(try decoder.finish())
        } catch {
            let image = decoder.salvagedImage()
            verdict = Verdict(failure: error, header: decoder.header)
            salvaged = image.map { Verdict($0) }
            ready = image?.ready
        }
    }
}

/// Whether it ends the same in one piece and in pieces of those sizes, looked at in between or not. Fails with the first way
/// that ends otherwise.
@discardableResult
func checkPieces(
    _ bytes: [UInt8], _ name: String, _ options: DecodeOptions, _ ways: [(pieces: Int, looks: Bool)],
    file: StaticString = #filePath, line: UInt = #line
) -> (whole: PieceOutcome, isTheSame: Bool) {
    let whole = PieceOutcome(bytes, options, pieces: .max / 2, looks: false)
    for (pieces, looks) in ways {
        let other = PieceOutcome(bytes, options, pieces: pieces, looks: looks)
        guard other != whole else { continue }
        XCTFail(
            "\(name) in pieces of \(pieces)\(looks ? ", looked at" : ""): \(other.verdict.failure as Any), "
                + "\(other.ready as Any), not \(whole.verdict.failure as Any), \(whole.ready as Any); pixels alike: "
                + "\(other.verdict.pixels == whole.verdict.pixels && other.salvaged == whole.salvaged)",
            file: file, line: line)
        return (whole, false)
    }
    return (whole, true)
}
