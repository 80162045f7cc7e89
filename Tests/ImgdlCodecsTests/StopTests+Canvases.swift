import Glibc
import ImgdlCore
import MemoryTesting
import TestPictures
import XCTest

@testable import ImgdlCodecs

/// Canvases take time of their own: to be cleared, and for their pages to be brought by the system.
extension StopTests {
    private static let (width, height) = (10_000, 9_900)

    private func large(_ change: (inout DecodeOptions) -> Void = { _ in }) -> DecodeOptions {
        var options = DecodeOptions()
        options.maximumMemoryBytes = nil
        change(&options)
        return options
    }

    /// A frame of one pixel, which is gone again when the next comes: 60 KB for a thousand canvases.
    func testFramesThatLeaveNothing() throws {
        let side = 316
        let all = large { $0.decodesAllFrames = true }
        for disposal in [1, 2] as [UInt8] {
            var file = PNGFile(width: side, height: side)
            file.add("acTL", PNGFile.number(1000) + PNGFile.number(0))
            file.add("fcTL", PNGFile.control(0, width: side, height: side, disposal: disposal))
            file.add("IDAT", PNGFile.deflated([UInt8](repeating: 0, count: (1 + 4 * side) * side)))
            let pixel = PNGFile.deflated([0, 1, 2, 3, 255])
            for number in 1..<1000 {
                file.add("fcTL", PNGFile.control(2 * number - 1, width: 1, height: 1, disposal: disposal))
                file.add("fdAT", PNGFile.number(2 * number) + pixel)
            }
            try assertStops(file.ended(), all, after: 20, "APNG, disposal \(disposal)")
        }
        for disposal in [1, 2, 3] as [UInt8] {
            var file = GIFFile(width: side, height: side)
            for _ in 0..<1000 {
                file.addControl(disposal: disposal, delay: 10)
                file.addFrame(width: 1, height: 1, [1])
            }
            try assertStops(file.ended(), all, after: 20, "GIF, disposal \(disposal)")
        }
    }

    /// A row of such a picture lies on all pages of the canvas.
    func testTurnedPictures() throws {
        let file = png(width: Self.width, height: Self.height, colorType: 0, depth: 1, filter: 0)
        let turned = file.withChunk("eXIf", DeepPicture.exif(6))
        for milliseconds in [20, 100] {
            try assertStops(turned, large { $0.pixelFormat = .rgba16 }, after: milliseconds, "words")
            try assertStops(turned, large(), after: milliseconds, partials: true, pieces: 3000, "bytes")
        }
    }

    /// Nothing of a canvas is brought or cleared when it is too late, and little while it is not.
    func testCanvasesAreMadeAPartAtATime() throws {
        let parts = 3
        let memory = PlainMemory(padding: 64)
        for allocator in [nil, memory.allocator] {
            let before = Memory.resident
            let canvas = try PixelBuffer(
                width: Self.width, height: Self.height, format: .rgba16, allocator: allocator, isCleared: false)
            var steps = 0
            func step(_ pixels: Int) throws(Failure) {
                steps += 1
                if steps > parts { throw Failure(.decodeTimeout, "too late") }
            }
            if canvas.isHosts {
                XCTAssertThrowsError(try canvas.clear(step))
            } else {
                XCTAssertThrowsError(try canvas.bringPages(step))
            }
            XCTAssertEqual(steps, parts + 1)
            // Two huge pages each, where a row ends within one.
            XCTAssertLessThan(Memory.resident - before, (2 * parts + 2) * (2 << 20))
        }
        var options = large { $0.maximumMilliseconds = 0 }
        let layout = CanvasLayout(storedWidth: Self.width, storedHeight: Self.height, orientation: .turnedRight)
        for allocator in [nil, memory.allocator] {
            options.allocator = allocator
            let clock = DecodeClock(options)
            clock.begin()
            XCTAssertThrowsError(try options.makeCanvas(layout, clock)) {
                XCTAssertEqual(($0 as? Failure)?.code, .decodeTimeout)
            }
        }
        XCTAssertEqual(memory.given, memory.taken)
    }

    private func turnedJPEG(_ change: (inout JPEGSegments) -> Void = { _ in }) throws -> [UInt8] {
        var size = 0
        let memory = try XCTUnwrap(picture_many_scans(10_000, 3, &size))
        defer { picture_free(memory) }
        var segments = JPEGSegments(Array(UnsafeBufferPointer(start: memory, count: size)))
        segments.insert(0xE1, JPEGSegments.exif(5))
        change(&segments)
        return segments.bytes
    }

    /// The canvas of a partial image is made when that is asked for.
    func testTurnedPartialImages() throws {
        let file = try turnedJPEG()
        for milliseconds in [20, 60, 150] {
            try assertStops(file, large(), after: milliseconds, partials: true, pieces: 3000)
        }
    }

    func testTurnedThumbnails() throws {
        var picture = Picture("a", PICTURE_JPEG_BASELINE, width: 100, height: 100, orientation: 6)
        picture.spec.exif_thumbnail = 1
        var segments = JPEGSegments(picture.encoded())
        guard let at = segments.segments.firstIndex(where: { $0.marker == 0xC0 }) else { return XCTFail("no frame") }
        for (index, value) in [(1, 39), (2, 16), (3, 39), (4, 16)] {
            segments.segments[at].content[index] = UInt8(value)
        }
        let options = large { $0.showsThumbnailFirst = true }
        for milliseconds in [10, 100] {
            try assertStops(segments.bytes, options, after: milliseconds, partials: true, pieces: 3000)
        }
    }

    /// What is in the host's memory is made transparent by hand.
    func testHostsMemory() throws {
        let file = png(width: Self.width, height: Self.height, colorType: 0, depth: 1, filter: 0)
        for padding in [0, 64] {
            let memory = PlainMemory(padding: padding)
            let options = large {
                $0.pixelFormat = .rgba16
                $0.allocator = memory.allocator
            }
            try assertStops(file, options, after: 5, partials: true, pieces: 3000, "padding \(padding)")
            XCTAssertEqual(memory.given, memory.taken)
        }
    }
}

/// The host's memory, as malloc gives it.
private final class PlainMemory {
    let padding: Int
    private(set) var given = 0
    private(set) var taken = 0

    init(padding: Int) { self.padding = padding }

    var allocator: CanvasAllocator {
        CanvasAllocator(
            allocate: { width, height, pixel, stride, userData in
                let memory = Unmanaged<PlainMemory>.fromOpaque(userData!).takeUnretainedValue()
                memory.given += 1
                let row = Int(width) * Int(pixel) + memory.padding
                stride?.pointee = row
                return malloc(row * Int(height))
            },
            deallocate: { pixels, userData in
                Unmanaged<PlainMemory>.fromOpaque(userData!).takeUnretainedValue().taken += 1
                free(pixels)
            }, userData: Unmanaged.passUnretained(self).toOpaque())
    }
}
