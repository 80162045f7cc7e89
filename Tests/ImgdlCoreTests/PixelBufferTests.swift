import XCTest

@testable import ImgdlCore

/// Memory of pictures is used again; nobody sees what was in it before.
final class PixelBufferTests: XCTestCase {
    private static let header = ImageHeader(
        format: .png, width: 1024, height: 1024, hasAlpha: true, isProgressive: false)

    /// Large enough to be kept when it is freed.
    private func usedCanvas(_ width: Int = 1024, _ height: Int = 1024) throws -> PixelBuffer {
        for _ in 0..<2 {
            let used = try PixelBuffer(width: width, height: height, format: .rgba8)
            memset(used.bytes, 0xAB, used.byteCount)
        }
        let canvas = try PixelBuffer(width: width, height: height, format: .rgba8, isCleared: false)
        memset(canvas.bytes, 0xAB, canvas.byteCount)
        return canvas
    }

    private func pixel(_ canvas: PixelBuffer, _ x: Int, _ y: Int) -> UInt32 {
        canvas.bytes.loadUnaligned(fromByteOffset: y * canvas.stride + 4 * x, as: UInt32.self)
    }

    private func show(_ canvas: PixelBuffer, _ ready: PixelRectangle) -> DecodedImage {
        DecodedImage(header: Self.header, pixels: canvas, ready: ready, isComplete: false)
    }

    /// R27: an early picture is transparent where its pixels have not come, also in memory that held another picture.
    func testWhatIsNotReadyIsTransparentInUsedMemory() throws {
        let ready = PixelRectangle(x: 100, y: 200, width: 300, height: 400)
        for height in [32, 256, 1024] {
            let canvas = try usedCanvas(1024, height)
            let ready = height == 1024 ? ready : PixelRectangle(x: 7, y: 3, width: 1000, height: 20)
            _ = show(canvas, ready)
            for y in 0..<height {
                for x in [0, ready.x - 1, ready.x, ready.x + ready.width - 1, ready.x + ready.width, 1023] {
                    let isReady =
                        (ready.x..<ready.x + ready.width).contains(x) && (ready.y..<ready.y + ready.height).contains(y)
                    XCTAssertEqual(pixel(canvas, x, y), isReady ? 0xABAB_ABAB : 0, "\(x), \(y)")
                }
            }
        }
    }

    /// What has been written since the first look stays, ready or not.
    func testOnlyTheFirstLookClears() throws {
        let canvas = try usedCanvas()
        _ = show(canvas, PixelRectangle(x: 0, y: 0, width: 1024, height: 10))
        memset(canvas.bytes, 0xCD, canvas.byteCount)
        _ = show(canvas, PixelRectangle(x: 0, y: 0, width: 1024, height: 20))
        XCTAssertEqual(pixel(canvas, 1023, 1023), 0xCDCD_CDCD)
    }

    /// A canvas that is drawn on is transparent from the beginning.
    func testClearedCanvasInUsedMemory() throws {
        for height in [16, 256, 1024] {
            _ = try usedCanvas(1024, height)
            let canvas = try PixelBuffer(width: 1024, height: height, format: .rgba8)
            let bytes = UnsafeRawBufferPointer(start: canvas.bytes, count: canvas.byteCount)
            XCTAssert(bytes.allSatisfy { $0 == 0 })
        }
    }
}
