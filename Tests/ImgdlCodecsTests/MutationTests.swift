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
