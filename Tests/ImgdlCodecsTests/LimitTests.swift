import ImgdlCore
import Synchronization
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// Every limit has a code of its own and names its numbers (features B10, I41, I42).
final class LimitTests: XCTestCase {
    private func check(
        _ file: [UInt8], _ options: DecodeOptions, _ code: ErrorCode, _ numbers: String..., line: UInt = #line
    ) {
        for size in [1, 1000, .max / 2] {
            let failure = decode(file, options, pieces: size).failure
            XCTAssertEqual(failure?.code, code, line: line)
            for number in numbers {
                XCTAssert(failure?.message.contains(number) == true, failure?.message ?? "", line: line)
            }
        }
    }

    func testSides() {
        for picture in Picture.everyCoding {
            var options = DecodeOptions()
            options.maximumSide = 201
            XCTAssertNil(decode(picture.encoded(), options).failure, picture.name)
            options.maximumSide = 200
            check(picture.encoded(), options, .sizeLimit, "201 × 150", "200")
        }
    }

    /// The largest picture that a header can name, where the caller has no limits: no number of it is computed with wrongly.
    func testTheLargestPicture() {
        let most = Int(Int32.max)
        for isInterlaced in [false, true] {
            for depth in [8, 16] as [UInt8] {
                var file = PNGFile(width: most, height: most, depth: depth, isInterlaced: isInterlaced)
                file.add("acTL", PNGFile.number(2) + PNGFile.number(0))
                file.add("fcTL", PNGFile.control(0, width: most, height: most))
                file.add("IDAT", PNGFile.deflated([0, 0, 0, 0]))
                for wanted in [PixelFormat.rgba8, .rgb8, .rgba16] {
                    var options = DecodeOptions()
                    options.maximumPixels = .max
                    options.maximumSide = most
                    options.maximumMemoryBytes = nil
                    options.pixelFormat = wanted
                    check(file.ended(), options, .outOfMemory, "2147483647 × 2147483647")
                    options.maximumMemoryBytes = .max
                    check(file.ended(), options, .memoryLimit, "9223372036854775807")
                    options.maximumMemoryBytes = nil
                    options.decodesAllFrames = true
                    options.maximumAnimationPixels = .max
                    XCTAssertNotNil(decode(file.ended(), options).failure)
                }
            }
        }
    }

    /// A frame's place and size in a file, against a canvas: in sums that any numbers can have.
    func testRectanglesOfAnyNumbers() {
        func area(_ x: Int, _ y: Int, _ width: Int, _ height: Int) -> PixelRectangle {
            PixelRectangle(x: x, y: y, width: width, height: height)
        }
        XCTAssert(area(1, 2, 3, 4).isWithin(width: 4, height: 6))
        XCTAssert(area(0, 0, .max, .max).isWithin(width: .max, height: .max))
        for outside in [
            area(2, 2, 3, 4), area(1, 3, 3, 4), area(.max, 0, 1, 1), area(0, 1, 1, .max), area(.max, .max, .max, .max),
        ] {
            XCTAssertFalse(outside.isWithin(width: 4, height: 6), "\(outside)")
        }
        XCTAssertFalse(area(1, 1, .max, .max).isWithin(width: .max, height: .max))
        XCTAssertEqual(area(1, 2, .max, .max).clipped(width: 4, height: 6), area(1, 2, 3, 4))
        XCTAssertEqual(area(.max, .max, .max, .max).clipped(width: 4, height: 6), area(4, 6, 0, 0))
        XCTAssertEqual(area(1, 2, 1, 2).clipped(width: 4, height: 6), area(1, 2, 1, 2))
        let most = CheckedNumber(Int(UInt32.max))
        XCTAssertNotNil(PixelRectangle(x: most, y: most, width: most, height: most))
        for place in 0..<4 {
            for number in [most + 1, nil, -1] {
                let numbers = (0..<4).map { $0 == place ? number : 1 }
                XCTAssertNil(PixelRectangle(x: numbers[0], y: numbers[1], width: numbers[2], height: numbers[3]))
            }
        }
    }

    /// Of a PNG, which cannot be stopped within a row.
    func testRows() {
        let most = 2 << 20
        XCTAssertNil(decode(Picture("a", PICTURE_PNG_RGB, width: Int32(most), height: 1).encoded()).failure)
        let wide = Picture("a", PICTURE_PNG_RGB, width: Int32(most + 1), height: 1).encoded()
        check(wide, DecodeOptions(), .sizeLimit, "\(most + 1)", "\(most)")
        var options = DecodeOptions()
        options.maximumSide = most + 1
        XCTAssertNil(decode(wide, options).failure)
        let deep = Picture("a", PICTURE_PNG_GRAY16, width: Int32(most / 2 + 1), height: 1).encoded()
        check(deep, DecodeOptions(), .sizeLimit, "\(most / 2)")
    }

    func testMemory() {
        for picture in Picture.everyCoding {
            var options = DecodeOptions()
            options.maximumMemoryBytes = 100_000
            check(picture.encoded(), options, .memoryLimit, "100000")
            let refused = BuiltInCodec().makeDecoder(options)
            XCTAssertThrowsError(try feed(refused, picture.encoded(), pieces: .max / 2) { _ in }, picture.name)
            XCTAssertNil(refused.salvagedImage(), "\(picture.name): what was refused is not decoded to be salvaged")
            options.maximumMemoryBytes = 1_000_000
            XCTAssertNil(decode(picture.encoded(), options).failure, picture.name)
        }
    }

    func testMemoryOfAGIF() throws {
        for file in try Corpus.files(named: ["dancing-banana.gif"]) {
            var options = DecodeOptions()
            options.maximumMemoryBytes = 1000
            check(file.bytes, options, .memoryLimit, "1000")
        }
    }

    /// A canvas of 4 MiB, and coefficients of two bytes: as many as pixels, and half as many for both colours.
    func testMemoryOfCoefficients() {
        let file = Picture("a", PICTURE_JPEG_PROGRESSIVE, width: 1024, height: 1024).encoded()
        var options = DecodeOptions()
        options.maximumMemoryBytes = 7 << 20
        XCTAssertNil(decode(file, options).failure)
        options.maximumMemoryBytes = (7 << 20) - 1
        check(file, options, .memoryLimit, "7340032")
    }

    func testPixelsOfAnimations() throws {
        for file in try Corpus.files(named: Corpus.animations) {
            var options = DecodeOptions()
            options.decodesAllFrames = true
            let header = decode(file.bytes, options).header
            let pixels = (header?.width ?? 0) * (header?.height ?? 0)
            options.maximumAnimationPixels = UInt64(pixels * 2 - 1)
            check(file.bytes, options, .animationLimit, "\(pixels * 2 - 1)")
            options.maximumAnimationPixels = UInt64(pixels * (header?.frameCount ?? 1))
            XCTAssertNil(decode(file.bytes, options).failure, file.path)
        }
    }

    func testMetadata() throws {
        let profile = Profile(PICTURE_PROFILE_INKS).bytes
        let files = [
            Picture("a", PICTURE_JPEG_BASELINE).encoded().withAPP2(profile, order: [2, 1]),
            Picture("a", PICTURE_PNG_RGB).encoded().withICCP(profile),
            Picture("a", PICTURE_WEBP_LOSSY).encoded().withICCPChunk(profile, width: 201, height: 150, alpha: false),
            Picture("a", PICTURE_WEBP_ANIMATED).encoded().withICCPChunk(profile, width: 201, height: 150, alpha: true),
            Picture("a", PICTURE_JPEG_BASELINE, orientation: 6).encoded().withAPP2(
                Array(profile.prefix(profile.count - 10))),
        ]
        for file in files {
            var options = DecodeOptions()
            options.maximumMetadataBytes = profile.count - 1
            check(file, options, .metadataLimit, "\(profile.count - 1)")
            options.maximumMetadataBytes = profile.count + 100
            XCTAssertNil(decode(file, options).failure)
        }
    }

    /// What does not shrink has some more bytes in a PNG than out of it: the limit is for what comes out.
    func testProfilesAsLongAsTheLimit() throws {
        for length in [132, 1_000, 200_000] {
            let profile = PNGFile.number(length) + [UInt8](repeating: 0, count: length - 4)
            var file = PNGFile(width: 1, height: 1)
            let name = [UInt8](repeating: 0x6E, count: 79)
            file.add("iCCP", name + [0, 0] + PNGFile.deflated(profile, level: 0))
            file.add("IDAT", PNGFile.rows(width: 1, [[1, 2, 3, 4]]))
            var options = DecodeOptions()
            options.maximumMetadataBytes = length
            for pieces in [7, .max / 2] {
                let decoder = BuiltInCodec().makeDecoder(options)
                try feed(decoder, file.ended(), pieces: pieces)
                XCTAssertEqual(try decoder.finish().colour.profile.map { Array($0.bytes) }, profile)
            }
            options.maximumMetadataBytes = length - 1
            check(file.ended(), options, .metadataLimit, "\(length) bytes")
        }
    }

    /// So much longer that it has to be longer unpacked, too, none of it is waited for.
    func testPackedProfilesLongerThanTheLimit() {
        var options = DecodeOptions()
        options.maximumMetadataBytes = 10_000
        for (length, code) in [(10_138, ErrorCode.truncated), (10_139, .metadataLimit)] {
            let head = PNGFile(width: 1, height: 1).bytes + PNGFile.number(length) + Array("iCCP".utf8)
            let failure = decode(head, options).failure
            XCTAssertEqual(failure?.code, code)
            let words = "\(length) bytes of EXIF and packed profile"
            XCTAssertEqual(failure?.message.contains(words), code == .metadataLimit)
        }
    }

    /// One byte more than the largest limit is no number that traps.
    func testTheLargestLimitOfMetadata() {
        var options = DecodeOptions()
        options.maximumMetadataBytes = .max
        let failure = options.metadataFailure(CheckedNumber(Int.max) + 1)
        XCTAssertEqual(failure.code, .metadataLimit)
        XCTAssert(failure.message.contains("more than 9223372036854775807 bytes of EXIF"), failure.message)
        let profile = Profile(PICTURE_PROFILE_INKS).bytes
        let webp = Picture("a", PICTURE_WEBP_LOSSY).encoded()
        for file in [
            Picture("a", PICTURE_JPEG_BASELINE).encoded().withAPP2(profile, order: [2, 1]),
            Picture("a", PICTURE_PNG_RGB).encoded().withICCP(profile),
            webp.withICCPChunk(profile, width: 201, height: 150, alpha: false),
        ] {
            XCTAssertNil(decode(file, options).failure)
        }
    }

    /// Four gigabytes are said in a few bytes: nothing is allocated for them.
    func testMemoryOfProfiles() throws {
        var options = DecodeOptions()
        options.maximumMetadataBytes = .max
        let said = [UInt8](repeating: 0xFF, count: 4) + [UInt8](repeating: 0, count: 200)
        let png = Picture("a", PICTURE_PNG_RGB).encoded()
        check(png.withICCP(said), options, .memoryLimit, "\(DecodeOptions.defaultMaximumMemoryBytes)")
        options.maximumMemoryBytes = nil
        XCTAssertNil(decode(png.withICCP(said), options).failure)
    }

    /// Without a limit of the caller's, what is too long is passed over.
    func testLongMetadataIsPassedOver() throws {
        let long = [UInt8](repeating: 7, count: DecodeOptions.defaultMaximumMetadataBytes + 1)
        let png = Picture("a", PICTURE_PNG_RGB).encoded()
        let webp = Picture("a", PICTURE_WEBP_LOSSY).encoded()
        XCTAssert(decode(png.withChunk("iCCP", long)).pixels == decode(png).pixels)
        let file = webp.withICCPChunk(long, width: 201, height: 150, alpha: false)
        XCTAssert(decode(file).pixels == decode(webp).pixels)
    }

    /// Time is the decoder's own; the pixels so far are kept.
    /// By a clock that runs a second at each look: the picture is stopped in its midst, however busy the machine is.
    func testTime() throws {
        for kind in [PICTURE_JPEG_BASELINE, PICTURE_JPEG_PROGRESSIVE, PICTURE_PNG_RGB, PICTURE_WEBP_LOSSY] {
            let file = Picture("large", kind, width: 3000, height: 2000).encoded()
            var options = DecodeOptions()
            options.maximumMilliseconds = 1_000_000_000
            TestClock.nanoseconds.store(0, ordering: .relaxed)
            let unhurried = BuiltInCodec(now: TestClock.now).makeDecoder(options)
            try feed(unhurried, file, pieces: 1 << 16)
            _ = try unhurried.finish()
            let looks = TestClock.nanoseconds.load(ordering: .relaxed) / 1_000_000_000
            XCTAssertGreaterThan(looks, 10, "\(kind)")

            TestClock.nanoseconds.store(0, ordering: .relaxed)
            let limit = looks / 2 * 1_000
            options.maximumMilliseconds = limit
            let decoder = BuiltInCodec(now: TestClock.now).makeDecoder(options)
            func decodeAll() throws {
                try feed(decoder, file, pieces: 1 << 16)
                _ = try decoder.finish()
            }
            XCTAssertThrowsError(try decodeAll(), "\(kind)") { error in
                XCTAssertEqual((error as? Failure)?.code, .decodeTimeout)
                XCTAssert((error as? Failure)?.message.contains("\(limit) ms") == true)
            }
            XCTAssertThrowsError(try decoder.finish())
            if kind != PICTURE_JPEG_PROGRESSIVE {
                let salvaged = decoder.salvagedImage()
                XCTAssertEqual(salvaged?.isComplete, false, "\(kind)")
            }
        }
    }

    /// Of nobody's asking: 10 s of CPU time, here of a clock that runs a second at each look.
    func testTimeThatNobodyHasSet() throws {
        XCTAssertEqual(DecodeOptions().maximumMilliseconds, 10_000)
        for kind in [PICTURE_JPEG_BASELINE, PICTURE_JPEG_PROGRESSIVE, PICTURE_PNG_RGB, PICTURE_WEBP_LOSSY] {
            let file = Picture("large", kind, width: 1200, height: 900).encoded()
            TestClock.nanoseconds.store(0, ordering: .relaxed)
            let decoder = BuiltInCodec(now: TestClock.now).makeDecoder(DecodeOptions())
            func decodeAll() throws {
                try feed(decoder, file, pieces: 1 << 16)
                _ = try decoder.finish()
            }
            XCTAssertThrowsError(try decodeAll(), "\(kind)") { error in
                XCTAssertEqual((error as? Failure)?.code, .decodeTimeout, "\(kind)")
                XCTAssert((error as? Failure)?.message.contains("10000 ms") == true, "\(error)")
            }
            let seconds = TestClock.nanoseconds.load(ordering: .relaxed) / 1_000_000_000
            XCTAssert((10...15).contains(seconds), "\(kind) ended after \(seconds) s")

            TestClock.nanoseconds.store(0, ordering: .relaxed)
            var options = DecodeOptions()
            options.maximumMilliseconds = nil
            let unlimited = BuiltInCodec(now: TestClock.now).makeDecoder(options)
            XCTAssertNoThrow(try feed(unlimited, file, pieces: 1 << 16))
            XCTAssertNoThrow(try unlimited.finish())
        }
    }
}

/// A second has gone by at each look.
private enum TestClock {
    static let nanoseconds = Atomic<Int64>(0)
    static let now: DecodeClock.CPUTime = { nanoseconds.add(1_000_000_000, ordering: .relaxed).newValue }
}
