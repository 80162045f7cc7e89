import TestPictures
import ImgdlCore
import XCTest

/// The pixel format says exactly what lies in memory.
final class PixelFormatTests: XCTestCase {
    func testFormatsFollowFromStraightRGBA() throws {
        for picture in Picture.everyCoding {
            let rgba = try XCTUnwrap(decode(picture.encoded()).pixels, picture.name)
            for format in [PixelFormat.rgba8Premultiplied, .bgra8, .bgra8Premultiplied] {
                let expected = converted(rgba, to: format)
                XCTAssert(
                    decode(picture.encoded(), decodeOptions(format)).pixels == expected, "\(picture.name) as \(format)")
            }
        }
    }

    func testAlphaIsToldAndOpaquePicturesAreOpaque() throws {
        for picture in Picture.everyCoding {
            let verdict = decode(picture.encoded())
            let pixels = try XCTUnwrap(verdict.pixels)
            let isOpaque = stride(from: 3, to: pixels.count, by: 4).allSatisfy { pixels[$0] == 255 }
            let hasAlpha =
                picture.name.contains("rgba") || picture.name.contains("alpha") || picture.name == "animated.webp"
            if hasAlpha { XCTAssertFalse(isOpaque, picture.name) }
            if verdict.header?.hasAlpha == false { XCTAssert(isOpaque, picture.name) }
            if hasAlpha { XCTAssertEqual(verdict.header?.hasAlpha, true, picture.name) }
        }
    }

    /// Lossless codings give the pixels that were drawn; lossy ones come near.
    func testPixelsAreThoseThatWereEncoded() throws {
        for picture in Picture.everyCoding where picture.name != "animated.webp" {
            let alpha = picture.name.contains("rgba") || picture.name.contains("alpha")
            guard let memory = picture_draw(201, 150, 7, alpha ? 1 : 0) else { return XCTFail("no memory") }
            defer { picture_free(memory) }
            let drawn = Array(UnsafeBufferPointer(start: memory, count: 201 * 150 * 4))
            let pixels = try XCTUnwrap(decode(picture.encoded()).pixels, picture.name)
            let isGray = picture.name.hasPrefix("gray")
            var error = 0
            for at in stride(from: 0, to: drawn.count, by: 4) where drawn[at + 3] == 255 {
                let gray = (77 * Int(drawn[at]) + 151 * Int(drawn[at + 1]) + 28 * Int(drawn[at + 2])) >> 8
                for c in 0..<3 { error += abs((isGray ? gray : Int(drawn[at + c])) - Int(pixels[at + c])) }
            }
            let isLossless =
                picture.name.hasSuffix("png") && !["palette.png"].contains(picture.name)
                || picture.name == "lossless.webp"
            XCTAssertLessThanOrEqual(error / (drawn.count / 4 * 3), isLossless ? 0 : 15, picture.name)
        }
    }

    func testAnimationTellsItsFrames() {
        XCTAssertEqual(decode(Picture("a", PICTURE_WEBP_ANIMATED).encoded()).header?.frameCount, 3)
        XCTAssertEqual(decode(Picture("a", PICTURE_WEBP_LOSSY).encoded()).header?.frameCount, 1)
    }

    private func converted(_ rgba: [UInt8], to format: PixelFormat) -> [UInt8] {
        var pixels = rgba
        for at in stride(from: 0, to: pixels.count, by: 4) {
            if format.isPremultiplied {
                for c in 0..<3 { pixels[at + c] = UInt8((Int(pixels[at + c]) * Int(pixels[at + 3]) + 127) / 255) }
            }
            if format.isBGRA { pixels.swapAt(at, at + 2) }
        }
        return pixels
    }
}
