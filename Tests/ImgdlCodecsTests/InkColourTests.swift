import ImgdlCore
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// JPEGs of four inks with a profile of them become what lcms2 makes of their inks, and Pillow's ImageCms.
final class InkColourTests: XCTestCase {
    private static let profile = Profile(PICTURE_PROFILE_INKS)

    /// Two flat halves: their inks (255: full), and the colours that Pillow 13.0.0 makes of those with the profile
    /// (ImageCms.profileToProfile, perceptual, to its own sRGB).
    private struct Halves {
        var inks: [[UInt8]]
        var colours: [[Int]]
    }

    private static let drawn = Halves(
        inks: [[142, 85, 0, 165], [0, 47, 105, 35]], colours: [[37, 58, 88], [220, 179, 129]])
    /// The same samples, where no marker of Adobe's says that they are stored inverted.
    private static let direct = Halves(
        inks: [[113, 170, 255, 90], [255, 208, 150, 220]], colours: [[91, 54, 0], [0, 0, 6]])

    private func check(_ file: [UInt8], _ halves: Halves, _ name: String) throws {
        for format in [PixelFormat.rgba8, .bgra8Premultiplied, .rgb8] {
            for box in [0, 16] {
                var options = decodeOptions(format)
                options.convertsToSRGB = true
                options.targetWidth = box
                let decoder = BuiltInCodec().makeDecoder(options)
                try feed(decoder, file, pieces: 1000)
                let image = try decoder.finish()
                XCTAssertEqual(image.colour.notes, [.profile, .converted], name)
                for half in 0...1 {
                    let (x, y) = (image.pixels.width * (1 + 2 * half) / 4, image.pixels.height / 2)
                    let at = y * image.pixels.stride + x * format.bytesPerPixel
                    let got = (0..<3).map { Int(image.pixels.bytes.load(fromByteOffset: at + $0, as: UInt8.self)) }
                    let shown = format.isBGRA ? Array(got.reversed()) : got
                    let own = Self.profile.converted(halves.inks[half]).prefix(3).map { Int($0) }
                    for wanted in [halves.colours[half], own] {
                        let most = zip(shown, wanted).map { abs($0 - $1) }.max() ?? 255
                        // The coding may have changed an ink by two.
                        XCTAssertLessThanOrEqual(most, 3, "\(name) as \(format): \(shown), not \(wanted)")
                    }
                }
            }
        }
    }

    private func edge(_ kind: picture_kind) -> JPEGSegments {
        var picture = Picture("inks.jpg", kind, width: 64, height: 32)
        picture.spec.edge_x = 32
        picture.spec.quality = 100
        return JPEGSegments(picture.encoded())
    }

    func testInkProfilesAreFollowed() throws {
        for kind in [PICTURE_JPEG_CMYK, PICTURE_JPEG_YCCK] {
            try check(edge(kind).bytes.withAPP2(Self.profile.bytes), Self.drawn, "Adobe, kind \(kind.rawValue)")
        }
        var plain = edge(PICTURE_JPEG_CMYK)
        plain.remove(0xEE)
        try check(plain.bytes.withAPP2(Self.profile.bytes), Self.direct, "without a marker of Adobe's")
    }
}
