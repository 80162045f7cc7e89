import CCodecs
import ImgdlCore
import Synchronization
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// B6: work is linear in the bytes, however small the pieces are. Counted, not timed.
final class WorkTests: XCTestCase {
    /// libwebp goes over all that is ahead of a picture each time that it is given more: twice as much takes no more than twice as
    /// long. 24 MiB of empty chunks took ten seconds.
    func testLossyWebPIsGivenMoreEachTime() throws {
        let picture = WebPFile(Picture("a", PICTURE_WEBP_LOSSY).encoded())
        func updates(ahead count: Int) throws -> Int {
            var file = WebPFile()
            file.add("VP8X", WebPFile.extended(0, width: 201, height: 150))
            file.add("JUNK", [UInt8](repeating: 0, count: count))
            file.add("VP8 ", picture["VP8 "])
            let bytes = file.bytes()
            var features = WebPBitstreamFeatures()
            XCTAssertEqual(WebPGetFeatures(bytes, bytes.count, &features), VP8_STATUS_OK)
            let still = try WebPStill(
                features, isLossless: false, length: bytes.count, width: 201, height: 150, .rgba8, nil,
                DecodeClock(DecodeOptions()))
            try bytes.withUnsafeBytes { try still.offer($0, from: 12, isWhole: true) }
            XCTAssert(still.isComplete)
            return still.updates
        }
        let (small, large) = (try updates(ahead: 1 << 20), try updates(ahead: 16 << 20))
        XCTAssertGreaterThan(small, 64, "and it is shown before it is whole")
        XCTAssertLessThan(large - small, 4 * 64)
    }

    /// libwebp goes back some rows, or to the start, each time it is given more of a lossless picture.
    func testLosslessWebPIsGivenInBatches() throws {
        let bytes = Picture("a", PICTURE_WEBP_LOSSLESS, width: 1200, height: 1200).encoded()
        XCTAssertGreaterThan(bytes.count, 300_000)
        var features = WebPBitstreamFeatures()
        XCTAssertEqual(WebPGetFeatures(bytes, bytes.count, &features), VP8_STATUS_OK)
        let still = try WebPStill(
            features, isLossless: true, length: bytes.count, width: 1200, height: 1200, .rgba8, nil,
            DecodeClock(DecodeOptions()))
        try bytes.withUnsafeBytes { body in
            for end in 30...bytes.count {
                let soFar = UnsafeRawBufferPointer(rebasing: body[..<end])
                try still.offer(soFar, from: 12, isWhole: end == bytes.count)
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

/// Files that are all structure: nothing is walked over twice, and nothing that was kept is given out for each frame.
extension WorkTests {
    /// A frame of many small chunks, in small pieces.
    func testChunksInAWebPFrameAreNotWalkedForEachPiece() throws {
        var options = DecodeOptions()
        options.decodesAllFrames = true
        let animation = WebPAnimation(width: 2, height: 2, options, DecodeClock(options))
        let chunk = WebPFile.Chunk(name: "junk", data: []).bytes
        let inner = WebPFile.Chunk(name: "ALPH", data: [0, 0]).bytes + Array(repeating: chunk, count: 20_000).joined()
        let bytes =
            WebPFile.Chunk(name: "ANIM", data: [0, 0, 0, 0, 0, 0]).bytes
            + WebPFile.Chunk(name: "ANMF", data: WebPFile.frame(width: 2, height: 2, inner)).bytes
        XCTAssertThrowsError(
            try {
                for start in stride(from: 0, to: bytes.count, by: 8) {
                    try Array(bytes[start..<min(bytes.count, start + 8)]).withUnsafeBytes { try animation.feed($0) }
                }
            }())
        XCTAssertLessThan(animation.looks, 200, "of \(bytes.count / 8) pieces")
    }

    /// What every frame of an APNG is given is kept once, however often the file says it.
    func testRepeatedChunksAreNotKeptForEachFrame() throws {
        var options = DecodeOptions()
        options.decodesAllFrames = true
        let animation = PNGAnimation(options, DecodeClock(options))
        var filter = PNGChunkFilter(animation, options, DecodeClock(options))
        var file = PNGFile(width: 2, height: 2, colorType: 0)
        for _ in 0..<10_000 { file.add("tRNS", [0, 7]) }
        try file.bytes.withUnsafeBytes { bytes in
            var rest = bytes
            while try filter.next(&rest) != nil { filter.discardHeld() }
        }
        XCTAssertLessThan(animation.keptBytes, 100)
    }

    /// A million pieces of structure without a pixel in them.
    func testMillionsOfEmptyPartsAreReadOnce() throws {
        var gif = GIFFile(width: 2, height: 1)
        gif.addFrame(width: 2, height: 1, [1, 2])
        var empty = GIFFile(width: 2, height: 1)
        let head = empty.bytes.count
        empty.addFrame(width: 0, height: 0, [], data: [])
        let frames = 200_000
        let many = gif.bytes + Array(repeating: empty.bytes[head...], count: frames).joined() + [0x3B]
        XCTAssertEqual(decode(many).header?.frameCount, frames + 1)

        var png = PNGFile(width: 1, height: 1)
        let chunk = { () -> [UInt8] in
            var file = PNGFile()
            file.add("teXt")
            return Array(file.bytes[8...])
        }()
        let start = png.bytes
        png.add("IDAT", PNGFile.rows(width: 1, [[1, 2, 3, 255]]))
        let chunks = start + Array(repeating: chunk, count: 200_000).joined() + png.ended()[start.count...]
        XCTAssertEqual(decode(chunks, pieces: 1000).pixels, [1, 2, 3, 255])

        let source = WebPFile(Picture("a", PICTURE_WEBP_LOSSY, width: 20, height: 10).encoded())
        var webp = WebPFile()
        webp.add("VP8X", WebPFile.extended(0, width: 20, height: 10))
        webp.chunks += Array(repeating: WebPFile.Chunk(name: "junk", data: []), count: 200_000)
        webp.add("VP8 ", source["VP8 "])
        XCTAssertEqual(decode(webp.bytes(), pieces: 1000).pixels, decode(source.bytes()).pixels)
    }

    /// A call of libwebp cannot be stopped: to see which rows of a broken lossless picture were written is no single call.
    func testWrittenRowsAreSeenAPieceAtATime() throws {
        let bytes = Picture("a", PICTURE_WEBP_LOSSLESS, width: 1500, height: 1200).encoded()
        XCTAssertGreaterThan(bytes.count, 3 * WebPDecoder.piece)
        var options = DecodeOptions()
        options.maximumMilliseconds = 35
        let clock = DecodeClock(options) {
            WorkTests.asked.add(10_000_000, ordering: .relaxed).newValue
        }
        clock.begin()
        defer { clock.end() }
        try bytes.withUnsafeBytes { body in
            var features = WebPBitstreamFeatures()
            XCTAssertEqual(WebPGetFeatures(body.baseAddress, body.count, &features), VP8_STATUS_OK)
            XCTAssertThrowsError(try WebPWrittenRows.count(in: body, features, height: 1200, clock)) {
                XCTAssertEqual(($0 as? Failure)?.code, .decodeTimeout)
            }
        }
    }

    /// Nanoseconds: each look at the clock takes 10 ms.
    private static let asked = Atomic<Int64>(0)
}
