import ImgdlCore
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// What is said of alpha is what the pixels show, whatever the file says of it.
final class OpacityTests: XCTestCase {
    private func hasAlpha(_ bytes: [UInt8], _ options: DecodeOptions = decodeOptions()) throws -> Bool {
        let decoder = BuiltInCodec().makeDecoder(options)
        try feed(decoder, bytes, pieces: 1000)
        let image = try decoder.finish()
        XCTAssertEqual(decoder.header, image.header)
        return image.header.hasAlpha
    }

    private var formats: [PixelFormat] { [.rgba8, .bgra8Premultiplied, .rgba16] }

    func testDrawnPictures() throws {
        let transparent = ["rgba.png", "adam7-rgba.png", "lossy-alpha.webp", "lossless-alpha.webp", "animated.webp"]
        for picture in Picture.everyCoding {
            for format in formats {
                XCTAssertEqual(
                    try hasAlpha(picture.encoded(), decodeOptions(format)), transparent.contains(picture.name),
                    "\(picture.name) as \(format)")
            }
        }
    }

    /// With a channel for it, in which nothing is.
    func testOpaquePicturesSayThatTheyAre() throws {
        for kind in [
            PICTURE_PNG_RGBA, PICTURE_PNG_ADAM7_RGBA, PICTURE_WEBP_LOSSY_ALPHA, PICTURE_WEBP_LOSSLESS_ALPHA,
        ] {
            var picture = Picture("edge", kind)
            picture.spec.edge_x = 100
            for format in formats {
                XCTAssertFalse(try hasAlpha(picture.encoded(), decodeOptions(format)), "kind \(kind.rawValue)")
                var options = decodeOptions(format)
                options.targetWidth = 20
                XCTAssertFalse(try hasAlpha(picture.encoded(), options), "kind \(kind.rawValue), scaled")
            }
        }
    }

    /// The flag of VP8X and the bit of VP8L deny what is there.
    func testWebPsThatDenyTheirAlpha() throws {
        let lossless = Picture("a", PICTURE_WEBP_LOSSLESS_ALPHA).encoded()
        var denied = lossless
        let start = try XCTUnwrap(lossless.indices.first { Array(lossless[$0..<$0 + 4]) == Array("VP8L".utf8) }) + 8
        XCTAssertEqual(lossless[start], 0x2F)
        denied[start + 4] &= ~0x10
        XCTAssertEqual(decode(denied).pixels, decode(lossless).pixels)
        XCTAssertTrue(try hasAlpha(denied))

        let lossy = Picture("a", PICTURE_WEBP_LOSSY_ALPHA).encoded()
        var file = WebPFile(lossy)
        XCTAssertEqual(file.chunks.first?.name, "VP8X")
        file.chunks[0].data[0] &= ~0x10
        XCTAssertEqual(try XCTUnwrap(decode(file.bytes()).pixels), decode(lossy).pixels)
        XCTAssertTrue(try hasAlpha(file.bytes()))
    }

    /// An index that the palette does not have is transparent.
    func testIndexBeyondTheGIFsPalette() throws {
        for (index, isTransparent) in [(UInt8(1), false), (3, true)] {
            var file = GIFFile(width: 4, height: 2, palette: [10, 20, 30, 200, 210, 220])
            file.addFrame(width: 4, height: 2, [0, 1, 0, 1, 0, index, 0, 1])
            XCTAssertEqual(try hasAlpha(file.ended()), isTransparent)
            var options = decodeOptions()
            options.targetWidth = 2
            XCTAssertEqual(try hasAlpha(file.ended(), options), isTransparent)
            // What is not there lends no colour to what is.
            let pixels = try XCTUnwrap(decode(file.ended(), options).pixels)
            XCTAssertEqual(pixels[3], isTransparent ? 191 : 255)
            if isTransparent { XCTAssertEqual(Array(pixels[0..<3]), [73, 83, 93]) }
        }
    }

    /// A transparent colour that no pixel has.
    func testAGIFsUnusedTransparentColour() throws {
        var file = GIFFile(width: 2, height: 1)
        file.addControl(transparent: 3)
        file.addFrame(width: 2, height: 1, [0, 1])
        XCTAssertFalse(try hasAlpha(file.ended()))
    }
}
