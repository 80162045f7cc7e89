import CImgdl
import Dispatch
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

    /// What the process does meanwhile: the decoder's thread is free within 50 ms.
    private func assertTakesNoWork(line: UInt = #line, _ wait: () -> Void) {
        let start = work()
        wait()
        XCTAssertLessThan(work() - start, 0.1, line: line)
    }

    private func assertDownloaderEndsAtOnce(line: UInt = #line) {
        assertTakesNoWork(line: line) { _ = imgdl_downloader_destroy(downloader) }
        downloader = nil
    }

    func testTotalTimeout() {
        let due = DispatchTime.now() + 1
        let download = start(picture("scans.jpg"), events: 1) { $0.total_timeout_ms = 1000 }
        // Until it is due.
        _ = DispatchSemaphore(value: 0).wait(timeout: due)
        assertTakesNoWork { assertEnds(download, "IMGDL_ERROR_TOTAL_TIMEOUT") }
        assertDownloaderEndsAtOnce()
    }

    func testCancel() {
        let download = start(picture("scans.jpg")).waitFor(received: 200_000)
        download.cancel()
        assertTakesNoWork { assertEnds(download, "IMGDL_ERROR_CANCELLED") }
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
        // What is beyond the limit, with the transfer and all else that the process does.
        XCTAssertLessThan(work() - begun, 0.4)
        assertDownloaderEndsAtOnce()
    }
}
