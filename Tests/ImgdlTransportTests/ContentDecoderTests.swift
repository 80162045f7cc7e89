import ImgdlCore
import Origin
import XCTest

@testable import ImgdlTransport

/// Content codings are undone alike however their bytes come.
final class ContentDecoderTests: XCTestCase {
    /// Made by gzip, zlib twice (the second bare), brotli and zstd.
    private static let text = Array("hello, hello, hello".utf8)
    private static let streams: [(ContentCoding, [UInt8])] = [
        (.gzip, hex("1f8b08000000000002ffcb48cdc9c9d751c840a2009fa1ca0913000000")),
        (.deflate, hex("789ccb48cdc9c9d751c840a200442806d5")),
        (.deflate, hex("cb48cdc9c9d751c840a200")),
        (.brotli, hex("a19000c06fa474f3264a9032b46463798b7822818e03")),
        (.zstd, hex("28b52ffd24136d00003868656c6c6f2c200100e28a1175f3988e")),
    ]

    private static func hex(_ text: String) -> [UInt8] {
        let digits = Array(text.utf8)
        return stride(from: 0, to: digits.count, by: 2).map {
            UInt8(String(decoding: digits[$0...($0 + 1)], as: UTF8.self), radix: 16)!
        }
    }

    private enum End: Equatable {
        case complete([UInt8])
        case failed(ErrorCode, [UInt8])
    }

    /// In pieces of that size; what is left after a turn is decoded in the next.
    private func decode(_ bytes: [UInt8], _ codings: [ContentCoding], pieces: Int) -> End {
        var output: [UInt8] = []
        do throws(Failure) {
            let decoder = try ContentDecoder(codings, usesBrotli: true)
            var start = 0
            while start < bytes.count {
                let end = min(bytes.count, start + pieces)
                var failure: Failure?
                bytes[start..<end].withUnsafeBytes { piece in
                    do throws(Failure) {
                        _ = try decoder.decode(piece) {
                            output += $0; return true
                        }
                    } catch { failure = error }
                }
                if let failure { throw failure }
                while decoder.isBusy {
                    _ = try decoder.resume {
                        output += $0; return true
                    }
                }
                start = end
            }
            try decoder.finish()
            return .complete(output)
        } catch {
            return .failed(error.code, output)
        }
    }

    private func assert(
        _ bytes: [UInt8], _ codings: [ContentCoding], _ expected: End, _ what: String = "", line: UInt = #line
    ) {
        for pieces in [1, 2, 3, 7, 64, 1 << 20] {
            XCTAssertEqual(
                decode(bytes, codings, pieces: pieces), expected, "\(what) \(codings) by \(pieces)", line: line)
        }
    }

    /// A flawed libbrotlidec is neither asked for nor used.
    func testBrotliThatIsNotMended() {
        XCTAssertEqual(ContentCoding.accepted(usesBrotli: true), "gzip, br, zstd")
        XCTAssertEqual(ContentCoding.accepted(usesBrotli: false), "gzip, zstd")
        XCTAssertThrowsError(try CodingLayer(.brotli, usesBrotli: false)) { error in
            XCTAssertEqual((error as? Failure)?.code, .contentEncoding)
        }
        XCTAssertNoThrow(try CodingLayer(.brotli, usesBrotli: true))
        XCTAssertNoThrow(try CodingLayer(.gzip, usesBrotli: false))
    }

    func testEachCoding() {
        for (coding, stream) in Self.streams { assert(stream, [coding], .complete(Self.text)) }
    }

    func testWithoutAByteThereIsNothingToUndo() {
        for (coding, _) in Self.streams { assert([], [coding], .complete([])) }
        assert([], [.gzip, .brotli], .complete([]))
    }

    func testCutOffAnywhere() {
        for (coding, stream) in Self.streams {
            for count in 1..<stream.count {
                let whole = decode(Array(stream[..<count]), [coding], pieces: 1)
                for pieces in [3, 1000] {
                    XCTAssertEqual(
                        decode(Array(stream[..<count]), [coding], pieces: pieces), whole, "\(coding) \(count)")
                }
                guard case .failed(.truncated, let output) = whole else {
                    XCTFail("\(coding) of \(count) bytes: \(whole)")
                    continue
                }
                XCTAssertTrue(Self.text.starts(with: output))
            }
        }
    }

    func testDamaged() {
        for (coding, stream) in Self.streams where coding != .deflate {
            var damaged = stream
            damaged[0] ^= 0xFF
            guard case .failed(let code, _) = decode(damaged, [coding], pieces: 1000) else {
                XCTFail("\(coding)")
                continue
            }
            XCTAssertTrue([.contentEncoding, .truncated].contains(code), "\(coding) \(code)")
        }
        var sum = Self.streams[0].1
        sum[sum.count - 5] ^= 1
        assert(sum, [.gzip], .failed(.contentEncoding, Self.text), "its checksum")
        assert(Array("this is not gzip".utf8), [.gzip], .failed(.contentEncoding, []))
        assert(Array("this is not zstd".utf8), [.zstd], .failed(.contentEncoding, []))
        // The formats before zstd's was settled, which libzstd may still read.
        for version: UInt8 in [0x22, 0x23, 0x24, 0x25, 0x26, 0x27] {
            assert(
                [version, 0xB5, 0x2F, 0xFD] + Self.streams[4].1.dropFirst(4), [.zstd], .failed(.contentEncoding, []))
        }
    }

    func testWhatFollowsIsPassedOver() {
        for (coding, stream) in Self.streams {
            for rest in [[0], [0x1F], [0x28, 0xB5], Array("\r\n".utf8), [UInt8](repeating: 7, count: 65_536)] {
                assert(stream + rest, [coding], .complete(Self.text), "\(rest.count) bytes behind")
            }
            let more = stream + [UInt8](repeating: 7, count: CodingLayer.maximumTrailingBytes + 1)
            assert(more, [coding], .failed(.contentEncoding, Self.text), "too many")
        }
    }

    func testStreamsThatFollowOneAnother() {
        for (coding, stream) in Self.streams where coding == .gzip || coding == .zstd {
            assert(stream + stream, [coding], .complete(Self.text + Self.text))
            assert(stream + stream + [9], [coding], .complete(Self.text + Self.text))
            assert(stream + stream.dropLast(), [coding], .failed(.truncated, truncatedTail(coding, stream)))
        }
        let skipped: [UInt8] = [0x5A, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3]
        let zstd = Self.streams[4].1
        assert(zstd + skipped + zstd, [.zstd], .complete(Self.text + Self.text), "a frame to skip")
    }

    private func truncatedTail(_ coding: ContentCoding, _ stream: [UInt8]) -> [UInt8] {
        guard case .failed(_, let output) = decode(Array(stream.dropLast()), [coding], pieces: 1) else { return [] }
        return Self.text + output
    }

    func testLayers() {
        let inner = Self.streams[0].1
        let outer = Deflate.gzip(inner)
        assert(outer, [.gzip, .gzip], .complete(Self.text))
        assert(Deflate.gzip(outer), [.gzip, .gzip, .gzip], .complete(Self.text))
        assert(Deflate.gzip(Self.streams[3].1), [.brotli, .gzip], .complete(Self.text), "applied in their order")
        assert(Deflate.gzip(Array(inner.dropLast(8))), [.gzip, .gzip], .failed(.truncated, Self.text))
        let six = [ContentCoding](repeating: .gzip, count: ContentCoding.maximumLayers + 1)
        assert(outer, six, .failed(.contentEncoding, []))
    }

    /// A window that is larger than any receiver has to have.
    func testZstdWindows() {
        // A frame with a window of 16 MiB, and one of 8 MiB, each with an empty last block.
        let large: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 14 << 3, 1, 0, 0]
        assert(large, [.zstd], .failed(.contentEncoding, []))
        let allowed: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 13 << 3, 1, 0, 0]
        assert(allowed, [.zstd], .complete([]))
    }

    /// Memory that a stream asks for is known as soon as the stream says so, and layers are counted together.
    func testWhatCodingsHoldIsKnown() throws {
        // A frame whose window is 8 MiB, and which goes on.
        let zstd: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 13 << 3, 0x00, 0x00, 0x10]
        // One of 16 MiB, whose first block of 64 KiB is stored.
        let brotli: [UInt8] = [0x8F, 0xFF, 0xFF] + [UInt8](repeating: 7, count: 65_536)
        for (coding, bytes, least) in [(ContentCoding.zstd, zstd, 8 << 20), (.brotli, brotli, 64 << 10)] {
            let decoder = try ContentDecoder([coding], usesBrotli: true)
            let before = decoder.heldBytes
            XCTAssertLessThan(before, 512 << 10, "\(coding)")
            try bytes.withUnsafeBytes { bytes in
                guard case .needsInput = try decoder.decode(bytes, { _ in true }) else { return XCTFail("\(coding)") }
            }
            XCTAssertGreaterThanOrEqual(decoder.heldBytes, before + least, "\(coding)")
            XCTAssertLessThan(decoder.heldBytes, 20 << 20, "\(coding)")
        }
        let layers = try ContentDecoder([.zstd, .gzip, .zstd])
        XCTAssertGreaterThan(layers.heldBytes, 3 * CodingLayer.outputBytes)
    }

    /// A few bytes ask for a window each.
    func testCodingsTogetherHoldNoMoreThanTheirLimit() throws {
        for (count, isAllowed) in [(1, true), (2, true), (3, false), (5, false)] {
            let decoder = try ContentDecoder([ContentCoding](repeating: .zstd, count: count))
            let held = Self.zstdWindows(count).withUnsafeBytes { bytes in
                Result { () throws(Failure) in _ = try decoder.decode(bytes) { _ in true } }
            }
            switch held {
            case .success: XCTAssertTrue(isAllowed, "\(count)")
            case .failure(let failure):
                XCTAssertFalse(isAllowed, "\(count): \(failure.message)")
                XCTAssertEqual(failure.code, .contentEncoding)
                XCTAssertTrue(failure.message.contains("bytes of memory, the limit is 26214400"), failure.message)
            }
        }
    }

    /// A frame whose window is 8 MiB and which goes on, in a stored block of such a frame, and so on.
    private static func zstdWindows(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 13 << 3, 0x00, 0x00, 0x10]
        for _ in 1..<count {
            let size = bytes.count
            let block = [UInt8(size << 3 & 0xFF), UInt8(size >> 5), 0]
            bytes = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 13 << 3] + block + bytes
        }
        return bytes
    }

    /// A few bytes of a bomb: so much work in a turn, and no more memory than the pieces.
    func testATurnIsBounded() throws {
        let bomb = Deflate.gzip(Deflate.gzipOfZeros(200_000_000))
        XCTAssertLessThan(bomb.count, 10_000)
        let decoder = try ContentDecoder([.gzip, .gzip], usesBrotli: true)
        var count = 0
        var turns = 0
        var largest = 0
        func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
            count += bytes.count
            largest = max(largest, bytes.count)
            return true
        }
        try bomb.withUnsafeBytes { _ = try decoder.decode($0, take) }
        while decoder.isBusy {
            let before = count
            _ = try decoder.resume(take)
            XCTAssertLessThanOrEqual(count - before, ContentDecoder.bytesInTurn)
            turns += 1
        }
        try decoder.finish()
        XCTAssertEqual(count, 200_000_000)
        XCTAssertEqual(largest, CodingLayer.outputBytes)
        XCTAssertGreaterThanOrEqual(turns, 200_000_000 / (ContentDecoder.bytesInTurn))
    }

    /// Bytes that mean nothing end a turn by the time that they take: no output does.
    func testATurnIsBoundedInTime() throws {
        // Empty stored blocks, empty metadata blocks, empty raw blocks.
        let stored = Self.repeated([0, 0, 0, 0xFF, 0xFF], 100_000)
        for (coding, bytes, inputBytes) in [
            (ContentCoding.gzip, Self.hex("1f8b08000000000002ff") + stored, InflateStream.inputBytes),
            (.brotli, [UInt8](repeating: 0x0C, count: 200_000), BrotliStream.inputBytes),
            (.zstd, [0x28, 0xB5, 0x2F, 0xFD, 0, 0x58] + Self.repeated([0, 0, 0], 200_000), ZstdStream.inputBytes),
        ] {
            var time: Int64 = 0
            let decoder = try ContentDecoder([coding], usesBrotli: true) {
                time += 1_000_000
                return time
            }
            var turns = 0
            func noteTurn() {
                turns += 1
                XCTAssertGreaterThanOrEqual(decoder.usedTime, 1_000_000, "\(coding), turn \(turns)")
                // With a look on either side of what is made of the bytes.
                XCTAssertLessThanOrEqual(decoder.usedTime, DecodingTurn.limit + 5_000_000, "\(coding), turn \(turns)")
            }
            try bytes.withUnsafeBytes { _ = try decoder.decode($0) { _ in true } }
            noteTurn()
            while decoder.isBusy {
                _ = try decoder.resume { _ in true }
                noteTurn()
            }
            // Each piece is a millisecond, and a look before it may be one, too.
            let piecesInTurn = Int(DecodingTurn.limit / 1_000_000) + 1
            let pieces = (bytes.count + inputBytes - 1) / inputBytes
            let fewest = (pieces + piecesInTurn - 1) / piecesInTurn
            XCTAssertGreaterThan(fewest, 1)
            XCTAssertGreaterThanOrEqual(turns, fewest, "\(coding)")
        }
    }

    /// 30 KB in which there is nothing, a gigabyte of it.
    private static let layersOfNothing: [UInt8] = {
        let blocks = repeated([0, 0, 0, 0xFF, 0xFF], 200_000)
        let inner = Deflate.gzip(hex("1f8b08000000000002ff") + blocks)
        return Deflate.gzip(inner + repeated(Deflate.gzip(blocks), 1_000))
    }()

    /// What the codings hand on to one another has a bound, and soon reaches it.
    func testCodingsOnTopOfEachOtherThatMeanNothing() throws {
        XCTAssertLessThan(Self.layersOfNothing.count, 100_000)
        let codings = [ContentCoding](repeating: .gzip, count: 3)
        for pieces in [7, 1 << 20] {
            XCTAssertEqual(decode(Self.layersOfNothing, codings, pieces: pieces), .failed(.contentEncoding, []))
        }
        let decoder = try ContentDecoder(codings, usesBrotli: true)
        var turns = 1
        XCTAssertThrowsError(
            try Self.layersOfNothing.withUnsafeBytes { bytes in
                _ = try decoder.decode(bytes) { _ in true }
                while decoder.isBusy {
                    turns += 1
                    _ = try decoder.resume { _ in true }
                }
            }
        ) { error in
            let message = (error as? Failure)?.message ?? ""
            XCTAssertTrue(message.contains("hand on"), message)
            XCTAssertTrue(message.contains("the limit is 1048576, and 32 for each"), message)
        }
        // Each is as many bytes of all layers, or 5 ms.
        XCTAssertLessThan(turns, 20)
    }

    /// So has the time that they take, of which what is made of the bytes is no part.
    func testCodingsThatTakeTooLong() throws {
        var time: Int64 = 0
        // Less than a turn is long, so that a block is decoded in it.
        let slow = try ContentDecoder([.gzip]) {
            time += DecodingTurn.limit - 1
            return time
        }
        let head = Self.hex("1f8b08000000000002ff")
        let block: [UInt8] = [0, 0, 0, 0xFF, 0xFF]
        var decoded = 0
        XCTAssertThrowsError(
            try ([head] + Array(repeating: block, count: 1_000)).forEach { bytes in
                _ = try bytes.withUnsafeBytes { bytes in try slow.decode(bytes) { _ in true } }
                while slow.isBusy { _ = try slow.resume { _ in true } }
                decoded += 1
            }
        ) { error in
            XCTAssertEqual((error as? Failure)?.code, .contentEncoding)
            XCTAssertEqual((error as? Failure)?.message.contains("ms of CPU time"), true)
        }
        XCTAssertGreaterThan(decoded, 50, "what takes less is decoded")
        XCTAssertGreaterThan(time, CodingBudget.freeTime)
        var clock: Int64 = 0
        let others = try ContentDecoder([.gzip]) { clock }
        try Deflate.gzipOfZeros(10_000_000).withUnsafeBytes { bytes in
            func take(_: UnsafeRawBufferPointer) -> Bool {
                clock += CodingBudget.freeTime
                return true
            }
            _ = try others.decode(bytes, take)
            while others.isBusy { _ = try others.resume(take) }
        }
        XCTAssertGreaterThan(clock, 10 * CodingBudget.freeTime)
        try others.finish()
    }

    /// Large text in all the layers that there may be, whether it becomes smaller in them or not, and byte by byte.
    func testHonestLayersPass() throws {
        var noise: UInt32 = 1
        let random = (0..<300_000).map { _ in
            noise = noise &* 1_664_525 &+ 1_013_904_223
            return UInt8(noise >> 24)
        }
        let zeros = [UInt8](repeating: 0x20, count: 20_000_000)
        let records = Array(repeatElement(Deflate.gzip([0x41]), count: 60_000).joined())
        for (bytes, layers, length) in [
            (random, 5, random.count), (zeros, 5, zeros.count), (records, 4, 60_000),
        ] {
            var coded = bytes
            for _ in 0..<layers { coded = Deflate.gzip(coded) }
            let codings = [ContentCoding](repeating: .gzip, count: length == 60_000 ? layers + 1 : layers)
            let decoder = try ContentDecoder(codings, usesBrotli: true)
            var count = 0
            func take(_ piece: UnsafeRawBufferPointer) -> Bool {
                count += piece.count
                return true
            }
            try coded.withUnsafeBytes { _ = try decoder.decode($0, take) }
            while decoder.isBusy { _ = try decoder.resume(take) }
            try decoder.finish()
            XCTAssertEqual(count, length)
        }
    }

    /// Heads of blocks, which take microseconds a byte or block, and no output at all. On top of each other with gzip there are
    /// 64 KiB of them at once.
    func testATurnOfTablesIsShort() throws {
        let brotli = CodingTables.contextMaps(count: 3_000)
        for (codings, bytes) in [
            ([ContentCoding.brotli], brotli), ([.brotli, .gzip], Deflate.gzip(brotli)),
            ([.zstd], CodingTables.huffmanTrees(count: 1_500_000)), ([.gzip], CodingTables.prefixCodes(count: 160_000)),
        ] {
            let decoder = try ContentDecoder(codings, usesBrotli: true)
            var longest: Int64 = 0
            var total: Int64 = 0
            func turn(_ body: () throws -> Void) throws {
                let begin = ThreadClock.now()
                try body()
                let time = ThreadClock.now() - begin
                longest = max(longest, time)
                total += time
            }
            try turn { try bytes.withUnsafeBytes { _ = try decoder.decode($0) { _ in true } } }
            while decoder.isBusy { try turn { _ = try decoder.resume { _ in true } } }
            try decoder.finish()
            XCTAssertGreaterThan(total, 100_000_000, "there was nothing to be held up by: \(codings)")
            XCTAssertLessThan(longest, 50_000_000, "\(codings)")
        }
    }

    private static func repeated(_ bytes: [UInt8], _ count: Int) -> [UInt8] {
        Array(repeatElement(bytes, count: count).joined())
    }

    /// Whoever has had enough gets no more, and can go on later.
    func testStopsWhenToldTo() throws {
        let bytes = Deflate.gzipOfZeros(1_000_000)
        let decoder = try ContentDecoder([.gzip], usesBrotli: true)
        var pieces: [Int] = []
        try bytes.withUnsafeBytes {
            _ = try decoder.decode($0) {
                pieces.append($0.count); return false
            }
        }
        XCTAssertEqual(pieces, [CodingLayer.outputBytes])
        XCTAssertTrue(decoder.isBusy)
        while decoder.isBusy {
            _ = try decoder.resume {
                pieces.append($0.count); return false
            }
        }
        XCTAssertEqual(pieces.reduce(0, +), 1_000_000)
        try decoder.finish()
    }
}
