import CImgdl
import Origin
import XCTest

/// Animations through the C API.
final class AnimationTests: DownloaderTestCase {
    private static let files = [
        ("animated.gif", "image/gif", Animations.gif, 4), ("animated.png", "image/png", Animations.apng, 2),
    ]

    override func setUp() async throws {
        try await super.setUp()
        for (name, type, bytes, _) in Self.files { origin.content[name] = Picture(bytes, type: type) }
    }

    private func pixels(_ image: OpaquePointer?) -> [UInt8] {
        let size = imgdl_image_stride(image) * Int(imgdl_image_height(image))
        return [UInt8](UnsafeRawBufferPointer(start: imgdl_image_pixels(image), count: size))
    }

    /// T04, T18, T19: the first rows are shown while the rest is held back; the picture is the first frame.
    func testT18_T19_AnimationsComeWithPartialImages() {
        for (name, _, bytes, format) in Self.files {
            let gate = origin.gate(name)
            let download = start(picture(name, "hold_after=\(bytes.count / 4)&gate=\(name)")) {
                $0.partial_interval_ms = 1
            }
            download.waitFor(IMGDL_EVENT_PARTIAL)
            gate.open()
            assertEnds(download, "IMGDL_OK")
            XCTAssertEqual(download.record.imageFormat, UInt32(format), name)
            XCTAssertEqual(download.record.pixels, Animations.pixels(Animations.red), name)
        }
    }

    /// O10, B22: without being asked the first frame alone; what is told of the others.
    func testOneFrameIsDecodedUnlessAllAreAskedFor() throws {
        for (name, _, bytes, _) in Self.files {
            var image: OpaquePointer?
            XCTAssertEqual(imgdl_decode(bytes, bytes.count, nil, &image), 0, name)
            defer { imgdl_image_release(image) }
            XCTAssertEqual(imgdl_image_frame_count(image), 2, name)
            XCTAssertEqual(imgdl_image_loop_count(image), 3, name)
            XCTAssertEqual(imgdl_image_frame_duration_ms(image, 0), 50, name)
            XCTAssertEqual(imgdl_image_frame_duration_ms(image, 1), 0, name)
            var frame: OpaquePointer?
            XCTAssertEqual(imgdl_image_frame(image, 0, &frame), 0, name)
            XCTAssertEqual(pixels(frame), Animations.pixels(Animations.red), name)
            XCTAssertEqual(imgdl_image_frame_count(frame), 1, name)
            imgdl_image_release(frame)
            XCTAssertEqual(imgdl_image_frame(image, 1, &frame), Int32(IMGDL_ERROR_NOT_READY), name)
            XCTAssertEqual(imgdl_image_frame(image, 2, &frame), Int32(IMGDL_ERROR_INVALID_ARGUMENT), name)
            XCTAssertEqual(imgdl_image_frame(image, 0, nil), Int32(IMGDL_ERROR_INVALID_ARGUMENT), name)
        }
        XCTAssertEqual(imgdl_image_frame(nil, 0, nil), Int32(IMGDL_ERROR_INVALID_HANDLE))
        XCTAssertEqual(imgdl_image_frame_duration_ms(nil, 0), 0)
        XCTAssertEqual(imgdl_image_loop_count(nil), 0)
    }

    /// O10: a file that ends early does not say how many frames it has; what can be had of it is counted.
    func testFramesOfAnAnimationThatIsCutAreCounted() {
        var options = imgdl_decode_options()
        imgdl_decode_options_init(&options, MemoryLayout<imgdl_decode_options>.size)
        options.flags = imgdl_decode_flags(IMGDL_DECODE_ALL_FRAMES | IMGDL_DECODE_SALVAGE)
        for (name, _, bytes, _) in Self.files {
            var counts: Set<UInt32> = []
            for length in stride(from: bytes.count / 4, to: bytes.count - 1, by: 5) {
                var image: OpaquePointer?
                guard imgdl_decode(bytes, length, &options, &image) != 0, image != nil else { continue }
                defer { imgdl_image_release(image) }
                let count = imgdl_image_frame_count(image)
                var (decoded, frame): (UInt32, OpaquePointer?) = (0, nil)
                while imgdl_image_frame(image, decoded, &frame) == 0 {
                    imgdl_image_release(frame)
                    decoded += 1
                }
                XCTAssertGreaterThan(decoded, 0, name)
                XCTAssertEqual(decoded, count, "\(name), \(length) bytes")
                counts.insert(count)
            }
            XCTAssertTrue(counts.contains(1), "\(name): \(counts)")
            if name.hasSuffix("webp") { XCTAssertGreaterThan(counts.count, 1, "\(name): \(counts)") }
        }
    }

    /// O10: nor does one that still comes.
    func testFramesOfAnAnimationThatStillComesAreCounted() {
        for (name, _, bytes, _) in Self.files {
            var (decoder, image): (OpaquePointer?, OpaquePointer?)
            XCTAssertEqual(imgdl_decoder_create(nil, &decoder), 0, name)
            defer { imgdl_decoder_destroy(decoder) }
            XCTAssertEqual(imgdl_decoder_feed(decoder, bytes, bytes.count / 2), 0, name)
            XCTAssertEqual(imgdl_decoder_partial(decoder, &image), 0, name)
            defer { imgdl_image_release(image) }
            // The number that the file says ahead is nothing to make room by, and the first frame alone is decoded.
            XCTAssertEqual(imgdl_image_frame_count(image), 1, name)
        }
    }

    /// X5: what a codec of the host's gives.
    func testAnImageOfPixelsOfMine() {
        let rows: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8, 99, 99, 9, 10, 11, 12, 13, 14, 15, 16]
        var image: OpaquePointer?
        let format = imgdl_pixel_format(IMGDL_PIXEL_FORMAT_BGRA8)
        XCTAssertEqual(imgdl_image_create(2, 2, format, rows, 10, &image), 0)
        XCTAssertEqual(pixels(image), (1...16).map { UInt8($0) })
        XCTAssertEqual(imgdl_image_pixel_format(image), format)
        XCTAssertEqual(imgdl_image_is_complete(image), 1)
        XCTAssertEqual(imgdl_image_frame_count(image), 1)
        XCTAssertEqual(imgdl_image_loop_count(image), 1)
        imgdl_image_release(image)
        let wrong = Int32(IMGDL_ERROR_INVALID_ARGUMENT)
        XCTAssertEqual(imgdl_image_create(2, 2, format, rows, 7, &image), wrong)
        XCTAssertEqual(imgdl_image_create(2, 2, format, nil, 8, &image), wrong)
        XCTAssertEqual(imgdl_image_create(2, 2, format, rows, 8, nil), wrong)
        XCTAssertEqual(imgdl_image_create(0, 2, format, rows, 8, &image), wrong)
        XCTAssertEqual(imgdl_image_create(2, 2, 77, rows, 8, &image), wrong)
        XCTAssertEqual(imgdl_image_create(2, .max, format, rows, .max, &image), wrong)
    }
}
