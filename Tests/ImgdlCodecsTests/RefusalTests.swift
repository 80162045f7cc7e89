import TestPictures
import ImgdlCodecs
import ImgdlCore
import XCTest

/// B5, B10: what is no picture, and what is too much.
final class RefusalTests: XCTestCase {
    func testEmptyBody() {
        XCTAssertEqual(decode([]).failure, Failure(.badImageData, "the body is empty"))
    }

    func testPageInsteadOfAPicture() {
        let page = Array("<!DOCTYPE html>\n<html><body>Not found</body></html>".utf8)
        let expected = Failure(.badImageData, "not an image: it begins with “<!DOCTYPE html>”")
        for size in [1, 7, 1000] { XCTAssertEqual(decode(page, pieces: size).failure, expected) }
        XCTAssertEqual(decode(Array("{}".utf8)).failure?.message, "not an image: it begins with “{}”")
        XCTAssertEqual(
            decode([0, 1, 2, 0xFE, 5, 6, 7, 8, 9]).failure?.message,
            "not an image: it begins with the bytes 00 01 02 FE 05 06 07 08")
    }

    func testFormatIsToldByContent() {
        let formats: [(picture_kind, ImageFormat)] = [
            (PICTURE_JPEG_BASELINE, .jpeg), (PICTURE_PNG_RGB, .png), (PICTURE_WEBP_LOSSY, .webp),
        ]
        for (kind, format) in formats { XCTAssertEqual(decode(Picture("a", kind).encoded()).header?.format, format) }
    }

    func testBeginningOfASignatureIsTruncated() {
        let beginnings: [[UInt8]] = [
            [0xFF], [0xFF, 0xD8], [0x89, 0x50], Array("RIFFabcdWEB".utf8), Array("GIF8".utf8),
        ]
        for bytes in beginnings { XCTAssertEqual(decode(bytes).failure?.code, .truncated, "\(bytes)") }
        XCTAssertEqual(decode(Array("RIFFabcdWAVE".utf8)).failure?.code, .badImageData)
    }

    /// B10: the limit is judged by the header, before there is a canvas.
    func testPixelLimit() {
        for picture in Picture.everyCoding {
            let bytes = picture.encoded()
            var options = DecodeOptions()
            options.maximumPixels = 201 * 150
            XCTAssertNil(decode(bytes, options).failure, picture.name)
            options.maximumPixels -= 1
            let failure = decode(Array(bytes.prefix(1500)), options).failure
            XCTAssertEqual(failure?.code, .pixelLimit, picture.name)
            XCTAssertEqual(
                failure?.message, "the picture is 201 × 150 pixels, more than the limit of 30149 pixels", picture.name)
        }
    }

    /// B10: gigapixels in a few hundred bytes cost nothing.
    func testHugeDimensionsInTinyFiles() throws {
        var jpeg = Picture("a", PICTURE_JPEG_BASELINE, width: 8, height: 8).encoded()
        var progressive = Picture("a", PICTURE_JPEG_PROGRESSIVE, width: 8, height: 8).encoded()
        for (bytes, frame) in [(jpeg, UInt8(0xC0)), (progressive, 0xC2)] {
            guard let at = (0..<bytes.count - 1).first(where: { bytes[$0] == 0xFF && bytes[$0 + 1] == frame }) else {
                return XCTFail("no frame")
            }
            var large = bytes
            large.replaceSubrange(at + 5..<at + 9, with: [0xFF, 0xDC, 0xFF, 0xDC])  // 65500
            if frame == 0xC0 { jpeg = large } else { progressive = large }
        }
        var webp = Picture("a", PICTURE_WEBP_LOSSY_ALPHA, width: 8, height: 8).encoded()
        webp.replaceSubrange(24..<30, with: [0xFF, 0xFF, 0x00, 0xFE, 0xFF, 0x00])
        var png = Picture("a", PICTURE_PNG_RGB, width: 8, height: 8).encoded()
        png.replaceSubrange(16..<24, with: [0x7F, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF])
        png.replaceSubrange(29..<33, with: checksum(png[12..<29]))
        for bytes in [jpeg, progressive, webp, png] {
            let failure = decode(bytes).failure
            XCTAssertEqual(failure?.code, .pixelLimit, "\(String(describing: failure))")
        }
        // Beyond what libjpeg itself can do it is a limit all the same.
        let at = try XCTUnwrap(jpeg.indices.first { jpeg[$0...].starts(with: [0xFF, 0xDC, 0xFF, 0xDC]) })
        jpeg.replaceSubrange(at..<at + 4, with: [0xFF, 0xFF, 0xFF, 0xFF])
        XCTAssertEqual(
            decode(jpeg).failure, Failure(.pixelLimit, "libjpeg: Maximum supported image dimension is 65500 pixels"))
    }

    /// A tall narrow picture within the limit is no reason to refuse it.
    func testLongStrips() {
        for kind in [PICTURE_JPEG_BASELINE, PICTURE_JPEG_PROGRESSIVE, PICTURE_PNG_RGB, PICTURE_PNG_ADAM7] {
            XCTAssertNil(decode(Picture("a", kind, width: 3, height: 60_000).encoded()).failure)
            XCTAssertNil(decode(Picture("a", kind, width: 60_000, height: 2).encoded()).failure)
        }
        XCTAssertNil(decode(Picture("a", PICTURE_PNG_RGB, width: 1_100_000, height: 1).encoded()).failure)
    }

    private func checksum(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var sum = UInt32.max
        for byte in bytes {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 0 ? sum >> 1 : sum >> 1 ^ 0xEDB8_8320 }
        }
        return stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: ~sum >> UInt32($0)) }
    }

    /// B9, B10, I41: every scan costs a walk over the picture, however few bytes it has. What came before is kept.
    func testScanBomb() {
        for kind in [PICTURE_JPEG_PROGRESSIVE, PICTURE_JPEG_ARITHMETIC_PROGRESSIVE] {
            let bytes = Picture("a", kind, width: 16, height: 16).encoded()
            guard let last = (0..<bytes.count - 1).last(where: { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xDA }) else {
                return XCTFail("no scan")
            }
            let scan = bytes[last..<bytes.count - 2]
            let bomb = Array(bytes[..<last]) + Array(repeating: scan, count: 1000).joined() + [0xFF, 0xD9]
            checkScanLimit(bomb, DecodeOptions(), 500, pieces: 100)
            checkScanLimit(bomb, DecodeOptions(), 500, pieces: .max / 2)
        }
    }

    func testScanLimitIsTheCallers() {
        let bytes = Picture("a", PICTURE_JPEG_PROGRESSIVE).encoded()
        var options = DecodeOptions()
        options.maximumScans = 4
        for pieces in [1, 1000, .max / 2] { checkScanLimit(bytes, options, 4, pieces: pieces) }
        options.maximumScans = 10
        XCTAssertNil(decode(bytes, options).failure)
    }

    private func checkScanLimit(_ bytes: [UInt8], _ options: DecodeOptions, _ limit: Int, pieces: Int) {
        let decoder = BuiltInCodec().makeDecoder(options)
        XCTAssertThrowsError(
            try {
                try feed(decoder, bytes, pieces: pieces); _ = try decoder.finish()
            }()
        ) { error in
            XCTAssertEqual(error as? Failure, Failure(.scanLimit, "the JPEG has more than \(limit) scans"))
        }
        let salvaged = decoder.salvagedImage()
        XCTAssertEqual(salvaged?.pass, limit)
        XCTAssertEqual(salvaged?.ready.height, salvaged?.pixels.height)
        XCTAssertEqual(salvaged?.isComplete, false)
    }

    /// A WebP and its chunks, as long as they can say they are: what is there counts.
    func testLengthsOfWebPs() {
        let still = WebPFile(Picture("a", PICTURE_WEBP_LOSSY, width: 8, height: 8).encoded())
        let body = still.chunks.flatMap(\.bytes).count
        var options = DecodeOptions()
        options.maximumMemoryBytes = nil
        options.maximumMetadataBytes = .max
        let half = still.bytes(excess: Int(Int32.max) - body - 4)
        XCTAssertEqual(
            decode(half, options, pieces: 5).failure,
            Failure(.truncated, "the WebP ends after \(half.count) of 2147483655 bytes"))
        XCTAssertEqual(
            decode(still.bytes(excess: Int(UInt32.max) - body - 4), options, pieces: 5).failure,
            Failure(.badImageData, "libwebp: bitstream error"))
        for name in ["VP8X", "ICCP", "ANIM", "ANMF", "ALPH", "VP8 ", "VP8L", "EXIF", "XMP "] {
            for flags in [0x2A, 0x38] as [UInt8] {
                for size in [UInt32.max, UInt32.max - 1, UInt32.max / 2] {
                    var file = WebPFile()
                    if name != "VP8X" { file.add("VP8X", WebPFile.extended(flags, width: 8, height: 8)) }
                    if name == "ANMF" { file.add("ANIM", [0, 0, 0, 0, 0, 0]) }
                    let start = file.bytes().count
                    file.add(name, WebPFile.extended(flags, width: 8, height: 8) + [UInt8](repeating: 0, count: 40))
                    var bytes = file.bytes(excess: Int(Int32.max) - 1_000)
                    bytes.replaceSubrange(start + 4..<start + 8, with: WebPFile.number(Int(size), 4))
                    let whole = decode(bytes, options)
                    XCTAssert([.truncated, .badImageData].contains(whole.failure?.code), "\(name), \(size): \(whole)")
                    XCTAssertEqual(decode(bytes, options, pieces: 3), whole, "\(name), \(size)")
                }
            }
        }
    }

    func testPlacesOfWebPFrames() {
        let most = 1 << 24
        for (x, y, width, height) in [
            (2 * (most - 1), 0, 1, 1), (0, 2 * (most - 1), 1, 1), (0, 0, most, 1), (0, 0, 1, most),
            (2 * (most - 1), 2 * (most - 1), most, most),
        ] {
            var file = WebPFile()
            file.add("VP8X", WebPFile.extended(0x02, width: 8, height: 8))
            file.add("ANIM", [0, 0, 0, 0, 255, 255])
            file.add("ANMF", WebPFile.frame(x: x, y: y, width: width, height: height, [UInt8](repeating: 0, count: 8)))
            XCTAssertEqual(
                decode(file.bytes(), pieces: 9).failure,
                Failure(.badImageData, "frame 1 of the WebP lies outside the canvas"))
        }
    }

    /// A long chunk nobody needs is neither kept nor inflated, and an endless one ends with the body.
    func testUselessChunksOfPNG() {
        let bytes = Picture("a", PICTURE_PNG_RGB).encoded()
        func chunk(_ name: String) -> [UInt8] {
            [0x00, 0x0F, 0x42, 0x40] + Array(name.utf8) + [UInt8](repeating: 7, count: 1_000_004)
        }
        for name in ["zTXt", "iTXt", "tEXt", "pCAL", "sCAL", "hIST", "sPLT"] {
            let padded = Array(bytes[..<33]) + chunk(name) + Array(bytes[33...])
            XCTAssert(decode(padded, pieces: 1000) == decode(bytes), name)
            // Behind the pixels, ahead of the end.
            let behind = Array(bytes.dropLast(12)) + chunk(name) + Array(bytes.suffix(12))
            XCTAssert(decode(behind, pieces: 1000) == decode(bytes), "\(name) behind the pixels")
        }
        let text = chunk("zTXt")
        let endless = Array(bytes[..<33]) + [0x7F, 0xFF, 0xFF, 0xFF] + Array(text[4...])
        XCTAssertEqual(decode(endless).failure?.code, .truncated)
        let unknown = Array(bytes[..<33]) + [0, 0, 0, 0] + Array("NeXt".utf8) + [0, 0, 0, 0] + Array(bytes[33...])
        XCTAssertEqual(decode(unknown).failure?.message, "the PNG needs a chunk that is not known: “NeXt”")
    }
}
