import ImgdlCore
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// ICC profiles: kept for the caller, and on request followed to sRGB, as lcms2 does it alone.
final class ColourTests: XCTestCase {
    private static let rgb = Profile(PICTURE_PROFILE_RGB)
    private static let gray = Profile(PICTURE_PROFILE_GRAY)
    private static let inks = Profile(PICTURE_PROFILE_INKS)

    private func image(_ file: [UInt8], _ options: DecodeOptions, pieces: Int = .max / 2) throws -> DecodedImage {
        let decoder = BuiltInCodec().makeDecoder(options)
        try feed(decoder, file, pieces: pieces)
        return try decoder.finish()
    }

    private func profile(_ image: DecodedImage) -> [UInt8] { image.colour.profile.map { Array($0.bytes) } ?? [] }

    private func converting(_ format: PixelFormat = .rgba8) -> DecodeOptions {
        var options = decodeOptions(format)
        options.convertsToSRGB = true
        return options
    }

    /// The picture with that profile in it.
    private func tagged(_ picture: Picture, _ profile: [UInt8]) -> [UInt8] {
        let file = picture.encoded()
        if picture.name.hasSuffix("jpg") { return file.withAPP2(profile) }
        if picture.name.hasSuffix("png") { return file.withICCP(profile) }
        return file.withICCPChunk(
            profile, width: Int(picture.spec.width), height: Int(picture.spec.height),
            alpha: picture.name.contains("alpha"))
    }

    private var coloured: [Picture] {
        Picture.everyCoding.filter { !["cmyk.jpg", "ycck.jpg", "gray.jpg", "gray16.png"].contains($0.name) }
    }

    func testEveryFormatKeepsItsProfileAndItsPixels() throws {
        for picture in coloured {
            let image = try image(tagged(picture, Self.rgb.bytes), decodeOptions())
            XCTAssertEqual(profile(image), Self.rgb.bytes, picture.name)
            XCTAssertEqual(image.colour.notes, .profile, picture.name)
            XCTAssert(image.bytes == decode(picture.encoded()).pixels, picture.name)
        }
    }

    func testPixelsAreWhatLcmsMakesOfThem() throws {
        for picture in coloured {
            let stored = try XCTUnwrap(decode(picture.encoded()).pixels)
            let expected = Self.rgb.converted(stored)
            XCTAssert(expected != stored)
            let file = tagged(picture, Self.rgb.bytes)
            let converted = try image(file, converting())
            XCTAssert(converted.bytes == expected, picture.name)
            XCTAssertEqual(converted.colour.notes, [.profile, .converted], picture.name)
            XCTAssertEqual(profile(converted), Self.rgb.bytes, picture.name)
            for size in [1, 1000] {
                XCTAssert(try image(file, converting(), pieces: size).bytes == expected, picture.name)
            }
            // Alpha goes in behind the colours.
            let multiplied = try image(file, converting(.bgra8Premultiplied)).bytes
            for at in stride(from: 0, to: expected.count, by: 4) {
                let alpha = Int(expected[at + 3])
                let values = (0..<3).map { UInt8((Int(expected[at + $0]) * alpha + 127) / 255) }
                guard Array(multiplied[at..<at + 4]) == [values[2], values[1], values[0], UInt8(alpha)] else {
                    XCTFail("\(picture.name), pixel \(at / 4)")
                    break
                }
            }
        }
    }

    func testTurnedAndScaledPicturesAreConverted() throws {
        for var picture in coloured {
            picture.spec.orientation = 6
            var plain = decodeOptions()
            plain.targetWidth = 40
            var options = converting()
            options.targetWidth = 40
            let stored = try image(tagged(picture, Self.rgb.bytes), plain).bytes
            let converted = try image(tagged(picture, Self.rgb.bytes), options).bytes
            // Scaled first: colours of the box, converted.
            let expected = Self.rgb.converted(stored)
            let most = zip(converted, expected).map { abs(Int($0) - Int($1)) }.max() ?? 0
            XCTAssertLessThanOrEqual(most, 1, picture.name)
        }
    }

    func testGrayAndInksGoThroughTheirOwnProfiles() throws {
        for kind in [PICTURE_JPEG_GRAY, PICTURE_PNG_GRAY16] {
            let picture = Picture(kind == PICTURE_JPEG_GRAY ? "gray.jpg" : "gray16.png", kind)
            let stored = try XCTUnwrap(decode(picture.encoded()).pixels)
            XCTAssert(try image(tagged(picture, Self.gray.bytes), converting()).bytes == Self.gray.converted(stored))
        }
        let deep = Picture("gray16.png", PICTURE_PNG_GRAY16)
        let stored = try XCTUnwrap(decode(deep.encoded(), decodeOptions(.rgba16)).pixels)
        let words = stored.withUnsafeBytes { Array($0.bindMemory(to: UInt16.self)) }
        let expected = Self.gray.converted(words).withUnsafeBytes { Array($0) }
        XCTAssert(try image(tagged(deep, Self.gray.bytes), converting(.rgba16)).bytes == expected)

        // The drawn inks are plain: what the profile makes of them is near what is shown without it.
        for kind in [PICTURE_JPEG_CMYK, PICTURE_JPEG_YCCK] {
            let picture = Picture("inks.jpg", kind)
            let plain = try XCTUnwrap(decode(picture.encoded()).pixels)
            let image = try image(tagged(picture, Self.inks.bytes), converting())
            XCTAssertEqual(image.colour.notes, [.profile, .converted])
            let sum = zip(plain, image.bytes).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
            XCTAssertLessThan(Double(sum) / Double(plain.count), 6)
            XCTAssert(image.bytes != plain)
            XCTAssert(stride(from: 3, to: plain.count, by: 4).allSatisfy { image.bytes[$0] == 255 })
        }
    }

    func testChunksOfAProfileMayComeInAnyOrder() throws {
        let file = Picture("a.jpg", PICTURE_JPEG_BASELINE).encoded()
        for order in [[1, 2, 3], [3, 1, 2], [2, 3, 1]] {
            for size in [1, 7, .max / 2] {
                let image = try image(file.withAPP2(Self.rgb.bytes, order: order), decodeOptions(), pieces: size)
                XCTAssertEqual(profile(image), Self.rgb.bytes, "\(order)")
            }
        }
        for (order, count) in [([1, 2], 3), ([1, 1, 2], 2), ([1, 4], 3), ([2], 1)] {
            let image = try image(file.withAPP2(Self.rgb.bytes, order: order, count: count), converting())
            XCTAssertEqual(image.colour.notes, .unusableProfile, "\(order)")
            XCTAssertNil(image.colour.profile)
            XCTAssert(image.bytes == decode(file).pixels)
        }
    }

    /// Of what a PNG packs all comes out, however little of it is left to be read by then; and of what is cut, nothing.
    func testPackedProfilesOfPNGs() throws {
        let file = Picture("a.png", PICTURE_PNG_RGB).encoded()
        for zeros in [0, 1, 65_000, 1 << 18, 3 << 20] {
            var bytes = Self.rgb.bytes + [UInt8](repeating: 0, count: zeros)
            bytes.replaceSubrange(..<4, with: PNGFile.number(bytes.count))
            let packed = PNGFile.deflated(bytes)
            for size in [7, .max / 2] {
                let image = try image(
                    file.withChunk("iCCP", Array("p".utf8) + [0, 0] + packed), decodeOptions(), pieces: size)
                XCTAssert(profile(image) == bytes, "\(zeros) zeros")
                XCTAssertEqual(image.colour.notes, .profile)
            }
            var damaged = file.withChunk("iCCP", Array("p".utf8) + [0, 0] + packed)
            damaged[60] ^= 1
            for broken in [
                damaged, file.withChunk("iCCP", Array("p".utf8) + [0, 0] + packed.dropLast(12)),
                file.withChunk("iCCP", Array("p".utf8) + [0, 1] + packed), file.withChunk("iCCP", [0, 0] + packed),
                file.withChunk("iCCP", [UInt8](repeating: 0x61, count: 80) + [0, 0] + packed),
            ] {
                let image = try image(broken, converting())
                XCTAssertEqual(image.colour.notes, .unusableProfile)
                XCTAssertNil(image.colour.profile)
            }
        }
    }

    /// A broken profile, or one of another kind, is a note, and never an error.
    func testUnusableProfilesLeavePixelsAsStored() throws {
        var broken = Self.rgb.bytes
        for at in 128..<broken.count { broken[at] = 0x5A }
        for picture in coloured {
            for bytes in [broken, Self.inks.bytes, Array(Self.rgb.bytes.prefix(60)), [1, 2, 3]] {
                let image = try image(tagged(picture, bytes), converting())
                XCTAssert(image.colour.notes.contains(.unusableProfile), picture.name)
                XCTAssertFalse(image.colour.notes.contains(.converted), picture.name)
                XCTAssert(image.bytes == decode(picture.encoded()).pixels, picture.name)
            }
        }
        let inks = Picture("inks.jpg", PICTURE_JPEG_CMYK)
        XCTAssert(try image(tagged(inks, Self.rgb.bytes), converting()).bytes == decode(inks.encoded()).pixels)
    }

    func testWithoutAProfileNothingChanges() throws {
        for picture in Picture.everyCoding {
            let image = try image(picture.encoded(), converting())
            XCTAssert(image.bytes == decode(picture.encoded()).pixels, picture.name)
            XCTAssertEqual(image.colour.notes, [], picture.name)
        }
    }

    func testChunksOfAPNGAboutColoursAreNoted() throws {
        let file = Picture("a.png", PICTURE_PNG_RGB).encoded()
            .withChunk("gAMA", [0, 0, 0xB1, 0x8F]).withChunk("sRGB", [0])
            .withChunk("cHRM", [UInt8](repeating: 0, count: 32))
        XCTAssertEqual(try image(file, decodeOptions()).colour.notes, [.gamma, .sRGB, .chromaticities])
    }
}
