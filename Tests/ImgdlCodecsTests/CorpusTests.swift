import Glibc
import ImgdlCore
import XCTest

/// Thousands of decoders were tried with these files: ours has to give the reference's pixels or refuse.
final class CorpusTests: XCTestCase {
    /// Single bytes of files of megabytes take their time: with IMGDL_LONG=1.
    private static let isLong = getenv("IMGDL_LONG").map { String(cString: $0) == "1" } ?? false

    /// Whether a file of so many bytes comes in pieces of such a size.
    private static func isPlayed(_ size: Int, _ length: Int) -> Bool { isLong || length < size * 10_000 }

    private static let formats: Set = ["jpeg", "png", "webp", "gif"]
    /// All that libjpeg warns of is stray bytes between the last row and the end: every pixel is there.
    private static let whole: Set = ["hostile/jpeg/gofuzz/d85efb1c1e0913a8c592c690"]

    /// Files of those formats.
    private func files(
        atLeast least: Int, where isMeant: (Corpus.Entry) -> Bool = { _ in true }
    ) throws -> [Corpus.Entry] {
        try Corpus.files(atLeast: least) { Self.formats.contains($0.format) && isMeant($0) }
    }

    /// B7: the pixels and dimensions of the reference decoder.
    func testGivesTheReferencePixels() throws {
        for file in try files(atLeast: 622, where: { $0.expectation == "ok" }) {
            let verdict = decode(file.bytes, decodeOptions(turned: false))
            guard let pixels = verdict.pixels, let header = verdict.header else {
                XCTFail("\(file.path): \(String(describing: verdict.failure))")
                continue
            }
            XCTAssertEqual("\(header.width) \(header.height)", file["width"] + " " + file["height"], file.path)
            XCTAssert(
                file.hidesDefaultImage
                    ? pixels == firstFrame(of: file)
                    : file.hashes.contains(pixels.sha256) || file["compare"] == "loose"
                        || PixelsByVersion.expected(file.path).contains(pixels.sha256),
                "\(file.path): other pixels, \(pixels.sha256)")
            XCTAssertEqual(String(header.orientation), orientation(of: file), file.path)
            // The manifest says what a file says that it may have. Of a still the pixels tell, and of an animation its first frame
            // what the file does not say.
            let isOpaque = stride(from: 3, to: pixels.count, by: 4).allSatisfy { pixels[$0] == 255 }
            let hasAlpha = !isOpaque || header.frameCount > 1 && file["has_alpha"] == "1"
            XCTAssertEqual(header.hasAlpha, hasAlpha, file.path)
            let frames = file["frames_agree"] == "invalid" ? "1" : file["frames"]
            XCTAssertEqual(String(header.frameCount), frames, file.path)
        }
    }

    func testTurnsAsEXIFSays() throws {
        for file in try files(atLeast: 27, where: { $0.expectation == "ok" && $0["oriented_rgba_sha256"] != "-" }) {
            XCTAssertEqual(decode(file.bytes).pixels?.sha256, file["oriented_rgba_sha256"], file.path)
        }
    }

    /// B5: a broken file is an error, never an unmarked success.
    func testRefusesBrokenFiles() throws {
        for file in try files(atLeast: 265, where: { $0.expectation != "ok" }) {
            if Self.whole.contains(file.path) {
                XCTAssert(file.hashes.contains(decode(file.bytes).pixels?.sha256 ?? ""), file.path)
                continue
            }
            var options = DecodeOptions()
            options.maximumPixels = 1 << 26
            let verdict = decode(file.bytes, options)
            if file["note"].contains("either outcome accepted") { continue }
            XCTAssertNotNil(verdict.failure, file.path)
            XCTAssertNotEqual(verdict.failure?.message, "", file.path)
        }
    }

    func testRefusesWhatIsNoPicture() throws {
        for file in try Corpus.files(atLeast: 13, where: { $0.format == "unknown" }) {
            let code = decode(file.bytes).failure?.code
            XCTAssert(code == .badImageData || code == .truncated, "\(file.path): \(String(describing: code))")
        }
    }

    /// B7: pieces and whole agree in pixels, dimensions and failure.
    func testPiecesEqualWhole() throws {
        for file in try files(atLeast: 887) {
            let whole = decode(file.bytes)
            for size in [1, 7, 1000, 16384] where Self.isPlayed(size, file.bytes.count) {
                let pieces = decode(file.bytes, pieces: size, partials: size == 1000)
                XCTAssert(
                    pieces == whole,
                    "\(file.path) in pieces of \(size): \(String(describing: pieces.failure)), "
                        + "not \(String(describing: whole.failure))")
            }
        }
    }

    /// B7: and so do pieces of sizes that follow no rule, looked at in between.
    func testRandomPiecesEqualWhole() throws {
        for (number, file) in try files(atLeast: 887).enumerated() {
            let whole = decode(file.bytes)
            var sizes = RandomSizes(seed: UInt64(number), most: max(2, file.bytes.count / 10))
            let pieces = decode(file.bytes, randomPieces: &sizes)
            XCTAssert(
                pieces == whole,
                "\(file.path): \(String(describing: pieces.failure)), "
                    + "not \(String(describing: whole.failure))")
        }
    }

    /// B22: every frame as the viewer sees it, its duration and the loop count; T18, T19, T33.
    func testGivesTheReferenceFrames() throws {
        var compared = 0
        for file in try files(atLeast: 119, where: \.isAnimation) {
            var options = decodeOptions(turned: false)
            options.decodesAllFrames = true
            let verdict = decode(file.bytes, options)
            XCTAssertEqual(
                verdict.frames.count, Int(file["frames"]), "\(file.path): \(String(describing: verdict.failure))")
            if file["compare"] != "loose" {
                var all = [UInt8]()
                for frame in verdict.frames { all += file.format == "webp" ? frame : frame.withoutHiddenColors }
                XCTAssertEqual(all.sha256, file["frames_rgba_sha256"], file.path)
                compared += 1
            }
            // The manifest leaves out what follows the fiftieth.
            let delays = file["delays_ms"].split(separator: ",").compactMap { Int($0) }
            let shown = delays.map { $0 < 11 ? 100 : $0 }
            XCTAssertEqual(Array(verdict.milliseconds.prefix(shown.count)), shown, file.path)
            // The manifest counts GIF's blocks ahead of the first frame only.
            if file.path.hasSuffix("multiple-loop-counts.gif") { continue }
            XCTAssertEqual(verdict.loopCount, file.loopCount, file.path)
        }
        XCTAssertGreaterThan(compared, 100)
    }

    /// O10: the first frame alone gives the same verdict, header and pixels, and holds one frame.
    func testTheVerdictDoesNotDependOnTheFramesWanted() throws {
        for file in try files(atLeast: 221, where: { $0.format == "gif" || $0.isAnimation }) {
            var options = DecodeOptions()
            let still = decode(file.bytes, options)
            options.decodesAllFrames = true
            let all = decode(file.bytes, options)
            XCTAssertEqual(still.failure, all.failure, file.path)
            XCTAssertEqual(still.header, all.header, file.path)
            XCTAssert(still.pixels == all.pixels, file.path)
            XCTAssertEqual(still.loopCount, all.loopCount, file.path)
            XCTAssertLessThanOrEqual(still.frames.count, 1, file.path)
            if let frame = still.frames.first { XCTAssert(frame == still.pixels, file.path) }
            for size in [1, 7, 1000, 16384] where Self.isPlayed(size, file.bytes.count) {
                XCTAssert(
                    decode(file.bytes, options, pieces: size, partials: size == 1000) == all, "\(file.path), \(size)")
            }
        }
    }

    /// X8: frames are as small as the picture, whatever the format; and in every pixel format (B22).
    func testFramesHaveTheSizeAndFormatOfThePicture() throws {
        for file in try Corpus.files(named: Corpus.animations) {
            for format in [PixelFormat.rgba8, .bgra8Premultiplied] {
                var options = decodeOptions(format)
                options.decodesAllFrames = true
                options.targetWidth = 50
                let verdict = decode(file.bytes, options)
                XCTAssertEqual(verdict.frames.count, Int(file["frames"]), file.path)
                XCTAssertEqual(verdict.header?.width, 50, file.path)
                XCTAssert(verdict.frames.allSatisfy { $0.count == verdict.pixels?.count }, file.path)
                XCTAssertEqual(verdict.frames.first, verdict.pixels, file.path)
                XCTAssert(decode(file.bytes, options, pieces: 1000, partials: true) == verdict, file.path)
            }
        }
    }

    /// The first of all frames, which are compared with the reference's.
    private func firstFrame(of file: Corpus.Entry) -> [UInt8]? {
        var options = decodeOptions(turned: false)
        options.decodesAllFrames = true
        let verdict = decode(file.bytes, options)
        if file["frames"] != "1" { return verdict.frames.first }
        XCTAssertEqual(verdict.pixels?.withoutHiddenColors.sha256, file["frames_rgba_sha256"], file.path)
        return verdict.pixels
    }

    /// The manifest holds what any reader found; "-" where nobody did. XMP counts there, but not here.
    private func orientation(of file: Corpus.Entry) -> String {
        file["exif_orientation"] == "-" ? "1" : file["exif_orientation"]
    }
}

extension Corpus.Entry {
    /// An animation that is whole, with frames that can be compared.
    var isAnimation: Bool {
        expectation == "ok" && !["invalid", "-"].contains(self["frames_agree"]) && (Int(self["frames"]) ?? 1) > 1
    }

    /// Stills that say they are animations and are none by our reading: two acTL, or frames that acTL does not count.
    private static let stills = ["chunk_multi_actl.png", "syntax_num_frames_low.png"]

    /// The manifest's pixels are those of the default image, which is no frame and not shown.
    var hidesDefaultImage: Bool {
        self["note"].contains("default image is not part of the animation")
            && !Self.stills.contains(where: path.hasSuffix)
    }

    /// Any of these is right.
    var hashes: [String] {
        ["rgba_sha256", "rgba_alt_sha256", "rgba_norm_sha256"].map { self[$0] }
    }

    /// GIF counts repetitions behind the first play, the others plays.
    var loopCount: Int? {
        guard format == "gif" else { return Int(self["loop"]) }
        guard let repetitions = Int(self["loop"]) else { return 1 }
        return repetitions == 0 ? 0 : repetitions + 1
    }
}

extension Array where Element == UInt8 {
    /// Transparent pixels all zero.
    var withoutHiddenColors: [UInt8] {
        withUnsafeBytes { bytes in
            let pixels = bytes.bindMemory(to: UInt32.self)
            return [UInt32](unsafeUninitializedCapacity: pixels.count) { visible, count in
                for at in 0..<pixels.count { visible[at] = pixels[at] & 0xFF00_0000 == 0 ? 0 : pixels[at] }
                count = pixels.count
            }.withUnsafeBytes { Array($0) }
        }
    }
}
