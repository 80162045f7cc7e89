import ImgdlCore
import XCTest

/// Thousands of decoders were tried with these files: ours has to give the reference's pixels or refuse.
final class CorpusTests: XCTestCase {
    private static let formats: Set = ["jpeg", "png", "webp"]
    private var files: [Corpus.Entry] { Corpus.files.filter { Self.formats.contains($0.format) } }

    /// B7: the pixels and dimensions of the reference decoder.
    func testGivesTheReferencePixels() {
        for file in files where file.expectation == "ok" {
            let verdict = decode(file.bytes, decodeOptions(turned: false))
            guard let pixels = verdict.pixels, let header = verdict.header else {
                XCTFail("\(file.path): \(String(describing: verdict.failure))")
                continue
            }
            XCTAssertEqual("\(header.width) \(header.height)", file["width"] + " " + file["height"], file.path)
            let hash = pixels.sha256
            XCTAssert([file["rgba_sha256"], file["rgba_alt_sha256"]].contains(hash), "\(file.path): other pixels")
            XCTAssertEqual(String(header.orientation), orientation(of: file), file.path)
            XCTAssertEqual(header.hasAlpha ? "1" : "0", file["has_alpha"], file.path)
            if file.format == "webp" { XCTAssertEqual(String(header.frameCount), file["frames"], file.path) }
        }
    }

    func testTurnsAsEXIFSays() {
        for file in files where file.expectation == "ok" && file["oriented_rgba_sha256"] != "-" {
            XCTAssertEqual(decode(file.bytes).pixels?.sha256, file["oriented_rgba_sha256"], file.path)
        }
    }

    /// B5: a broken file is an error, never an unmarked success.
    func testRefusesBrokenFiles() {
        for file in files where file.expectation != "ok" {
            var options = DecodeOptions()
            options.maximumPixels = 1 << 26
            let verdict = decode(file.bytes, options)
            XCTAssertNotNil(verdict.failure, file.path)
            XCTAssertNotEqual(verdict.failure?.message, "", file.path)
        }
    }

    func testRefusesWhatIsNoPicture() {
        for file in Corpus.files where file.format == "unknown" {
            let code = decode(file.bytes).failure?.code
            XCTAssert(code == .badImageData || code == .truncated, "\(file.path): \(String(describing: code))")
        }
    }

    /// B7: pieces and whole agree in pixels, dimensions and failure.
    func testPiecesEqualWhole() {
        for file in files {
            let whole = decode(file.bytes)
            for size in [1, 7, 1000, 16384] where size > file.bytes.count / 40_000 {
                let pieces = decode(file.bytes, pieces: size, partials: size == 1000)
                XCTAssert(pieces == whole, "\(file.path) in pieces of \(size): \(String(describing: pieces.failure)), "
                    + "not \(String(describing: whole.failure))")
            }
        }
    }

    /// The manifest holds what any reader found; "-" where nobody did. XMP counts there, but not here.
    private func orientation(of file: Corpus.Entry) -> String {
        file["exif_orientation"] == "-" ? "1" : file["exif_orientation"]
    }
}
