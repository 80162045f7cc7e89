import CCodecs
import ImgdlCore
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// B6: work is linear in the bytes, however small the pieces are. Counted, not timed.
final class WorkTests: XCTestCase {
    /// libwebp goes back some rows, or to the start, each time it is given more of a lossless picture.
    func testLosslessWebPIsGivenInBatches() throws {
        let bytes = Picture("a", PICTURE_WEBP_LOSSLESS, width: 1200, height: 1200).encoded()
        XCTAssertGreaterThan(bytes.count, 300_000)
        var features = WebPBitstreamFeatures()
        XCTAssertEqual(WebPGetFeatures(bytes, bytes.count, &features), VP8_STATUS_OK)
        let still = try WebPStill(features, isLossless: true, width: 1200, height: 1200, .rgba8)
        try bytes.withUnsafeBytes { body in
            for end in 30...bytes.count {
                let soFar = UnsafeRawBufferPointer(rebasing: body[..<end])
                try still.offer(soFar, from: 12, isWhole: end == bytes.count, length: bytes.count)
            }
        }
        XCTAssert(still.isComplete)
        XCTAssertLessThanOrEqual(still.updates, bytes.count / (64 * 1024) + 2)
        XCTAssertGreaterThan(still.updates, 2, "and it is shown before it is whole")
    }

    /// A segment of a JPEG that comes byte by byte is not looked at again for each byte.
    func testSuspendedUnitsAreNotTriedAtEachByte() throws {
        let unit = 65_536
        var pending = PendingBytes()
        var (tries, used) = (0, 0)
        for _ in 0..<unit {
            try [UInt8(0)].withUnsafeBytes { byte in
                try pending.offer(byte) { bytes in
                    tries += 1
                    guard bytes.count >= unit * 9 / 10 else { return 0 }
                    used += bytes.count
                    return bytes.count
                }
            }
        }
        XCTAssertLessThan(tries, 7000, "a tenth of a unit may follow the last one")
        XCTAssertGreaterThanOrEqual(used, unit * 9 / 10)
    }
}
