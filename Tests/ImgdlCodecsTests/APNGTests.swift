import ImgdlCodecs
import ImgdlCore
import XCTest

/// Which picture of an APNG is shown (PNG third edition, section 11.3.6), and what becomes of one that is damaged.
final class APNGTests: XCTestCase {
    private static let colors: [[UInt8]] = [
        [255, 0, 0, 255], [0, 255, 0, 255], [0, 0, 255, 255], [9, 9, 9, 255], [7, 8, 9, 255],
    ]

    private static func pixels(_ color: Int) -> [UInt8] { Array(repeating: colors[color], count: 4).flatMap { $0 } }
    private static func data(_ color: Int) -> [UInt8] { PNGFile.rows(width: 2, [colors[color], colors[color]]) }

    /// The default image has colour 0. `hidden`: it is no frame; then the frames have colours 1, 2, …, else 0, 1, ….
    private func animation(
        frames: Int, hidden: Bool, announced: Int? = nil, damaged: Int? = nil
    ) -> [UInt8] {
        var file = PNGFile(width: 2, height: 2)
        file.add("acTL", PNGFile.number(announced ?? frames) + PNGFile.number(0))
        var sequence = 0
        func next() -> Int { defer { sequence += 1 }; return sequence }
        if !hidden { file.add("fcTL", PNGFile.control(next(), width: 2, height: 2)) }
        file.add("IDAT", Self.data(0))
        for color in 1..<(hidden ? frames + 1 : frames) {
            file.add("fcTL", PNGFile.control(next(), width: 2, height: 2))
            var data = Self.data(color)
            if color == damaged { data.removeLast(9) }
            file.add("fdAT", PNGFile.number(next()) + data)
        }
        return file.ended()
    }

    private func options(all: Bool) -> DecodeOptions {
        var options = DecodeOptions()
        options.decodesAllFrames = all
        return options
    }

    private func verdict(_ bytes: [UInt8], all: Bool, line: UInt = #line) -> Verdict {
        let whole = decode(bytes, options(all: all))
        for size in [1, 3, 61] {
            for looks in [false, true] {
                let pieces = decode(bytes, options(all: all), pieces: size, partials: looks)
                XCTAssert(pieces == whole, "pieces of \(size)", line: line)
            }
        }
        return whole
    }

    /// What was seen while it came, byte by byte: pixels of the picture, and how many frames.
    private func looks(_ bytes: [UInt8], all: Bool) -> [(pixels: [UInt8], frames: [[UInt8]])] {
        let decoder = BuiltInCodec().makeDecoder(options(all: all))
        var seen: [(pixels: [UInt8], frames: [[UInt8]])] = []
        try? feed(decoder, bytes, pieces: 1) { _ in
            guard let image = decoder.partialImage() else { return }
            let verdict = Verdict(image)
            // Rows that have not come are transparent.
            if let pixels = verdict.pixels { seen.append((pixels, verdict.frames)) }
        }
        return seen
    }

    func testTheFirstFrameIsShownWithAndWithoutAllFrames() {
        for hidden in [false, true] {
            let first = hidden ? 1 : 0
            for count in 1...3 {
                let bytes = animation(frames: count, hidden: hidden)
                for all in [false, true] {
                    let shown = verdict(bytes, all: all)
                    let name = "\(count) frames, hidden \(hidden), all \(all)"
                    XCTAssertNil(shown.failure, name)
                    XCTAssertEqual(shown.pixels, Self.pixels(first), name)
                    XCTAssertEqual(shown.header?.frameCount, count, name)
                    let frames = count == 1 ? 0 : all ? count : 1
                    XCTAssertEqual(shown.frames, (0..<frames).map { Self.pixels(first + $0) }, name)
                }
            }
        }
    }

    /// Over nothing: what is transparent keeps its colours, as the picture itself has them.
    func testTheFirstFrameIsAsItIsStoredWhereItIsDrawnOver() {
        let rows = PNGFile.rows(width: 2, [[200, 100, 50, 0], [7, 8, 9, 255]])
        for hidden in [false, true] {
            var file = PNGFile(width: 2, height: 2)
            file.add("acTL", PNGFile.number(2) + PNGFile.number(0))
            if hidden { file.add("IDAT", Self.data(0)) }
            file.add("fcTL", PNGFile.control(0, width: 2, height: 2, disposal: 1, blend: 1))
            if hidden {
                file.add("fdAT", PNGFile.number(1) + rows)
            } else {
                file.add("IDAT", rows)
            }
            let next = hidden ? 2 : 1
            file.add("fcTL", PNGFile.control(next, width: 2, height: 2, blend: 1))
            file.add("fdAT", PNGFile.number(next + 1) + Self.data(2))
            let alone = verdict(file.ended(), all: false)
            let among = verdict(file.ended(), all: true)
            XCTAssertEqual(among.frames.count, 2)
            XCTAssertEqual(alone.pixels?.prefix(8), [200, 100, 50, 0, 200, 100, 50, 0], "hidden \(hidden)")
            XCTAssertEqual(among.pixels, alone.pixels, "hidden \(hidden)")
            XCTAssertEqual(among.frames.first, alone.pixels, "hidden \(hidden)")
        }
    }

    func testADefaultImageThatIsNoFrameIsNeverShown() {
        for count in 1...3 {
            for all in [false, true] {
                let seen = looks(animation(frames: count, hidden: true), all: all)
                XCTAssert(seen.allSatisfy { $0.pixels == Self.pixels(1) }, "\(count) frames, all \(all)")
                // Whoever wants the first alone gets it at the end.
                XCTAssertEqual(seen.isEmpty, !all, "\(count) frames, all \(all)")
            }
        }
        let cut = Array(animation(frames: 2, hidden: true).prefix(150))
        let decoder = BuiltInCodec().makeDecoder(DecodeOptions())
        XCTAssertNoThrow(try feed(decoder, cut, pieces: 1))
        XCTAssertThrowsError(try decoder.finish())
        XCTAssertNil(decoder.salvagedImage())
    }

    /// Nothing tells that it is none: the default image, as for viewers that know no animations.
    func testABrokenAnimationIsAStill() {
        for hidden in [false, true] {
            for all in [false, true] {
                let bytes = animation(frames: 1, hidden: hidden, announced: 5, damaged: hidden ? 1 : nil)
                let short = verdict(bytes, all: all)
                XCTAssertNil(short.failure)
                XCTAssertEqual(short.header?.frameCount, 1)
                XCTAssertEqual(short.pixels, Self.pixels(0), "hidden \(hidden), all \(all)")
                XCTAssertEqual(short.frames, [])
            }
        }
    }

    /// What is wrong with the animation is no matter of the file's end.
    func testAControlTooManyIsAFailureWhereTheBodyIsWholeToo() {
        var file = PNGFile(width: 2, height: 2)
        file.add("acTL", PNGFile.number(2) + PNGFile.number(0))
        file.add("IDAT", Self.data(0))
        for (number, color) in [1, 2].enumerated() {
            file.add("fcTL", PNGFile.control(2 * number, width: 2, height: 2))
            file.add("fdAT", PNGFile.number(2 * number + 1) + Self.data(color))
        }
        file.add("fcTL", PNGFile.control(3, width: 2, height: 2))
        XCTAssertEqual(decode(file.ended(), options(all: true), end: .whole).failure?.code, .badImageData)
        let alone = decode(file.ended(), options(all: false), end: .whole)
        XCTAssertEqual(alone.pixels, Self.pixels(0), "no animation, and so a still")
        XCTAssertFalse(alone.hasIncompleteEnd)
    }

    /// The largest numbers that chunks have room for. What the file announces wrongly makes a still picture.
    func testNumbersAtTheirLargest() {
        let most = Int(UInt32.max)
        func file(_ announced: Int, _ control: [UInt8]) -> [UInt8] {
            var file = PNGFile(width: 2, height: 2)
            file.add("acTL", PNGFile.number(announced) + PNGFile.number(most))
            file.add("fcTL", PNGFile.control(0, width: 2, height: 2))
            file.add("IDAT", Self.data(0))
            file.add("fcTL", control)
            file.add("fdAT", PNGFile.number(2) + Self.data(1))
            return file.ended()
        }
        func still(_ announced: Int, _ control: [UInt8], line: UInt = #line) {
            for all in [false, true] {
                let shown = verdict(file(announced, control), all: all, line: line)
                XCTAssertNil(shown.failure, line: line)
                XCTAssertEqual(shown.pixels, Self.pixels(0), line: line)
                XCTAssertEqual(shown.header?.frameCount, 1, line: line)
            }
        }
        XCTAssertEqual(
            verdict(file(most, PNGFile.control(1, width: 2, height: 2)), all: true).failure,
            Failure(.badImageData, "the PNG is damaged behind frame 2 of its animation"))
        for number in [most, 1 << 31, Int(Int32.max), 3] {
            still(2, PNGFile.control(1, width: number, height: 2))
            still(2, PNGFile.control(1, width: 2, height: number))
            still(2, PNGFile.control(1, width: 1, height: 1, x: number))
            still(2, PNGFile.control(1, width: 1, height: 1, y: number))
            still(2, PNGFile.control(1, width: number, height: number, x: number, y: number))
            still(2, PNGFile.control(number, width: 2, height: 2))
        }
        for (delay, milliseconds) in [
            ([255, 255, 0, 1], 65_535_000), ([255, 255, 0, 0], 655_350), ([255, 255, 255, 255], 1000),
        ] as [([UInt8], Int)] {
            var file = PNGFile(width: 2, height: 2)
            file.add("acTL", PNGFile.number(2) + PNGFile.number(most))
            for sequence in [0, 1] {
                var control = PNGFile.control(sequence, width: 2, height: 2)
                control.replaceSubrange(20..<24, with: delay)
                file.add("fcTL", control)
                if sequence == 0 { file.add("IDAT", Self.data(0)) }
            }
            file.add("fdAT", PNGFile.number(2) + Self.data(1))
            let shown = verdict(file.ended(), all: true)
            XCTAssertEqual(shown.milliseconds, [milliseconds, milliseconds])
            XCTAssertEqual(shown.loopCount, most)
        }
        for (width, height) in [(most, 1), (1, 1 << 31)] {
            XCTAssertEqual(
                verdict(PNGFile(width: width, height: height).ended(), all: true).failure,
                Failure(.badImageData, "the PNG is broken: it cannot be \(width) × \(height) pixels large"))
        }
    }

    /// Chunks of any length that a PNG can have are waited for.
    func testLengthsOfChunks() {
        let start = PNGFile(width: 2, height: 2).bytes
        for name in ["IDAT", "fdAT", "tEXt", "eXIf", "PLTE", "iCCP"] {
            let longest = verdict(start + [0x7F, 255, 255, 255] + Array(name.utf8) + [1, 2, 3, 4], all: true)
            XCTAssertEqual(longest.failure?.code, .truncated, name)
            for length in [0x80, 0xFF] as [UInt8] {
                XCTAssertEqual(
                    verdict(start + [length, 255, 255, 255] + Array(name.utf8) + [1, 2, 3, 4], all: true).failure,
                    Failure(.badImageData, "the PNG is broken: a chunk has an impossible name or length"), name)
            }
        }
    }

    /// Frames that were shown stay, and the code tells.
    func testDamagedLaterFrames() {
        for hidden in [false, true] {
            let first = hidden ? 1 : 0
            let whole = 2
            let bytes = animation(frames: 4, hidden: hidden, damaged: first + whole)
            let all = verdict(bytes, all: true)
            XCTAssertEqual(
                all.failure, Failure(.badImageData, "the PNG is damaged behind frame \(whole) of its animation"))
            let seen = looks(bytes, all: true)
            XCTAssertEqual(seen.last?.frames, (0..<whole).map { Self.pixels(first + $0) })
            for size in [1, 61, 10_000] {
                let decoder = BuiltInCodec().makeDecoder(options(all: true))
                XCTAssertThrowsError(
                    try {
                        try feed(decoder, bytes, pieces: size) { _ in _ = decoder.partialImage() }
                        _ = try decoder.finish()
                    }())
                let left = decoder.salvagedImage().map { Verdict($0) }
                XCTAssertEqual(left?.frames, (0..<whole).map { Self.pixels(first + $0) }, "pieces of \(size)")
                XCTAssertEqual(left?.pixels, Self.pixels(first))
                XCTAssertEqual(left?.isComplete, false)
            }
            // Who wants the first alone does not mind.
            let alone = verdict(bytes, all: false)
            XCTAssertNil(alone.failure)
            XCTAssertEqual(alone.pixels, Self.pixels(first))
        }
    }
}
