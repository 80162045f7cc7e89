import CCodecs
import ImgdlCore
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// PNGs of 16 bits keep them on every way: turned, scaled (X8), interlaced, animated (O11), converted, in pieces (B7).
final class DeepPictureTests: XCTestCase {
    private static let sizes = [(1, 1), (1, 37), (37, 1), (2, 3), (23, 17), (40, 64)]
    private static let boxes = [
        (1, 1, false), (7, 7, false), (20, 0, false), (9, 5, true), (1, 11, true), (16, 16, true),
    ]

    private func boxed(_ box: (Int, Int, Bool), _ format: PixelFormat = .rgba16) -> DecodeOptions {
        var options = decodeOptions(format)
        (options.targetWidth, options.targetHeight, options.stretches) = box
        return options
    }

    /// Exactly rounded.
    private func check(_ got: ArraySlice<UInt16>, _ wanted: ArraySlice<Double>, _ name: String) {
        XCTAssertEqual(got.count, wanted.count, name)
        for (index, pair) in zip(got, wanted).enumerated() where abs(Double(pair.0) - pair.1) > 0.500_001 {
            return XCTFail("\(name): word \(index) is \(pair.0), not \(pair.1)")
        }
    }

    private func check(_ got: DeepPicture, isAverageOf full: DeepPicture, _ name: String) {
        // What is not scaled keeps the colours that nobody sees.
        if (got.width, got.height) == (full.width, full.height) { return XCTAssert(got == full, name) }
        check(got.words[...], full.averages(width: got.width, height: got.height)[...], name)
    }

    private func deep(_ pixels: [UInt8]?, _ header: ImageHeader?) throws -> DeepPicture {
        let (pixels, header) = (try XCTUnwrap(pixels), try XCTUnwrap(header))
        return DeepPicture(pixels, width: header.width, height: header.height)
    }

    // MARK: Stills

    func testFullSizeIsWhatIsStored() throws {
        for (width, height) in Self.sizes {
            for orientation in 1...8 {
                let picture = DeepPicture(width: width, height: height)
                for isInterlaced in [false, true] {
                    let file = picture.encoded(isInterlaced: isInterlaced, orientation: UInt8(orientation))
                    let got = decode(file, decodeOptions(.rgba16))
                    XCTAssert(try deep(got.pixels, got.header) == picture.turned(orientation), "\(width) × \(height)")
                }
            }
        }
    }

    func testX8_ScaledPicturesAreExactlyRoundedAverages() throws {
        for (index, (width, height)) in Self.sizes.enumerated() {
            for isOpaque in [false, true] {
                let picture = DeepPicture(width: width, height: height, isOpaque: isOpaque)
                for (number, box) in Self.boxes.enumerated() {
                    for isInterlaced in [false, true] {
                        let orientation = 1 + (index + number) % 8
                        let file = picture.encoded(
                            hasAlpha: !isOpaque, isInterlaced: isInterlaced, orientation: UInt8(orientation))
                        let got = decode(file, boxed(box))
                        let name = "\(width) × \(height) in \(box), orientation \(orientation), Adam7 \(isInterlaced)"
                        let turned = picture.turned(orientation)
                        let size = OutputSize(width: turned.width, height: turned.height, boxed(box))
                        let scaled = try deep(got.pixels, got.header)
                        XCTAssertEqual([scaled.width, scaled.height], [size.width, size.height], name)
                        check(scaled, isAverageOf: turned, name)
                        for pieces in [1, 7, 1000] {
                            XCTAssert(decode(file, boxed(box), pieces: pieces, partials: true) == got, name)
                        }
                    }
                }
            }
        }
    }

    /// What the lower bytes say survives: the mean of neighbours that differ by one step, in words and not in bytes.
    func testX8_StepsBelowAByteAreNotLost() throws {
        let words: [UInt16] = [1000, 2000, 3000, 65535, 1002, 2001, 3004, 65535]
        let picture = DeepPicture(width: 2, height: 1, words: words)
        let got = decode(picture.encoded(), boxed((1, 1, false)))
        XCTAssertEqual(try deep(got.pixels, got.header).words, [1001, 2001, 3002, 65535])
    }

    /// The host's memory, padded and misaligned, and a scaler's canvas in it.
    func testX8_ScaledIntoTheHostsMemory() throws {
        for isInterlaced in [false, true] {
            let file = DeepPicture(width: 40, height: 64).encoded(isInterlaced: isInterlaced, orientation: 7)
            let host = TestAllocator()
            var options = boxed((9, 30, false))
            let own = decode(file, options).pixels
            options.allocator = host.allocator
            XCTAssert(decode(file, options, pieces: 100, partials: true).pixels == own)
            XCTAssertGreaterThan(host.given, 0)
            XCTAssertEqual(host.given, host.taken)
            XCTAssertFalse(host.hasOverrun)
        }
    }

    /// Of EXIF behind the pixels, the same as of EXIF ahead of them.
    func testLateOrientationKeepsThem() throws {
        let picture = DeepPicture(width: 23, height: 17)
        var late = PNGFile(width: 23, height: 17, depth: 16)
        late.add("IDAT", picture.imageData())
        late.add("eXIf", DeepPicture.exif(6))
        for options in [decodeOptions(.rgba16), boxed((9, 9, false))] {
            XCTAssert(decode(late.ended(), options).pixels == decode(picture.encoded(orientation: 6), options).pixels)
        }
        // Turned, it stands out of its box: it is scaled again.
        let got = decode(late.ended(), boxed((0, 9, false)))
        XCTAssertEqual([got.header?.width, got.header?.height], [7, 9])
        XCTAssert(try deep(got.pixels, got.header).words.contains { $0 % 257 != 0 })
    }

    /// Words that a codec of the host's gave are scaled and turned as words.
    func testWordsOfTheHostsCodecKeepTheirBits() throws {
        let picture = DeepPicture(width: 23, height: 17)
        let pixels = try PixelBuffer(width: 23, height: 17, format: .rgba16)
        picture.words.withUnsafeBytes { pixels.bytes.copyMemory(from: $0.baseAddress!, byteCount: $0.count) }
        let header = ImageHeader(
            format: .other, width: 23, height: 17, orientation: 6, hasAlpha: true, isProgressive: false)
        let whole = PixelRectangle(x: 0, y: 0, width: 23, height: 17)
        let image = DecodedImage(header: header, pixels: pixels, ready: whole, isComplete: true, pass: 1)
        let shown = try image.adapted(to: boxed((5, 9, true)), header, isComplete: true)
        let got = DeepPicture(shown.bytes, width: shown.pixels.width, height: shown.pixels.height)
        XCTAssertEqual([got.width, got.height], [5, 9])
        check(got, isAverageOf: picture.turned(6), "adapted")
    }

    // MARK: Partial images

    /// Each is that of the full size at that moment, made smaller.
    func testPartialImagesAreAveragesOfWhatHasCome() throws {
        let picture = DeepPicture(width: 37, height: 29, isOpaque: true)
        for isInterlaced in [false, true] {
            let file = picture.encoded(isInterlaced: isInterlaced)
            let decoder = BuiltInCodec().makeDecoder(boxed((11, 8, true)))
            let full = BuiltInCodec().makeDecoder(decodeOptions(.rgba16))
            var at = 0
            var count = 0
            try feed(decoder, file, pieces: 40) { end in
                _ = try? feed(full, Array(file[at..<end]), pieces: .max / 2)
                at = end
                let source = full.partialImage()
                guard let image = decoder.partialImage() else { return }
                guard let source else { return XCTFail("nothing in full size") }
                let seen = DeepPicture(source.bytes, width: 37, height: 29)
                let got = DeepPicture(image.bytes, width: 11, height: 8)
                let ready = 4 * 11 * image.ready.height
                let wanted = seen.averages(width: 11, height: 8)
                check(got.words[..<ready], wanted[..<ready], "Adam7 \(isInterlaced), \(end) bytes")
                XCTAssert(isInterlaced || got.words[ready...].allSatisfy { $0 == 0 })
                count += 1
            }
            XCTAssertGreaterThan(count, isInterlaced ? 10 : 5)
        }
    }

    // MARK: The scaler alone

    private func scaled(_ words: [UInt16], width: Int, height: Int, to: (Int, Int), isOpaque: Bool) throws -> [UInt16] {
        let source = try PixelBuffer(width: width, height: height, format: .rgba16)
        for at in 0..<source.byteCount / 2 {
            source.bytes.storeBytes(of: words[at % words.count], toByteOffset: 2 * at, as: UInt16.self)
        }
        let layout = CanvasLayout(storedWidth: to.0, storedHeight: to.1, orientation: .upright)
        var options = DecodeOptions()
        options.pixelFormat = .rgba16
        let shown = try source.shown(as: layout, options, isOpaque: isOpaque, isDeep: true, nil).pixels
        return DeepPicture(bytes(of: shown), width: to.0, height: to.1).words
    }

    func testFlatStaysFlat() throws {
        for alpha in [65535, 7] as [UInt16] {
            let pixel = [65001, 32768, 3, alpha]
            for (width, height, to) in [
                (31, 17, (11, 1)), (100_000, 2, (1, 1)), (2, 100_000, (1, 1)), (70_000, 1, (69_999, 1)),
                (4000, 2, (3999, 1)), (2, 2239, (2, 1754)),
            ] {
                let got = try scaled(pixel, width: width, height: height, to: to, isOpaque: alpha == 65535)
                XCTAssert(got.indices.allSatisfy { got[$0] == pixel[$0 % 4] }, "\(width) × \(height), \(got.prefix(4))")
            }
        }
    }

    func testInvisibleColoursDoNotShow() throws {
        let words: [UInt16] = [65535, 0, 0, 0, 65535, 65535, 65534, 65535]
        let white = try scaled(words, width: 2, height: 1, to: (1, 1), isOpaque: false)
        XCTAssertEqual(white, [65535, 65535, 65534, 32768])
        let nothing = try scaled([65535, 1, 2, 0], width: 3, height: 3, to: (2, 2), isOpaque: false)
        XCTAssertEqual(nothing, .init(repeating: 0, count: 16))
    }

    /// More pixels than 64 bits hold sums of: nothing runs over.
    func testRowsOfAHugePicture() throws {
        let (width, height) = (70_001, 2_000_000_011)
        for alpha in [CODEC_ALPHA_OPAQUE, CODEC_ALPHA_STRAIGHT] {
            let pixel: [UInt16] = [65535, 65534, 12345, alpha == CODEC_ALPHA_OPAQUE ? 65535 : 40_001]
            let row = (0..<4 * width).map { pixel[$0 % 4] }
            let canvas = try PixelBuffer(width: width - 1, height: 3, format: .rgba16)
            let layout = CanvasLayout(storedWidth: width - 1, storedHeight: height - 1, orientation: .upright)
            let scaler = try RowScaler(width: width, height: height, to: layout, from: alpha, .rgba16, hasWords: true)
            scaler.begin(on: canvas, nil, nil)
            for _ in 0..<4 {
                try row.withUnsafeBytes { try scaler.push($0.baseAddress!, rows: 1, width: 10, stride: 0, nil) }
            }
            XCTAssertEqual(scaler.rows, 3)
            let got = DeepPicture(bytes(of: canvas), width: width - 1, height: 3).words
            XCTAssert(got.indices.allSatisfy { got[$0] == pixel[$0 % 4] }, "\(got.prefix(4))")
        }
    }

    func testRowsBehindTheLastAreIgnored() throws {
        let layout = CanvasLayout(storedWidth: 3, storedHeight: 3, orientation: .turnedRight)
        let canvas = try PixelBuffer(width: 3, height: 3, format: .rgba16)
        let row = [UInt8](repeating: 9, count: 80)
        for alpha in [CODEC_ALPHA_OPAQUE, CODEC_ALPHA_STRAIGHT] {
            let scaler = try RowScaler(width: 10, height: 10, to: layout, from: alpha, .rgba16, hasWords: true)
            for _ in 0..<2 {
                scaler.begin(on: canvas, nil, nil)
                for _ in 0..<20 {
                    try row.withUnsafeBytes { try scaler.push($0.baseAddress!, rows: 1, width: 10, stride: 0, nil) }
                }
                XCTAssertEqual(scaler.rows, 3)
            }
            XCTAssert(bytes(of: canvas).allSatisfy { $0 == 9 })
        }
    }

    // MARK: Colours

    func testConvertedPicturesAreWhatLcmsMakesOfTheirWords() throws {
        let profile = Profile(PICTURE_PROFILE_RGB)
        for isInterlaced in [false, true] {
            let file = DeepPicture(width: 40, height: 30).encoded(isInterlaced: isInterlaced, orientation: 8)
                .withICCP(profile.bytes)
            for box in [(0, 0, false), (13, 13, false), (7, 21, true)] {
                var options = boxed(box)
                let stored = decode(file, options)
                options.convertsToSRGB = true
                let got = decode(file, options, pieces: 50, partials: true)
                let expected = profile.converted(try deep(stored.pixels, stored.header).words)
                XCTAssert(try deep(got.pixels, got.header).words == expected, "\(box), Adam7 \(isInterlaced)")
                XCTAssert(got.pixels != stored.pixels)
            }
        }
    }

    /// Memory of the stored picture counts as words: 8 bytes a pixel, and as many for the canvas.
    func testB10_MemoryOfWordsCounts() {
        let file = DeepPicture(width: 40, height: 30).encoded(isInterlaced: true)
        for (most, failure) in [(2 * 8 * 1200, nil), (2 * 8 * 1200 - 1, ErrorCode.memoryLimit)] {
            var options = decodeOptions(.rgba16)
            options.maximumMemoryBytes = UInt64(most)
            XCTAssertEqual(decode(file, options).failure?.code, failure)
        }
    }
}
