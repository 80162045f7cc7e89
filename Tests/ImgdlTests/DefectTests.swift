import CImgdl
import Foundation
import Origin
import XCTest

/// What SDWebImage 5.21.5 gets wrong (features D1–D15), each shown not to happen here.
final class DefectTests: DownloaderTestCase {
    /// Theirs decides "I am the last" under a lock and cancels outside it.
    func testD1_WhoJoinsWhileTheLastLeavesIsNotCancelled() {
        origin.gate("hold").open()
        for round in 0..<200 {
            let url = picture("rgba.png", "hold_after=100&n=\(round)")
            let first = start(url, events: IMGDL_EVENT_RESPONSE)
            let second = Download()
            let downloader = downloader
            let isReady = Monitor(false)
            let canceller = Thread {
                isReady.change { $0 = true }
                first.cancel()
            }
            canceller.start()
            _ = isReady.wait(until: .patient) { $0 ? true : nil }
            second.start(downloader, url)
            first.wait()
            assertEnds(second, "IMGDL_OK")
        }
    }

    /// Theirs keeps the completion block after delivery: a cancel then calls it once more (#3834).
    func testD2_CancelInsideTheTerminalCallbackCallsNothing() {
        let download = Download()
        download.onEvent = { event in
            guard event.kind == UInt32(IMGDL_EVENT_TERMINAL) else { return }
            XCTAssertEqual(imgdl_token_cancel(event.token), 0)
        }
        download.start(downloader, picture("baseline.jpg"))
        assertEnds(download, "IMGDL_OK")
        download.cancel()
        XCTAssertEqual(imgdl_downloader_wait_idle(downloader, 10_000), 0)
        XCTAssertEqual(download.record.terminals, 1)
    }

    /// Theirs has one progressive decoder, of the first caller's size (#3423).
    func testD4_T30_TenSizesOfOneURLAreOneGetAndTenRightSizesInPartialsToo() {
        let gate = origin.gate("go")
        let size = Pictures.bytes("progressive.jpg").count
        let url = picture("progressive.jpg", "hold_after=\(size * 3 / 4)&gate=go&chunk=1000")
        let downloads = (0..<10).map { index -> Download in
            var options = imgdl_decode_options()
            imgdl_decode_options_init(&options, MemoryLayout<imgdl_decode_options>.stride)
            options.target_width = UInt32(190 + index)
            return withUnsafePointer(to: &options) { options in
                start(url) {
                    $0.decode = options
                    $0.partial_interval_ms = 1
                }
            }
        }
        for download in downloads { download.waitFor(IMGDL_EVENT_PARTIAL) }
        gate.open()
        for (index, download) in downloads.enumerated() {
            assertEnds(download, "IMGDL_OK")
            let pictures = download.record.seen.filter { $0.width > 0 }
            XCTAssertTrue(pictures.contains { $0.kind == UInt32(IMGDL_EVENT_PARTIAL) })
            XCTAssertEqual(Set(pictures.map(\.width)), [UInt32(190 + index)])
            XCTAssertEqual(Set(pictures.map(\.height)).count, 1)
        }
        XCTAssertEqual(origin.log.count("/pictures/progressive.jpg"), 1)
    }

    /// Theirs reserves what Content-Length says, and hands the decoder a buffer that grows.
    func testD6_AnAnnouncedLengthReservesNothing() {
        let before = residentBytes()
        let download = start(picture("baseline.jpg", "length=huge&stall_after=10")) { $0.max_body_bytes = 1 << 60 }
        download.waitFor(IMGDL_EVENT_PROGRESS)
        XCTAssertLessThan(residentBytes() - before, 16 << 20)
        download.cancel()
        assertEnds(download, "IMGDL_ERROR_CANCELLED")
    }

    /// Theirs calls 304 a bad status (documentation and code differ).
    func testD8_NotModifiedIsItsOwnOutcome() {
        let download = start(picture("baseline.jpg", "etag=v1"), headers: [("If-None-Match", "\"v1\"")])
        assertEnds(download, "IMGDL_ERROR_NOT_MODIFIED")
        XCTAssertEqual(download.record.httpStatus, 304)
        XCTAssertFalse(download.record.hasImage)
    }

    /// Theirs shows nothing early without Content-Length.
    func testD9_PartialPicturesOfAChunkedBody() {
        let size = Pictures.bytes("progressive.jpg").count
        let gate = origin.gate("go")
        let download = start(picture("progressive.jpg", "chunked=1&hold_after=\(size * 3 / 4)&gate=go"))
        download.waitFor(IMGDL_EVENT_PARTIAL)
        gate.open()
        assertEnds(download, "IMGDL_OK")
        let received = download.record.seen.dropLast().filter { $0.kind == UInt32(IMGDL_EVENT_PARTIAL) }
        XCTAssertEqual(Set(received.map(\.expected)), [-1])
    }

    /// Theirs shows a picture with a grey lower half as a success.
    func testD10_ACutBodyIsAnError() {
        let size = Pictures.bytes("baseline.jpg").count
        assertEnds(start(picture("baseline.jpg", "short_by=\(size / 3)")), "IMGDL_ERROR_TRUNCATED")
    }

    /// Theirs has no limits at all.
    func testD11_BytesAndPixelsAreLimited() {
        assertEnds(start(picture("baseline.jpg")) { $0.max_body_bytes = 100 }, "IMGDL_ERROR_BODY_LIMIT")
        var options = imgdl_decode_options()
        imgdl_decode_options_init(&options, MemoryLayout<imgdl_decode_options>.stride)
        options.max_pixels = 1000
        withUnsafePointer(to: &options) { options in
            assertEnds(start(picture("baseline.jpg")) { $0.decode = options }, "IMGDL_ERROR_PIXEL_LIMIT")
        }
    }

    /// Theirs takes options, callback queue and headers of the first caller for all.
    func testD12_EachCallerHasItsOwnExecutorAndOptions() {
        var executor: OpaquePointer?
        XCTAssertEqual(imgdl_executor_create_pumped(&executor), 0)
        defer { imgdl_executor_release(executor) }
        let gate = origin.gate("go")
        let url = picture("rgba.png", "hold_after=100&gate=go")
        let pumped = start(url) { $0.executor = executor }
        let own = start(url) { $0.flags = UInt32(IMGDL_REQUEST_BODY) }
        gate.open()
        assertEnds(own, "IMGDL_OK")
        XCTAssertNotNil(own.record.body)
        XCTAssertEqual(pumped.record.terminals, 0, "nobody has dispatched yet")
        while pumped.record.destructors == 0 {
            var poll = pollfd(fd: imgdl_executor_fd(executor), events: Int16(POLLIN), revents: 0)
            XCTAssertEqual(Glibc.poll(&poll, 1, 10_000), 1)
            _ = imgdl_executor_dispatch(executor, 0, nil)
        }
        assertEnds(pumped, "IMGDL_OK")
        XCTAssertEqual(pumped.record.threads, [UInt(pthread_self())])
        XCTAssertEqual(origin.log.count("/pictures/rgba.png"), 1)
    }

    /// Theirs starts a decode for each download that ends.
    func testD13_NoMoreDecodesAtOnceThanThreads() throws {
        replaceDownloader {
            $0.decode_threads = 2
            $0.max_concurrent = 40
        }
        let downloads = (0..<40).map { start(picture("progressive.jpg", "n=\($0)")) }
        for download in downloads { assertEnds(download, "IMGDL_OK") }
        let names = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").compactMap {
            try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8)
        }
        XCTAssertLessThanOrEqual(names.filter { $0.hasPrefix("imgdl-decode") }.count, 2)
    }

    /// Theirs can still tell progress behind the Cancelled of another thread.
    func testD14_NothingFollowsACancel() {
        for round in 0..<50 {
            let download = start(picture("progressive.jpg", "chunk=500&n=\(round)")) { $0.partial_interval_ms = 1 }
            download.waitFor(IMGDL_EVENT_PROGRESS)
            download.cancel()
            download.wait()
            XCTAssertEqual(download.record.seen.last?.kind, UInt32(IMGDL_EVENT_TERMINAL))
        }
    }

    private func residentBytes() -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * sysconf(Int32(_SC_PAGESIZE))
    }
}
