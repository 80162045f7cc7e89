import ImgdlCodecs
import ImgdlCore
import MemoryTesting
import TestPictures
import XCTest

/// What decoding is said to take, which a limit is held against, and what the budget counts is what it takes: a tenth more at
/// the most.
final class MemoryEstimateTests: XCTestCase {
    /// Buffers of the codecs, and what the heap takes for itself.
    private static let slack = 2 << 20
    private let (width, height): (Int32, Int32) = (3000, 2400)

    private struct Measured {
        /// Bytes that a limit has to allow, as the refusal of a lower one says.
        var estimate: Int
        /// Bytes that decoding within it takes.
        var taken = 0
        /// Bytes that the budget counts: the body, and what its first bytes or the decoder say.
        var counted = 0
    }

    private func measure(_ file: [UInt8], _ name: String, _ change: (inout DecodeOptions) -> Void) throws -> Measured {
        var options = DecodeOptions()
        change(&options)
        var probe = try XCTUnwrap(BuiltInCodec().makeProbe())
        let reserved = MemoryRules.canvas(file.withUnsafeBytes { probe.feed($0) }, options)
        var limit = 1
        for _ in 0..<20 {
            options.maximumMemoryBytes = UInt64(limit)
            let before = Memory.resident
            try XCTSkipUnless(Memory.resetPeak(), "this machine cannot reset the peak")
            let decoder = BuiltInCodec().makeDecoder(options)
            do throws(Failure) {
                try feed(decoder, file, pieces: 40_000)
                let image = try decoder.finish()
                let taken = Memory.peak - before
                withExtendedLifetime(image) {}
                let counted = Int(max(reserved, decoder.memoryDemand) + decoder.profileBytes) + file.count
                return Measured(estimate: limit, taken: taken, counted: counted)
            } catch {
                XCTAssertEqual(error.code, .memoryLimit, name)
                let words = error.message.split(separator: " ")
                let about = words.firstIndex(of: "about").map { words[$0 + 1] }
                limit = try XCTUnwrap(about.flatMap { Int($0) }, "\(name): \(error.message)")
            }
        }
        XCTFail("\(name): no limit lets it through")
        return Measured(estimate: limit)
    }

    private func assertEstimated(
        _ file: [UInt8], _ name: String, isCounted: Bool = true, line: UInt = #line,
        _ change: (inout DecodeOptions) -> Void = { _ in }
    ) throws {
        try XCTSkipIf(Memory.isSanitized)
        XCTAssertGreaterThan(file.count, 100, name, line: line)
        let measured = try measure(file, name, change)
        let (estimate, taken) = (measured.estimate, measured.taken)
        XCTAssertLessThanOrEqual(
            taken, estimate + estimate / 10 + Self.slack,
            "\(name): \(taken >> 10) KiB, and \(estimate >> 10) KiB were said", line: line)
        if isCounted {
            XCTAssertLessThanOrEqual(
                taken, measured.counted + measured.counted / 10 + Self.slack,
                "\(name): \(taken >> 10) KiB, and the budget counted \(measured.counted >> 10) KiB", line: line)
        }
        // It must not be a number that lets everything through.
        XCTAssertGreaterThan(taken * 4, estimate, "\(name): \(taken >> 10) of \(estimate >> 10) KiB", line: line)
    }

    func testJPEGs() throws {
        let kinds = [
            PICTURE_JPEG_BASELINE, PICTURE_JPEG_PROGRESSIVE, PICTURE_JPEG_SEPARATE_SCANS, PICTURE_JPEG_ARITHMETIC,
            PICTURE_JPEG_ARITHMETIC_PROGRESSIVE, PICTURE_JPEG_CMYK,
        ]
        for kind in kinds {
            let file = Picture("a", kind, width: width, height: height).encoded()
            try assertEstimated(file, "JPEG \(kind.rawValue)")
            try assertEstimated(file, "JPEG \(kind.rawValue), words") { $0.pixelFormat = .rgba16 }
            try assertEstimated(file, "JPEG \(kind.rawValue), scaled") { $0.targetWidth = 1_300 }
        }
        let turned = Picture("a", PICTURE_JPEG_BASELINE, width: width, height: height, orientation: 6).encoded()
        try assertEstimated(turned, "turned JPEG")
    }

    func testPNGs() throws {
        for kind in [PICTURE_PNG_RGB, PICTURE_PNG_ADAM7, PICTURE_PNG_ADAM7_RGBA] {
            let file = Picture("a", kind, width: width, height: height).encoded()
            try assertEstimated(file, "PNG \(kind.rawValue)")
            try assertEstimated(file, "PNG \(kind.rawValue), words") { $0.pixelFormat = .rgba16 }
            try assertEstimated(file, "PNG \(kind.rawValue), scaled") { $0.targetWidth = 1_300 }
        }
    }

    func testAPNGs() throws {
        let side = 1_800
        for isInterlaced in [false, true] {
            var file = PNGFile(width: side, height: side, isInterlaced: isInterlaced)
            let rows = rows(width: side, height: side, bytesPerPixel: 4, isInterlaced: isInterlaced)
            file.add("acTL", PNGFile.number(4) + PNGFile.number(0))
            file.add("fcTL", PNGFile.control(0, width: side, height: side, disposal: 2, blend: 1))
            file.add("IDAT", rows)
            for number in 1..<4 {
                file.add("fcTL", PNGFile.control(2 * number - 1, width: side, height: side, disposal: 0, blend: 1))
                file.add("fdAT", PNGFile.number(2 * number) + rows)
            }
            for format in [PixelFormat.rgba8, .rgba16] {
                for all in [false, true] {
                    try assertEstimated(file.ended(), "APNG, interlaced: \(isInterlaced), \(format), all: \(all)") {
                        $0.decodesAllFrames = all
                        $0.pixelFormat = format
                    }
                }
            }
        }
    }

    func testGIFs() throws {
        let side = 1_800
        let data = GIFFile.encoded([UInt8](repeating: 1, count: side * side), codeSize: 2)
        for isInterlaced in [false, true] {
            var file = GIFFile(width: side, height: side)
            for _ in 0..<4 {
                file.addControl(disposal: 3, delay: 10)
                file.addFrame(width: side, height: side, [], interlaced: isInterlaced, data: data)
            }
            for format in [PixelFormat.rgba8, .rgba16] {
                for all in [false, true] {
                    try assertEstimated(file.ended(), "GIF, interlaced: \(isInterlaced), \(format), all: \(all)") {
                        $0.decodesAllFrames = all
                        $0.pixelFormat = format
                    }
                }
            }
            try assertEstimated(file.ended(), "GIF, interlaced: \(isInterlaced), scaled") { $0.targetWidth = 700 }
        }
    }

    func testWebPs() throws {
        for kind in [PICTURE_WEBP_LOSSY, PICTURE_WEBP_LOSSLESS, PICTURE_WEBP_LOSSY_ALPHA] {
            for orientation in [0, 6] as [Int32] {
                let file = Picture("a", kind, width: width, height: height, orientation: orientation).encoded()
                let name = "WebP \(kind.rawValue), turned: \(orientation > 0)"
                try assertEstimated(file, name)
                try assertEstimated(file, "\(name), words") { $0.pixelFormat = .rgba16 }
                try assertEstimated(file, "\(name), scaled") { $0.targetWidth = 1_300 }
            }
        }
    }

    /// Fewer samples than a canvas has, and more: what is read has no part in what is held.
    func testSamplesOfAllSizes() throws {
        for kind in [PICTURE_JPEG_GRAY, PICTURE_JPEG_YCCK] {
            let file = Picture("a", kind, width: width, height: height).encoded()
            try assertEstimated(file, "JPEG \(kind.rawValue)")
        }
        for kind in [PICTURE_PNG_RGBA, PICTURE_PNG_PALETTE, PICTURE_PNG_GRAY16] {
            let file = Picture("a", kind, width: width, height: height).encoded()
            try assertEstimated(file, "PNG \(kind.rawValue)")
            try assertEstimated(file, "PNG \(kind.rawValue), words") { $0.pixelFormat = .rgba16 }
            try assertEstimated(file, "PNG \(kind.rawValue), scaled") { $0.targetWidth = 1_300 }
        }
        for isInterlaced in [false, true] {
            let file = deepPNG(isInterlaced: isInterlaced)
            for format in [PixelFormat.rgba8, .rgba8Premultiplied, .rgba16] {
                try assertEstimated(file, "PNG of words, interlaced: \(isInterlaced), \(format)") {
                    $0.pixelFormat = format
                }
            }
        }
    }

    private func deepPNG(isInterlaced: Bool) -> [UInt8] {
        let (width, height) = (Int(width), Int(height))
        var file = PNGFile(width: width, height: height, colorType: 6, depth: 16, isInterlaced: isInterlaced)
        file.add("IDAT", rows(width: width, height: height, bytesPerPixel: 8, isInterlaced: isInterlaced))
        return file.ended()
    }

    /// Nothing but zeros, deflated: of each pass each row with the byte of its filter.
    private func rows(width: Int, height: Int, bytesPerPixel: Int, isInterlaced: Bool) -> [UInt8] {
        let passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
        var count = 0
        for (firstX, firstY, stepX, stepY) in isInterlaced ? passes : [(0, 0, 1, 1)] {
            let row = 1 + bytesPerPixel * ((width - firstX + stepX - 1) / stepX)
            count += row * ((height - firstY + stepY - 1) / stepY)
        }
        return PNGFile.deflated([UInt8](repeating: 0, count: count))
    }

    /// EXIF behind the pixels asks for another canvas, which nothing ahead of them has said: it is held against the limit before
    /// it is allocated, and does not count for the budget.
    func testTurnedPNGs() throws {
        for kind in [PICTURE_PNG_RGB, PICTURE_PNG_ADAM7, PICTURE_PNG_ADAM7_RGBA] {
            let file = Picture("a", kind, width: width, height: height).encoded()
            let early = file.withChunk("eXIf", DeepPicture.exif(6))
            var exif = PNGFile()
            exif.add("eXIf", DeepPicture.exif(6))
            let late = Array(file.dropLast(12)) + Array(exif.ended().dropFirst(8))
            for format in [PixelFormat.rgba8, .rgba16] {
                try assertEstimated(early, "turned PNG \(kind.rawValue), \(format)") { $0.pixelFormat = format }
                try assertEstimated(late, "PNG \(kind.rawValue) turned late, \(format)", isCounted: false) {
                    $0.pixelFormat = format
                }
            }
        }
    }

    func testWebPsWithFramesOrTurnedAhead() throws {
        let side = 1_800
        for kind in [PICTURE_WEBP_LOSSLESS_ALPHA, PICTURE_WEBP_LOSSY] {
            var picture = Picture("a", kind, width: width, height: height, orientation: 6)
            picture.spec.exif_before_pixels = 1
            try assertEstimated(picture.encoded(), "WebP \(kind.rawValue), turned ahead")
        }
        for kind in [PICTURE_WEBP_LOSSY, PICTURE_WEBP_LOSSY_ALPHA, PICTURE_WEBP_LOSSLESS_ALPHA] {
            let still = WebPFile(Picture("a", kind, width: Int32(side), height: Int32(side)).encoded())
            let frame = still.chunks.filter { ["ALPH", "VP8 ", "VP8L"].contains($0.name) }.flatMap(\.bytes)
            var file = WebPFile()
            file.add("VP8X", WebPFile.extended(0x12, width: side, height: side))
            file.add("ANIM", [0, 0, 0, 0, 0, 0])
            for _ in 0..<4 { file.add("ANMF", WebPFile.frame(width: side, height: side, frame)) }
            for format in [PixelFormat.rgba8, .rgba8Premultiplied, .rgba16] {
                for all in [false, true] {
                    try assertEstimated(file.bytes(), "animated WebP \(kind.rawValue), \(format), all: \(all)") {
                        $0.decodesAllFrames = all
                        $0.pixelFormat = format
                    }
                }
            }
        }
    }

    /// Their pixels are converted.
    func testPicturesWithProfiles() throws {
        let (colours, inks) = (Profile(PICTURE_PROFILE_RGB).bytes, Profile(PICTURE_PROFILE_INKS).bytes)
        func file(_ kind: picture_kind) -> [UInt8] { Picture("a", kind, width: width, height: height).encoded() }
        let files = [
            ("JPEG", file(PICTURE_JPEG_BASELINE).withAPP2(colours)),
            ("progressive JPEG", file(PICTURE_JPEG_PROGRESSIVE).withAPP2(colours)),
            ("CMYK", file(PICTURE_JPEG_CMYK).withAPP2(inks)), ("PNG", file(PICTURE_PNG_RGB).withICCP(colours)),
            ("Adam7", file(PICTURE_PNG_ADAM7_RGBA).withICCP(colours)),
            (
                "WebP",
                file(PICTURE_WEBP_LOSSY)
                    .withICCPChunk(colours, width: Int(width), height: Int(height), alpha: false)
            ),
        ]
        for (name, file) in files {
            for format in [PixelFormat.rgba8, .rgba16] {
                try assertEstimated(file, "\(name) with a profile, \(format)") { $0.pixelFormat = format }
            }
        }
    }
}
