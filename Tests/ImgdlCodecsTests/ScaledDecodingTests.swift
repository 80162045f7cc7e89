import ImgdlCore
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// Features X8, X9, D4, T30, B7, B20, B22: pictures decoded to a size.
final class ScaledDecodingTests: XCTestCase {
    private func boxed(
        _ width: Int, _ height: Int, _ format: PixelFormat = .rgba8, stretches: Bool = false, turned: Bool = true
    ) -> DecodeOptions {
        var options = decodeOptions(format, turned: turned)
        (options.targetWidth, options.targetHeight) = (width, height)
        options.stretches = stretches
        return options
    }

    /// The full picture made smaller afterwards.
    private func reference(_ bytes: [UInt8], _ options: DecodeOptions) throws -> [UInt8] {
        let decoder = BuiltInCodec().makeDecoder(decodeOptions(options.pixelFormat, turned: options.appliesOrientation))
        try feed(decoder, bytes, pieces: bytes.count)
        let full = try decoder.finish()
        let layout = CanvasLayout(width: full.pixels.width, height: full.pixels.height, orientation: .upright, options)
        let scaled = try full.pixels.scaled(to: layout, isOpaque: !full.header.hasAlpha)
        return Array(UnsafeRawBufferPointer(start: scaled.bytes, count: scaled.byteCount))
    }

    /// Most and mean difference of colours as they are seen: times alpha.
    private func difference(_ a: [UInt8], _ b: [UInt8]) -> (most: Int, mean: Double) {
        guard a.count == b.count else { return (256, 256) }
        var (most, sum) = (0, 0)
        for pixel in stride(from: 0, to: a.count, by: 4) {
            for channel in 0..<4 {
                let (x, y) = (Int(a[pixel + channel]), Int(b[pixel + channel]))
                let (alphaX, alphaY) = channel == 3 ? (255, 255) : (Int(a[pixel + 3]), Int(b[pixel + 3]))
                let difference = abs(x * alphaX - y * alphaY) / 255
                most = max(most, difference)
                sum += difference
            }
        }
        return (most, Double(sum) / Double(max(1, a.count)))
    }

    /// Close to the full picture made smaller: by a step where only our own filter works, by little where libjpeg scales
    /// within its transform and libwebp in its own planes.
    func testX8_EveryCodingAndOrientation() throws {
        for (index, plain) in Picture.everyCoding.enumerated() {
            for (box, stretches) in [((150, 100), false), ((64, 64), false), ((20, 90), true), ((0, 1), false)] {
                for orientation in [1, 2 + index % 7] {
                    var picture = plain
                    picture.spec.orientation = Int32(orientation)
                    let bytes = picture.encoded()
                    let options = boxed(box.0, box.1, stretches: stretches)
                    let got = decode(bytes, options)
                    let name = "\(picture.name), \(box), orientation \(orientation)"
                    guard let header = got.header, let pixels = got.pixels else {
                        XCTFail("\(name): \(String(describing: got.failure))")
                        continue
                    }
                    let shown = orientation >= 5 ? (150, 201) : (201, 150)
                    let size = OutputSize(width: shown.0, height: shown.1, options)
                    XCTAssertEqual([header.width, header.height], [size.width, size.height], name)
                    XCTAssertEqual(pixels.count, 4 * size.width * size.height, name)
                    let isExact =
                        picture.name.hasSuffix(".png") || picture.name == "animated.webp"
                        || picture.name == "lossy-alpha.webp"
                    let (most, mean) = difference(pixels, try reference(bytes, options))
                    if isExact { XCTAssertLessThanOrEqual(most, 1, name) } else { XCTAssertLessThan(mean, 4, name) }
                }
            }
        }
    }

    /// Where nothing but our filter scales a JPEG, too.
    func testX8_JPEGAboveAHalfIsExact() throws {
        for kind in [PICTURE_JPEG_BASELINE, PICTURE_JPEG_PROGRESSIVE, PICTURE_JPEG_CMYK, PICTURE_JPEG_ARITHMETIC] {
            let bytes = Picture("exact", kind, orientation: 6).encoded()
            let options = boxed(140, 190, .bgra8)
            let pixels = try XCTUnwrap(decode(bytes, options).pixels)
            XCTAssertLessThanOrEqual(difference(pixels, try reference(bytes, options)).most, 1)
        }
    }

    func testB7_PiecesEqualWhole() {
        for (index, plain) in Picture.everyCoding.enumerated() {
            for format in [PixelFormat.rgba8, .bgra8Premultiplied] {
                var picture = plain
                picture.spec.orientation = Int32(1 + index % 8)
                (picture.spec.width, picture.spec.height) = (134, 100)
                let bytes = picture.encoded()
                for options in [boxed(60, 40, format), boxed(17, 150, format, stretches: true)] {
                    let whole = decode(bytes, options)
                    XCTAssertNil(whole.failure, picture.name)
                    for size in [1, 7, 1000] {
                        XCTAssert(decode(bytes, options, pieces: size) == whole, "\(picture.name) in pieces of \(size)")
                    }
                    XCTAssert(
                        decode(bytes, options, pieces: 300, partials: true) == whole, "\(picture.name) with partials")
                }
            }
        }
    }

    func testOnePixelSides() {
        for kind in [
            PICTURE_JPEG_BASELINE, PICTURE_JPEG_PROGRESSIVE, PICTURE_PNG_RGBA, PICTURE_PNG_ADAM7, PICTURE_WEBP_LOSSY,
            PICTURE_WEBP_LOSSLESS_ALPHA,
        ] {
            for (width, height) in [(1, 1), (1, 300), (300, 1), (2, 3)] {
                let bytes = Picture("thin", kind, width: Int32(width), height: Int32(height)).encoded()
                for options in [boxed(1, 1), boxed(7, 7), boxed(0, 10)] {
                    let size = OutputSize(width: width, height: height, options)
                    let got = decode(bytes, options)
                    XCTAssertNil(got.failure)
                    XCTAssertEqual(got.header?.width, size.width, "kind \(kind.rawValue), \(width) x \(height)")
                    XCTAssertEqual(got.header?.height, size.height, "kind \(kind.rawValue), \(width) x \(height)")
                }
            }
        }
    }

    /// D4, T30: partial images and header have the final size; rows that are ready stay, the rest is transparent.
    func testD4_PartialImagesHaveTheFinalSize() throws {
        for (index, plain) in Picture.everyCoding.enumerated() {
            var picture = plain
            picture.spec.exif_before_pixels = 1
            for orientation in [1, 2 + index % 7, 2 + (index + 3) % 7] {
                picture.spec.orientation = Int32(orientation)
                try checkPartials(picture.encoded(), boxed(80, 90), "\(picture.name), orientation \(orientation)")
            }
        }
    }

    /// D4: rows that are ready stay to the bit, though it is not known yet whether something is seen through those behind them.
    func testD4_PartialImagesOfOpaqueAnimations() throws {
        let frames = (7...8).map { (seed: UInt32) in
            WebPFile(Picture("a", PICTURE_WEBP_LOSSY, seed: seed).encoded()).chunks.flatMap(\.bytes)
        }
        var webp = WebPFile()
        webp.add("VP8X", WebPFile.extended(0x02, width: 201, height: 150))
        webp.add("ANIM", [0, 0, 0, 0, 0, 0])
        for frame in frames { webp.add("ANMF", WebPFile.frame(width: 201, height: 150, frame)) }
        try checkPartials(webp.bytes(), boxed(80, 90), "WebP")
        // Something may be seen through a later frame: that says nothing of the first.
        for transparent: UInt8? in [nil, 2] {
            let palette: [UInt8] = [13, 70, 200, 255, 0, 9, 31, 99, 40, 90, 7, 255]
            var gif = GIFFile(width: 201, height: 150, palette: palette)
            for shift in 0..<2 {
                let indices = (0..<201 * 150).map { UInt8(($0 * $0 / 7 + $0 / 201 + shift) % 4) }
                if shift == 1 { gif.addControl(transparent: transparent) }
                gif.addFrame(width: 201, height: 150, indices)
            }
            try checkPartials(gif.ended(), boxed(80, 90), "GIF, transparent: \(transparent.map(Int.init) ?? -1)")
        }
    }

    private func checkPartials(_ bytes: [UInt8], _ options: DecodeOptions, _ name: String) throws {
        let decoder = BuiltInCodec().makeDecoder(options)
        var partials = [(image: DecodedImage, copy: [UInt8])]()
        try feed(decoder, bytes, pieces: 200) { _ in
            guard let image = decoder.partialImage() else { return }
            partials.append((image, image.bytes))
        }
        let final = try decoder.finish()
        XCTAssertEqual(decoder.header, final.header, name)
        XCTAssertEqual([final.pixels.width, final.pixels.height], [final.header.width, final.header.height], name)
        for (image, copy) in partials {
            XCTAssertEqual([image.pixels.width, image.pixels.height], [final.pixels.width, final.pixels.height], name)
            // An animation does not say ahead how many frames it has, nor what is seen through them.
            var header = image.header
            header.frameCount = final.header.frameCount
            // Nor a file with a channel for alpha whether anything is in it.
            if header.hasAlpha || header.frameCount > 1 { header.hasAlpha = final.header.hasAlpha }
            XCTAssertEqual(header, final.header, name)
            guard !image.header.isProgressive else { continue }
            let ready = image.ready
            for y in 0..<final.pixels.height {
                for x in 0..<final.pixels.width {
                    let isReady =
                        x >= ready.x && x < ready.x + ready.width && y >= ready.y && y < ready.y + ready.height
                    let at = 4 * (y * final.pixels.width + x)
                    let wanted = isReady ? final.pixel(x, y) : [0, 0, 0, 0]
                    if Array(copy[at..<at + 4]) != wanted, isReady || image.header.format != .webp {
                        return XCTFail("\(name): pixel \(x), \(y), ready \(ready)")
                    }
                }
            }
        }
    }

    func testD4_PassesCoverTheCanvas() throws {
        for kind in [PICTURE_JPEG_PROGRESSIVE, PICTURE_PNG_ADAM7, PICTURE_PNG_ADAM7_RGBA] {
            let decoder = BuiltInCodec().makeDecoder(boxed(60, 60))
            var last: DecodedImage?
            try feed(decoder, Picture("passes", kind).encoded(), pieces: 200) { _ in
                if let image = decoder.partialImage() { last = image }
            }
            let final = try decoder.finish()
            let partial = try XCTUnwrap(last)
            XCTAssertEqual(partial.ready.height, 45)
            XCTAssertLessThan(difference(partial.bytes, final.bytes).mean, 12)
        }
    }

    /// B5: a cut file gives the same verdict at every size, and what could be had of it.
    func testB5_CutFilesAreSalvaged() throws {
        for picture in Picture.everyCoding where !picture.name.contains("arithmetic") {
            let bytes = picture.encoded()
            let cut = Array(bytes[..<(bytes.count * 3 / 4)])
            let decoder = BuiltInCodec().makeDecoder(boxed(50, 50))
            XCTAssertThrowsError(
                try {
                    try feed(decoder, cut, pieces: 700); _ = try decoder.finish()
                }(), picture.name
            ) { XCTAssertEqual(($0 as? Failure)?.code, decode(cut).failure?.code, picture.name) }
            guard picture.name != "lossless.webp", picture.name != "lossless-alpha.webp",
                picture.name != "animated.webp"
            else {
                continue
            }
            let salvaged = try XCTUnwrap(decoder.salvagedImage(), picture.name)
            XCTAssertFalse(salvaged.isComplete)
            XCTAssertEqual([salvaged.pixels.width, salvaged.pixels.height], [50, 38], picture.name)
            XCTAssertGreaterThan(salvaged.ready.height, 10, picture.name)
            guard let whole = decode(bytes, boxed(50, 50)).pixels, !salvaged.header.isProgressive else { continue }
            let ready = 4 * 50 * (salvaged.ready.height - 1)
            XCTAssert(salvaged.bytes[..<ready] == whole[..<ready], picture.name)
        }
    }

    /// SDWebImage's own test: at 1 MB, the last rows of a square are really painted.
    func testX9_LastRowsArePainted() throws {
        for kind in [
            PICTURE_JPEG_BASELINE, PICTURE_JPEG_PROGRESSIVE, PICTURE_PNG_RGB, PICTURE_PNG_ADAM7, PICTURE_WEBP_LOSSY,
            PICTURE_WEBP_LOSSLESS,
        ] {
            var options = DecodeOptions()
            options.maximumOutputBytes = 1 << 20
            let bytes = Picture("square", kind, width: 1029, height: 1029).encoded()
            let got = decode(bytes, options)
            XCTAssertEqual(got.header?.width, 512)
            XCTAssertEqual(got.header?.height, 512)
            let pixels = try XCTUnwrap(got.pixels)
            XCTAssert(stride(from: 3, to: pixels.count, by: 4).allSatisfy { pixels[$0] == 255 })
            options.maximumOutputBytes = 1
            XCTAssertEqual(decode(bytes, options).pixels?.count, 4)
        }
    }

    /// The box is one for the turned picture, wherever the orientation stands.
    func testLateEXIFStaysInTheBox() throws {
        let bytes = Picture("late", PICTURE_WEBP_LOSSY, orientation: 6).encoded()
        let webp = decode(bytes, boxed(100, 50))
        XCTAssertEqual([webp.header?.width, webp.header?.height], [38, 50])
        let png = Picture("a", PICTURE_PNG_RGBA, width: 200, height: 100, orientation: 8).encoded()
        let at = try XCTUnwrap((0..<png.count - 4).first { Array(png[$0..<$0 + 4]) == Array("eXIf".utf8) }) - 4
        let end = at + 12 + Int(png[at + 3])
        let late = Array(png[..<at] + png[end..<png.count - 12] + png[at..<end] + png.suffix(12))
        let got = decode(late, boxed(100, 50))
        XCTAssertEqual([got.header?.width, got.header?.height], [25, 50])
        XCTAssertEqual(got.pixels?.count, 4 * 25 * 50)
        XCTAssert(decode(late, boxed(100, 50), pieces: 7) == got)
    }

    /// max_pixels is about the size in the file, however small the box.
    func testTheLimitIsOnTheStoredSize() {
        var options = boxed(1, 1)
        options.maximumPixels = 201 * 150 - 1
        for picture in Picture.everyCoding {
            XCTAssertEqual(decode(picture.encoded(), options).failure?.code, .pixelLimit, picture.name)
        }
    }

    func testX11_AHintServesWhereTheBeginningDoesNotTell() {
        var bytes = Picture("hinted", PICTURE_JPEG_BASELINE).encoded()
        let plain = decode(bytes)
        // A stray byte behind the start of the image: libjpeg passes over it, the signature does not match.
        bytes.insert(0, at: 2)
        XCTAssertEqual(decode(bytes).failure?.code, .badImageData)
        var options = DecodeOptions()
        options.formatHint = .jpeg
        XCTAssertEqual(decode(bytes, options).pixels, plain.pixels)
        XCTAssertEqual(decode(bytes, options, pieces: 1).pixels, plain.pixels)
        options.formatHint = .png
        XCTAssertEqual(decode(bytes, options).failure?.code, .badImageData, "the wrong hint")
        XCTAssertNil(decode(Picture("named", PICTURE_WEBP_LOSSY).encoded(), options).failure, "the content decides")
    }

    func testO12_AStillPictureIsRefusedWhereOneThatMovesIsAskedFor() {
        var options = DecodeOptions()
        options.requiresAnimation = true
        for picture in Picture.everyCoding where picture.name != "animated.webp" {
            let bytes = picture.encoded()
            let whole = decode(bytes, options)
            XCTAssertEqual(whole.failure?.code, .badImageData, picture.name)
            XCTAssertEqual(whole.failure?.message.contains("one frame"), true, picture.name)
            XCTAssertEqual(decode(bytes, options, pieces: 100), whole, picture.name)
        }
        XCTAssertNil(decode(Picture("moves", PICTURE_WEBP_ANIMATED).encoded(), options).failure)
    }

    /// Every file others made: what decodes, decodes into a box too, the same each time and in pieces.
    func testCorpusInABox() throws {
        let formats = ["jpeg", "png", "webp"]
        for file in try Corpus.files(atLeast: 493, where: { $0.expectation == "ok" && formats.contains($0.format) }) {
            let options = boxed(64, 64)
            let got = decode(file.bytes, options)
            XCTAssertNil(got.failure, file.path)
            XCTAssert(max(got.header?.width ?? 99, got.header?.height ?? 99) <= 64, file.path)
            XCTAssert(decode(file.bytes, options, pieces: 1000) == got, file.path)
        }
    }
}
