import ImgdlCore
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// What an Adam7 picture looks like after each row of each pass, against blocks that are drawn over each other.
final class Adam7Tests: XCTestCase {
    private struct Pass {
        var firstX, firstY, stepX, stepY, blockWidth, blockHeight: Int
    }

    /// PNG third edition, section 8.1 and its sample program in section 13.12.
    private let passes = [
        Pass(firstX: 0, firstY: 0, stepX: 8, stepY: 8, blockWidth: 8, blockHeight: 8),
        Pass(firstX: 4, firstY: 0, stepX: 8, stepY: 8, blockWidth: 4, blockHeight: 8),
        Pass(firstX: 0, firstY: 4, stepX: 4, stepY: 8, blockWidth: 4, blockHeight: 4),
        Pass(firstX: 2, firstY: 0, stepX: 4, stepY: 4, blockWidth: 2, blockHeight: 4),
        Pass(firstX: 0, firstY: 2, stepX: 2, stepY: 4, blockWidth: 2, blockHeight: 2),
        Pass(firstX: 1, firstY: 0, stepX: 2, stepY: 2, blockWidth: 1, blockHeight: 2),
        Pass(firstX: 0, firstY: 1, stepX: 1, stepY: 2, blockWidth: 1, blockHeight: 1),
    ]

    /// Calls back after each row with what is seen then: of each pixel which one stands for it.
    private func walk(width: Int, height: Int, _ body: (Adam7Position, [[[Int]?]]) throws -> Void) rethrows {
        var seen = [[[Int]?]](repeating: Array(repeating: nil, count: width), count: height)
        for (number, pass) in passes.enumerated() where pass.firstX < width {
            for (row, y) in stride(from: pass.firstY, to: height, by: pass.stepY).enumerated() {
                for x in stride(from: pass.firstX, to: width, by: pass.stepX) {
                    for blockY in y..<min(height, y + pass.blockHeight) {
                        for blockX in x..<min(width, x + pass.blockWidth) { seen[blockY][blockX] = [x, y] }
                    }
                }
                try body(Adam7Position(pass: number, rows: row + 1), seen)
            }
        }
    }

    private func view(of final: [UInt8], pixelSize: Int, _ seen: [[[Int]?]]) -> [UInt8] {
        var bytes: [UInt8] = []
        for from in seen.joined() {
            guard let from else {
                bytes += [UInt8](repeating: 0, count: pixelSize)
                continue
            }
            let at = (from[1] * seen[0].count + from[0]) * pixelSize
            bytes += final[at..<at + pixelSize]
        }
        return bytes
    }

    func testRowsAreMadeOfBlocks() {
        for (width, height) in [(1, 1), (2, 3), (3, 2), (4, 5), (5, 4), (8, 8), (9, 17), (21, 30)] {
            walk(width: width, height: height) { position, seen in
                for y in 0..<height {
                    let shown = (0..<width).map { x in
                        position.source(of: y).map { [x / $0.step * $0.step, $0.row] }
                    }
                    XCTAssertEqual(shown, seen[y], "\(width) × \(height), \(position), row \(y)")
                }
                let rows = seen.firstIndex { $0[0] == nil } ?? height
                XCTAssertEqual(position.shownRows(height: height), rows)
            }
        }
    }

    /// The picture's pixels, in blocks, in each format that goes another way, with two canvases in turn.
    func testPartialImagesShowTheBlocks() throws {
        for (width, height, isDeep) in [(3, 40, false), (37, 29, false), (37, 29, true)] {
            let bytes =
                isDeep
                ? DeepPicture(width: width, height: height).encoded(isInterlaced: true)
                : Picture("a", PICTURE_PNG_ADAM7, width: Int32(width), height: Int32(height)).encoded()
            for format in [PixelFormat.rgba8, .bgra8, .rgb8, .rgba16] {
                var options = DecodeOptions()
                options.pixelFormat = format
                let final = try XCTUnwrap(decode(bytes, options).pixels)
                var views: Set<[UInt8]> = []
                walk(width: width, height: height) { _, seen in
                    views.insert(view(of: final, pixelSize: format.bytesPerPixel, seen))
                }
                let decoder = BuiltInCodec().makeDecoder(options)
                var held: DecodedImage?
                var count = 0
                try feed(decoder, bytes, pieces: 3) { _ in
                    guard let image = decoder.partialImage() else { return }
                    XCTAssert(views.contains(image.bytes), "\(format), pass \(image.pass), \(image.ready)")
                    count += 1
                    held = image
                }
                XCTAssertGreaterThan(count, 10)
                XCTAssertEqual(held?.pass, 7)
            }
        }
    }
}
