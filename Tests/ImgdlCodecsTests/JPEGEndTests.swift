import ImgdlCore
import MemoryTesting
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// B5, B7: what a JPEG's end decides, and what it does not.
final class JPEGEndTests: XCTestCase {
    private static let start: [UInt8] = [0xFF, 0xD8]
    private static let end: [UInt8] = [0xFF, 0xD9]

    private func inOneScan() throws -> [Picture] {
        try Picture.codings("baseline.jpg", "gray.jpg", "cmyk.jpg", "ycck.jpg", "arithmetic.jpg", "restarts.jpg")
    }

    private func salvage(_ bytes: [UInt8], pieces: Int = .max / 2, partials: Bool = false) -> DecodedImage? {
        let decoder = BuiltInCodec().makeDecoder(decodeOptions())
        do throws(Failure) {
            try feed(decoder, bytes, pieces: pieces) { _ in if partials { _ = decoder.partialImage() } }
            _ = try decoder.finish()
            return nil
        } catch {
            return decoder.salvagedImage()
        }
    }

    /// Every row is there: bytes between the last and the end cost none, however many, and however they come.
    func testStrayBytesAheadOfTheEndCostNothing() throws {
        for picture in try inOneScan() {
            let bytes = picture.encoded()
            let plain = decode(bytes)
            XCTAssertNil(plain.failure)
            for count in [1, 4, 5, 7, 8, 12, 64, 300] {
                for stray: UInt8 in [0, 0x5A] {
                    let padded = Array(bytes.dropLast(2)) + [UInt8](repeating: stray, count: count) + Self.end
                    for pieces in [1, 7, 1000, .max / 2] {
                        let got = decode(padded, pieces: pieces)
                        XCTAssert(
                            got == plain, "\(picture.name), \(count) bytes, pieces of \(pieces): \(got.failure as Any)")
                    }
                }
            }
        }
    }

    /// Any number of 0xFF may stand before a marker; libjpeg would read them again with each piece, and they are not held.
    func testARunOfFillBytesIsNotHeld() throws {
        for picture in try Picture.codings("baseline.jpg", "progressive.jpg") {
            let bytes = picture.encoded()
            let plain = decode(bytes)
            for count in [1, 65_535, 65_536, 131_071, 131_073, 10 << 20] {
                let fill = [UInt8](repeating: 0xFF, count: count)
                for filled in [Self.start + fill + bytes.dropFirst(2), Array(bytes.dropLast(2)) + fill + Self.end] {
                    for pieces in count > 200_000 ? [64 << 10] : [1000, 64 << 10, .max / 2] {
                        let before = Memory.resident
                        let decoder = BuiltInCodec().makeDecoder(decodeOptions())
                        XCTAssertNoThrow(try feed(decoder, filled, pieces: pieces))
                        let grown = Memory.resident - before
                        if pieces == 64 << 10 {
                            XCTAssert(
                                Memory.isSanitized || grown < 8 << 20, "\(picture.name), \(count) bytes: \(grown)")
                        }
                        guard let image = try? decoder.finish() else {
                            return XCTFail("\(picture.name), \(count) bytes, pieces of \(pieces)")
                        }
                        XCTAssert(Verdict(image) == plain, "\(picture.name), \(count) bytes, pieces of \(pieces)")
                    }
                }
            }
        }
    }

    /// What is wrong near the end is found however many there are ahead of it.
    func testFillBytesHideNoDamage() throws {
        let bytes = try Picture.codings("baseline.jpg")[0].encoded()
        var broken = 0
        for back in stride(from: 3, to: 500, by: 7) {
            var damaged = bytes
            damaged[bytes.count - back] ^= 0x5A
            let plain = decode(damaged)
            if plain.failure?.code == .badImageData { broken += 1 }
            let filled = Self.start + [UInt8](repeating: 0xFF, count: 100_000) + damaged.dropFirst(2)
            for pieces in [64 << 10, .max / 2] { XCTAssert(decode(filled, pieces: pieces) == plain, "\(back)") }
        }
        XCTAssertGreaterThan(broken, 0)
    }

    /// Where scans may follow, a few are padding; but none may be missing.
    func testAScanThatIsLostIsDamage() throws {
        for picture in try Picture.codings("progressive.jpg", "separate-scans.jpg") {
            let bytes = picture.encoded()
            let plain = decode(bytes)
            let last = try XCTUnwrap(bytes.indices.last { bytes[$0] == 0xDA && bytes[$0 - 1] == 0xFF })
            var lost = bytes
            lost[last] = 0
            for pieces in [1, 7, 1000, .max / 2] {
                for count in [1, 7, 30, 63, 64] {
                    let padded = Array(bytes.dropLast(2)) + [UInt8](repeating: 0x5A, count: count) + Self.end
                    XCTAssert(decode(padded, pieces: pieces) == plain, "\(picture.name), \(count), \(pieces)")
                }
                XCTAssertEqual(decode(lost, pieces: pieces).failure?.code, .badImageData, picture.name)
            }
        }
    }

    /// Many stray bytes may be a scan that was lost, where there may be one: a progressive picture's. How they come changes nothing.
    func testManyStrayBytesMayBeAScan() throws {
        for picture in try Picture.codings("progressive.jpg", "separate-scans.jpg") {
            let bytes = picture.encoded()
            let plain = decode(bytes)
            for count in Array(60...76) + [300] {
                let padded = Array(bytes.dropLast(2)) + [UInt8](repeating: 0x5A, count: count) + Self.end
                let whole = decode(padded)
                for pieces in [1, 7, 64, 1000] {
                    XCTAssert(decode(padded, pieces: pieces) == whole, "\(picture.name), \(count), \(pieces)")
                }
                // Up to seven bytes were read for the last codes, and are not counted.
                let isProgressive = picture.name == "progressive.jpg"
                if count <= 64 || !isProgressive { XCTAssert(whole == plain, "\(picture.name), \(count)") }
                if count > 71, isProgressive { XCTAssertEqual(whole.failure?.code, .badImageData, "\(count)") }
            }
        }
    }

    /// Without its end alone: every row is salvaged, and is the picture's.
    func testNoRowIsLostWithTheEnd() throws {
        for picture in try inOneScan() where picture.name != "arithmetic.jpg" {
            let bytes = picture.encoded()
            let plain = decode(bytes)
            let cut = Array(bytes.dropLast(2))
            XCTAssertEqual(decode(cut).failure?.code, .truncated, picture.name)
            XCTAssertEqual(decode(cut).failure?.message.contains("its end (EOI) is missing"), true, picture.name)
            for pieces in [1, 7, 1000, .max / 2] {
                let salvaged = try XCTUnwrap(salvage(cut, pieces: pieces, partials: pieces == 7), picture.name)
                XCTAssertEqual(salvaged.ready.height, 150, "\(picture.name), pieces of \(pieces)")
                XCTAssert(salvaged.bytes == plain.pixels, picture.name)
            }
        }
    }

    /// Cut between two rows of MCUs: all of the first is there. Where colours have half the rows, the last one needs the next for
    /// them.
    func testRowsWhoseDataIsThereAreSalvaged() throws {
        let kinds = [(PICTURE_JPEG_BASELINE, 16, 1), (PICTURE_JPEG_GRAY, 8, 0), (PICTURE_JPEG_CMYK, 8, 0)]
        for (kind, height, missing) in kinds {
            for quality: Int32 in [30, 85] {
                try assertRowsAreSalvaged(kind, quality, height: height, missing: missing)
            }
        }
    }

    private func assertRowsAreSalvaged(
        _ kind: picture_kind, _ quality: Int32, height: Int, missing: Int
    ) throws {
        var picture = Picture("rows.jpg", kind)
        picture.spec.quality = quality
        let side = Int32(height)
        picture.spec.restart_interval = (picture.spec.width + side - 1) / side
        let bytes = picture.encoded()
        let plain = try XCTUnwrap(decode(bytes).pixels)
        let scan = try XCTUnwrap((0..<bytes.count - 1).first { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xDA })
        let restarts = (scan..<bytes.count - 1).filter {
            bytes[$0] == 0xFF && (0xD0...0xD7).contains(bytes[$0 + 1])
        }
        let all = Int(picture.spec.height)
        XCTAssertEqual(restarts.count, (all + height - 1) / height - 1)
        for (row, restart) in restarts.enumerated() {
            for end in [restart, restart + 1, restart + 2] {
                for pieces in [1, 1000, .max / 2] {
                    let salvaged = try XCTUnwrap(salvage(Array(bytes[..<end]), pieces: pieces))
                    let rows = salvaged.ready.height
                    XCTAssertEqual(
                        rows, height * (row + 1) - missing, "\(kind.rawValue) cut at \(end), pieces of \(pieces)")
                    XCTAssert(salvaged.bytes[..<(4 * 201 * rows)] == plain[..<(4 * 201 * rows)], "cut at \(end)")
                    XCTAssert(salvaged.bytes[(4 * 201 * rows)...].allSatisfy { $0 == 0 })
                }
            }
        }
    }
}
