import ImgdlCore
import TestPictures
import XCTest

/// Files that are small and stand for a great deal (features B10).
final class LargeInputTests: XCTestCase {
    /// More MCUs than 2^22, over which counters have overflowed elsewhere (image-rs/image#434): gray blocks without detail,
    /// six bits each, shown at an eighth.
    func testJPEGOfMoreThanFourMillionMCUs() throws {
        let (width, height) = (65_000, 4_136)
        let units = (width / 8) * (height / 8)
        XCTAssertGreaterThan(units, 4_194_304)
        var file = JPEGSegments(Picture("a", PICTURE_JPEG_GRAY, width: 16, height: 16).encoded())
        let frame = try XCTUnwrap(file.segments.firstIndex { $0.marker == 0xC0 })
        file.segments[frame].content[1..<5] = [
            UInt8(height >> 8), UInt8(height & 255), UInt8(width >> 8), UInt8(width & 255),
        ]
        // In the usual tables (T.81 K.3) no difference is 00, and the end of a block 1010: four of them in three bytes.
        let header = Array(file.scans.prefix(2 + Int(file.scans[3])))
        let blocks = (0..<(units * 6 + 7) / 8).map { [UInt8(0x28), 0xA2, 0x8A][$0 % 3] }
        file.scans = header + blocks.dropLast() + [blocks[blocks.count - 1] | 0x03, 0xFF, 0xD9]
        var options = DecodeOptions()
        options.maximumPixels = .max
        options.targetWidth = width / 8
        let whole = decode(file.bytes, options)
        XCTAssertNil(whole.failure)
        XCTAssertEqual(whole.header?.width, width / 8)
        XCTAssertEqual(whole.header?.height, height / 8)
        var expected = [UInt8](repeating: 128, count: 4 * units)
        for alpha in stride(from: 3, to: expected.count, by: 4) { expected[alpha] = 255 }
        XCTAssert(whole.pixels == expected)
        XCTAssert(decode(file.bytes, options, pieces: 65_536, partials: true) == whole)

        file.scans.removeLast(file.scans.count / 2)
        XCTAssertEqual(decode(file.bytes, options).failure?.code, .truncated)
    }
}
