import ImgdlCodecs
import ImgdlCore
import TestPictures
import XCTest

/// Files over which decoders stumbled elsewhere, each with its verdict, whole and in pieces (features B5, B7, B10).
final class GeneratedInputTests: XCTestCase {
    private var allFrames: DecodeOptions {
        var options = DecodeOptions()
        options.decodesAllFrames = true
        return options
    }

    @discardableResult
    private func verdict(
        _ bytes: [UInt8], _ options: DecodeOptions = DecodeOptions(), pieces: [Int] = [1, 7, 1000], line: UInt = #line
    ) -> Verdict {
        let whole = decode(bytes, options)
        for size in pieces {
            let parts = decode(bytes, options, pieces: size, partials: size == 7)
            XCTAssert(parts == whole, "pieces of \(size): \(parts.failure as Any), \(whole.failure as Any)", line: line)
        }
        return whole
    }

    private func jpeg(_ kind: picture_kind, width: Int32 = 37, height: Int32 = 21) -> [UInt8] {
        Picture("a", kind, width: width, height: height).encoded()
    }

    // MARK: JPEG: orientation

    func testOrientationBehindAndBesideOtherSegments() {
        let plain = JPEGSegments(jpeg(PICTURE_JPEG_BASELINE))
        let xmp = Array("http://ns.adobe.com/xap/1.0/\0<x/>".utf8)
        func orientation(_ change: (inout JPEGSegments) -> Void) -> Int? {
            var file = plain
            change(&file)
            return verdict(file.bytes).header?.orientation
        }
        XCTAssertEqual(
            orientation {
                $0.insert(0xE1, JPEGSegments.exif(6)); $0.insert(0xE1, xmp)
            }, 6, "XMP first")
        XCTAssertEqual(orientation { $0.insert(0xE1, JPEGSegments.exif(6), at: 1) }, 6, "JFIF first")
        XCTAssertEqual(
            orientation {
                $0.insert(0xE1, JPEGSegments.exif(3)); $0.insert(0xE1, JPEGSegments.exif(8))
            }, 8, "two")
        XCTAssertEqual(
            orientation { $0.insert(0xE1, JPEGSegments.exif(nil, thumbnail: 6)) }, 1, "the thumbnail's alone")
        XCTAssertEqual(orientation { $0.insert(0xE1, JPEGSegments.exif(5, thumbnail: 6)) }, 5, "both")
        XCTAssertEqual(orientation { $0.insert(0xE1, Array("Exif\0".utf8)) }, 1, "a segment too short for a block")
        let far = Array(JPEGSegments.exif(6).prefix(10)) + [0xF0, 0xFF, 0, 0]
        XCTAssertEqual(orientation { $0.insert(0xE1, far) }, 1, "a directory behind the segment")
    }

    // MARK: JPEG: colours

    /// Three components: what the Adobe marker says where JFIF does not speak.
    func testAdobeMarkersOfThreeComponents() {
        var file = JPEGSegments(jpeg(PICTURE_JPEG_BASELINE))
        let usual = decode(file.bytes)
        file.remove(0xE0)
        XCTAssert(verdict(file.bytes) == usual, "neither: YCbCr")
        func with(_ content: [UInt8]) -> Verdict {
            var marked = file
            marked.insert(0xEE, content)
            return verdict(marked.bytes)
        }
        XCTAssert(with(JPEGSegments.adobe(1)) == usual)
        XCTAssert(with(JPEGSegments.adobe(2)) == usual, "a transform of four components")
        XCTAssert(with(Array("Adobe".utf8)) == usual, "too short")
        let raw = with(JPEGSegments.adobe(0))
        XCTAssertNil(raw.failure)
        XCTAssertNotEqual(raw.pixels, usual.pixels, "RGB")
    }

    func testAdobeMarkersOfFourComponents() throws {
        var file = JPEGSegments(jpeg(PICTURE_JPEG_CMYK))
        let inverted = try XCTUnwrap(decode(file.bytes).pixels)
        file.remove(0xEE)
        let plain = try XCTUnwrap(verdict(file.bytes).pixels, "inks without a marker are not inverted")
        XCTAssertNotEqual(plain, inverted)
        for transform in [UInt8(1), 2] {
            var marked = file
            marked.insert(0xEE, JPEGSegments.adobe(transform))
            XCTAssertNil(verdict(marked.bytes).failure, "transform \(transform)")
        }
        file.insert(0xEE, JPEGSegments.adobe(0))
        XCTAssertEqual(verdict(file.bytes).pixels, inverted)
    }

    /// A profile for other colours than the picture's changes nothing.
    func testProfilesForOtherColors() {
        for (kind, space) in [
            (PICTURE_JPEG_CMYK, "RGB "), (PICTURE_JPEG_BASELINE, "CMYK"), (PICTURE_JPEG_GRAY, "Lab "),
        ] {
            var file = JPEGSegments(jpeg(kind))
            let usual = decode(file.bytes)
            let profile =
                [UInt8](repeating: 0, count: 16) + Array("\(space)Lab ".utf8) + [UInt8](repeating: 0, count: 104)
            file.insert(0xE2, Array("ICC_PROFILE\0".utf8) + [1, 1] + profile, at: 1)
            XCTAssertEqual(verdict(file.bytes).pixels, usual.pixels, space)
        }
    }

    // MARK: JPEG: structure

    /// Motion photos, multi-picture files, gain maps, trailers: the first picture, and nothing behind it.
    func testWhatFollowsAJPEGDoesNotMatter() {
        for kind in [PICTURE_JPEG_BASELINE, PICTURE_JPEG_PROGRESSIVE] {
            let bytes = jpeg(kind)
            let usual = decode(bytes)
            let movie = [0, 0, 0, 24] + Array("ftypmp42".utf8) + [UInt8](repeating: 0xFF, count: 3000)
            for (name, trailer) in [("picture", jpeg(PICTURE_JPEG_GRAY)), ("movie", movie)] {
                XCTAssert(verdict(bytes + trailer) == usual, name)
            }
            XCTAssert(verdict(bytes + [UInt8](repeating: 0, count: 10_000_000), pieces: [16_384]) == usual, "zeros")
        }
    }

    func testOddTablesAndIntervals() throws {
        let bytes = jpeg(PICTURE_JPEG_BASELINE)
        let usual = decode(bytes)
        var restarts = JPEGSegments(bytes)
        restarts.insert(0xDD, [0xFF, 0xFF])
        XCTAssert(verdict(restarts.bytes) == usual, "an interval larger than the picture")

        var wide = JPEGSegments(bytes)
        wide.segments = wide.segments.map { marker, content in
            guard marker == 0xDB else { return (marker, content) }
            let tables = stride(from: 0, to: content.count, by: 65).map { content[$0..<$0 + 65] }
            return (marker, tables.flatMap { [$0.first! | 0x10] + $0.dropFirst().flatMap { [0, $0] } })
        }
        XCTAssertEqual(verdict(wide.bytes).pixels, usual.pixels, "16-bit quantisation in a baseline file")

        var tall = JPEGSegments(bytes)
        let frame = try XCTUnwrap(tall.segments.firstIndex { $0.marker == 0xC0 })
        tall.segments[frame].content[1...2] = [0, 0]
        XCTAssertEqual(verdict(tall.bytes).failure?.code, .badImageData, "a height that DNL would tell")
    }

    func testCutArithmeticFiles() {
        for kind in [PICTURE_JPEG_ARITHMETIC, PICTURE_JPEG_ARITHMETIC_PROGRESSIVE] {
            let bytes = jpeg(kind)
            for part in 1...3 {
                XCTAssertEqual(verdict(Array(bytes[..<(bytes.count * part / 4)])).failure?.code, .truncated)
            }
        }
    }

    // MARK: GIF

    /// The transparent index is the background colour's; what is transparent shows the frame before (Pillow 1742, 3433).
    func testTransparentIndexThatIsTheBackground() {
        var file = GIFFile(width: 2, height: 1)
        file.addFrame(width: 2, height: 1, [1, 2])
        for _ in 1..<42 {
            file.addControl(delay: 5, transparent: 0)
            file.addFrame(width: 2, height: 1, [0, 3])
        }
        let frames = verdict(file.ended(), allFrames).frames
        XCTAssertEqual(frames.count, 42)
        XCTAssertEqual(frames.last, [255, 0, 0, 255, 0, 0, 255, 255])
    }

    func testAllFramesRestoreThePreviousCanvas() {
        var file = GIFFile(width: 2, height: 1)
        for index in 1...3 {
            file.addControl(disposal: 3, transparent: 0)
            file.addFrame(width: 2, height: 1, index == 1 ? [1, 0] : [0, UInt8(index)])
        }
        let clear: [UInt8] = [0, 0, 0, 0]
        let frames = verdict(file.ended(), allFrames).frames
        XCTAssertEqual(frames, [[255, 0, 0, 255] + clear, clear + [0, 255, 0, 255], clear + [0, 0, 255, 255]])
    }

    func testLoopsBehindTheFirstFrameAndSingleFrames() {
        var file = GIFFile(width: 2, height: 1)
        file.addFrame(width: 2, height: 1, [1, 2])
        XCTAssertEqual(verdict(file.ended(), allFrames).header?.frameCount, 1)
        file.addLoops(3)
        file.addFrame(width: 2, height: 1, [2, 1])
        XCTAssertEqual(verdict(file.ended(), allFrames).loopCount, 4)
    }

    func testNoPaletteAtAll() {
        var file = GIFFile(width: 2, height: 1, palette: [])
        file.addFrame(width: 2, height: 1, [1, 2])
        XCTAssertEqual(verdict(file.ended()).pixels, [UInt8](repeating: 0, count: 8))
    }

    // MARK: PNG

    private func png(_ change: (inout PNGFile) -> Void = { _ in }) -> [UInt8] {
        var file = PNGFile(width: 2, height: 2)
        change(&file)
        file.add("IDAT", PNGFile.rows(width: 2, [[1, 2, 3, 255], [4, 5, 6, 255]]))
        return file.ended()
    }

    private let pixels: [UInt8] = [1, 2, 3, 255, 1, 2, 3, 255, 4, 5, 6, 255, 4, 5, 6, 255]

    /// Texts and profiles of 64 MiB in some tens of kilobytes are not inflated.
    func testBombsInTextsAndProfiles() {
        let bomb = PNGFile.deflated([UInt8](repeating: 32, count: 64 << 20))
        XCTAssertLessThan(bomb.count, 100_000)
        let names: [(String, [UInt8])] = [
            ("zTXt", Array("a\0\0".utf8) + bomb), ("iTXt", Array("a\0".utf8) + [1, 0, 0, 0] + bomb),
            ("iCCP", Array("a\0\0".utf8) + bomb),
        ]
        for (name, data) in names {
            XCTAssertEqual(verdict(png { $0.add(name, data) }, pieces: [1000]).pixels, pixels, name)
        }
    }

    /// Image data that goes on behind the last row: libpng stops there, with a warning.
    func testImageDataBehindTheLastRow() {
        var file = PNGFile(width: 2, height: 2)
        let color: [UInt8] = [9, 9, 9, 255]
        file.add("IDAT", PNGFile.rows(width: 2, Array(repeating: color, count: 100_000)))
        let whole = verdict(file.ended())
        XCTAssert(whole.failure?.code == .badImageData || whole.pixels?.prefix(4).elementsEqual(color) == true)
    }

    func testSizesThatCannotBe() {
        for (width, height) in [(Int(Int32.max), 1), (1, Int(Int32.max)), (20_000, 20_000)] {
            var file = PNGFile(width: width, height: height)
            file.add("IDAT", [0x78, 0x9C])
            let code = verdict(file.ended()).failure?.code
            XCTAssert(code == .pixelLimit || code == .badImageData, "\(width) × \(height): \(code as Any)")
        }
    }

    func testImageDataInSingleBytes() {
        var file = PNGFile(width: 200, height: 200)
        var state: UInt32 = 1
        let rows = (0..<200).flatMap { _ -> [UInt8] in
            [0]
                + (0..<800).map { _ in
                    state = state &* 1_664_525 &+ 1_013_904_223
                    return UInt8(state >> 24)
                }
        }
        let data = PNGFile.deflated(rows)
        XCTAssertGreaterThan(data.count, 100_000)
        for byte in data { file.add("IDAT", [byte]) }
        let expected = (0..<200).flatMap { rows[$0 * 801 + 1..<$0 * 801 + 801] }
        XCTAssert(verdict(file.ended(), pieces: [1000]).pixels == expected)
    }

    /// More frames announced than any file has, and a picture of Apple's own kind.
    func testBrokenAnimationsAndForeignChunks() {
        let still = verdict(
            png {
                $0.add("acTL", PNGFile.number(Int(Int32.max)) + PNGFile.number(0))
                $0.add("fcTL", PNGFile.control(0, width: 2, height: 2))
            }, allFrames)
        XCTAssertEqual(still.pixels, pixels)
        XCTAssertEqual(still.header?.frameCount, 1)
        var apple = PNGFile()
        apple.add("CgBI", [0x50, 0, 0x20, 2])
        apple.add("IHDR", PNGFile.number(2) + PNGFile.number(2) + [8, 6, 0, 0, 0])
        XCTAssertEqual(
            verdict(apple.ended()).failure,
            Failure(.badImageData, "the PNG does not begin with its header, but with a chunk “CgBI”"))
    }

    // MARK: WebP

    private func still(_ kind: picture_kind, width: Int32 = 20, height: Int32 = 10) -> WebPFile {
        WebPFile(jpeg(kind, width: width, height: height))
    }

    private func animation(width: Int, height: Int, _ frames: [[UInt8]], flags: UInt8 = 0x12) -> WebPFile {
        var file = WebPFile()
        file.add("VP8X", WebPFile.extended(flags, width: width, height: height))
        file.add("ANIM", [0, 0, 0, 0, 0, 0])
        for frame in frames { file.add("ANMF", frame) }
        return file
    }

    private func picture(_ file: WebPFile, _ name: String) -> [UInt8] {
        WebPFile.Chunk(name: name, data: file[name]).bytes
    }

    func testFramesAndTheCanvas() {
        let chunk = picture(still(PICTURE_WEBP_LOSSLESS), "VP8L")
        let inside = WebPFile.frame(x: 4, y: 6, width: 20, height: 10, chunk)
        let small = verdict(animation(width: 60, height: 40, [inside, inside]).bytes(), allFrames)
        XCTAssertNil(small.failure)
        XCTAssertEqual(small.header?.width, 60)
        XCTAssertEqual(small.frames.first?.prefix(4), [0, 0, 0, 0])
        for (x, y) in [(42, 0), (0, 32)] {
            let outside = WebPFile.frame(x: x, y: y, width: 20, height: 10, chunk)
            let failure = verdict(animation(width: 60, height: 40, [inside, outside]).bytes()).failure
            XCTAssertEqual(failure, Failure(.badImageData, "frame 2 of the WebP lies outside the canvas"))
        }
        let single = verdict(animation(width: 20, height: 10, [WebPFile.frame(width: 20, height: 10, chunk)]).bytes())
        XCTAssertNil(single.failure)
        XCTAssertEqual(single.header?.frameCount, 1, "an animation of one frame")
    }

    func testTwoThousandFrames() {
        let frame = WebPFile.frame(width: 20, height: 10, picture(still(PICTURE_WEBP_LOSSLESS), "VP8L"))
        let bytes = animation(width: 20, height: 10, Array(repeating: frame, count: 2000)).bytes()
        XCTAssertEqual(verdict(bytes, pieces: [1000]).header?.frameCount, 2000)
        XCTAssertEqual(verdict(bytes, allFrames, pieces: [1000]).failure?.code, .frameLimit)
        var options = allFrames
        options.maximumFrames = 2000
        XCTAssertEqual(verdict(bytes, options, pieces: [1000]).frames.count, 2000)
    }

    /// The header denies the alpha that is there; the picture has it all the same.
    func testAlphaThatIsNotAnnounced() {
        let source = still(PICTURE_WEBP_LOSSY_ALPHA)
        var file = WebPFile()
        file.add("VP8X", WebPFile.extended(0, width: 20, height: 10))
        file.add("ALPH", source["ALPH"])
        file.add("VP8 ", source["VP8 "])
        XCTAssertNil(verdict(file.bytes()).failure)
    }

    func testLengthsThatDoNotFit() {
        let file = still(PICTURE_WEBP_LOSSY)
        let usual = decode(file.bytes())
        XCTAssertEqual(verdict(file.bytes(excess: 100)).failure?.code, .truncated, "longer than the file")
        XCTAssertNotNil(verdict(file.bytes(excess: -100)).failure, "shorter than the picture")
        XCTAssertEqual(verdict(file.bytes() + [1, 2, 3]).pixels, usual.pixels, "something behind it")
        var odd = WebPFile()
        odd.add("VP8X", WebPFile.extended(0x08, width: 20, height: 10))
        odd.chunks += file.chunks.filter { $0.name == "VP8 " }
        odd.add("EXIF", JPEGSegments.exif(6) + [0])
        let bare = Array(odd.bytes(excess: -1).dropLast())
        XCTAssertEqual(verdict(bare).header?.orientation, 6, "an odd chunk without padding at the end")
    }

    func testEXIFAheadOfThePicture() {
        var file = WebPFile()
        file.add("VP8X", WebPFile.extended(0x08, width: 20, height: 10))
        file.add("EXIF", JPEGSegments.exif(6))
        file.add("VP8 ", still(PICTURE_WEBP_LOSSY)["VP8 "])
        XCTAssertEqual(verdict(file.bytes()).header?.height, 20)
    }
}
