import ImgdlCore
import TestPictures
import XCTest

/// What the player of pieces found: code, pixels, frames, and what is salvaged do not depend on the pieces, nor on who looks.
final class PieceFindsTests: XCTestCase {
    @discardableResult
    private func check(_ bytes: [UInt8], _ name: String, allFrames: Bool = false) -> PieceOutcome {
        var options = DecodeOptions()
        options.decodesAllFrames = allFrames
        return checkPieces(bytes, name, options, [(1, false), (1, true), (3, true), (251, true)]).whole
    }

    /// zlib gives the last row and the error behind it in one call or in two, depending on how much it is shown.
    func testDamageInImageData() {
        for isInterlaced in [false, true] {
            let rows = isInterlaced ? Self.passes : Self.rows
            let data = PNGFile.deflated(rows)
            for at in 2..<data.count {
                var damaged = data
                damaged[at] ^= 0x55
                var file = PNGFile(width: 8, height: 8, isInterlaced: isInterlaced)
                file.add("IDAT", damaged)
                check(file.ended(), "byte \(at)")
            }
        }
    }

    /// 8 × 8 pixels, as stored, with every filter; and the passes of Adam7.
    private static let rows: [UInt8] = (0..<8).flatMap { (y: Int) -> [UInt8] in
        [UInt8(y % 5)] + (0..<32).map { (x: Int) -> UInt8 in UInt8(x * 7 ^ y * 31) }
    }
    private static let passes: [UInt8] = {
        var bytes: [UInt8] = []
        for (count, width) in [(1, 1), (1, 1), (1, 2), (2, 2), (2, 4), (4, 4), (4, 8)] {
            for _ in 0..<count { bytes += [1] + (0..<4 * width).map { UInt8($0 * 5) } }
        }
        return bytes
    }()

    /// Data that runs on behind the last row, whether its sum is right or not.
    func testDataBehindTheLastRow() {
        for extra in [1, 3, 33, 40, 5000] {
            for isDamaged in [false, true] {
                var data = PNGFile.deflated(Self.rows + [UInt8](repeating: 3, count: extra))
                if isDamaged { data[data.count - 1] ^= 1 }
                var file = PNGFile(width: 8, height: 8)
                file.add("IDAT", data)
                check(file.ended(), "\(extra) bytes\(isDamaged ? ", another sum" : "")")
            }
        }
    }

    func testFrameDataBehindTheLastRow() {
        for extra in [1, 3, 33] {
            var data = PNGFile.deflated(Self.rows + [UInt8](repeating: 3, count: extra))
            data[data.count - 1] ^= 1
            var file = PNGFile(width: 8, height: 8)
            file.add("acTL", PNGFile.number(2) + PNGFile.number(0))
            file.add("fcTL", PNGFile.control(0, width: 8, height: 8))
            file.add("IDAT", PNGFile.deflated(Self.rows))
            file.add("fcTL", PNGFile.control(1, width: 8, height: 8))
            file.add("fdAT", PNGFile.number(2) + data)
            check(file.ended(), "\(extra) bytes", allFrames: true)
        }
    }

    /// libjpeg gives up at the header of a later scan: what was read ahead of it is salvaged, whoever looked before.
    func testScanHeadersThatAreRefused() throws {
        for kind in [PICTURE_JPEG_PROGRESSIVE, PICTURE_JPEG_ARITHMETIC_PROGRESSIVE] {
            let bytes = Picture("a", kind, width: 40, height: 40).encoded()
            let scans = bytes.indices.dropLast(8).filter { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xDA }
            XCTAssertGreaterThan(scans.count, 5)
            for (number, scan) in scans.enumerated() where number > 0 {
                var damaged = bytes
                damaged[scan + 5] = 93
                let result = check(damaged, "scan \(number + 1)")
                XCTAssertEqual(result.verdict.failure?.code, .badImageData)
                XCTAssertEqual(result.ready?.height, 40, "scan \(number + 1)")
            }
        }
    }

    /// libjpeg's faster way, for which some kilobytes have to be there, takes fill bytes ahead of a stuffed zero for a marker.
    func testFillBytesWithinAScan() throws {
        for var picture in Picture.everyCoding where picture.name.hasSuffix("jpg") {
            (picture.spec.width, picture.spec.height, picture.spec.quality) = (150, 100, 98)
            let bytes = picture.encoded()
            let stuffed = bytes.indices.dropLast().filter { $0 > 900 && bytes[$0] == 0xFF && bytes[$0 + 1] == 0 }
            XCTAssertGreaterThan(stuffed.count, 5, picture.name)
            let plain = try decode(bytes).pixels
            for count in [1, 20] {
                var filled = bytes
                for at in stuffed.reversed() {
                    filled.insert(contentsOf: [UInt8](repeating: 0xFF, count: count), at: at)
                }
                let result = check(filled, "\(picture.name), \(count) fill bytes")
                XCTAssert(result.verdict.pixels == plain, picture.name)
            }
        }
    }

    /// A VP8 partition that begins with 0xFF is none that an encoder writes: what libwebp makes of it depends on how many bytes
    /// it reads at once.
    func testLossyDataThatNoEncoderWrites() throws {
        for picture in try Picture.codings("lossy.webp", "lossy-alpha.webp") {
            var still = WebPFile(picture.encoded())
            let index = try XCTUnwrap(still.chunks.firstIndex { $0.name == "VP8 " })
            let head = still.chunks[index].data.prefix(3).map(Int.init)
            // Ten bytes of the frame's header, and the first partition.
            still.chunks[index].data[10 + (head[0] | head[1] << 8 | head[2] << 16) >> 5] = 0xFF
            let bytes = still.bytes()
            XCTAssertNil(check(bytes, picture.name).verdict.failure)
            for back in [1, 2, 700] {
                let result = check(Array(bytes.dropLast(back)), "\(picture.name) without \(back) bytes")
                XCTAssertEqual(result.verdict.failure?.code, .truncated)
            }
            let (width, height) = (Int(picture.spec.width), Int(picture.spec.height))
            for cut in [0, 1, 700] {
                let frame = still.chunks.filter { $0.name != "VP8X" }.flatMap(\.bytes).dropLast(cut)
                var file = WebPFile()
                file.add("VP8X", WebPFile.extended(0x12, width: width, height: height))
                file.add("ANIM", [0, 0, 0, 0, 0, 0])
                file.add("ANMF", WebPFile.frame(width: width, height: height, Array(frame)))
                check(file.bytes(), "an animation of \(picture.name), \(cut) bytes less", allFrames: true)
            }
        }
    }

    /// libwebp is given so many bytes of a lossless picture at a time: what is wrong with the last of them is told of a file that
    /// is cut off behind them, too.
    func testDamageInTheLastBytesOfACutFile() throws {
        for kind in [PICTURE_WEBP_LOSSLESS, PICTURE_WEBP_LOSSLESS_ALPHA] {
            let picture = Picture("a", kind, width: 400, height: 600)
            let data = WebPFile(picture.encoded())["VP8L"]
            for isAnimated in [false, true] {
                var file = WebPFile()
                file.add("VP8L", Array(data.dropLast(40_000)))
                file.add("XMP ", [UInt8](repeating: 32, count: 100))
                if isAnimated {
                    let frame = file.chunks.flatMap(\.bytes)
                    file = WebPFile()
                    file.add("VP8X", WebPFile.extended(0x12, width: 400, height: 600))
                    file.add("ANIM", [0, 0, 0, 0, 0, 0])
                    file.add("ANMF", WebPFile.frame(width: 400, height: 600, frame))
                }
                let bytes = Array(file.bytes().dropLast(90))
                for pieces in [7000, 70_001] {
                    let result = checkPieces(bytes, "\(kind)", DecodeOptions(), [(pieces, false), (pieces, true)]).whole
                    XCTAssertEqual(result.verdict.failure?.code, .badImageData)
                    XCTAssertGreaterThan(result.ready?.height ?? 0, 100)
                }
            }
        }
    }

    /// Chunks behind the picture are judged, whether it was whole before they came or not.
    func testMetadataBehindThePicture() throws {
        for picture in try Picture.codings("lossy.webp", "lossless.webp") {
            let (width, height) = (Int(picture.spec.width), Int(picture.spec.height))
            var file = WebPFile()
            file.add("VP8X", WebPFile.extended(0, width: width, height: height))
            file.chunks += WebPFile(picture.encoded()).chunks.filter { $0.name.hasPrefix("VP8") && $0.name != "VP8X" }
            file.add("EXIF", [UInt8](repeating: 0, count: 2000))
            var options = DecodeOptions()
            options.maximumMetadataBytes = 1000
            checkPieces(file.bytes(), picture.name, options, [(1, false), (1, true), (251, true)])
        }
    }

    /// libwebp does not count the rows of the call in which it sees that a lossless picture is broken.
    func testLosslessRowsAheadOfTheDamage() throws {
        for kind in [PICTURE_WEBP_LOSSLESS, PICTURE_WEBP_LOSSLESS_ALPHA] {
            let picture = Picture("a", kind, width: 400, height: 600)
            let file = WebPFile(picture.encoded())
            let data = file["VP8L"]
            XCTAssertGreaterThan(data.count, 130_000)
            for quarters in 1...3 {
                let end = data.count * quarters / 4
                // The picture's data ends within the file: that is no cut transfer, but has the same rows.
                var short = WebPFile()
                short.add("VP8L", Array(data.prefix(end)))
                for format in [PixelFormat.rgba8, .bgra8Premultiplied] {
                    for width in [0, 100] {
                        var options = decodeOptions(format)
                        options.targetWidth = width
                        let cut = PieceOutcome(Array(file.bytes().prefix(20 + end)), options, pieces: 7000, looks: true)
                        let result = checkPieces(
                            short.bytes(), "\(quarters) quarters", options, [(20_000, false), (70_001, true)]
                        ).whole
                        XCTAssertEqual(cut.verdict.failure?.code, .truncated)
                        XCTAssertEqual(result.verdict.failure?.code, .badImageData)
                        let ready = try XCTUnwrap(result.ready, "\(quarters) quarters")
                        XCTAssertGreaterThan(ready.height, width == 0 ? 100 : 25)
                        XCTAssertEqual(ready, cut.ready, "\(quarters) quarters")
                        XCTAssertEqual(result.salvaged?.pixels, cut.salvaged?.pixels)
                    }
                }
            }
        }
    }

    /// The rows of a later frame that is broken are none of the first.
    func testALaterFrameThatEndsEarly() throws {
        let small = WebPFile(Picture("a", PICTURE_WEBP_LOSSY, width: 40, height: 8).encoded())
        let large = WebPFile(Picture("b", PICTURE_WEBP_LOSSY, width: 40, height: 400, seed: 9).encoded())
        let name = try XCTUnwrap(large.chunks.first).name
        var file = WebPFile()
        file.add("VP8X", WebPFile.extended(0x02, width: 40, height: 400))
        file.add("ANIM", [0, 0, 0, 0, 0, 0])
        file.add("ANMF", WebPFile.frame(width: 40, height: 8, small.chunks.flatMap(\.bytes)))
        let first = try decode(file.bytes()).pixels
        let half = WebPFile.Chunk(name: name, data: Array(large[name].prefix(large[name].count / 2)))
        file.add("ANMF", WebPFile.frame(width: 40, height: 400, half.bytes))
        let result = check(file.bytes(), "half of the second frame", allFrames: true)
        XCTAssertEqual(result.verdict.failure?.code, .badImageData)
        XCTAssertEqual(try XCTUnwrap(result.salvaged).pixels, first)
    }
}
