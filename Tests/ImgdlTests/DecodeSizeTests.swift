import CImgdl
import Origin
import TestPictures
import XCTest

/// Decoding to a size, as callers in C ask for it.
final class DecodeSizeTests: DownloaderTestCase {
    private func options(_ fill: (inout imgdl_decode_options) -> Void = { _ in }) -> imgdl_decode_options {
        var options = imgdl_decode_options()
        imgdl_decode_options_init(&options, MemoryLayout<imgdl_decode_options>.stride)
        fill(&options)
        return options
    }

    private func decode(_ name: String, _ options: imgdl_decode_options) -> (status: Int32, size: [UInt32]) {
        var options = options
        var image: OpaquePointer?
        let bytes = Pictures.bytes(name)
        let status = imgdl_decode(bytes, bytes.count, &options, &image)
        defer { imgdl_image_release(image) }
        return (status, image == nil ? [] : [imgdl_image_width(image), imgdl_image_height(image)])
    }

    /// Features X8, X9, O8: every field and flag that says something about the size.
    func testX8_TargetStretchAndBytes() {
        for name in ["baseline.jpg", "progressive.jpg", "rgba.png", "adam7.png", "lossy.webp", "lossless.webp"] {
            XCTAssertEqual(
                decode(
                    name,
                    options {
                        $0.target_width = 160; $0.target_height = 160
                    }
                ).size, [160, 120], name)
            XCTAssertEqual(decode(name, options { $0.target_height = 60 }).size, [80, 60], name)
            XCTAssertEqual(decode(name, options { $0.target_width = 1 << 20 }).size, [320, 240], name)
            let stretched = options {
                ($0.target_width, $0.target_height, $0.flags) = (50, 50, UInt32(IMGDL_DECODE_STRETCH))
            }
            XCTAssertEqual(decode(name, stretched).size, [50, 50], name)
            let limited = options {
                ($0.flags, $0.max_output_bytes, $0.target_width) = (UInt32(IMGDL_DECODE_SCALE_DOWN), 4 * 160 * 120, 10)
            }
            XCTAssertEqual(decode(name, limited).size, [160, 120], name)
            XCTAssertEqual(decode(name, options { $0.flags = UInt32(IMGDL_DECODE_SCALE_DOWN) }).size, [320, 240], name)
        }
        XCTAssertEqual(decode("oriented.jpg", options { $0.target_height = 160 }).size, [120, 160])
    }

    func testX8_BadOptionsAreRefused() {
        let invalid = Int32(IMGDL_ERROR_INVALID_ARGUMENT)
        XCTAssertEqual(decode("rgba.png", options { $0.target_width = 1 << 20 + 1 }).status, invalid)
        XCTAssertEqual(decode("rgba.png", options { $0.target_height = .max }).status, invalid)
        XCTAssertEqual(decode("rgba.png", options { $0.max_output_bytes = 1 }).status, invalid, "without SCALE_DOWN")
        XCTAssertEqual(decode("rgba.png", options { $0.format_hint = 5 }).status, invalid)
        let unsupported = Int32(IMGDL_ERROR_UNSUPPORTED_OPTION)
        XCTAssertEqual(decode("rgba.png", options { $0.flags = 1 << 7 }).status, unsupported)
        XCTAssertEqual(decode("rgba.png", options { $0.reserved = 1 }).status, unsupported)
    }

    /// Features X11, O12.
    func testX11_HintAndRequiredAnimation() {
        XCTAssertEqual(decode("rgba.png", options { $0.format_hint = UInt32(IMGDL_FORMAT_JPEG) }).status, 0)
        let moving = options { $0.flags = UInt32(IMGDL_DECODE_REQUIRE_ANIMATION) }
        XCTAssertEqual(decode("rgba.png", moving).status, Int32(IMGDL_ERROR_BAD_IMAGE_DATA))
    }

    /// A caller built with 1.0 brings 24 bytes: what lies behind them is not ours to read.
    func testAStructOfVersion1IsRead() {
        var memory = [UInt64](repeating: .max, count: 16)
        memory.withUnsafeMutableBytes { raw in
            guard let start = raw.baseAddress?.assumingMemoryBound(to: imgdl_decode_options.self) else { return }
            imgdl_decode_options_init(start, 24)
            XCTAssert(raw[24...].allSatisfy { $0 == 0xFF })
            raw.storeBytes(of: UInt32(IMGDL_PIXEL_FORMAT_BGRA8), toByteOffset: 4, as: UInt32.self)
            var image: OpaquePointer?
            let bytes = Pictures.bytes("rgba.png")
            XCTAssertEqual(imgdl_decode(bytes, bytes.count, start, &image), 0)
            XCTAssertEqual(imgdl_image_width(image), 320)
            XCTAssertEqual(imgdl_image_pixel_format(image), UInt32(IMGDL_PIXEL_FORMAT_BGRA8))
            imgdl_image_release(image)
        }
    }

    /// Features T30, D4: ten sizes of one URL are one GET, and everybody gets the size they asked for, partial images and
    /// header too.
    func testT30_TenSizesOfOneURL() {
        let large = Pictures.encode(PICTURE_JPEG_BASELINE, "image/jpeg", width: 1000, height: 800)
        let larger = Pictures.encode(PICTURE_JPEG_PROGRESSIVE, "image/jpeg", width: 1000, height: 800)
        for (name, picture) in [("ten.jpg", large), ("ten-progressive.jpg", larger)] {
            origin.content[name] = picture
            let gate = origin.gate(name)
            let url = self.picture(name, "hold_after=\(picture.bytes.count * 4 / 5)&gate=\(name)")
            let downloads = (490..<500).map { width in
                let wanted = options { $0.target_width = UInt32(width) }
                return withUnsafePointer(to: wanted) { wanted in start(url) { $0.decode = wanted } }
            }
            for download in downloads { download.waitFor(IMGDL_EVENT_PARTIAL) }
            gate.open()
            for (width, download) in zip(UInt32(490)..., downloads) {
                assertEnds(download, "IMGDL_OK")
                let sizes = Set(download.record.seen.filter { $0.width > 0 }.map { [$0.width, $0.height] })
                XCTAssertEqual(sizes, [[width, (width * 800 + 999) / 1000]], name)
            }
            XCTAssertEqual(origin.log.count("/pictures/\(name)"), 1)
        }
    }

    /// Features X10.
    func testX10_ScaleFactorOfTheURL() {
        for (name, factor) in [("photo@2x.png", 2.0), ("photo%403x.png", 3), ("photo.png", 1)] {
            origin.content[name.replacingOccurrences(of: "%40", with: "@")] = Picture(
                Pictures.bytes("rgba.png"), type: "image/png")
            let factors = Monitor([Double]())
            let download = Download()
            download.onEvent = { event in
                if let image = event.image { factors.change { $0.append(imgdl_image_scale_factor(image)) } }
            }
            download.start(downloader, picture(name))
            assertEnds(download, "IMGDL_OK")
            XCTAssertEqual(Set(factors.read { $0 }), [factor], name)
        }
        let own = Monitor(0.0)
        let download = Download()
        download.onEvent = { event in
            if let image = event.image { own.change { $0 = imgdl_image_scale_factor(image) } }
        }
        download.start(downloader, picture("photo@2x.png")) { $0.scale_factor = 1.5 }
        assertEnds(download, "IMGDL_OK")
        XCTAssertEqual(own.read { $0 }, 1.5, "the request's own goes first")
        XCTAssertEqual(imgdl_image_scale_factor(nil), 0)
    }
}
