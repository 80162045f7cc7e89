import Glibc
import ImgdlCodecs
import ImgdlCore
import TestPictures
import XCTest

/// Damaged files, made by chance but the same each time: no crash, and pieces still equal the whole (B7). The long run
/// raises IMGDL_SEEDS.
final class MutationTests: XCTestCase {
    func testDamageGivesTheSameVerdictInPieces() {
        let seeds = getenv("IMGDL_SEEDS").flatMap { UInt64(String(cString: $0)) } ?? 25
        for plain in Picture.everyCoding {
            var picture = plain
            (picture.spec.width, picture.spec.height, picture.spec.orientation) = (61, 47, 6)
            picture.spec.exif_before_pixels = 1
            let bytes = picture.encoded()
            // While it has much data ahead, libjpeg's Huffman decoder is quicker and does not mention impossible codes:
            // one in some ten thousand damaged files is noticed in small pieces only, or as a whole only.
            var differences: UInt64 = 0
            for seed in 1...seeds {
                var random = SplitMix(state: seed)
                let damaged = random.damage(bytes)
                let whole = decode(damaged, decodeOptions(.bgra8Premultiplied))
                let pieces = decode(damaged, decodeOptions(.bgra8Premultiplied), pieces: 97, partials: true)
                if pieces != whole {
                    differences += 1
                    let isLibjpegs = picture.name.hasSuffix("jpg") && [pieces, whole].contains { $0.failure != nil }
                    XCTAssert(
                        isLibjpegs && differences * 1000 <= seeds,
                        "\(picture.name), seed \(seed): \(text(pieces)), not \(text(whole))")
                }
                salvage(damaged)
            }
        }
    }

    /// A second frame header changes what libjpeg works by before it is refused, and may be cut in the middle.
    func testSecondFrameHeader() throws {
        for kind in [PICTURE_JPEG_PROGRESSIVE, PICTURE_JPEG_ARITHMETIC_PROGRESSIVE, PICTURE_JPEG_BASELINE] {
            let bytes = Picture("a", kind).encoded()
            let scans = bytes.indices.filter { bytes[$0...].starts(with: [0xFF, 0xDA]) }
            let frame: [UInt8] =
                [0xFF, 0xC2, 0x02, 0xFF, 8, 0xFF, 0, 0xFF, 0, 0xFA] + [UInt8](repeating: 1, count: 765)
            let at = try XCTUnwrap(scans.last)
            for length in [0, 4, 7, 9, 10, 20, frame.count] {
                for rest in [bytes[at...], []] {
                    let damaged = bytes[..<at] + frame[..<length] + rest
                    _ = decode(Array(damaged), pieces: 97, partials: true)
                    salvage(Array(damaged))
                }
            }
        }
    }

    /// Wherever a header's number stands, it can be as large as its bytes hold. With no limit but on memory all that comes of it
    /// is a picture or an error, in pieces the same.
    func testNumbersAtTheirLargest() {
        var options = DecodeOptions()
        options.maximumSide = .max
        options.maximumPixels = .max
        options.maximumAnimationPixels = .max
        options.maximumFrames = .max
        options.maximumMetadataBytes = .max
        options.maximumMemoryBytes = 1 << 20
        options.decodesAllFrames = true
        let largest: [[UInt8]] = [
            [255, 255, 255, 255], [127, 255, 255, 255], [255, 255, 255, 127], [0, 255, 255, 255], [255, 255, 255, 0],
            [128, 0, 0, 0], [0, 0, 0, 128], [255, 255, 255], [255, 255], [127, 255], [255, 127],
        ]
        for (name, file) in filesOfNumbers {
            XCTAssertNil(decode(file, options).failure, name)
            let isPNG = file.starts(with: [0x89])
            for at in 0..<min(file.count, 400) {
                for number in largest where at + number.count <= file.count {
                    var bytes = file
                    bytes.replaceSubrange(at..<at + number.count, with: number)
                    if isPNG { bytes = PNGFile.withChecksums(bytes) }
                    let whole = decode(bytes, options)
                    XCTAssertEqual(whole.pixels == nil, whole.failure?.message.isEmpty == false, name)
                    let pieces = decode(bytes, options, pieces: 7, partials: true)
                    XCTAssert(pieces == whole, "\(name), \(number) at \(at): \(text(pieces)), not \(text(whole))")
                    var probe = BuiltInCodec().makeProbe()
                    let size = bytes.withUnsafeBytes { probe?.feed($0) }
                    if case .known(let width, let height, _, _) = size { XCTAssertGreaterThan(min(width, height), 0) }
                }
            }
        }
    }

    /// Small ones with each kind of number: sizes, places, times, counts and lengths.
    private var filesOfNumbers: [(name: String, bytes: [UInt8])] {
        var animated = PNGFile(width: 2, height: 2)
        animated.add("eXIf", Array(JPEGSegments.exif(6, thumbnail: 1).dropFirst(6)))
        animated.add("acTL", PNGFile.number(2) + PNGFile.number(3))
        animated.add("fcTL", PNGFile.control(0, width: 2, height: 2))
        animated.add("IDAT", PNGFile.rows(width: 2, [[1, 2, 3, 255], [4, 5, 6, 255]]))
        animated.add("fcTL", PNGFile.control(1, width: 1, height: 1, x: 1, y: 1))
        animated.add("fdAT", PNGFile.number(2) + PNGFile.rows(width: 1, [[7, 8, 9, 255]]))
        var gif = GIFFile(width: 2, height: 2)
        gif.addLoops(3)
        for index in [1, 2] as [UInt8] {
            gif.addControl(delay: 5)
            gif.addFrame(x: 1, y: 1, width: 1, height: 1, [index])
        }
        let lossless = WebPFile(Picture("a", PICTURE_WEBP_LOSSLESS, width: 4, height: 2).encoded())
        let lossy = WebPFile(Picture("a", PICTURE_WEBP_LOSSY, width: 4, height: 2).encoded())
        var extended = WebPFile()
        extended.add("VP8X", WebPFile.extended(0x08, width: 4, height: 2))
        extended.add("EXIF", JPEGSegments.exif(6))
        extended.add("VP8 ", lossy["VP8 "])
        var frames = WebPFile()
        frames.add("VP8X", WebPFile.extended(0x0A, width: 8, height: 8))
        frames.add("ANIM", [0, 0, 0, 0, 3, 0])
        let picture = WebPFile.Chunk(name: "VP8L", data: lossless["VP8L"]).bytes
        for x in [0, 4] { frames.add("ANMF", WebPFile.frame(x: x, y: 2, width: 4, height: 2, picture)) }
        frames.add("EXIF", JPEGSegments.exif(6))
        var jpeg = JPEGSegments(Picture("a", PICTURE_JPEG_BASELINE, width: 8, height: 8).encoded())
        jpeg.insert(0xE1, JPEGSegments.exif(6, thumbnail: 1))
        return [
            ("APNG", animated.ended()), ("GIF", gif.ended()), ("VP8L", lossless.bytes()), ("VP8", lossy.bytes()),
            ("VP8X", extended.bytes()), ("ANMF", frames.bytes()), ("JPEG", jpeg.bytes),
            ("progressive", Picture("a", PICTURE_JPEG_PROGRESSIVE, width: 8, height: 8).encoded()),
        ]
    }

    private func salvage(_ bytes: [UInt8]) {
        let decoder = BuiltInCodec().makeDecoder(DecodeOptions())
        do throws(Failure) {
            try feed(decoder, bytes, pieces: 1000)
            _ = try decoder.finish()
        } catch {
            XCTAssertNotEqual(decoder.salvagedImage()?.isComplete, true)
            XCTAssertFalse(error.message.isEmpty)
        }
    }

    private func text(_ verdict: Verdict) -> String {
        verdict.failure.map { "\($0.code): \($0.message)" } ?? "a picture"
    }
}

private struct SplitMix {
    var state: UInt64

    mutating func next(_ bound: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
        return Int((z ^ z >> 31) % UInt64(bound))
    }

    /// A few bytes changed, anywhere or in the header, sometimes with a piece taken out or the end cut off.
    mutating func damage(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        for _ in 0...next(4) {
            let reach = next(2) == 0 ? bytes.count : min(700, bytes.count)
            bytes[next(reach)] = next(3) == 0 ? 0xFF : UInt8(next(256))
        }
        if next(4) == 0 {
            let start = next(bytes.count)
            bytes.removeSubrange(start..<min(bytes.count, start + 1 + next(40)))
        }
        if next(4) == 0 { bytes.removeLast(next(bytes.count / 2)) }
        return bytes
    }
}
