import ImgdlCore
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// Formats of other sizes, and the host's memory: what they hold follows from RGBA8.
final class OutputTests: XCTestCase {
    private static let formats: [PixelFormat] = [
        .rgba8, .rgba8Premultiplied, .bgra8, .bgra8Premultiplied, .rgb8, .rgba16,
    ]

    private func follow(_ rgba: [UInt8], _ format: PixelFormat) -> [UInt8] {
        var result = [UInt8]()
        result.reserveCapacity(rgba.count * 2)
        for at in stride(from: 0, to: rgba.count, by: 4) {
            var pixel = Array(rgba[at..<at + 4])
            if format.isPremultiplied {
                for c in 0..<3 { pixel[c] = UInt8((Int(pixel[c]) * Int(pixel[3]) + 127) / 255) }
            }
            if format.isBGRA { pixel.swapAt(0, 2) }
            switch format {
            case .rgb8: result += pixel[..<3]
            case .rgba16: for value in pixel { result += [value, value] }
            default: result += pixel
            }
        }
        return result
    }

    /// B22: every coding, orientation and format, in the library's memory and, padded and misaligned, in the host's.
    func testFormatsStridesAndOrientationsFollowFromRGBA8() throws {
        for var picture in Picture.everyCoding where picture.name != "gray16.png" {
            (picture.spec.width, picture.spec.height) = (37, 22)
            for orientation in [0, 1, 2, 3, 4, 5, 6, 7, 8] as [Int32] {
                picture.spec.orientation = orientation
                let file = picture.encoded()
                let rgba = try XCTUnwrap(decode(file).pixels, picture.name)
                for format in Self.formats {
                    let expected = follow(rgba, format)
                    let name = "\(picture.name), \(orientation), \(format)"
                    XCTAssert(decode(file, decodeOptions(format)).pixels == expected, name)
                    let host = TestAllocator()
                    var options = decodeOptions(format)
                    options.allocator = host.allocator
                    XCTAssert(decode(file, options, pieces: 100, partials: true).pixels == expected, "\(name), host's")
                    XCTAssertGreaterThan(host.given, 0, name)
                    XCTAssertEqual(host.given, host.taken, name)
                    XCTAssertFalse(host.hasOverrun, name)
                }
            }
        }
    }

    /// The same, smaller: X8. What has only 8 bits is scaled as bytes.
    func testScaledPicturesFollowFromRGBA8() throws {
        for var picture in Picture.everyCoding where picture.name != "gray16.png" {
            picture.spec.orientation = 6
            let file = picture.encoded()
            var options = decodeOptions()
            options.targetWidth = 30
            let straight = try XCTUnwrap(decode(file, options).pixels, picture.name)
            for format in [PixelFormat.rgb8, .rgba16] {
                options.pixelFormat = format
                let host = TestAllocator()
                options.allocator = host.allocator
                XCTAssert(decode(file, options).pixels == follow(straight, format), "\(picture.name) as \(format)")
                XCTAssertEqual(host.given, host.taken, picture.name)
                XCTAssertFalse(host.hasOverrun, picture.name)
            }
        }
    }

    /// GIF, and frames of all three animated formats.
    func testAnimationsFollowFromRGBA8() throws {
        for file in try Corpus.files(named: Corpus.animations) {
            var options = decodeOptions()
            options.decodesAllFrames = true
            let straight = decode(file.bytes, options)
            for format in Self.formats {
                options.pixelFormat = format
                for isHosts in [false, true] {
                    let host = TestAllocator()
                    options.allocator = isHosts ? host.allocator : nil
                    let verdict = decode(file.bytes, options)
                    XCTAssert(verdict.pixels == straight.pixels.map { follow($0, format) }, "\(file.path) as \(format)")
                    XCTAssert(verdict.frames == straight.frames.map { follow($0, format) }, "\(file.path) as \(format)")
                    XCTAssertEqual(host.given, host.taken, file.path)
                    XCTAssertFalse(host.hasOverrun, file.path)
                }
            }
        }
    }

    /// A PNG of 16 bits keeps them, whichever way it lies; as 8 bits they are what libpng rounds them to.
    func testDeepPicturesKeepTheirBits() throws {
        let file = Picture("gray16.png", PICTURE_PNG_GRAY16).encoded()
        let rgba = try XCTUnwrap(decode(file).pixels)
        let deep = try XCTUnwrap(decode(file, decodeOptions(.rgba16)).pixels)
        let words = deep.withUnsafeBytes { Array($0.bindMemory(to: UInt16.self)) }
        XCTAssertEqual(words.count, rgba.count)
        XCTAssertEqual(words.map { UInt8((Int($0) * 255 + 32895) >> 16) }, rgba)
        XCTAssert(words.contains { $0 % 257 != 0 })
    }

    /// One call for each canvas, and each is given back once, when the last image lets go of it.
    func testTheAllocatorIsCalledOnceForEachCanvas() throws {
        for picture in Picture.everyCoding {
            let host = TestAllocator()
            (host.padding, host.misalignment) = (0, 0)
            var options = decodeOptions()
            options.allocator = host.allocator
            var decoder: (any ImageDecoder)? = BuiltInCodec().makeDecoder(options)
            try feed(try XCTUnwrap(decoder), picture.encoded(), pieces: .max / 2)
            var image = try decoder?.finish()
            XCTAssertEqual(host.given, 1, picture.name)
            decoder = nil
            XCTAssertEqual(host.taken, 0, picture.name)
            XCTAssertNotNil(image)
            image = nil
            XCTAssertEqual(host.taken, 1, picture.name)
        }
    }

    func testAnAllocatorWithoutMemoryIsOutOfMemory() {
        for picture in Picture.everyCoding {
            let host = TestAllocator()
            host.refuses = true
            var options = decodeOptions()
            options.allocator = host.allocator
            XCTAssertEqual(decode(picture.encoded(), options).failure?.code, .outOfMemory, picture.name)
            host.refuses = false
            host.padding = -1
            XCTAssertEqual(decode(picture.encoded(), options).failure?.code, .invalidArgument, picture.name)
            XCTAssertEqual(host.given, host.taken, picture.name)
        }
    }
}
