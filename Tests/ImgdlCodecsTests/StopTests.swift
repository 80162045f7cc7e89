import ImgdlCore
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// A decoder's thread is free within 50 ms of CPU time when nobody waits for the picture any more, or its time is over:
/// whatever the picture is.
final class StopTests: XCTestCase {
    /// 18 seconds for 266 KB.
    func testJPEGOfManyScans() throws {
        var size = 0
        let memory = try XCTUnwrap(picture_many_scans(10_000, 500, &size))
        defer { picture_free(memory) }
        let file = Array(UnsafeBufferPointer(start: memory, count: size))
        XCTAssertLessThan(file.count, 300_000)
        try assertStops(file, after: 300)
        try assertStops(file, after: 300, partials: true, pieces: 20_000)
    }

    /// Within a scan, of which libjpeg decodes a row of blocks in one go: the widest there are.
    func testWideJPEGs() throws {
        let kinds = [
            PICTURE_JPEG_BASELINE, PICTURE_JPEG_PROGRESSIVE, PICTURE_JPEG_SEPARATE_SCANS, PICTURE_JPEG_ARITHMETIC,
            PICTURE_JPEG_ARITHMETIC_PROGRESSIVE, PICTURE_JPEG_CMYK,
        ]
        for kind in kinds {
            var picture = Picture("wide", kind, width: 65_500, height: 192)
            picture.spec.quality = 100
            try assertStops(picture.encoded(), after: 15, "\(kind)")
        }
    }

    /// In arithmetic coding zeros are made up where a scan ends early, and a row of them may be a fifth of a second's work
    /// for which nobody asks for a byte.
    func testJPEGsOfMadeUpBlocks() throws {
        for isProgressive in [false, true] {
            var size = 0
            let memory = try XCTUnwrap(picture_made_up_blocks(192, isProgressive ? 1 : 0, &size))
            defer { picture_free(memory) }
            let file = Array(UnsafeBufferPointer(start: memory, count: size))
            XCTAssertLessThan(file.count, 7_000)
            for milliseconds in [70, 200] {
                try assertStops(file, after: milliseconds, isProgressive ? "progressive" : "sequential")
            }
        }
    }

    func testStoppedDecoderStaysStopped() throws {
        let decoder = BuiltInCodec().makeDecoder(DecodeOptions())
        decoder.stop()
        let bytes = Picture("a", PICTURE_JPEG_BASELINE).encoded()
        for _ in 0..<2 {
            XCTAssertThrowsError(try feed(decoder, bytes, pieces: 1000)) { error in
                XCTAssertEqual((error as? Failure)?.code, .cancelled)
            }
            XCTAssertThrowsError(try decoder.finish()) { XCTAssertEqual(($0 as? Failure)?.code, .cancelled) }
        }
        XCTAssertNil(decoder.salvagedImage())
    }
}
