import CImgdl
import MemoryTesting
import Origin
import TestPictures
import XCTest

/// Pictures of 6 megapixels, or of 24 with IMGDL_LONG=1: what they give, what memory they take, how fast they are let
/// go.
final class LargePictureTests: DownloaderTestCase {
    private struct Large {
        let name: String
        let picture: Picture
        /// Rows that a partial image calls ready are those of the whole picture.
        let rowsAreFinal: Bool
    }

    private static let isLong = getenv("IMGDL_LONG").map { String(cString: $0) == "1" } ?? false
    private static let width = isLong ? 6_000 : 3_000
    private static let height = isLong ? 4_000 : 2_000
    private static let canvas = width * height * 4
    /// Stacks, heaps that keep a little, and what the origin sends.
    private static let slack = 24 << 20

    /// Generated once.
    private static let pictures: [Large] = [
        ("large-baseline.jpg", PICTURE_JPEG_BASELINE, true), ("large-progressive.jpg", PICTURE_JPEG_PROGRESSIVE, false),
        ("large-plain.png", PICTURE_PNG_RGB, true), ("large-adam7.png", PICTURE_PNG_ADAM7, false),
        ("large-lossy.webp", PICTURE_WEBP_LOSSY, true), ("large-lossless.webp", PICTURE_WEBP_LOSSLESS, true),
    ].map { name, kind, rowsAreFinal in
        let picture = Pictures.encode(kind, "image/\(name.split(separator: ".")[1])", width: width, height: height)
        return Large(name: name, picture: picture, rowsAreFinal: rowsAreFinal)
    }

    private var references: [OpaquePointer] = []

    override func setUp() async throws {
        try await super.setUp()
        for large in Self.pictures { origin.content[large.name] = large.picture }
    }

    override func tearDown() async throws {
        try await super.tearDown()
        for image in references { imgdl_image_release(image) }
        references = []
    }

    /// The picture by imgdl_decode, until the end of the test.
    private func reference(_ large: Large) throws -> OpaquePointer {
        let bytes = large.picture.bytes
        var image: OpaquePointer?
        XCTAssertEqual(imgdl_decode(bytes, bytes.count, nil, &image), 0, large.name)
        let reference = try XCTUnwrap(image)
        references.append(reference)
        XCTAssertEqual(Int(imgdl_image_width(reference)), Self.width)
        return reference
    }

    /// What a download of a picture showed, written by its callbacks and read after its end.
    private final class Shown: @unchecked Sendable {
        var partials = 0
        var shrinks = 0
        var passesBack = 0
        var wrongRows = 0
        var isFinalEqual: Bool?
        private var ready = imgdl_rectangle()
        private var pass: UInt32 = 0
        private let reference: OpaquePointer
        private let rowsAreFinal: Bool

        init(_ reference: OpaquePointer, rowsAreFinal: Bool) {
            self.reference = reference
            self.rowsAreFinal = rowsAreFinal
        }

        func see(_ event: imgdl_event) {
            guard let image = event.image else { return }
            if event.kind == UInt32(IMGDL_EVENT_TERMINAL) {
                isFinalEqual = equals(image, rows: 0..<Int(imgdl_image_height(reference)))
                return
            }
            let now = imgdl_image_ready(image)
            if partials > 0 {
                let starts = now.x <= ready.x && now.y <= ready.y
                let ends = now.x + now.width >= ready.x + ready.width && now.y + now.height >= ready.y + ready.height
                if !starts || !ends { shrinks += 1 }
            }
            if imgdl_image_pass(image) < pass { passesBack += 1 }
            pass = imgdl_image_pass(image)
            ready = now
            partials += 1
            if rowsAreFinal {
                let isWide = now.x == 0 && now.width == imgdl_image_width(image)
                if !isWide || !equals(image, rows: Int(now.y)..<Int(now.y + now.height)) { wrongRows += 1 }
            }
        }

        private func equals(_ image: OpaquePointer, rows: Range<Int>) -> Bool {
            let stride = imgdl_image_stride(reference)
            guard stride == imgdl_image_stride(image), let a = imgdl_image_pixels(image),
                let b = imgdl_image_pixels(reference)
            else { return false }
            return memcmp(a + rows.lowerBound * stride, b + rows.lowerBound * stride, rows.count * stride) == 0
        }
    }

    /// Bytes of bodies and pixels.
    private func counted() -> UInt64 {
        var stats = imgdl_stats()
        imgdl_stats_init(&stats, MemoryLayout<imgdl_stats>.stride)
        XCTAssertEqual(imgdl_downloader_stats(downloader, &stats), 0)
        return stats.memory
    }

    func testEveryPartialImageAndTheWhole() throws {
        for large in Self.pictures {
            let reference = try reference(large)
            let before = Memory.resident
            for chunk in [64 << 10, 16 << 10] {
                let what = "\(large.name) in pieces of \(chunk)"
                let shown = Shown(reference, rowsAreFinal: large.rowsAreFinal)
                let download = Download()
                download.keepsResult = false
                download.onEvent = { shown.see($0) }
                let measures = Memory.resetPeak()
                download.start(downloader, picture(large.name, "chunk=\(chunk)&pause_ms=\(chunk >> 13)")) {
                    $0.partial_interval_ms = 1
                }
                assertEnds(download, "IMGDL_OK")
                XCTAssertEqual(shown.isFinalEqual, true, what)
                XCTAssertEqual(shown.shrinks, 0, "\(what): a rectangle shrank")
                XCTAssertEqual(shown.passesBack, 0, what)
                XCTAssertEqual(shown.wrongRows, 0, "\(what): ready rows that are not those of the picture")
                XCTAssertGreaterThan(shown.partials, 0, what)
                if measures, !Memory.isSanitized {
                    let most = 3 * Self.canvas + 2 * large.picture.bytes.count + Self.slack
                    let grown = Memory.peak - before
                    XCTAssertLessThanOrEqual(grown, most, "\(what): \(Double(grown) / Double(Self.canvas)) canvases")
                    XCTAssertTrue(
                        Memory.returns(to: before + Self.slack),
                        "\(what): \(Memory.excess(before)) stay, of which the downloader counts \(counted()); "
                            + Memory.largeMappings)
                }
            }
        }
    }

    /// Nothing that waits for the next download holds the last one's picture.
    func testADeliveredPictureIsLetGo() throws {
        let large = Self.pictures[0]
        try XCTSkipIf(Memory.isSanitized)
        for round in 0..<3 {
            let before = Memory.resident
            let download = Download()
            download.keepsResult = false
            download.start(downloader, picture(large.name, "n=\(round)"))
            assertEnds(download, "IMGDL_OK")
            XCTAssertTrue(Memory.returns(to: before + Self.canvas / 2), "round \(round): \(Memory.excess(before)) stay")
        }
    }

    /// Held before its last byte, a picture has decoded what it can: then memory is what counts.
    func testCancellingGivesTheMemoryBack() throws {
        for large in Self.pictures {
            replaceDownloader { _ in }
            let before = Memory.resident
            let size = large.picture.bytes.count
            let download = start(picture(large.name, "hold_after=\(size - 1)&gate=never")) {
                $0.partial_interval_ms = 1
            }
            download.waitFor(IMGDL_EVENT_PARTIAL)
            download.cancel()
            assertEnds(download, "IMGDL_ERROR_CANCELLED")
            // Its workers end with it.
            _ = imgdl_downloader_destroy(downloader)
            downloader = makeDownloader()
            guard !Memory.isSanitized else { continue }
            XCTAssertTrue(Memory.returns(to: before + Self.slack), "\(large.name): \(Memory.excess(before)) stay")
        }
    }

    /// All bytes are here and one worker decodes: the terminal does not wait for it.
    func testCancellingInMidDecodeIsPrompt() throws {
        var ahead = 0
        for large in Self.pictures {
            replaceDownloader { $0.decode_threads = 1 }
            let size = Int64(large.picture.bytes.count)
            let download = start(picture(large.name), events: Int(IMGDL_EVENT_PROGRESS) | Int(IMGDL_EVENT_TERMINAL))
            let hasAll = download.monitor.wait(until: .patient) { record in
                record.seen.contains { $0.received == size } ? true : nil
            }
            XCTAssertEqual(hasAll, true)
            let cancelled = Moment.now
            download.cancel()
            download.wait()
            let ended = Moment.now
            // The only worker is free for it once the decode is over.
            let small = Download().start(downloader, picture("baseline.jpg"))
            assertEnds(small, "IMGDL_OK")
            let free = Moment.now
            guard download.name != "IMGDL_OK" else { continue }
            XCTAssertEqual(download.name, "IMGDL_ERROR_CANCELLED")
            XCTAssertFalse(download.record.hasImage)
            XCTAssertLessThan(ended - cancelled, .seconds(2), large.name)
            if (ended - cancelled) * 4 < free - cancelled { ahead += 1 }
        }
        XCTAssertGreaterThan(ahead, 0, "no terminal came while a worker was busy with what it belongs to")
    }
}
