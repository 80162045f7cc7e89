import ImgdlCore
import TestPictures
import XCTest

@testable import ImgdlCodecs

extension StopTests {
    /// Of one colour, so that a few hundred kilobytes inflate to all that is allowed. `depth` is that of a sample.
    func png(
        width: Int, height: Int, colorType: UInt8 = 6, depth: UInt8 = 8, isInterlaced: Bool = false, filter: UInt8 = 4
    ) -> [UInt8] {
        var file = PNGFile(
            width: width, height: height, colorType: colorType, depth: depth, isInterlaced: isInterlaced)
        let channels = [0: 1, 2: 3, 6: 4][colorType] ?? 1
        let passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
        var raw: [UInt8] = []
        for (firstX, firstY, stepX, stepY) in isInterlaced ? passes : [(0, 0, 1, 1)] {
            let bytes = ((width - firstX + stepX - 1) / stepX * channels * Int(depth) + 7) / 8
            let row = [filter] + [UInt8](repeating: 3, count: bytes)
            for _ in stride(from: firstY, to: height, by: stepY) { raw += row }
        }
        file.add("IDAT", PNGFile.deflated(raw))
        return file.ended()
    }

    func testPNGs() throws {
        try assertStops(png(width: 5000, height: 5000), after: 60, "plain")
        try assertStops(png(width: 5000, height: 5000, isInterlaced: true), after: 60, "Adam7")
        try assertStops(
            png(width: 5000, height: 5000, isInterlaced: true), after: 60, partials: true, pieces: 3000, "Adam7, shown")
    }

    /// Four blocks of deflate that have tables and nothing else: each has zlib make these anew.
    private static let emptyBlocks: [UInt8] = [
        0x04, 0xC0, 0x81, 0, 0, 0, 0, 0, 0x90, 0xFF, 0x6B, 0x10, 0, 0x07, 0x02, 0, 0, 0, 0, 0x40, 0xFE, 0xAF, 0x41, 0,
        0x1C, 0x08, 0, 0, 0, 0, 0, 0xF9, 0xBF, 0x06, 0x01, 0x70, 0x20, 0, 0, 0, 0, 0, 0xE4, 0xFF, 0x1A,
    ]

    /// Of 14 MiB comes nothing, in a second.
    func testPNGsOfEmptyBlocks() throws {
        let stream = [0x78, 0x9C] + Array([[UInt8]](repeating: Self.emptyBlocks, count: 326_000).joined())
        var profile = PNGFile(width: 3, height: 1, colorType: 2)
        profile.add("iCCP", Array("p".utf8) + [0, 0] + stream)
        profile.add("IDAT", PNGFile.deflated([UInt8](repeating: 0, count: 10)))
        try assertStops(profile.ended(), after: 100, "a profile")
        var rows = PNGFile(width: 3, height: 1, colorType: 2)
        rows.add("IDAT", stream + [3, 0])
        try assertStops(rows.ended(), after: 100, "rows")
    }

    /// libpng takes a row in one go.
    func testPNGsOfOneRow() throws {
        try assertStops(png(width: 1 << 20, height: 20, depth: 16), after: 60, "deep")
        try assertStops(png(width: 2 << 20, height: 20), after: 60, "plain")
    }

    /// Scaled, turned and converted.
    func testWhatBecomesOfPixels() throws {
        let file = png(width: 5000, height: 5000, isInterlaced: true)
        var scaled = DecodeOptions()
        scaled.targetWidth = 4000
        try assertStops(file, scaled, after: 300, "scaled")
        var converted = DecodeOptions()
        converted.convertsToSRGB = true
        converted.pixelFormat = .rgba16
        try assertStops(
            file.withICCP(Profile(PICTURE_PROFILE_RGB).bytes), converted, after: 300, "converted")
        var turned = DecodeOptions()
        turned.pixelFormat = .bgra8Premultiplied
        try assertStops(file.withChunk("eXIf", DeepPicture.exif(6)), turned, after: 300, "turned")
    }

    /// What was had of a picture that breaks off is not made into one for nobody.
    func testSalvage() throws {
        func cut(_ file: [UInt8]) -> [UInt8] { Array(file.dropLast(file.count / 50 + 100)) }
        let scans = Picture("scans", PICTURE_JPEG_PROGRESSIVE, width: 8000, height: 6000).encoded()
        try assertSalvageStops(cut(scans), after: 20, "a progressive JPEG")
        var turned = DecodeOptions()
        turned.pixelFormat = .bgra8Premultiplied
        let flat = png(width: 8000, height: 5000, isInterlaced: true)
        try assertSalvageStops(cut(flat.withChunk("eXIf", DeepPicture.exif(6))), turned, after: 5, "a turned PNG")
        var converted = DecodeOptions()
        converted.convertsToSRGB = true
        converted.pixelFormat = .rgba16
        try assertSalvageStops(
            cut(flat.withICCP(Profile(PICTURE_PROFILE_RGB).bytes)), converted, after: 20, "a converted PNG")
    }

    func testThumbnails() throws {
        // Made as large as the picture, which is a hundred megapixels large.
        var file = Picture("a", PICTURE_JPEG_BASELINE, width: 100, height: 100, orientation: 1)
        file.spec.exif_thumbnail = 1
        var segments = JPEGSegments(file.encoded())
        guard let at = segments.segments.firstIndex(where: { $0.marker == 0xC0 }) else { return XCTFail("no frame") }
        for (index, value) in [(1, 39), (2, 16), (3, 39), (4, 16)] {
            segments.segments[at].content[index] = UInt8(value)
        }
        var options = DecodeOptions()
        options.showsThumbnailFirst = true
        try assertStops(segments.bytes, options, after: 100, partials: true, pieces: 3000)
    }

    /// Codes for the longest strings there are: 200 KB for 50 megapixels.
    private func gif(width: Int, height: Int, frames: Int, disposal: UInt8 = 1, interlaced: Bool = false) -> [UInt8] {
        let data = GIFFile.encoded([UInt8](repeating: 1, count: width * height), codeSize: 2)
        var file = GIFFile(width: width, height: height)
        for _ in 0..<frames {
            file.addControl(disposal: disposal, delay: 10)
            file.addFrame(width: width, height: height, [], interlaced: interlaced, data: data)
        }
        return file.ended()
    }

    func testGIFs() throws {
        // More than twice the time at which it is stopped: the timer looks at each tick of the system alone.
        let large = gif(width: 5000, height: 5000, frames: 1)
        try assertStops(large, after: 30, "a frame")
        try assertStops(gif(width: 5000, height: 5000, frames: 1, interlaced: true), after: 30, "interlaced")
        var scaled = DecodeOptions()
        scaled.targetWidth = 4900
        try assertStops(large, scaled, after: 60, "scaled")
        var all = DecodeOptions()
        all.decodesAllFrames = true
        try assertStops(gif(width: 500, height: 500, frames: 200), all, after: 100, "frames")
        try assertStops(gif(width: 500, height: 500, frames: 200, disposal: 2), all, after: 100, "cleared frames")
        // Frames that nobody asked for are read: each with a palette to make.
        var many = GIFFile(width: 1, height: 1)
        let data = GIFFile.encoded([1], codeSize: 2)
        for _ in 0..<40_000 { many.addFrame(width: 1, height: 1, [], data: data) }
        try assertStops(many.ended(), after: 30, "frames of a pixel")
    }

    /// Chunks and segments that mean nothing.
    func testStructure() throws {
        var png = PNGFile(width: 1, height: 1)
        for _ in 0..<50_000 { png.add("juNk") }
        try assertStops(png.bytes, after: 50, "chunks")
        let markers = [UInt8]([0xFF, 0xD8] + Array(repeating: [0xFF, 0xE5, 0, 2], count: 1_000_000).joined())
        try assertStops(markers, after: 20, "segments")
        let fill = [UInt8]([0xFF, 0xD8] + [UInt8](repeating: 0xFF, count: 8_000_000))
        try assertStops(fill, after: 10, "fill bytes")
        let blocks =
            GIFFile(width: 1, height: 1).bytes + [0x21, 0xFE]
            + Array(repeating: [1, 0x20], count: 1_000_000).joined()
        try assertStops(blocks, after: 100, "blocks")
    }

    /// libwebp is given a part of the file at a time.
    func testWebPs() throws {
        for kind in [PICTURE_WEBP_LOSSY, PICTURE_WEBP_LOSSLESS, PICTURE_WEBP_LOSSY_ALPHA] {
            var picture = Picture("a", kind, width: 2500, height: 2000)
            picture.spec.quality = 100
            try assertStops(picture.encoded(), after: 20, "\(kind)")
        }
    }

    /// An animation is left between two calls of libwebp, and within what is done with its frames here.
    func testWebPAnimations() throws {
        let frames = WebPFile(Picture("a", PICTURE_WEBP_LOSSLESS_ALPHA, width: 600, height: 600).encoded())
        var file = WebPFile()
        file.add("VP8X", WebPFile.extended(0x12, width: 600, height: 600))
        file.add("ANIM", [0, 0, 0, 0, 0, 0])
        let picture = frames.chunks.filter { ["VP8L"].contains($0.name) }.flatMap(\.bytes)
        for _ in 0..<100 { file.add("ANMF", WebPFile.frame(width: 600, height: 600, picture)) }
        var options = DecodeOptions()
        options.decodesAllFrames = true
        try assertStops(file.bytes(), options, after: 100)
    }
}
