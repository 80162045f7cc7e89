import Glibc
import ImgdlCodecs
import ImgdlCore
import MemoryTesting
import TestPictures
import XCTest

/// Features B20: a large picture in a small box never stands in memory at full size.
final class ScaledMemoryTests: XCTestCase {
    private static let isLong = getenv("IMGDL_LONG").map { String(cString: $0) == "1" } ?? false
    private static let width = isLong ? 6000 : 3000
    private static let height = isLong ? 4000 : 2000
    /// What the heap takes for itself, and the huge pages that a canvas is rounded up to.
    private static let slack = 4 << 20

    func testB20_PeakIsFarBelowACanvas() throws {
        try XCTSkipIf(Memory.isSanitized)
        let canvas = 4 * Self.width * Self.height
        for (kind, most) in [
            (PICTURE_JPEG_BASELINE, canvas / 16), (PICTURE_PNG_RGB, canvas / 16), (PICTURE_WEBP_LOSSY, canvas / 8),
        ] {
            let bytes = Picture("large", kind, width: Int32(Self.width), height: Int32(Self.height)).encoded()
            let before = Memory.resident
            try XCTSkipUnless(Memory.resetPeak(), "this machine cannot reset the peak")
            for box in [400, Self.width * 3 / 5] {
                let decoder = BuiltInCodec().makeDecoder(options(box))
                try feed(decoder, bytes, pieces: 64 << 10) { _ in _ = decoder.partialImage() }
                let image = try decoder.finish()
                XCTAssertEqual(image.pixels.width, box)
                let grown = Memory.peak - before - (box > 400 ? image.pixels.byteCount : 0)
                // The WebP decoder keeps the file until its end.
                let kept = kind == PICTURE_WEBP_LOSSY ? 2 * bytes.count : 0
                XCTAssertLessThan(grown, most + kept + Self.slack, "kind \(kind.rawValue): \(grown >> 10) KiB")
            }
        }
    }

    private func options(_ box: Int) -> DecodeOptions {
        var options = DecodeOptions()
        options.targetWidth = box
        return options
    }
}
