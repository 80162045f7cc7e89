import ImgdlCore
import XCTest

/// Features X8, X9, O8, G9, X10: how large a picture is decoded, and what a pixel of it is worth.
final class OutputSizeTests: XCTestCase {
    private func size(
        _ width: Int, _ height: Int, in box: (Int, Int) = (0, 0), stretches: Bool = false, bytes: UInt64? = nil,
        frames: Int = 1
    ) -> [Int] {
        var options = DecodeOptions()
        (options.targetWidth, options.targetHeight) = box
        options.stretches = stretches
        options.maximumOutputBytes = bytes
        let size = OutputSize(width: width, height: height, frames: frames, options)
        return [size.width, size.height]
    }

    /// SDWebImage's own table for scaledSize, and its thumbnail of a large picture.
    func testX8_Box() {
        XCTAssertEqual(size(100, 200, in: (150, 150)), [75, 150])
        XCTAssertEqual(size(100, 200, in: (300, 300)), [100, 200], "never enlarged")
        XCTAssertEqual(size(100, 200, in: (150, 150), stretches: true), [100, 150])
        XCTAssertEqual(size(100, 200), [100, 200], "no box")
        XCTAssertEqual(size(100, 200, stretches: true), [100, 200], "no box")
        XCTAssertEqual(size(5250, 3450, in: (400, 300)), [400, 263])
        XCTAssertEqual(size(5250, 3450, in: (50, 50), stretches: true), [50, 50])
        XCTAssertEqual(size(400, 300, in: (400, 300)), [400, 300])
        XCTAssertEqual(size(400, 300, in: (400, 299)), [399, 299])
        XCTAssertEqual(size(10_000, 1, in: (100, 100)), [100, 1])
        XCTAssertEqual(size(1, 1, in: (1, 1)), [1, 1])
    }

    /// Sides as large as 32 bits can name, on both sides.
    func testTheLargestSides() {
        let most = Int(UInt32.max)
        XCTAssertEqual(size(most, most, in: (most - 1, most)), [most - 1, most - 1])
        XCTAssertEqual(size(most, most, in: (most, most - 1)), [most - 1, most - 1])
        XCTAssertEqual(size(1, most, in: (most, 1)), [1, 1])
        XCTAssertEqual(size(most, 1, in: (1, most)), [1, 1])
        XCTAssertEqual(size(most - 1, most, in: (most - 2, 0)), [most - 2, most - 1])
        XCTAssertEqual(size(most, most, bytes: .max), [1 << 31, 1 << 31 - 1])
        XCTAssertEqual(size(most, most, bytes: 1, frames: most), [1, 1])
    }

    func testX8_AFreeSideFollows() {
        XCTAssertEqual(size(100, 200, in: (50, 0)), [50, 100])
        XCTAssertEqual(size(100, 200, in: (0, 50)), [25, 50])
        XCTAssertEqual(size(100, 200, in: (0, 500)), [100, 200])
        XCTAssertEqual(size(100, 200, in: (50, 0), stretches: true), [50, 100])
    }

    /// Whatever the numbers: inside the box, not enlarged, and within a pixel of the proportions.
    func testX8_EveryPictureFitsItsBox() {
        for width in [1, 2, 3, 7, 99, 100, 101, 1029, 65_535] {
            for height in [1, 2, 5, 64, 100, 1000, 65_535] {
                for box in [(1, 1), (64, 64), (7, 100), (100, 7), (0, 33), (33, 0)] {
                    let got = size(width, height, in: box)
                    let scale = min(
                        1, box.0 > 0 ? Double(box.0) / Double(width) : 1, box.1 > 0 ? Double(box.1) / Double(height) : 1
                    )
                    let name = "\(width) x \(height) in \(box)"
                    XCTAssertEqual(Double(got[0]), max(1, Double(width) * scale), accuracy: 1, name)
                    XCTAssertEqual(Double(got[1]), max(1, Double(height) * scale), accuracy: 1, name)
                    XCTAssert(box.0 == 0 || got[0] <= box.0, name)
                    XCTAssert(box.1 == 0 || got[1] <= box.1, name)
                }
            }
        }
    }

    func testX9_BytesSetTheSize() {
        XCTAssertEqual(size(1029, 1029, bytes: 1), [1, 1])
        XCTAssertEqual(size(1029, 1029, bytes: 0), [1, 1])
        XCTAssertEqual(size(1029, 1029, bytes: 1 << 20), [512, 512])
        XCTAssertEqual(size(1029, 1029, bytes: 1 << 20, frames: 4), [256, 256])
        XCTAssertEqual(size(512, 512, bytes: 1 << 20), [512, 512])
        XCTAssertEqual(size(6000, 1000, bytes: 60 << 20), [6000, 1000], "fits as it is")
        XCTAssertEqual(size(2000, 500, bytes: 1 << 20), [1024, 256])
        XCTAssertEqual(size(10_000, 1, bytes: 400), [100, 1])
        XCTAssertEqual(size(1029, 1029, in: (10, 10), bytes: 1 << 20), [512, 512], "in the box's place")
    }

    func testX9_EveryPictureFitsItsBytes() {
        for width in [1, 3, 100, 1029, 65_535, 1 << 30] {
            for height in [1, 2, 64, 1000, 65_535, 1 << 30] {
                for bytes in [UInt64(4), 5, 4000, 1 << 20, 60 << 20, .max] {
                    let got = size(width, height, bytes: bytes)
                    let name = "\(width) x \(height) in \(bytes): \(got)"
                    XCTAssert(UInt64(4 * got[0] * got[1]) <= bytes, name)
                    XCTAssert(got[0] >= 1 && got[1] >= 1 && got[0] <= width && got[1] <= height, name)
                }
            }
        }
    }

    func testX10_ScaleFactorOfAName() {
        for (url, factor) in [
            ("https://a.example/photo@2x.png", 2.0), ("https://a.example/photo@3x.png", 3),
            ("https://a.example/photo%402x.png", 2), ("https://a.example/photo%403x.jpg?w=1", 3),
            ("https://a.example/photo.png", 1), ("https://a.example/photo@4x.png", 1),
            ("https://a.example/photo@2x", 1), ("https://a.example/photo.png?n=@2x.png", 1),
            ("https://a.example/photo.png#@2x.png", 1), ("https://a.example/icons@2x.d/photo.png", 1),
            ("https://a@2x.example/", 1), ("https://a.example/", 1), ("", 1), ("@2x.", 1),
            ("https://a.example/@2x.", 2),
        ] {
            XCTAssertEqual(scaleFactor(ofURL: url), factor, url)
        }
    }
}
