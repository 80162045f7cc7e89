import ImgdlCore
import TestPictures
import XCTest

/// What the player of pieces found: code, pixels, frames, and what is salvaged do not depend on the pieces, nor on who looks.
final class PieceFindsTests: XCTestCase {
    @discardableResult
    private func check(_ bytes: [UInt8], _ name: String, allFrames: Bool = false) -> PieceOutcome {
        var options = DecodeOptions()
        options.decodesAllFrames = allFrames
        return checkPieces(bytes, name, options, [(1, false), (1, true), (3, true), (251, true)]).whole
    }

    /// zlib gives the last row and the error behind it in one call or in two, depending on how much it is shown.
    func testDamageInImageData() {
        for isInterlaced in [false, true] {
            let rows = isInterlaced ? Self.passes : Self.rows
            let data = PNGFile.deflated(rows)
            for at in 2..<data.count {
                var damaged = data
                damaged[at] ^= 0x55
                var file = PNGFile(width: 8, height: 8, isInterlaced: isInterlaced)
                file.add("IDAT", damaged)
                check(file.ended(), "byte \(at)")
            }
        }
    }

    /// 8 × 8 pixels, as stored, with every filter; and the passes of Adam7.
    private static let rows: [UInt8] = (0..<8).flatMap { (y: Int) -> [UInt8] in
        [UInt8(y % 5)] + (0..<32).map { (x: Int) -> UInt8 in UInt8(x * 7 ^ y * 31) }
    }
    private static let passes: [UInt8] = {
        var bytes: [UInt8] = []
        for (count, width) in [(1, 1), (1, 1), (1, 2), (2, 2), (2, 4), (4, 4), (4, 8)] {
            for _ in 0..<count { bytes += [1] + (0..<4 * width).map { UInt8($0 * 5) } }
        }
        return bytes
    }()

    /// Data that runs on behind the last row, whether its sum is right or not.
    func testDataBehindTheLastRow() {
        for extra in [1, 3, 33, 40, 5000] {
            for isDamaged in [false, true] {
                var data = PNGFile.deflated(Self.rows + [UInt8](repeating: 3, count: extra))
                if isDamaged { data[data.count - 1] ^= 1 }
                var file = PNGFile(width: 8, height: 8)
                file.add("IDAT", data)
                check(file.ended(), "\(extra) bytes\(isDamaged ? ", another sum" : "")")
            }
        }
    }

    func testFrameDataBehindTheLastRow() {
        for extra in [1, 3, 33] {
            var data = PNGFile.deflated(Self.rows + [UInt8](repeating: 3, count: extra))
            data[data.count - 1] ^= 1
            var file = PNGFile(width: 8, height: 8)
            file.add("acTL", PNGFile.number(2) + PNGFile.number(0))
            file.add("fcTL", PNGFile.control(0, width: 8, height: 8))
            file.add("IDAT", PNGFile.deflated(Self.rows))
            file.add("fcTL", PNGFile.control(1, width: 8, height: 8))
            file.add("fdAT", PNGFile.number(2) + data)
            check(file.ended(), "\(extra) bytes", allFrames: true)
        }
    }

    /// libjpeg gives up at the header of a later scan: what was read ahead of it is salvaged, whoever looked before.
    func testScanHeadersThatAreRefused() throws {
        for kind in [PICTURE_JPEG_PROGRESSIVE, PICTURE_JPEG_ARITHMETIC_PROGRESSIVE] {
            let bytes = Picture("a", kind, width: 40, height: 40).encoded()
            let scans = bytes.indices.dropLast(8).filter { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xDA }
            XCTAssertGreaterThan(scans.count, 5)
            for (number, scan) in scans.enumerated() where number > 0 {
                var damaged = bytes
                damaged[scan + 5] = 93
                let result = check(damaged, "scan \(number + 1)")
                XCTAssertEqual(result.verdict.failure?.code, .badImageData)
                XCTAssertEqual(result.ready?.height, 40, "scan \(number + 1)")
            }
        }
    }
}
