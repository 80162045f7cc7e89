import ImgdlCore
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// Features B20: what is reserved for a picture is known before its decoder is made.
final class HeaderProbeTests: XCTestCase {
    private func probe(_ bytes: [UInt8], pieces: Int = .max) -> PictureSize {
        var probe = HeaderProbe()
        var position = 0
        while position < bytes.count {
            let size = min(pieces, bytes.count - position)
            let answer = bytes[position..<position + size].withUnsafeBytes { probe.feed($0) }
            if answer != .undecided { return answer }
            position += size
        }
        return .undecided
    }

    func testTellsTheSizeOfEveryPictureOfTheCorpus() throws {
        for file in try Corpus.files(atLeast: 622, where: { $0.expectation == "ok" && $0.format != "unknown" }) {
            let width = try XCTUnwrap(Int(file["width"])), height = try XCTUnwrap(Int(file["height"]))
            guard case .known(let foundWidth, let foundHeight, let held, _) = probe(file.bytes) else {
                XCTFail("\(file.path): \(probe(file.bytes))")
                continue
            }
            XCTAssertEqual("\(foundWidth) × \(foundHeight)", "\(width) × \(height)", file.path)
            if file.format != "gif" { XCTAssertEqual(held > 0, file["progressive"] == "1", file.path) }
        }
    }

    /// Broken files, too: it ends, and pieces and whole agree.
    func testPiecesEqualWhole() throws {
        for file in try Corpus.files(atLeast: 900) {
            let whole = probe(file.bytes)
            for size in [1, 2, 7, 100] { XCTAssertEqual(probe(file.bytes, pieces: size), whole, file.path) }
        }
    }

    func testEveryBeginningIsUndecidedOrRight() throws {
        for file in try Corpus.files(atLeast: 400, where: { $0.expectation == "ok" && $0.bytes.count < 2_000 }) {
            let whole = probe(file.bytes)
            for count in 0..<file.bytes.count {
                let beginning = probe(Array(file.bytes[..<count]))
                XCTAssert(beginning == .undecided || beginning == whole, "\(file.path) cut at \(count)")
            }
        }
    }

    func testWhatIsNoPictureIsUnknownAtOnce() {
        XCTAssertEqual(probe(Array("<!DOCTYPE html>".utf8)), .unknown)
        XCTAssertEqual(probe([0, 0, 0]), .unknown)
        XCTAssertEqual(probe([0xFF, 0xD8, 0xFF, 0xDA]), .unknown, "a scan before any frame")
        XCTAssertEqual(probe([0xFF, 0xD8, 0xFF, 0xE0, 0, 1]), .unknown, "a segment shorter than its length")
        XCTAssertEqual(probe([]), .undecided)
    }

    /// What a decoder holds of it does not depend on how the coefficients are coded, but on how often the file goes over them.
    func testSeveralScansAreSeenInTheFirst() {
        let size = (width: 201, height: 150)
        for (kind, held) in [
            (PICTURE_JPEG_BASELINE, 0), (PICTURE_JPEG_SEPARATE_SCANS, 3), (PICTURE_JPEG_PROGRESSIVE, 3),
            (PICTURE_JPEG_GRAY, 0), (PICTURE_JPEG_ARITHMETIC, 0), (PICTURE_JPEG_ARITHMETIC_PROGRESSIVE, 3),
            (PICTURE_JPEG_CMYK, 0), (PICTURE_PNG_RGB, 0), (PICTURE_PNG_GRAY16, 0), (PICTURE_PNG_ADAM7, 4),
        ] {
            let file = Picture("a", kind).encoded()
            let isHeld = decode(file).header?.isProgressive
            XCTAssertEqual(isHeld, held > 0, "\(kind)")
            let expected = PictureSize.known(width: size.width, height: size.height, held: held)
            for pieces in [1, 1000] { XCTAssertEqual(probe(file, pieces: pieces), expected, "\(kind)") }
        }
    }

    /// libwebp's own pixels, and the indices of a GIF.
    func testWhatCodecsTakeBesideTheCanvasIsSeenInTheHeader() {
        let webps = [
            (PICTURE_WEBP_LOSSY, 0), (PICTURE_WEBP_LOSSLESS, 4), (PICTURE_WEBP_LOSSY_ALPHA, 5),
            (PICTURE_WEBP_ANIMATED, 0),
        ]
        let gif = GIFFile(width: 201, height: 150).ended()
        for (file, beside) in webps.map({ (Picture("a", $0).encoded(), $1) }) + [(gif, 1)] {
            let expected = PictureSize.known(width: 201, height: 150, held: 0, beside: beside)
            for pieces in [1, 1000] { XCTAssertEqual(probe(file, pieces: pieces), expected) }
        }
    }

    /// The largest sizes that headers have room for, and none.
    func testLargestSizes() {
        let most = Int(UInt32.max)
        let png = Array(PNGFile(width: most, height: most - 1).bytes.prefix(29))
        func webp(_ name: String, _ data: [UInt8]) -> [UInt8] {
            var file = WebPFile()
            file.add(name, data + [UInt8](repeating: 0, count: 20))
            return file.bytes(excess: Int(UInt32.max) - 64)
        }
        let alpha = WebPStill.bytesPerPixel(isLossless: false, hasAlpha: true)
        let sizes: [([UInt8], PictureSize)] = [
            (png, .known(width: most, height: most - 1, held: 0)),
            (Array(PNGFile(width: most, height: 0).bytes.prefix(29)), .unknown),
            (GIFFile(width: 65535, height: 65534).bytes, .known(width: 65535, height: 65534, held: 0, beside: 1)),
            (GIFFile(width: 0, height: 65535).bytes, .unknown),
            (
                webp("VP8X", WebPFile.extended(0x10, width: 1 << 24, height: 1)),
                .known(width: 1 << 24, height: 1, held: 0, beside: alpha)
            ),
            (webp("VP8L", [0x2F, 0xFF, 0xFF, 0xFF, 0xFF]), .known(width: 16384, height: 16384, held: 0, beside: 4)),
            (webp("VP8L", [0x2F, 0, 0xC0, 0xFF, 0xFF]), .known(width: 1, height: 16384, held: 0, beside: 4)),
            (
                webp("VP8 ", [0, 0, 0, 0x9D, 1, 0x2A, 0xFF, 0xFF, 0xFE, 0x7F]),
                .known(width: 16383, height: 16382, held: 0)
            ),
            (webp("VP8 ", [0, 0, 0, 0x9D, 1, 0x2A, 0, 0xC0, 0xFF, 0xFF]), .unknown),
        ]
        for (index, (bytes, size)) in sizes.enumerated() {
            for pieces in [1, 1_000] { XCTAssertEqual(probe(bytes, pieces: pieces), size, "\(index)") }
        }
    }

    /// From none to the longest there is, they are passed over by their length alone.
    func testLengthsOfSegments() {
        let components: [UInt8] = [1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0]
        let frame: [UInt8] = [0xFF, 0xC2, 0, 17, 8, 0xFF, 0xFF, 0xFF, 0xFE, 3] + components
        for length in [2, 3, 32_768, 65_535] {
            let segment: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE2, UInt8(length >> 8), UInt8(length & 255)]
            let file = segment + [UInt8](repeating: 0xFF, count: length - 2) + frame
            for pieces in [1, 100_000] {
                XCTAssertEqual(probe(file, pieces: pieces), .known(width: 65534, height: 65535, held: 3))
            }
        }
        for length in [0, 1] as [UInt8] { XCTAssertEqual(probe([0xFF, 0xD8, 0xFF, 0xE2, 0, length]), .unknown) }
        let short: [UInt8] = [0xFF, 0xD8, 0xFF, 0xC0, 0, 16, 8, 0, 1, 0, 1, 3] + components
        XCTAssertEqual(probe(short), .unknown, "a frame header that ends within its components")
    }

    func testFillBytesAndSegmentsBeforeTheFrameAreSkipped() {
        let start: [UInt8] = [0xFF, 0xD8, 0xFF, 0xFF, 0xFF, 0xE1, 0x01, 0x02] + [UInt8](repeating: 0xFF, count: 256)
        let components: [UInt8] = [1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0]
        let frame: [UInt8] = [0xFF, 0xC2, 0, 17, 8, 0x0F, 0xA0, 0x17, 0x70, 3] + components
        for pieces in [1, 3, 1_000] {
            XCTAssertEqual(
                probe(start + frame, pieces: pieces), .known(width: 6_000, height: 4_000, held: 3))
        }
    }
}
