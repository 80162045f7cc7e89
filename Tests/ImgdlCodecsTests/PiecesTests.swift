import TestPictures
import ImgdlCodecs
import ImgdlCore
import XCTest

/// B7: how the bytes were cut, and who looked in between, makes no difference.
final class PiecesTests: XCTestCase {
    func testPiecesEqualWhole() {
        for picture in Picture.everyCoding {
            let bytes = picture.encoded()
            let whole = decode(bytes)
            XCTAssertNil(whole.failure, picture.name)
            XCTAssert(whole.isComplete, picture.name)
            for size in [1, 7, 1000, 16384] {
                XCTAssert(decode(bytes, pieces: size) == whole, "\(picture.name) in pieces of \(size)")
            }
            XCTAssert(decode(bytes, pieces: 500, partials: true) == whole, "\(picture.name) with partial images")
        }
    }

    func testPiecesEqualWholeInEveryFormatAndOrientation() {
        for format in [PixelFormat.bgra8, .rgba8Premultiplied, .bgra8Premultiplied] {
            for (index, plain) in Picture.everyCoding.enumerated() {
                var picture = plain
                picture.spec.orientation = Int32(1 + index % 8)
                let bytes = picture.encoded()
                let whole = decode(bytes, decodeOptions(format))
                XCTAssertNil(whole.failure, picture.name)
                XCTAssert(
                    decode(bytes, decodeOptions(format), pieces: 700, partials: true) == whole,
                    "\(picture.name) as \(format)")
            }
        }
    }

    func testWhatFollowsThePictureIsIgnored() {
        for picture in Picture.everyCoding {
            let bytes = picture.encoded()
            let whole = decode(bytes)
            let trailer = [UInt8](repeating: 0, count: 100_000)
            XCTAssert(decode(bytes + trailer) == whole, picture.name)
            XCTAssert(decode(bytes + trailer, pieces: 1000) == whole, "\(picture.name) in pieces")
        }
    }

    /// Dimensions come early: the engine reports them before the picture is there.
    func testHeaderComesEarly() throws {
        for picture in Picture.everyCoding {
            let decoder = BuiltInCodec().makeDecoder(DecodeOptions())
            var needed = 0
            try feed(decoder, picture.encoded(), pieces: 16) { if needed == 0, decoder.header != nil { needed = $0 } }
            XCTAssertEqual(decoder.header?.width, 201, picture.name)
            XCTAssertEqual(decoder.header?.height, 150, picture.name)
            XCTAssert((1...1024).contains(needed), "\(picture.name) after \(needed) bytes")
        }
    }

    func testMoreAfterTheEndChangesNothing() throws {
        let decoder = BuiltInCodec().makeDecoder(DecodeOptions())
        try feed(decoder, Picture("a", PICTURE_PNG_RGB).encoded(), pieces: 5000)
        let first = try decoder.finish()
        try feed(decoder, [1, 2, 3], pieces: 1)
        XCTAssertEqual(try decoder.finish().bytes, first.bytes)
        XCTAssertNil(decoder.salvagedImage())
    }
}
