import TestPictures
import ImgdlCodecs
import ImgdlCore
import XCTest

/// B5: a picture that ends too early is an error, and the pixels that came can be had all the same.
final class TruncationTests: XCTestCase {
    func testEveryQuarterIsTruncated() {
        for picture in Picture.everyCoding {
            let bytes = picture.encoded()
            let whole = decode(bytes)
            for quarter in 1...3 {
                let cut = Array(bytes.prefix(bytes.count * quarter / 4))
                let name = "\(picture.name), \(quarter) quarters"
                let (failure, salvaged) = decodeCut(cut)
                XCTAssertEqual(failure?.code, .truncated, name)
                XCTAssertEqual(decode(cut, pieces: 100).failure, failure, name)
                checkSalvage(salvaged, of: whole, quarter, picture.name)
            }
        }
    }

    /// From the second scan on there is always a whole picture, also when the cut is between two scans.
    func testEveryCutInAProgressiveJPEGCanBeSalvaged() {
        for kind in [PICTURE_JPEG_PROGRESSIVE, PICTURE_JPEG_ARITHMETIC_PROGRESSIVE] {
            let bytes = Picture("a", kind, width: 40, height: 40).encoded()
            let scans = (0..<bytes.count - 1).filter { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xDA }
            XCTAssertGreaterThan(scans.count, 5)
            for end in scans[1]..<bytes.count {
                let (failure, salvaged) = decodeCut(Array(bytes[..<end]))
                XCTAssertEqual(failure?.code, .truncated)
                guard let salvaged, salvaged.ready.height == 40 else { return XCTFail("kind \(kind), cut at \(end)") }
            }
        }
    }

    /// All rows may have come, and the end be missing: then that is what is said.
    func testAPictureWithoutItsEnd() {
        let pictures = Picture.everyCoding.filter { $0.name.hasSuffix("png") }
        XCTAssertEqual(pictures.count, 6)
        for picture in pictures {
            let bytes = picture.encoded()
            // Length, name and sum of IEND.
            let failure = decodeCut(Array(bytes.dropLast(12))).failure
            XCTAssertEqual(failure?.code, .truncated, picture.name)
            XCTAssertTrue(failure?.message.contains("(IEND) is missing") ?? false, failure?.message ?? picture.name)
        }
    }

    func testEveryCutInSmallFiles() {
        for picture in Picture.everyCoding {
            var small = picture
            small.spec.width = 19
            small.spec.height = 21
            let bytes = small.encoded()
            for end in 1..<bytes.count {
                let failure = decodeCut(Array(bytes[..<end])).failure
                if failure?.code == .truncated { continue }
                XCTFail("\(picture.name) cut at \(end) of \(bytes.count): \(String(describing: failure))")
                break
            }
        }
    }

    /// After a failure the same failure comes again, and the salvaged picture does not go away.
    func testFailureStays() {
        let bytes = Picture("a", PICTURE_JPEG_PROGRESSIVE).encoded()
        let decoder = BuiltInCodec().makeDecoder(DecodeOptions())
        XCTAssertNoThrow(try feed(decoder, Array(bytes.prefix(bytes.count / 2)), pieces: 1000))
        let first = failure { () throws(Failure) in _ = try decoder.finish() }
        XCTAssertEqual(first?.code, .truncated)
        XCTAssertEqual(failure { () throws(Failure) in _ = try decoder.finish() }, first)
        XCTAssertEqual(failure { () throws(Failure) in try feed(decoder, bytes, pieces: 1000) }, first)
        XCTAssertNil(decoder.partialImage())
        XCTAssertEqual(decoder.salvagedImage()?.bytes, decoder.salvagedImage()?.bytes)
        XCTAssertNotNil(decoder.salvagedImage())
    }

    /// Damage in the middle of a JPEG is only a warning for libjpeg; here it is a failure with libjpeg's words.
    func testDamagedJPEG() {
        for kind in [PICTURE_JPEG_BASELINE, PICTURE_JPEG_PROGRESSIVE] {
            var bytes = Picture("a", kind).encoded()
            // A marker inside the entropy-coded data ends the segment early.
            bytes[bytes.count * 3 / 4] = 0xFF
            bytes[bytes.count * 3 / 4 + 1] = 0xD7
            let decoder = BuiltInCodec().makeDecoder(DecodeOptions())
            let failure = failure { () throws(Failure) in
                try feed(decoder, bytes, pieces: 1000)
                _ = try decoder.finish()
            }
            XCTAssertEqual(failure?.code, .badImageData)
            XCTAssert(failure?.message.hasPrefix("libjpeg: ") == true, "\(String(describing: failure))")
            XCTAssertEqual(decoder.salvagedImage()?.isComplete, false)
        }
    }

    func testDamagedPNGData() {
        var bytes = Picture("a", PICTURE_PNG_RGB).encoded()
        bytes[bytes.count / 2] ^= 0x10
        let failure = decode(bytes).failure
        XCTAssertEqual(failure?.code, .badImageData)
        XCTAssert(failure?.message.hasPrefix("libpng: ") == true, "\(String(describing: failure))")
    }

    private func failure(_ body: () throws(Failure) -> Void) -> Failure? {
        do throws(Failure) {
            try body()
            return nil
        } catch { return error }
    }

    private func decodeCut(_ bytes: [UInt8]) -> (failure: Failure?, salvaged: DecodedImage?) {
        let decoder = BuiltInCodec().makeDecoder(DecodeOptions())
        do throws(Failure) {
            try feed(decoder, bytes, pieces: .max / 2)
            _ = try decoder.finish()
            return (nil, nil)
        } catch {
            return (error, decoder.salvagedImage())
        }
    }

    /// Salvaged rows of a single pass are the file's own; what is not ready is transparent, never leftover memory.
    private func checkSalvage(_ salvaged: DecodedImage?, of whole: Verdict, _ quarter: Int, _ picture: String) {
        let name = "\(picture), \(quarter) quarters"
        let isWebP = picture.hasSuffix("webp")
        // A lossy WebP begins with what its rows have in common (modes, alpha): a third and more of a small one.
        if salvaged == nil, isWebP, quarter < 3 { return }
        guard let salvaged, let pixels = whole.pixels else { return XCTFail("\(name): nothing salvaged") }
        XCTAssertFalse(salvaged.isComplete, name)
        let rows = salvaged.ready.height
        XCTAssert(rows > 0 && rows <= salvaged.pixels.height, name)
        let bytes = salvaged.bytes
        let end = rows * salvaged.pixels.stride
        if !salvaged.header.isProgressive {
            XCTAssert(bytes[..<end] == pixels[..<end], "\(name): other pixels")
        }
        // libwebp writes ahead of the rows it calls finished.
        XCTAssert(isWebP || bytes[end...].allSatisfy { $0 == 0 }, "\(name): not transparent below")
    }
}
