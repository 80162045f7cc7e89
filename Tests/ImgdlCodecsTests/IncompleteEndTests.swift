import Glibc
import ImgdlCodecs
import ImgdlCore
import TestPictures
import XCTest

/// A picture of which all has come but the mark of its end is a picture, where the body is whole, and says so; where it may have
/// been cut it is not.
final class IncompleteEndTests: XCTestCase {
    /// The ways to lose the end of a file, by name; none for WebP, whose end is told by its beginning.
    private func withoutEnd(_ bytes: [UInt8], _ format: ImageFormat) -> [(way: String, bytes: [UInt8])] {
        switch format {
        case .png:
            guard let end = Self.endOfPNG(bytes) else { return [] }
            let head = Array(bytes[..<end])
            var ways = [("without IEND", head), ("zeros for IEND", head + [UInt8](repeating: 0, count: 12))]
            ways.append(("IEND with another sum", head + bytes[end..<end + 11] + [bytes[end + 11] ^ 1]))
            ways.append(("half of IEND", head + bytes[end..<end + 6]))
            // Checksums of the chunk and of the data in it.
            if Self.isImageDataLast(bytes, end) {
                ways.append(("without the last checksum", Array(head.dropLast(4))))
                ways.append(("without both checksums", Array(head.dropLast(8))))
                ways.append(("within the checksums", Array(head.dropLast(6))))
            }
            return ways
        case .jpeg:
            guard let end = Self.endOfJPEG(bytes) else { return [] }
            return [("without EOI", Array(bytes[..<end])), ("half of EOI", Array(bytes[..<(end + 1)]))]
        case .gif:
            guard let end = bytes.lastIndex(of: 0x3B), bytes[end - 1] == 0 else { return [] }
            let head = Array(bytes[..<end])
            return [
                ("without trailer", head), ("without the last block's end", Array(head.dropLast())),
                ("a zero ahead of the trailer", head + [0, 0x3B]), ("zeros for the trailer", head + [0, 0, 0]),
            ]
        default: return []
        }
    }

    private static func endOfPNG(_ bytes: [UInt8]) -> Int? {
        var at = 8
        while at + 12 <= bytes.count {
            if bytes[at + 4..<at + 8].elementsEqual("IEND".utf8) { return at }
            at += 12 + bytes[at..<at + 4].reduce(0) { $0 << 8 | Int($1) }
        }
        return nil
    }

    private static func isImageDataLast(_ bytes: [UInt8], _ end: Int) -> Bool {
        var at = 8
        var name: [UInt8] = []
        while at < end {
            name = Array(bytes[at + 4..<at + 8])
            at += 12 + bytes[at..<at + 4].reduce(0) { $0 << 8 | Int($1) }
        }
        return name == Array("IDAT".utf8)
    }

    /// The first EOI behind the last scan header.
    private static func endOfJPEG(_ bytes: [UInt8]) -> Int? {
        guard let scan = bytes.indices.dropLast().last(where: { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xDA }) else {
            return nil
        }
        return (scan..<bytes.count - 1).first { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xD9 }
    }

    /// Shown as it is with its end; nil: refused, as one that was cut.
    private func shows(
        _ bytes: [UInt8], _ whole: Verdict, _ options: DecodeOptions, _ name: String, inPieces: Bool = true
    ) -> Bool {
        let shown = decode(bytes, options, end: .whole)
        if inPieces {
            XCTAssert(decode(bytes, options, pieces: 7, partials: true, end: .whole) == shown, "\(name) in pieces")
        }
        let cut = decode(bytes, options)
        guard shown.failure == nil else {
            XCTAssertEqual(shown.failure?.code, .truncated, name)
            return false
        }
        XCTAssert(shown.hasIncompleteEnd, name)
        XCTAssert(shown.isComplete, name)
        XCTAssert(shown.pixels == whole.pixels && shown.frames == whole.frames, "\(name): other pixels")
        XCTAssertEqual(shown.header, whole.header, name)
        // Nothing but zeros too many is no matter of being cut.
        if !cut.hasIncompleteEnd {
            XCTAssert([.truncated, .badImageData].contains(cut.failure?.code), "\(name): \(cut.failure as Any)")
        }
        return true
    }

    func testEveryCoding() {
        for picture in Picture.everyCoding {
            let bytes = picture.encoded()
            let whole = decode(bytes)
            for (way, cut) in withoutEnd(bytes, whole.header?.format ?? .unknown) {
                let isArithmetic = picture.name.contains("arithmetic")
                XCTAssertEqual(
                    shows(cut, whole, DecodeOptions(), "\(picture.name) \(way)"), !isArithmetic, picture.name)
            }
        }
    }

    /// Wherever it is cut: shown as it is, or refused.
    func testEveryCutOfSmallPictures() {
        for picture in Picture.everyCoding {
            var small = picture
            (small.spec.width, small.spec.height) = (11, 9)
            let bytes = small.encoded()
            let whole = decode(bytes)
            var shown = 0
            for end in 1..<bytes.count {
                let name = "\(picture.name) cut at \(end) of \(bytes.count)"
                let isNearEnd = bytes.count - end < 40
                if shows(Array(bytes[..<end]), whole, DecodeOptions(), name, inPieces: isNearEnd) { shown += 1 }
            }
            // IEND, two checksums, and the code that ends the data.
            XCTAssertLessThan(shown, 24, picture.name)
        }
    }

    /// With IMGDL_LONG=1 every file, else the small ones.
    private static let isLong = getenv("IMGDL_LONG").map { String(cString: $0) == "1" } ?? false

    /// docs/errors.md has the reasons.
    private static let refused: Set<String> = {
        var refused: Set<String> = []
        // Not all of every coefficient, and arithmetic coding.
        for name in [
            "hostile/jpeg/zune/cde10ca77d168efcedee91bab5c0d9edf9eeb697",
            "jpeg/jpeg-decoder/progressive-missing-ac.jpg",
            "jpeg/derived/arith-progressive.jpg", "jpeg/libjpeg-turbo/testimgari.jpg",
        ] {
            refused.formUnion(["\(name) without EOI", "\(name) half of EOI"])
        }
        // Rows that zlib holds until there is a byte more.
        for name in ["basn0g16", "g05n3p04", "g07n3p04", "g25n3p04", "oi1n0g16", "oi2n0g16", "oi4n0g16"] {
            refused.insert("png/pngsuite/\(name).png without both checksums")
        }
        return refused
    }()

    func testGoodFilesOfTheCorpus() throws {
        var refused: [String] = []
        var shown = 0
        var played: [String] = []
        let most = Self.isLong ? Int.max : 3000
        for file in try Corpus.files(atLeast: 435, where: { $0.expectation == "ok" && $0.bytes.count < most }) {
            played.append(file.path)
            guard let format = ["jpeg": .jpeg, "png": .png, "gif": .gif][file.format] as ImageFormat? else { continue }
            var options = DecodeOptions()
            options.decodesAllFrames = true
            let whole = decode(file.bytes, options)
            guard whole.failure == nil else { continue }
            for (way, bytes) in withoutEnd(file.bytes, format) {
                if shows(bytes, whole, options, "\(file.path) \(way)") {
                    shown += 1
                } else {
                    refused.append("\(file.path) \(way)")
                }
            }
        }
        let expected = Self.refused.filter { way in played.contains { way.hasPrefix("\($0) ") } }
        XCTAssertEqual(Set(refused), expected)
        XCTAssertGreaterThan(shown, 1000)
    }

    /// Zeros between two blocks are passed over: behind a frame, ahead of an extension and ahead of the trailer.
    func testZerosBetweenBlocks() throws {
        func gif(zeros: Int) -> [UInt8] {
            let stray = [UInt8](repeating: 0, count: zeros)
            var file = GIFFile(width: 2, height: 1)
            file.addFrame(width: 2, height: 1, [1, 2])
            file.bytes += stray
            file.addControl(delay: 5)
            file.bytes += stray
            file.addFrame(width: 2, height: 1, [2, 1])
            file.bytes += stray
            return file.ended()
        }
        for all in [false, true] {
            var options = DecodeOptions()
            options.decodesAllFrames = all
            let plain = decode(gif(zeros: 0), options, end: .whole)
            XCTAssertNil(plain.failure)
            for zeros in [1, 2, 300] {
                for pieces in [1, 7, .max / 2] {
                    let got = decode(gif(zeros: zeros), options, pieces: pieces, end: .whole)
                    XCTAssertNil(got.failure, "\(zeros) zeros, pieces of \(pieces)")
                    XCTAssert(got.pixels == plain.pixels, "\(zeros) zeros, pieces of \(pieces)")
                    XCTAssertEqual(got.header?.frameCount, plain.header?.frameCount)
                }
            }
        }
    }

    /// The last frame has to be whole, and those that were announced have to be there.
    func testFramesThatAreMissing() throws {
        var gif = GIFFile(width: 2, height: 1)
        gif.addFrame(width: 2, height: 1, [1, 2])
        gif.addControl(delay: 5)
        XCTAssertEqual(decode(gif.bytes, end: .whole).failure?.code, .truncated, "a frame that was announced")
        gif.addFrame(width: 2, height: 1, [2, 1])
        XCTAssertEqual(decode(Array(gif.bytes.dropLast(2)), end: .whole).failure?.code, .truncated, "a part of one")
        XCTAssertEqual(decode(gif.bytes, end: .whole).header?.frameCount, 2)
        var png = PNGFile(width: 2, height: 1)
        png.add("acTL", PNGFile.number(2) + PNGFile.number(0))
        png.add("fcTL", PNGFile.control(0, width: 2, height: 1))
        png.add("IDAT", PNGFile.rows(width: 2, [[1, 2, 3, 255]]))
        for all in [false, true] {
            var options = DecodeOptions()
            options.decodesAllFrames = all
            XCTAssertEqual(decode(png.bytes, options, end: .whole).failure?.code, .truncated, "no second frame")
            var second = png
            second.add("fcTL", PNGFile.control(1, width: 2, height: 1))
            XCTAssertEqual(decode(second.bytes, options, end: .whole).failure?.code, .truncated, "none of its data")
            second.add("fdAT", PNGFile.number(2) + PNGFile.rows(width: 2, [[3, 2, 1, 255]]))
            XCTAssertEqual(decode(Array(second.bytes.dropLast(12)), options, end: .whole).failure?.code, .truncated)
            let shown = decode(second.bytes, options, end: .whole)
            XCTAssertEqual(shown.header?.frameCount, 2)
            XCTAssert(shown.hasIncompleteEnd)
            let decoder = BuiltInCodec().makeDecoder(options)
            try feed(decoder, second.bytes, pieces: second.bytes.count)
            let image = try decoder.finish(.whole)
            XCTAssertEqual(image.frames.count, all ? 2 : 1)
            for frame in image.frames.indices {
                XCTAssertEqual(image.frame(frame)?.hasIncompleteEnd, true, "a frame is of that file")
            }
        }
    }

    /// A progressive JPEG without its last scans is none whose end is missing.
    func testScansThatAreMissing() {
        let bytes = Picture("a", PICTURE_JPEG_PROGRESSIVE, width: 40, height: 40).encoded()
        let scans = bytes.indices.dropLast().filter { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xDA }
        XCTAssertGreaterThan(scans.count, 5)
        for scan in scans.dropFirst() {
            XCTAssertEqual(decode(Array(bytes[..<scan]), end: .whole).failure?.code, .truncated, "\(scan)")
        }
    }
}
