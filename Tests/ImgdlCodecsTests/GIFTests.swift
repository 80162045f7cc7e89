import ImgdlCodecs
import ImgdlCore
import XCTest

/// GIFs that no encoder should write and that come all the same (features B5, B7, B10, G5; T04, T18).
final class GIFTests: XCTestCase {
    private static let red: [UInt8] = [255, 0, 0, 255]
    private static let green: [UInt8] = [0, 255, 0, 255]
    private static let blue: [UInt8] = [0, 0, 255, 255]
    private static let clear: [UInt8] = [0, 0, 0, 0]

    private var allFrames: DecodeOptions {
        var options = DecodeOptions()
        options.decodesAllFrames = true
        return options
    }

    /// Every piece size gives what the whole gives.
    private func decodeEveryWay(_ bytes: [UInt8], _ options: DecodeOptions, line: UInt = #line) -> Verdict {
        let whole = decode(bytes, options)
        for size in [1, 2, 7, 1000] {
            XCTAssert(
                decode(bytes, options, pieces: size, partials: size == 7) == whole, "pieces of \(size)", line: line)
        }
        return whole
    }

    private func file(of frames: Int, delay: Int = 10) -> GIFFile {
        var file = GIFFile(width: 2, height: 1)
        for index in 0..<frames {
            file.addControl(delay: delay)
            file.addFrame(width: 2, height: 1, [UInt8(index % 4), 1])
        }
        return file
    }

    // MARK: LZW

    /// Long and short strings, a table that fills up, is cleared or stays full: what was written is read.
    func testLZWGivesBackWhatWasWritten() {
        for (seed, colors) in [(1, 2), (2, 4), (3, 16), (4, 256)] {
            for clears in [false, true] {
                var state = UInt64(seed)
                var indices = [UInt8]()
                while indices.count < 300 * 200 {
                    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                    let run = seed == 4 ? 1 : Int(state >> 59) + 1
                    indices += Array(repeating: UInt8(Int(state >> 33) % colors), count: run)
                }
                indices.removeLast(indices.count - 300 * 200)
                let codeSize = max(2, colors.trailingZeroBitCount)
                var file = GIFFile(width: 300, height: 200, palette: (0..<768).map { UInt8($0 / 3) })
                let data = GIFFile.encoded(indices, codeSize: codeSize, clears: clears)
                file.addFrame(width: 300, height: 200, [], codeSize: codeSize, data: data)
                let pieces = 1 + Int(state >> 50) % 5000
                let verdict = decode(file.ended(), pieces: pieces)
                var expected = [UInt8]()
                for index in indices { expected += [index, index, index, 255] }
                XCTAssert(verdict.pixels == expected, "\(colors) colours, clears: \(clears), pieces of \(pieces)")
            }
        }
    }

    func testTooLittleDataIsAnError() {
        var codes = CodeWriter()
        for code in [4, 1, 5] { codes.write(code, 3) }
        let early = codes.ended()
        codes = CodeWriter()
        for code in [4, 1, 7] { codes.write(code, 3) }
        let impossible = codes.ended()
        for (data, words) in [
            (early, "frame 1 of the GIF has too few pixels"),
            (impossible, "frame 1 of the GIF has an impossible LZW code"),
            ([], "frame 1 of the GIF has too little data"),
        ] {
            var file = GIFFile(width: 2, height: 2)
            file.addFrame(width: 2, height: 2, [], data: data)
            XCTAssertEqual(decodeEveryWay(file.ended(), DecodeOptions()).failure, Failure(.badImageData, words))
        }
    }

    /// What stands behind the last pixel is not looked at.
    func testTooMuchDataIsNone() {
        var file = GIFFile(width: 2, height: 1)
        file.addFrame(
            width: 2, height: 1, [], data: GIFFile.encoded([1, 2], codeSize: 2) + [UInt8](repeating: 0xFF, count: 999))
        XCTAssertEqual(decodeEveryWay(file.ended() + [1, 2, 3], DecodeOptions()).pixels, Self.red + Self.green)
    }

    // MARK: Blocks

    func testMissingTrailerIsTruncated() {
        let bytes = file(of: 1).bytes
        let decoder = BuiltInCodec().makeDecoder(DecodeOptions())
        XCTAssertNoThrow(try feed(decoder, bytes, pieces: 1))
        XCTAssertThrowsError(try decoder.finish()) { XCTAssertEqual(($0 as? Failure)?.code, .truncated) }
        XCTAssertEqual(decoder.salvagedImage()?.isComplete, false)
        XCTAssertEqual(decoder.salvagedImage()?.bytes.count, 8)
    }

    /// A palette that ends early: what it does not name is transparent.
    func testIndicesBeyondThePalette() {
        var file = GIFFile(width: 2, height: 1, palette: Array(GIFFile.palette.prefix(6)))
        file.addFrame(width: 2, height: 1, [1, 3])
        XCTAssertEqual(decodeEveryWay(file.ended(), DecodeOptions()).pixels, Self.red + Self.clear)
    }

    func testFramesOutsideTheScreenAreCut() {
        var file = GIFFile(width: 2, height: 2)
        file.addFrame(x: 1, y: 1, width: 3, height: 2, [1, 2, 3, 1, 2, 3])
        file.addFrame(x: 9, y: 9, width: 2, height: 1, [1, 2])
        let verdict = decodeEveryWay(file.ended(), allFrames)
        let expected = Self.clear + Self.clear + Self.clear + Self.red
        XCTAssertEqual(verdict.frames, [expected, expected])
        XCTAssertEqual(verdict.header?.hasAlpha, true)
    }

    /// A frame without pixels shows what was there; a picture of nothing else is none.
    func testEmptyFrames() {
        var file = file(of: 1)
        file.addFrame(width: 0, height: 7, [])
        let verdict = decodeEveryWay(file.ended(), allFrames)
        XCTAssertEqual(verdict.frames.count, 2)
        XCTAssertEqual(verdict.frames.first, verdict.frames.last)
        var empty = GIFFile(width: 2, height: 1)
        empty.addFrame(width: 0, height: 7, [])
        XCTAssertEqual(
            decodeEveryWay(empty.ended(), allFrames).failure,
            Failure(.badImageData, "the first frame of the GIF is 0 × 7 pixels"))
        XCTAssertEqual(
            decodeEveryWay(GIFFile(width: 2, height: 1).ended(), allFrames).failure,
            Failure(.badImageData, "the GIF has no frame"))
    }

    func testALongCommentIsPassedOver() {
        var file = GIFFile(width: 2, height: 1)
        file.add([0x21, 0xFE] + GIFFile.blocks([UInt8](repeating: 7, count: 1_000_000)))
        file.addFrame(width: 2, height: 1, [1, 2])
        XCTAssertEqual(decode(file.ended(), pieces: 4096).pixels, Self.red + Self.green)
    }

    // MARK: Animations

    /// O10, O11: what each frame leaves to the next.
    func testDisposal() {
        var file = GIFFile(width: 3, height: 1)
        file.addControl(disposal: 1)
        file.addFrame(width: 3, height: 1, [1, 1, 1])
        file.addControl(disposal: 2)
        file.addFrame(width: 1, height: 1, [2])
        file.addControl(disposal: 3)
        file.addFrame(x: 1, width: 1, height: 1, [3])
        file.addControl(disposal: 0, transparent: 2)
        file.addFrame(x: 1, width: 2, height: 1, [2, 3])
        let verdict = decodeEveryWay(file.ended(), allFrames)
        XCTAssertEqual(
            verdict.frames,
            [
                Self.red + Self.red + Self.red, Self.green + Self.red + Self.red, Self.clear + Self.blue + Self.red,
                Self.clear + Self.red + Self.blue,
            ])
        XCTAssertEqual(verdict.pixels, verdict.frames.first)
        let still = decodeEveryWay(file.ended(), DecodeOptions())
        XCTAssertEqual(still.pixels, verdict.pixels)
        XCTAssertEqual(still.frames.count, 1)
        XCTAssertEqual(still.header?.frameCount, 4)
    }

    /// G5: delays below 11 ms mean 100; without a count an animation plays once, a count n means n times more.
    func testTimesAndLoops() {
        for (delay, shown) in [(0, 100), (1, 100), (2, 20), (65535, 655_350)] {
            XCTAssertEqual(decode(file(of: 2, delay: delay).ended(), allFrames).milliseconds, [shown, shown])
        }
        XCTAssertEqual(decode(file(of: 2).ended()).loopCount, 1)
        for (stored, plays) in [(0, 0), (1, 2), (65535, 65536)] {
            var before = GIFFile(width: 2, height: 1)
            before.addLoops(stored)
            before.addFrame(width: 2, height: 1, [1, 1])
            before.addFrame(width: 2, height: 1, [2, 1])
            XCTAssertEqual(decodeEveryWay(before.ended(), DecodeOptions()).loopCount, plays)
            var behind = file(of: 2)
            behind.addLoops(stored)
            XCTAssertEqual(decodeEveryWay(behind.ended(), DecodeOptions()).loopCount, plays)
        }
        var still = GIFFile(width: 2, height: 1)
        still.addLoops(5)
        still.addFrame(width: 2, height: 1, [1, 1])
        XCTAssertEqual(decode(still.ended(), allFrames).loopCount, 1)
        XCTAssertEqual(decode(still.ended(), allFrames).frames, [])
    }

    /// B5: damage in a later frame is found although nobody asked for that frame.
    func testLaterFramesAreChecked() {
        var file = file(of: 2)
        file.addFrame(width: 2, height: 1, [], data: [0xFF])
        let failure = Failure(.badImageData, "frame 3 of the GIF has an impossible LZW code")
        XCTAssertEqual(decodeEveryWay(file.ended(), DecodeOptions()).failure, failure)
        XCTAssertEqual(decodeEveryWay(file.ended(), allFrames).failure, failure)
    }

    /// O12.
    func testAnAnimationCanBeRequired() {
        var options = DecodeOptions()
        options.requiresAnimation = true
        XCTAssertNil(decodeEveryWay(file(of: 2).ended(), options).failure)
        XCTAssertEqual(
            decodeEveryWay(file(of: 1).ended(), options).failure,
            Failure(.badImageData, "the picture has one frame, and an animation was asked for"))
    }

    // MARK: Limits

    /// B10: frames that are decoded are counted, and their pixels added up.
    func testLimits() {
        let bytes = file(of: 5).ended()
        var options = allFrames
        options.maximumFrames = 4
        let failure = Failure(.frameLimit, "the animation has more than the limit of 4 frames")
        XCTAssertEqual(decodeEveryWay(bytes, options).failure, failure)
        options.decodesAllFrames = false
        XCTAssertNil(decodeEveryWay(bytes, options).failure)
        options = allFrames
        options.maximumPixels = 9
        XCTAssertEqual(
            decodeEveryWay(bytes, options).failure,
            Failure(.animationLimit, "5 frames of 2 × 1 pixels are more than the limit of 9 pixels for all frames"))
        options.maximumPixels = 10
        XCTAssertNil(decodeEveryWay(bytes, options).failure)
    }

    /// B10: a small file with the largest screen or frame is refused by its header.
    func testHugeScreensAndFrames() {
        var screen = GIFFile(width: 65535, height: 65535)
        screen.addFrame(width: 1, height: 1, [1])
        XCTAssertEqual(decode(screen.ended()).failure?.code, .pixelLimit)
        var frame = GIFFile(width: 1, height: 1)
        frame.addFrame(width: 65535, height: 65535, [1])
        XCTAssertEqual(decode(frame.ended()).failure?.code, .pixelLimit)
    }

    func testTenThousandEmptyFrames() {
        var file = file(of: 1)
        for _ in 0..<10_000 { file.addFrame(width: 0, height: 0, []) }
        XCTAssertEqual(decode(file.ended()).header?.frameCount, 10_001)
        XCTAssertEqual(decode(file.ended(), allFrames).failure?.code, .frameLimit)
    }

    // MARK: Partial images

    /// Rows of an interlaced picture stand for those below them until these come.
    func testInterlacedPartialImagesAreBlocks() throws {
        let indices = (0..<16).flatMap { row in [UInt8](repeating: UInt8(row % 4), count: 4) }
        let order = [0, 8, 4, 12, 2, 6, 10, 14, 1, 3, 5, 7, 9, 11, 13, 15]
        let stored = order.flatMap { indices[$0 * 4..<$0 * 4 + 4] }
        var file = GIFFile(width: 4, height: 16)
        // A literal for each pixel, the table cleared ahead of it: each row is there when its bytes are.
        var codes = CodeWriter()
        for index in stored {
            codes.write(4, 3)
            codes.write(Int(index), 3)
        }
        file.addFrame(width: 4, height: 16, [], interlaced: true, data: codes.ended())
        let bytes = file.ended()
        let decoder = BuiltInCodec().makeDecoder(DecodeOptions())
        var passes: [Int] = []
        try feed(decoder, bytes, pieces: 1) { _ in
            guard let image = decoder.partialImage() else { return }
            passes.append(image.pass)
            XCTAssert(image.header.isProgressive)
            for y in 0..<16 where image.pass == 2 || y < image.ready.height {
                let distance = [8, 4, 2, 1][image.pass - 1]
                let shown = image.pixel(1, y)
                let candidates = [y / distance * distance, y / (distance * 2) * distance * 2]
                XCTAssert(candidates.contains { shown == self.color($0 % 4) }, "row \(y) in pass \(image.pass)")
            }
        }
        XCTAssertEqual(Set(passes), [1, 2, 3, 4])
        let final = try decoder.finish()
        for y in 0..<16 { XCTAssertEqual(final.pixel(1, y), color(y % 4)) }
    }

    private func color(_ index: Int) -> [UInt8] { Array(GIFFile.palette[index * 3..<index * 3 + 3]) + [255] }

    /// T18: whole frames can be had before the file ends.
    func testFramesComeAsTheyArrive() throws {
        let decoder = BuiltInCodec().makeDecoder(allFrames)
        var counts: [Int] = []
        try feed(decoder, file(of: 4).ended(), pieces: 1) { _ in
            if let image = decoder.partialImage() { counts.append(image.frames.count) }
        }
        XCTAssertEqual(counts, [0, 2, 3, 4], "that there are several is known with the second")
        XCTAssertEqual(try decoder.finish().frames.count, 4)
    }
}
