import CImgdl
import Origin
import TestPictures
import XCTest

/// A picture that would take 18 seconds holds up neither the end of its request nor that of its downloader.
final class DecodeStopTests: DownloaderTestCase {
    override func setUp() async throws {
        try await super.setUp()
        var size = 0
        let bytes = try XCTUnwrap(picture_many_scans(10_000, 500, &size))
        defer { picture_free(bytes) }
        origin.content["scans.jpg"] = Picture(
            Array(UnsafeBufferPointer(start: bytes, count: size)), type: "image/jpeg")
    }

    /// CPU seconds of the process.
    private func work() -> Double {
        var now = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now)
        return Double(now.tv_sec) + Double(now.tv_nsec) / 1e9
    }

    private func assertDownloaderEndsAtOnce(line: UInt = #line) {
        let start = work()
        _ = imgdl_downloader_destroy(downloader)
        downloader = nil
        XCTAssertLessThan(work() - start, 1, line: line)
    }

    func testTotalTimeout() {
        let download = start(picture("scans.jpg"), events: 1) { $0.total_timeout_ms = 1000 }
        assertEnds(download, "IMGDL_ERROR_TOTAL_TIMEOUT")
        assertDownloaderEndsAtOnce()
    }

    func testCancel() {
        let download = start(picture("scans.jpg")).waitFor(received: 200_000)
        download.cancel()
        assertEnds(download, "IMGDL_ERROR_CANCELLED")
        assertDownloaderEndsAtOnce()
    }

    func testDestroy() {
        let download = start(picture("scans.jpg")).waitFor(received: 200_000)
        assertDownloaderEndsAtOnce()
        assertEnds(download, "IMGDL_ERROR_CANCELLED")
    }

    func testDecodeTimeout() {
        var options = imgdl_decode_options()
        imgdl_decode_options_init(&options, MemoryLayout<imgdl_decode_options>.stride)
        options.max_decode_ms = 200
        let begun = work()
        let download = withUnsafePointer(to: &options) { options in
            start(picture("scans.jpg")) { $0.decode = options }
        }
        assertEnds(download, "IMGDL_ERROR_DECODE_TIMEOUT")
        XCTAssertLessThan(work() - begun, 5)
        assertDownloaderEndsAtOnce()
    }
}
