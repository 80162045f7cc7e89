import Glibc
import ImgdlCodecs
import ImgdlCore
import MemoryTesting
import TestPictures
import XCTest

/// A picture that `maximumMemoryBytes` let through takes no more than that, whoever watches it come.
final class MemoryLimitTests: XCTestCase {
    /// Huge pages that a few canvases are rounded up to, buffers of the codecs, and what the heap takes for itself.
    private static let slack = 9 << 20
    private static let limits = [8, 12, 16, 24, 32, 36, 40, 48, 56, 64, 80, 96, 128, 192, 256, 384]

    /// Takes it with more and more memory: what it grows by stays within the limit each time, let through or not. `holds`:
    /// the last partial image is held, as a viewer does. Partial images of the last run.
    @discardableResult
    private func assertWithin(
        _ file: [UInt8], _ name: String, holds: Bool = true, pieces: Int = 40_000, line: UInt = #line,
        _ change: (inout DecodeOptions) -> Void = { _ in }
    ) throws -> Int {
        try XCTSkipIf(Memory.isSanitized)
        XCTAssertGreaterThan(file.count, 100, name, line: line)
        var through = 0
        var partials = 0
        for limit in Self.limits where through < 3 || limit == Self.limits.last {
            var options = DecodeOptions()
            change(&options)
            options.maximumMemoryBytes = UInt64(limit << 20)
            let before = Memory.resident
            try XCTSkipUnless(Memory.resetPeak(), "this machine cannot reset the peak")
            let decoder = BuiltInCodec().makeDecoder(options)
            var held: DecodedImage?
            partials = 0
            do throws(Failure) {
                try feed(decoder, file, pieces: pieces) { _ in
                    guard let image = decoder.partialImage() else { return }
                    partials += 1
                    held = holds ? image : nil
                }
                held = try decoder.finish()
                through += 1
            } catch {
                XCTAssertEqual(error.code, .memoryLimit, name, line: line)
            }
            let grown = Memory.peak - before
            XCTAssertLessThan(
                grown, limit << 20 + Self.slack, "\(name): \(grown >> 20) MiB of \(limit)", line: line)
            withExtendedLifetime(held) {}
        }
        XCTAssertGreaterThan(through, 3, "\(name) was let through", line: line)
        return partials
    }

    func testSeveralScans() throws {
        for kind in [PICTURE_JPEG_PROGRESSIVE, PICTURE_JPEG_SEPARATE_SCANS] {
            let file = Picture("a", kind, width: 2400, height: 2000).encoded()
            for holds in [false, true] {
                let partials = try assertWithin(file, "JPEG \(kind.rawValue)", holds: holds)
                XCTAssertGreaterThan(partials, 1, "with room there are partial images")
            }
        }
    }

    /// A PNG has its profile packed, and lcms2 copies the one that it follows.
    func testProfiles() throws {
        let profile = Profile(PICTURE_PROFILE_RGB)
        var stored = PNGFile(width: 1, height: 1)
        stored.add(
            "iCCP", Array("p".utf8) + [0, 0] + PNGFile.deflated(profile.padded(to: 30 << 20), level: 0))
        stored.add("IDAT", PNGFile.rows(width: 1, [[1, 2, 3, 4]]))
        let followed = profile.padded(to: 14 << 20)
        let png = Picture("a", PICTURE_PNG_RGB).encoded().withPackedICCP(followed)
        let webp = Picture("a", PICTURE_WEBP_LOSSY).encoded().withICCPChunk(
            followed, width: 201, height: 150, alpha: false)
        let animated = Picture("a", PICTURE_WEBP_ANIMATED).encoded().withICCPChunk(
            followed, width: 201, height: 150, alpha: true)
        for (file, name) in [
            (stored.ended(), "packed"), (png, "PNG"), (webp, "WebP"), (animated, "an animated WebP"),
        ] {
            try assertWithin(file, name) {
                $0.maximumMetadataBytes = .max
                $0.convertsToSRGB = true
            }
        }
    }

    func testThumbnails() throws {
        var picture = Picture("a", PICTURE_JPEG_BASELINE, width: 2400, height: 2000, orientation: 1)
        picture.spec.exif_thumbnail = 1
        try assertWithin(picture.encoded(), "thumbnail") { $0.showsThumbnailFirst = true }
    }

    func testAdam7() throws {
        for kind in [PICTURE_PNG_ADAM7, PICTURE_PNG_ADAM7_RGBA] {
            let file = Picture("a", kind, width: 2400, height: 2000).encoded()
            let partials = try assertWithin(file, "Adam7 \(kind.rawValue)")
            XCTAssertGreaterThan(partials, 1)
            try assertWithin(file, "Adam7 \(kind.rawValue), words") { $0.pixelFormat = .rgba16 }
            try assertWithin(
                file.withoutEnd() + PNGFile.chunk("eXIf", DeepPicture.exif(6)) + PNGFile.chunk("IEND"), "turned late")
        }
    }

    /// Frames are composed on canvases of their own where they are not given out as they are.
    func testFrames() throws {
        let side = 1500
        for size in [1, side] {
            var file = PNGFile(width: side, height: side)
            file.add("acTL", PNGFile.number(4) + PNGFile.number(0))
            file.add("fcTL", PNGFile.control(0, width: side, height: side, disposal: 2, blend: 1))
            file.add("IDAT", PNGFile.deflated([UInt8](repeating: 0, count: (1 + 4 * side) * side)))
            for number in 1..<4 {
                file.add("fcTL", PNGFile.control(2 * number - 1, width: size, height: size, disposal: 0, blend: 1))
                let rows = PNGFile.deflated([UInt8](repeating: 0, count: (1 + 4 * size) * size))
                file.add("fdAT", PNGFile.number(2 * number) + rows)
            }
            for format in [PixelFormat.rgba8, .rgba8Premultiplied, .rgba16] {
                try assertWithin(file.ended(), "APNG \(size) \(format)") {
                    $0.decodesAllFrames = true
                    $0.pixelFormat = format
                }
            }
        }
    }

    /// Of an animation whose frames are converted at its end nothing is watched: such partial images are the viewer's, and
    /// their canvases are kept for the next.
    func testGIFs() throws {
        let side = 1500
        let data = GIFFile.encoded([UInt8](repeating: 1, count: side * side), codeSize: 2)
        for isInterlaced in [false, true] {
            var file = GIFFile(width: side, height: side)
            for _ in 0..<4 {
                file.addControl(disposal: 3, delay: 10)
                file.addFrame(width: side, height: side, [], interlaced: isInterlaced, data: data)
            }
            for format in [PixelFormat.rgba8, .rgba16] {
                try assertWithin(file.ended(), "GIF \(format)", pieces: format == .rgba8 ? 500 : .max / 2) {
                    $0.decodesAllFrames = true
                    $0.pixelFormat = format
                }
                try assertWithin(file.ended(), "GIF \(format), its first frame", holds: format == .rgba8, pieces: 500) {
                    $0.pixelFormat = format
                }
            }
        }
    }

    func testWebPs() throws {
        for kind in [PICTURE_WEBP_LOSSY, PICTURE_WEBP_LOSSLESS, PICTURE_WEBP_LOSSY_ALPHA] {
            for orientation in [0, 6] as [Int32] {
                let file = Picture("a", kind, width: 2400, height: 2000, orientation: orientation).encoded()
                for format in [PixelFormat.rgba8, .rgba16] {
                    try assertWithin(file, "WebP \(kind.rawValue), \(orientation), \(format)") {
                        $0.pixelFormat = format
                    }
                }
            }
        }
        let frames = WebPFile(Picture("a", PICTURE_WEBP_LOSSLESS_ALPHA, width: 1200, height: 1200).encoded())
        var file = WebPFile()
        file.add("VP8X", WebPFile.extended(0x12, width: 1200, height: 1200))
        file.add("ANIM", [0, 0, 0, 0, 0, 0])
        let picture = frames.chunks.filter { ["VP8L"].contains($0.name) }.flatMap(\.bytes)
        for _ in 0..<4 { file.add("ANMF", WebPFile.frame(width: 1200, height: 1200, picture)) }
        for format in [PixelFormat.rgba8, .rgba8Premultiplied, .rgba16] {
            try assertWithin(file.bytes(), "frames \(format)", holds: format != .rgba16) {
                $0.decodesAllFrames = true
                $0.pixelFormat = format
            }
        }
    }
}

extension [UInt8] {
    /// A PNG without IEND.
    fileprivate func withoutEnd() -> [UInt8] { Array(dropLast(12)) }
}

extension PNGFile {
    fileprivate static func chunk(_ name: String, _ data: [UInt8] = []) -> [UInt8] {
        var file = PNGFile()
        file.add(name, data)
        return Array(file.bytes.dropFirst(8))
    }
}
