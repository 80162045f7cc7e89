import ImgdlCore
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// B6, B7: pictures shown while the bytes are still coming.
final class PartialImageTests: XCTestCase {
    private func partials(of bytes: [UInt8], _ options: DecodeOptions = DecodeOptions(), pieces: Int = 300) throws
        -> (partials: [DecodedImage], copies: [[UInt8]], final: DecodedImage)
    {
        let decoder = BuiltInCodec().makeDecoder(options)
        var images = [DecodedImage]()
        var copies = [[UInt8]]()
        try feed(decoder, bytes, pieces: pieces) { _ in
            guard let image = decoder.partialImage() else { return }
            images.append(image)
            copies.append(image.bytes)
            // A thumbnail comes ahead of rows that are there already.
            if image.pass > 0 { XCTAssertNil(decoder.partialImage(), "nothing new without new bytes") }
        }
        return (images, copies, try decoder.finish())
    }

    /// Rows that are ready never change again, and are not copied for each partial image.
    func testFinishedRowsAreFinalAndShared() throws {
        let pictures = [
            Picture("baseline", PICTURE_JPEG_BASELINE), Picture("rgba", PICTURE_PNG_RGBA),
            Picture("lossy", PICTURE_WEBP_LOSSY_ALPHA),
            Picture("lossless", PICTURE_WEBP_LOSSLESS, width: 401, height: 400),
        ]
        for picture in pictures {
            for format in [PixelFormat.rgba8, .bgra8Premultiplied] {
                let (partials, copies, final) = try partials(of: picture.encoded(), decodeOptions(format))
                XCTAssertGreaterThan(partials.count, picture.name == "lossless" ? 0 : 3, picture.name)
                for (partial, copy) in zip(partials, copies) {
                    XCTAssert(partial.pixels === final.pixels, picture.name)
                    XCTAssertFalse(partial.isComplete)
                    let end = partial.ready.height * partial.pixels.stride
                    XCTAssert(copy[..<end] == final.bytes[..<end], "\(picture.name), \(partial.ready.height) rows")
                }
                let heights = partials.map(\.ready.height)
                XCTAssertEqual(heights, heights.sorted(), picture.name)
            }
        }
    }

    /// Files stored in passes show pictures, each better, none of them touched afterwards where it was ready.
    func testPassesAreSnapshots() throws {
        let pictures = [
            Picture("progressive", PICTURE_JPEG_PROGRESSIVE), Picture("scans", PICTURE_JPEG_SEPARATE_SCANS),
            Picture("adam7", PICTURE_PNG_ADAM7), Picture("adam7 alpha", PICTURE_PNG_ADAM7_RGBA),
        ]
        for picture in pictures {
            let (partials, copies, final) = try partials(of: picture.encoded(), pieces: 200)
            XCTAssertGreaterThan(partials.count, 1, picture.name)
            XCTAssert(partials.allSatisfy(\.header.isProgressive), picture.name)
            for (partial, copy) in zip(partials, copies) {
                let end = partial.ready.height * partial.pixels.stride
                XCTAssert(
                    partial.bytes[..<end] == copy[..<end], "\(picture.name): a picture that was handed out has changed")
                XCTAssert(copy[end...].allSatisfy { $0 == 0 }, "\(picture.name): not transparent below")
                XCTAssert(partial.pixels !== final.pixels, picture.name)
            }
            let passes = partials.map(\.pass)
            XCTAssertEqual(passes, passes.sorted(), picture.name)
            guard let last = partials.last, picture.name != "scans" else { continue }
            XCTAssertEqual(last.ready.height, 150, picture.name)
            XCTAssertLessThan(difference(last.bytes, final.bytes), 12, "\(picture.name): near the final picture")
        }
    }

    /// B9: at most one picture for each scan, however many pieces; of the first also its rows as they come. A scan of one
    /// colour difference waits for the other's.
    func testProgressiveJPEGShowsTheFirstScanGrowAndThenOnePictureAScan() throws {
        let shown = [(PICTURE_JPEG_PROGRESSIVE, [2, 4, 5, 6, 7, 9]), (PICTURE_JPEG_SEPARATE_SCANS, [])]
        for (kind, scans) in shown {
            let bytes = Picture("progressive", kind).encoded()
            let (partials, _, _) = try partials(of: bytes, pieces: 1)
            let later = partials.filter { $0.pass > 1 }
            XCTAssertEqual(later.map(\.pass), scans)
            XCTAssert(later.allSatisfy { $0.ready.height == 150 })
            let heights = partials.filter { $0.pass == 1 }.map(\.ready.height)
            XCTAssertGreaterThan(heights.count, 4)
            XCTAssertEqual(heights, Set(heights).sorted())
            XCTAssertEqual(heights.last, 150)
        }
    }

    /// R26: good enough once every component has been there, or when the caller says so; never before the scan is whole.
    func testGoodEnough() throws {
        let cases: [(picture_kind, Int?, Int)] = [
            (PICTURE_JPEG_PROGRESSIVE, nil, 1), (PICTURE_JPEG_PROGRESSIVE, 4, 4), (PICTURE_JPEG_SEPARATE_SCANS, 2, 2),
            (PICTURE_JPEG_SEPARATE_SCANS, nil, 3),
        ]
        for (kind, chosen, expected) in cases {
            var options = DecodeOptions()
            options.goodEnoughScan = chosen
            let (partials, _, final) = try partials(of: Picture("a", kind).encoded(), options, pieces: 20)
            for partial in partials {
                XCTAssertEqual(partial.isGoodEnough, partial.pass >= expected && partial.ready.height == 150)
            }
            XCTAssert(final.isGoodEnough)
        }
    }

    /// The first scan's rows are those which a whole first scan has.
    func testGrowingScanEqualsTheWholeScan() throws {
        for (format, target) in [(PixelFormat.rgba8, 0), (.bgra8, 60)] {
            for orientation in Int32(1)...8 {
                let bytes = Picture("a", PICTURE_JPEG_PROGRESSIVE, orientation: orientation).encoded()
                var options = decodeOptions(format)
                options.targetWidth = target
                let grown = try partials(of: bytes, options, pieces: 30).copies
                let decoder = BuiltInCodec().makeDecoder(options)
                var first: [UInt8]?
                try feed(decoder, bytes, pieces: bytes.count / 3) { _ in
                    if first == nil, let image = decoder.partialImage(), image.pass == 1 { first = image.bytes }
                }
                guard let first else { continue }
                XCTAssert(grown.contains(first), "orientation \(orientation)")
            }
        }
    }

    /// R05: the EXIF thumbnail, as large as the picture, before anything else; lying as the picture does.
    func testThumbnailComesFirst() throws {
        for kind in [PICTURE_JPEG_BASELINE, PICTURE_JPEG_PROGRESSIVE, PICTURE_JPEG_ARITHMETIC] {
            for orientation in Int32(1)...8 {
                var picture = Picture("camera", kind, width: 320, height: 214, orientation: orientation)
                picture.spec.exif_thumbnail = 1
                let bytes = picture.encoded()
                var options = DecodeOptions()
                options.showsThumbnailFirst = true
                let (partials, copies, final) = try partials(of: bytes, options, pieces: bytes.count / 2)
                let first = try XCTUnwrap(partials.first)
                XCTAssertEqual(first.pass, 0)
                XCTAssertEqual(first.header, final.header)
                XCTAssertEqual(first.ready.height, final.pixels.height)
                XCTAssertFalse(first.isComplete)
                XCTAssertEqual(copies[0].count, final.bytes.count)
                XCTAssert(stride(from: 3, to: copies[0].count, by: 4).allSatisfy { copies[0][$0] == 255 })
                XCTAssert(
                    decode(bytes, options, pieces: 500, partials: true) == decode(bytes), "the picture is its own")
                let plain = try self.partials(of: bytes, pieces: bytes.count / 2).partials
                XCTAssertFalse(plain.contains { $0.pass == 0 }, "only when it was asked for")
            }
        }
    }

    /// One with black bars, or of another picture, would jump when the picture comes.
    func testThumbnailOfOtherProportionsIsNotShown() throws {
        var options = DecodeOptions()
        options.showsThumbnailFirst = true
        for (width, height) in [(Int32(320), Int32(240)), (107, 160), (160, 100)] {
            var picture = Picture("camera", PICTURE_JPEG_BASELINE, width: width, height: height, orientation: 1)
            picture.spec.exif_thumbnail = 1
            let partials = try partials(of: picture.encoded(), options, pieces: 1000).partials
            XCTAssertFalse(partials.isEmpty)
            XCTAssertFalse(partials.contains { $0.pass == 0 }, "\(width) × \(height)")
        }
    }

    /// A flat thumbnail stays flat, whatever the size; a broken one is none.
    func testThumbnailIsStretched() throws {
        var options = DecodeOptions()
        options.showsThumbnailFirst = true
        options.targetWidth = 80
        var picture = Picture("camera", PICTURE_JPEG_BASELINE, width: 1600, height: 1070, orientation: 1)
        picture.spec.exif_thumbnail = 1
        let bytes = picture.encoded()
        let first = try XCTUnwrap(partials(of: bytes, options, pieces: 20_000).partials.first)
        XCTAssertEqual(first.pass, 0)
        XCTAssertEqual([first.pixels.width, first.pixels.height], [80, 54])
        let inner = try XCTUnwrap(bytes.indices.dropFirst(2).first { bytes[$0...].starts(with: [0xFF, 0xD8, 0xFF]) })
        var broken = bytes
        broken[inner] = 0
        let partials = try partials(of: broken, options, pieces: 20_000).partials
        XCTAssertFalse(partials.contains { $0.pass == 0 })
    }

    /// The first pass of Adam7 is already a picture: its pixels fill the gaps.
    func testAdam7FillsTheGaps() throws {
        let (partials, _, _) = try partials(of: Picture("adam7", PICTURE_PNG_ADAM7).encoded(), pieces: 100)
        let first = try XCTUnwrap(partials.first)
        XCTAssertEqual(first.pass, 1)
        for y in 0..<first.ready.height { XCTAssertEqual(first.pixel(200, y)[3], 255) }
    }

    /// A canvas that is used again has the same pixels as a new one, whoever held which.
    func testAdam7CopiesWhatHasChanged() throws {
        for (kind, format) in [(PICTURE_PNG_ADAM7, PixelFormat.rgba8), (PICTURE_PNG_ADAM7_RGBA, .bgra8Premultiplied)] {
            for orientation in [Int32(1), 6] {
                let bytes = Picture("a", kind, orientation: orientation).encoded()
                let expected = try partials(of: bytes, decodeOptions(format), pieces: 700).copies
                for held in 0...2 {
                    let decoder = BuiltInCodec().makeDecoder(decodeOptions(format))
                    var last: [DecodedImage] = []
                    var copies: [[UInt8]] = []
                    try feed(decoder, bytes, pieces: 700) { _ in
                        guard let image = decoder.partialImage() else { return }
                        copies.append(image.bytes)
                        last = Array((last + [image]).suffix(held))
                    }
                    XCTAssertGreaterThan(copies.count, 10)
                    XCTAssert(copies == expected, "\(held) held, orientation \(orientation)")
                }
            }
        }
    }

    /// SDWebImage#633: a partial picture lies as the final one does.
    func testPartialsAreTurned() throws {
        let kinds = [
            PICTURE_JPEG_BASELINE, PICTURE_JPEG_PROGRESSIVE, PICTURE_PNG_RGB, PICTURE_PNG_ADAM7, PICTURE_WEBP_LOSSY,
        ]
        for kind in kinds {
            for orientation in Int32(1)...8 {
                var picture = Picture("turned", kind, orientation: orientation)
                picture.spec.exif_before_pixels = 1
                let name = "kind \(kind.rawValue), orientation \(orientation)"
                let (partials, copies, final) = try partials(of: picture.encoded())
                let first = try XCTUnwrap(partials.first, name)
                XCTAssertEqual(first.header, final.header, name)
                XCTAssertEqual(first.pixels.width, orientation >= 5 ? 150 : 201, name)
                guard !first.header.isProgressive else { continue }
                checkReady(first, copies[0], final, name)
            }
        }
    }

    private func checkReady(_ partial: DecodedImage, _ copy: [UInt8], _ final: DecodedImage, _ name: String) {
        let ready = partial.ready
        XCTAssert(ready.width * ready.height < 201 * 150, name)
        for y in 0..<partial.pixels.height {
            for x in 0..<partial.pixels.width {
                let isReady =
                    x >= ready.x && x < ready.x + ready.width && y >= ready.y && y < ready.y + ready.height
                let at = 4 * (y * partial.pixels.width + x)
                let expected = isReady ? final.pixel(x, y) : [0, 0, 0, 0]
                // libwebp writes ahead of the rows it calls finished.
                if Array(copy[at..<at + 4]) != expected, isReady || partial.header.format != .webp {
                    return XCTFail("\(name): pixel \(x), \(y), ready \(ready)")
                }
            }
        }
    }

    private func difference(_ a: [UInt8], _ b: [UInt8]) -> Int {
        zip(a, b).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) } / max(1, a.count)
    }
}
