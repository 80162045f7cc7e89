import TestPictures
import ImgdlCodecs
import ImgdlCore
import XCTest

@testable import ImgdlCodecs

/// EXIF orientation is applied once, wherever it stands and however it is written.
final class OrientationTests: XCTestCase {
    /// The stored pixel that belongs at x, y of the turned picture; w and h are those of the stored one.
    private func source(_ x: Int, _ y: Int, _ orientation: Int, _ w: Int, _ h: Int) -> (Int, Int) {
        switch orientation {
        case 2: (w - 1 - x, y)
        case 3: (w - 1 - x, h - 1 - y)
        case 4: (x, h - 1 - y)
        case 5: (y, x)
        case 6: (y, h - 1 - x)
        case 7: (w - 1 - y, h - 1 - x)
        case 8: (w - 1 - y, x)
        default: (x, y)
        }
    }

    func testEveryOrientationInEveryFormat() throws {
        let kinds = [
            PICTURE_JPEG_BASELINE, PICTURE_JPEG_PROGRESSIVE, PICTURE_JPEG_CMYK, PICTURE_JPEG_ARITHMETIC,
            PICTURE_PNG_RGBA,
            PICTURE_PNG_ADAM7, PICTURE_WEBP_LOSSY, PICTURE_WEBP_LOSSLESS_ALPHA, PICTURE_WEBP_ANIMATED,
        ]
        for kind in kinds {
            for orientation in 1...8 {
                for variant in Int32(0)...1 {
                    var picture = Picture("a", kind, width: 37, height: 21, orientation: Int32(orientation))
                    picture.spec.exif_big_endian = variant
                    picture.spec.exif_thumbnail = variant
                    picture.spec.exif_after_xmp = variant
                    picture.spec.exif_before_pixels = variant
                    try check(picture.encoded(), orientation, "kind \(kind.rawValue), orientation \(orientation)")
                }
            }
        }
    }

    private func check(_ bytes: [UInt8], _ orientation: Int, _ name: String) throws {
        let stored = decode(bytes, decodeOptions(turned: false))
        let turned = decode(bytes)
        let (header, pixels, original) = try (
            XCTUnwrap(turned.header, name), XCTUnwrap(turned.pixels, name), XCTUnwrap(stored.pixels, name)
        )
        XCTAssertEqual(stored.header?.width, 37, name)
        XCTAssertEqual(stored.header?.orientation, orientation, name)
        XCTAssertEqual(header.orientation, orientation, name)
        XCTAssertEqual(header.width, orientation >= 5 ? 21 : 37, name)
        XCTAssertEqual(header.height, orientation >= 5 ? 37 : 21, name)
        for y in 0..<header.height {
            for x in 0..<header.width {
                let (sx, sy) = source(x, y, orientation, 37, 21)
                let (at, from) = (4 * (y * header.width + x), 4 * (sy * 37 + sx))
                if pixels[at..<at + 4] != original[from..<from + 4] { return XCTFail("\(name): pixel \(x), \(y)") }
            }
        }
    }

    /// Two EXIF segments that disagree: the first decides.
    func testFirstEXIFSegmentDecides() {
        let bytes = Picture("a", PICTURE_JPEG_BASELINE, width: 37, height: 21, orientation: 6).encoded()
        let payload = Array("Exif\0\0".utf8) + block([entry(value: [3, 0, 0, 0])])
        let segment = [0xFF, 0xE1, 0, UInt8(payload.count + 2)] + payload
        XCTAssertEqual(decode(bytes[..<2] + segment + bytes[2...]).header?.orientation, 3)
        guard let table = bytes.indices.first(where: { bytes[$0...].starts(with: [0xFF, 0xDB]) }) else {
            return XCTFail()
        }
        XCTAssertEqual(decode(bytes[..<table] + segment + bytes[table...]).header?.orientation, 6)
    }

    /// EXIF after the pixels of a WebP: nothing is said about its size that would be wrong later.
    func testLateEXIFOfWebPWithholdsTheHeader() throws {
        let bytes = Picture("a", PICTURE_WEBP_LOSSY, orientation: 6).encoded()
        let decoder = BuiltInCodec().makeDecoder(DecodeOptions())
        try feed(decoder, Array(bytes.dropLast(40)), pieces: 500) { _ in
            XCTAssertNil(decoder.header)
            XCTAssertNil(decoder.partialImage())
        }
        try feed(decoder, Array(bytes.suffix(40)), pieces: 500)
        XCTAssertEqual(try decoder.finish().header.width, 150)
    }

    /// EXIF after the pixels of a PNG cannot be foreseen; it is applied at the end.
    func testLateEXIFOfPNG() throws {
        let bytes = Picture("a", PICTURE_PNG_RGBA, width: 37, height: 21, orientation: 8).encoded()
        let at = try XCTUnwrap((0..<bytes.count - 4).first { Array(bytes[$0..<$0 + 4]) == Array("eXIf".utf8) }) - 4
        let end = at + 12 + Int(bytes[at + 3])
        let late = bytes[..<at] + bytes[end..<bytes.count - 12] + bytes[at..<end] + bytes.suffix(12)
        XCTAssertEqual(decode(bytes), decode(Array(late)))
    }

    // MARK: EXIF blocks

    private func orientation(_ block: [UInt8]) -> Int { block.withUnsafeBytes { EXIFReader.orientation(of: $0) } }

    private func block(_ entries: [[UInt8]], directory: [UInt8] = [8, 0, 0, 0]) -> [UInt8] {
        [0x49, 0x49, 42, 0] + directory + [UInt8(entries.count), 0] + entries.joined() + [0, 0, 0, 0]
    }

    private func entry(_ tag: UInt8 = 0x12, type: UInt8 = 3, count: UInt8 = 1, value: [UInt8]) -> [UInt8] {
        [tag, 1, type, 0, count, 0, 0, 0] + value
    }

    func testReadsEXIF() {
        XCTAssertEqual(orientation(block([entry(value: [6, 0, 0, 0])])), 6)
        XCTAssertEqual(orientation(Array("Exif\0\0".utf8) + block([entry(value: [6, 0, 0, 0])])), 6)
        XCTAssertEqual(orientation(block([entry(type: 4, value: [8, 0, 0, 0])])), 8, "LONG")
        XCTAssertEqual(orientation(block([entry(count: 2, value: [3, 0, 9, 0])])), 3, "two values: the first")
        XCTAssertEqual(orientation(block([entry(0x10, value: [5, 0, 0, 0]), entry(value: [7, 0, 0, 0])])), 7)
        XCTAssertEqual(
            orientation(block([entry(value: [2, 0, 0, 0]), entry(value: [7, 0, 0, 0])])), 2, "the first entry")
        let bigEndian: [UInt8] = [0x4D, 0x4D, 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 5, 0, 0]
        XCTAssertEqual(orientation(bigEndian), 5)
    }

    /// Offsets, counts and lengths of a thumbnail, each as large as it can be.
    func testThumbnailsLieWithinTheBlock() {
        func number(_ value: UInt32) -> [UInt8] { withUnsafeBytes(of: value.littleEndian) { Array($0) } }
        func thumbnail(_ start: UInt32, _ length: UInt32, second: UInt32 = 14, entries: [UInt8] = [0, 0]) -> [UInt8]? {
            let head = [0x49, 0x49, 42, 0, 8, 0, 0, 0] + entries + number(second)
            let places: [UInt8] = [2, 0] + entry(1, start) + entry(2, length)
            let block = head + places + [0, 0, 0, 0] + Array(1...10)
            return block.withUnsafeBytes { EXIFReader.thumbnail(in: $0).map { Array($0) } }
        }
        func entry(_ tag: UInt8, _ value: UInt32) -> [UInt8] { [tag, 2, 4, 0, 1, 0, 0, 0] + number(value) }
        XCTAssertEqual(thumbnail(44, 10), Array(1...10))
        XCTAssertEqual(thumbnail(53, 1), [10])
        for length in [0, 11, 1 << 31, .max] as [UInt32] { XCTAssertNil(thumbnail(44, length), "\(length)") }
        for start in [45, 54, 1 << 31, .max] as [UInt32] { XCTAssertNil(thumbnail(start, 10), "\(start)") }
        XCTAssertNil(thumbnail(54, 0))
        XCTAssertNil(thumbnail(.max, .max))
        for second in [0, 43, 1 << 31, .max] as [UInt32] { XCTAssertNil(thumbnail(44, 10, second: second)) }
        XCTAssertNil(thumbnail(44, 10, entries: [255, 255]))
    }

    /// Wherever it stands: the first directory's orientation, or none.
    func testNumbersOfEXIFAtTheirLargest() {
        for bytes in [JPEGSegments.exif(6, thumbnail: 3), block([entry(type: 4, value: [6, 0, 0, 0])])] {
            for at in bytes.indices {
                for number in [[255, 255, 255, 255], [255, 255, 255, 127], [255, 255]] as [[UInt8]] {
                    let end = min(bytes.count, at + number.count)
                    let changed = bytes[..<at] + number.prefix(end - at) + bytes[end...]
                    XCTAssert([1, 6].contains(orientation(Array(changed))), "\(number) at \(at)")
                    XCTAssertNil(changed.withUnsafeBytes { EXIFReader.thumbnail(in: $0) }, "\(number) at \(at)")
                }
            }
        }
    }

    func testNonsenseInEXIFIsUpright() {
        XCTAssertEqual(orientation(block([entry(value: [0, 0, 0, 0])])), 1)
        XCTAssertEqual(orientation(block([entry(value: [9, 0, 0, 0])])), 1)
        XCTAssertEqual(orientation(block([entry(type: 5, value: [6, 0, 0, 0])])), 1, "RATIONAL")
        XCTAssertEqual(orientation(block([entry(value: [6, 0, 0, 0])], directory: [0xFF, 0xFF, 0xFF, 0xFF])), 1)
        XCTAssertEqual(orientation(block([entry(value: [6, 0, 0, 0])], directory: [33, 0, 0, 0])), 1)
        let whole = block([entry(value: [6, 0, 0, 0])])
        for end in 0..<whole.count - 6 { XCTAssertEqual(orientation(Array(whole[..<end])), 1, "cut at \(end)") }
        var many = whole
        many[9] = 0xFF
        XCTAssertEqual(orientation(many), 6, "more entries announced than there are")
    }
}
