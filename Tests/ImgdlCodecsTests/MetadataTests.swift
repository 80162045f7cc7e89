import ImgdlCore
import MemoryTesting
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// Metadata is held once and counted together (features B10, I41); what nobody reads takes no memory, however much it is.
final class MetadataTests: XCTestCase {
    /// A file with room for something that is said again and again.
    private struct Stretched {
        var name: String
        var head: [UInt8]
        var repeated: [UInt8]
        var tail: [UInt8]
        /// The same without it.
        var plain: [UInt8]
    }

    private static let amount = 48 << 20
    private static let slack = 6 << 20
    private let content = [UInt8](repeating: 1, count: 60_000)

    private var exif: [UInt8] { JPEGSegments.exif(1) + content }

    private var jpegs: [Stretched] {
        [PICTURE_JPEG_BASELINE, PICTURE_JPEG_PROGRESSIVE].flatMap { kind in
            let plain = Picture("a", kind).encoded()
            let segments: [(String, UInt8, [UInt8])] = [
                ("XMP", 0xE1, Array("http://ns.adobe.com/xap/1.0/\0".utf8) + content), ("EXIF", 0xE1, exif),
                ("other APP2", 0xE2, Array("MPF\0".utf8) + content), ("APP0", 0xE0, content),
                ("comment", 0xFE, content),
                ("Photoshop", 0xED, content),
                ("a profile of too many parts", 0xE2, Array("ICC_PROFILE\0".utf8) + [1, 1] + content),
            ]
            return segments.map { name, marker, data in
                Stretched(
                    name: name, head: Array(plain[..<2]), repeated: JPEGSegments.segment(marker, data),
                    tail: Array(plain[2...]), plain: plain)
            }
        }
    }

    private var pngs: [Stretched] {
        let plain = Picture("a", PICTURE_PNG_RGB).encoded()
        return ["tEXt", "zTXt", "iTXt", "eXIf", "iCCP", "unKn"].map { name in
            let whole = plain.withChunk(name, Array("a\0\0".utf8) + content)
            let size = whole.count - plain.count
            return Stretched(
                name: name, head: Array(plain[..<33]), repeated: Array(whole[33..<33 + size]),
                tail: Array(plain[33...]),
                plain: plain)
        }
    }

    private var webps: [Stretched] {
        let picture = WebPFile(Picture("a", PICTURE_WEBP_LOSSY, width: 20, height: 10).encoded())
        let frame = WebPFile.frame(width: 20, height: 10, WebPFile.Chunk(name: "VP8 ", data: picture["VP8 "]).bytes)
        return [false, true].flatMap { isAnimated in
            ["XMP ", "EXIF", "ICCP", "unkn"].map { name in
                var file = WebPFile()
                file.add("VP8X", WebPFile.extended(isAnimated ? 0x02 : 0, width: 20, height: 10))
                let head = file.bytes().count
                if isAnimated { file.add("ANIM", [0, 0, 0, 0, 0, 0]) }
                file.add(isAnimated ? "ANMF" : "VP8 ", isAnimated ? frame : picture["VP8 "])
                let plain = file.bytes()
                let chunk = WebPFile.Chunk(name: name, data: content).bytes
                let length = plain.count - 8 + (Self.amount / chunk.count + 1) * chunk.count
                return Stretched(
                    name: name + (isAnimated ? " of an animation" : ""),
                    head: Array(plain[..<4]) + WebPFile.number(length, 4) + plain[8..<head], repeated: chunk,
                    tail: Array(plain[head...]), plain: plain)
            }
        }
    }

    private var gifs: [Stretched] {
        var file = GIFFile(width: 2, height: 1)
        let head = file.bytes
        file.addFrame(width: 2, height: 1, [1, 2])
        let plain = file.ended()
        let blocks = Array(repeating: [255] + [UInt8](repeating: 1, count: 255), count: 200).joined() + [0]
        let labels: [(String, [UInt8])] = [
            ("comment", [0x21, 0xFE]), ("plain text", [0x21, 0x01]),
            ("XMP", [0x21, 0xFF, 11] + Array("XMP DataXMP".utf8)),
            ("loops", [0x21, 0xFF, 11] + Array("NETSCAPE2.0".utf8)), ("unknown", [0x21, 0x42]),
        ]
        return labels.map { name, label in
            Stretched(name: name, head: head, repeated: label + blocks, tail: Array(plain[head.count...]), plain: plain)
        }
    }

    func testB10_MetadataThatIsPassedOverTakesNoMemory() throws {
        try XCTSkipIf(Memory.isSanitized)
        for file in jpegs + pngs + webps + gifs {
            let decoder = BuiltInCodec().makeDecoder(DecodeOptions())
            try feed(decoder, file.head, pieces: .max / 2)
            let before = Memory.resident
            try XCTSkipUnless(Memory.resetPeak(), "this machine cannot reset the peak")
            for _ in 0..<Self.amount / file.repeated.count + 1 {
                try file.repeated.withUnsafeBytes { bytes in
                    try decoder.feed(UnsafeRawBufferPointer(rebasing: bytes[..<7]))
                    try decoder.feed(UnsafeRawBufferPointer(rebasing: bytes[7...]))
                }
            }
            let grown = Memory.peak - before
            XCTAssertLessThan(grown, Self.slack, "\(file.name): \(grown >> 10) KiB")
            try feed(decoder, file.tail, pieces: .max / 2)
            XCTAssertEqual(try decoder.finish().bytes, decode(file.plain).pixels, file.name)
        }
    }

    /// EXIF and profile count together.
    func testI41_TheLimitIsOneForAll() throws {
        let profile = Profile(PICTURE_PROFILE_INKS).bytes
        var jpeg = JPEGSegments(Picture("a", PICTURE_JPEG_BASELINE).encoded().withAPP2(profile, order: [1, 2]))
        jpeg.insert(0xE1, exif)
        let block = Array(exif.dropFirst(6))
        let webp = WebPFile(
            Picture("a", PICTURE_WEBP_LOSSY).encoded().withICCPChunk(profile, width: 201, height: 150, alpha: false))
        var withEXIF = webp
        withEXIF.chunks.insert(WebPFile.Chunk(name: "EXIF", data: block), at: 1)
        let files = [
            ("JPEG", jpeg.bytes), ("WebP", withEXIF.bytes()),
            ("PNG", Picture("a", PICTURE_PNG_RGB).encoded().withICCP(profile).withChunk("eXIf", block)),
        ]
        for (name, bytes) in files {
            var options = DecodeOptions()
            options.maximumMetadataBytes = profile.count + block.count - 1
            for pieces in [7, 1000, .max / 2] {
                let failure = decode(bytes, options, pieces: pieces).failure
                XCTAssertEqual(failure?.code, .metadataLimit, "\(name) in pieces of \(pieces)")
            }
            // A profile in a PNG is deflated, and counted so too while it comes.
            options.maximumMetadataBytes = profile.count + block.count + 100
            XCTAssertNil(decode(bytes, options).failure, name)
        }
    }
}
