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
        _ file: [UInt8], _ name: String, line: UInt = #line, _ change: (inout DecodeOptions) -> Void = { _ in }
    ) throws {
        try XCTSkipIf(Memory.isSanitized)
        XCTAssertGreaterThan(file.count, 100, name, line: line)
        let measured = try measure(file, name, change)
        let (estimate, taken) = (measured.estimate, measured.taken)
        XCTAssertLessThanOrEqual(
            taken, estimate + estimate / 10 + Self.slack,
            "\(name): \(taken >> 10) KiB, and \(estimate >> 10) KiB were said", line: line)
        XCTAssertLessThanOrEqual(
            taken, measured.counted + measured.counted / 10 + Self.slack,
            "\(name): \(taken >> 10) KiB, and the budget counted \(measured.counted >> 10) KiB", line: line)
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
            // Rows of the passes, each with the byte of its filter.
            let passes = [
                (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2),
            ]
            var count = 0
            for (firstX, firstY, stepX, stepY) in isInterlaced ? passes : [(0, 0, 1, 1)] {
                let row = 1 + 4 * ((side - firstX + stepX - 1) / stepX)
                count += row * ((side - firstY + stepY - 1) / stepY)
            }
            let rows = PNGFile.deflated([UInt8](repeating: 0, count: count))
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
}
