import Glibc
import ImgdlCore
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// Features X8, B22: a picture made smaller while it is decoded is the average of the areas that its pixels cover, whatever the
/// codec does on the way.
final class ScaledFidelityTests: XCTestCase {
    /// All of the corpus: with IMGDL_LONG=1.
    private static let isLong = getenv("IMGDL_LONG").map { String(cString: $0) == "1" } ?? false
    private static let boxes = [
        (8, 8), (16, 16), (32, 32), (64, 48), (100, 100), (125, 125), (200, 150), (320, 240), (400, 400),
    ]
    private static let least = 35.0

    private func boxed(_ width: Int, _ height: Int) -> DecodeOptions {
        var options = decodeOptions()
        (options.targetWidth, options.targetHeight) = (width, height)
        return options
    }

    private func image(_ bytes: [UInt8], _ options: DecodeOptions) throws -> DecodedImage {
        let decoder = BuiltInCodec().makeDecoder(options)
        try feed(decoder, bytes, pieces: bytes.count)
        return try decoder.finish()
    }

    /// Likeness of colours as they are seen, times alpha, in decibels.
    private func likeness(_ a: PixelBuffer, _ b: PixelBuffer) -> Double {
        let count = a.width * a.height
        guard count == b.width * b.height else { return 0 }
        let (x, y) = (a.bytes.assumingMemoryBound(to: UInt8.self), b.bytes.assumingMemoryBound(to: UInt8.self))
        var sum = 0
        for pixel in stride(from: 0, to: 4 * count, by: 4) {
            let (alphaX, alphaY) = (Int(x[pixel + 3]), Int(y[pixel + 3]))
            for channel in 0..<3 {
                let difference = Int(x[pixel + channel]) * alphaX - Int(y[pixel + channel]) * alphaY
                sum += difference * difference
            }
        }
        return sum == 0 ? .infinity : 10 * log10(pow(255, 4) * Double(3 * count) / Double(sum))
    }

    private func checkFidelity(_ bytes: [UInt8], _ name: String, _ boxes: [(Int, Int)]) throws -> Int {
        let whole = try image(bytes, decodeOptions())
        var compared = 0
        for (width, height) in boxes {
            let options = boxed(width, height)
            let (fullWidth, fullHeight) = (whole.pixels.width, whole.pixels.height)
            let layout = CanvasLayout(width: fullWidth, height: fullHeight, orientation: .upright, options)
            guard layout.isScaled(width: fullWidth, height: fullHeight) else { continue }
            let expected = try whole.pixels.scaled(to: layout, isOpaque: !whole.header.hasAlpha)
            let got = likeness(try image(bytes, options).pixels, expected)
            XCTAssertGreaterThanOrEqual(
                got, Self.least, "\(name), \(fullWidth) x \(fullHeight) to \(width) x \(height)")
            compared += 1
        }
        return compared
    }

    func testPhotographsOfTheCorpus() throws {
        let files = try Corpus.files(atLeast: 181) {
            $0.expectation == "ok" && $0["frames"] == "1" && ["jpeg", "webp"].contains($0.format)
        }
        // Those that came below 30 dB once are always looked at.
        let known = ["s411.jpg", "s440.jpg", "pil_sample_cmyk.jpg", "fixture-tiny.jpeg", "MonochromeTestImage.jpg"]
        var compared = 0
        for (number, file) in files.enumerated() {
            let isKnown = known.contains { file.path.hasSuffix($0) }
            guard Self.isLong || isKnown || number % 5 == 0 && file.bytes.count < 500_000 else { continue }
            compared += try checkFidelity(file.bytes, file.path, Self.boxes)
        }
        XCTAssertGreaterThan(compared, 150)
    }

    func testEveryCodingOfADrawnPicture() throws {
        for picture in Picture.everyCoding where !picture.name.hasSuffix("png") {
            var picture = picture
            (picture.spec.width, picture.spec.height) = (517, 389)
            XCTAssertGreaterThan(
                try checkFidelity(picture.encoded(), picture.name, [(16, 16), (64, 48), (200, 150)]), 2)
        }
    }

    /// Where a step from dark to bright lies in a row or column of the result, for each colour, by what is bright around it.
    private func edges(_ pixels: PixelBuffer, isAcross: Bool) -> [Double] {
        let length = isAcross ? pixels.width : pixels.height
        let step = isAcross ? 4 : pixels.stride
        let middle = isAcross ? (pixels.height / 2) * pixels.stride : (pixels.width / 2) * 4
        return (0..<3).map { channel in
            let values = (0..<length).map { at in
                Double(pixels.bytes.load(fromByteOffset: middle + at * step + channel, as: UInt8.self))
            }
            let (lowest, highest) = (values.min() ?? 0, values.max() ?? 0)
            guard let first = values.firstIndex(where: { 2 * $0 > lowest + highest }) else { return .infinity }
            // What is dark and bright: a coding may have changed that by a step.
            let (dark, bright) = (values[max(0, first - 6)], values[min(length - 1, first + 5)])
            let shares = values.map { ($0 - dark) / (bright - dark) }
            let around = max(0, first - 4)..<min(length, first + 4)
            return Double(around.upperBound) - around.reduce(0) { $0 + shares[$1] }
        }
    }

    /// Edges stay at their places, also at the right and at the bottom of a picture whose size no reduction divides, however it is
    /// turned. Their places are even, since codings have half as many samples of colour.
    func testEdgesAreNotDisplaced() throws {
        let kinds = [
            PICTURE_PNG_RGB, PICTURE_JPEG_BASELINE, PICTURE_JPEG_PROGRESSIVE, PICTURE_JPEG_SEPARATE_SCANS,
            PICTURE_WEBP_LOSSY, PICTURE_WEBP_LOSSLESS,
        ]
        let sizes = [
            (1001, 125), (1001, 400), (1001, 90), (1000, 125), (999, 251), (333, 41), (2047, 100), (1003, 600),
        ]
        for kind in kinds {
            for (side, shown) in sizes {
                for edge in [side / 3 & ~1, side * 9 / 10 & ~1] {
                    for orientation: Int32 in [1, 6] {
                        for isAcross in [true, false] {
                            var picture = Picture("edge", kind, orientation: orientation)
                            picture.spec.quality = 98
                            (picture.spec.width, picture.spec.height) = isAcross ? (Int32(side), 64) : (64, Int32(side))
                            (picture.spec.edge_x, picture.spec.edge_y) = isAcross ? (Int32(edge), 0) : (0, Int32(edge))
                            // Lying on its left side: the first row is the last column.
                            let isShownAcross = (orientation == 1) == isAcross
                            let options = isShownAcross ? boxed(shown, 0) : boxed(0, shown)
                            let pixels = try image(picture.encoded(), options).pixels
                            XCTAssertEqual(isShownAcross ? pixels.width : pixels.height, shown)
                            let isMirrored = orientation == 6 && !isAcross
                            let place = Double(isMirrored ? side - edge : edge) * Double(shown) / Double(side)
                            let found =
                                isMirrored
                                ? edges(try mirrored(pixels), isAcross: isShownAcross).map { Double(shown) - $0 }
                                : edges(pixels, isAcross: isShownAcross)
                            for at in found where abs(at - place) > 0.1 {
                                XCTFail(
                                    "kind \(kind.rawValue), \(side) to \(shown), \(orientation), \(isAcross): \(found), not \(place)"
                                )
                                break
                            }
                        }
                    }
                }
            }
        }
    }

    private func mirrored(_ pixels: PixelBuffer) throws -> PixelBuffer {
        let layout = CanvasLayout(storedWidth: pixels.width, storedHeight: pixels.height, orientation: .mirrored)
        return try pixels.shown(as: layout, decodeOptions(), nil, nil).pixels
    }
}
