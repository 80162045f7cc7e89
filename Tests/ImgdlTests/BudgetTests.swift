import CImgdl
import MemoryTesting
import Origin
import TestPictures
import XCTest

/// Features B20: many large pictures at once stay within the budget of bytes, and every one of them comes. With
/// IMGDL_LONG=1 they are a hundred of 24 megapixels, else twenty-four of 2.
final class BudgetTests: DownloaderTestCase {
    private static let isLong = getenv("IMGDL_LONG").map { String(cString: $0) == "1" } ?? false
    private static let count = isLong ? 100 : 24
    private static let width = isLong ? 6_000 : 1_600
    private static let height = isLong ? 4_000 : 1_250
    private static let budget = isLong ? 256 << 20 : 16 << 20
    /// Threads, what decoders have besides their canvas, what the heap keeps, and what the origin sends.
    private static let fixed = 48 << 20

    func testManyLargePicturesStayWithinTheBudget() throws {
        for kind in [PICTURE_JPEG_BASELINE, PICTURE_JPEG_PROGRESSIVE] {
            let isProgressive = kind == PICTURE_JPEG_PROGRESSIVE
            let large = Pictures.encode(kind, "image/jpeg", width: Self.width, height: Self.height)
            origin.content["budget.jpg"] = large
            replaceDownloader {
                $0.max_concurrent = UInt32(Self.count)
                $0.memory_budget = UInt64(Self.budget)
            }
            let before = Memory.resident
            let measures = Memory.resetPeak()
            let count = isProgressive ? Self.count / 4 : Self.count
            let downloads = (0..<count).map { number in
                let download = Download()
                download.keepsResult = false
                return download.start(downloader, picture("budget.jpg", "n=\(kind.rawValue)_\(number)"))
            }
            for download in downloads { assertEnds(download, "IMGDL_OK") }
            guard measures, !Memory.isSanitized else { continue }
            // Besides the canvases: each transfer's piece that was on its way, and a body that led.
            let most = Self.budget + Self.fixed + large.bytes.count + count * (64 << 10)
            XCTAssertLessThanOrEqual(
                Memory.peak - before, most, "\(kind.rawValue): grown by \((Memory.peak - before) >> 20) MiB")
            XCTAssertTrue(Memory.returns(to: before + Self.fixed), "\(Memory.excess(before)) stay")
        }
    }

    /// Two pictures come slowly and have all the canvases that there is room for, when many others are whole: none of these
    /// gets a canvas before one of the two has ended. Callbacks that run at once keep nothing beside that.
    func testWholePicturesWaitForTheCanvasesOfThoseThatStillCome() throws {
        let large = Pictures.encode(PICTURE_JPEG_BASELINE, "image/jpeg", width: Self.width, height: Self.height)
        origin.content["budget.jpg"] = large
        replaceDownloader {
            $0.max_concurrent = UInt32(Self.count)
            $0.memory_budget = UInt64(Self.budget)
            $0.executor = OpaquePointer(bitPattern: 1)
        }
        func start(_ query: String) -> Download {
            let download = Download()
            download.keepsResult = false
            return download.start(downloader, picture("budget.jpg", query))
        }
        let slow = (0..<2).map { start("rate=\(large.bytes.count)&n=\($0)") }
        for download in slow { download.waitFor(IMGDL_EVENT_HEADER) }
        let whole = start("n=2").waitFor(received: large.bytes.count)
        let others = (3..<Self.count).map { start("n=\($0)") }
        for download in slow + [whole] + others { assertEnds(download, "IMGDL_OK") }
        // Besides the canvases: each transfer's piece that was on its way, and a body that led.
        let most = Self.budget + large.bytes.count + Self.count * (64 << 10)
        let peak = Int(stats.memory_peak)
        XCTAssertLessThanOrEqual(peak, most, "\(peak >> 20) MiB")
        XCTAssertGreaterThan(peak, Self.budget / 2)
    }

    /// A host that does not look at its pictures holds up its own downloader, and nothing grows.
    func testPicturesThatNobodyTakesHoldUpWhatFollows() throws {
        var executor: OpaquePointer?
        XCTAssertEqual(imgdl_executor_create_pumped(&executor), 0)
        let large = Pictures.encode(PICTURE_JPEG_BASELINE, "image/jpeg", width: Self.width, height: Self.height)
        origin.content["budget.jpg"] = large
        replaceDownloader {
            $0.memory_budget = UInt64(Self.budget)
            $0.executor = executor
        }
        let before = Memory.resident
        let measures = Memory.resetPeak()
        let downloads = (0..<Self.count).map { number in
            let download = Download()
            download.keepsResult = false
            return download.start(
                downloader, picture("budget.jpg", "n=\(number)"), events: UInt32(IMGDL_EVENT_TERMINAL))
        }
        // Pumped from time to time: everything comes in the end.
        for download in downloads {
            while download.record.destructors == 0 {
                var waiting = pollfd(fd: imgdl_executor_fd(executor), events: Int16(POLLIN), revents: 0)
                XCTAssertEqual(poll(&waiting, 1, 30_000), 1, "nothing comes")
                _ = imgdl_executor_dispatch(executor, 1, nil)
            }
            XCTAssertEqual(download.name, "IMGDL_OK", download.record.message)
        }
        if measures, !Memory.isSanitized {
            let most = Self.budget + Self.fixed + large.bytes.count + Self.count * (64 << 10)
            XCTAssertLessThanOrEqual(Memory.peak - before, most)
        }
        imgdl_executor_release(executor)
    }

    /// Whoever runs the callbacks: the downloader's pumped executor, or the request's own on one that is inline.
    func testABodyCountsUntilItIsTaken() {
        var executor: OpaquePointer?
        XCTAssertEqual(imgdl_executor_create_pumped(&executor), 0)
        let body = Pictures.bytes("baseline.jpg").count
        for isRequestsOwn in [false, true] {
            replaceDownloader { $0.executor = isRequestsOwn ? OpaquePointer(bitPattern: 1) : executor }
            let download = Download()
            download.keepsResult = false
            download.start(downloader, picture("baseline.jpg"), events: UInt32(IMGDL_EVENT_TERMINAL)) {
                $0.flags = UInt32(IMGDL_REQUEST_BODY)
                $0.executor = isRequestsOwn ? executor : nil
            }
            var waiting = pollfd(fd: imgdl_executor_fd(executor), events: Int16(POLLIN), revents: 0)
            XCTAssertEqual(poll(&waiting, 1, 30_000), 1, "nothing comes")
            // The engine's next turn tells the number.
            let deadline = DispatchTime.now().uptimeNanoseconds + 30_000_000_000
            while memoryInUse != body, DispatchTime.now().uptimeNanoseconds < deadline { sched_yield() }
            XCTAssertEqual(memoryInUse, body, "own: \(isRequestsOwn)")
            XCTAssertEqual(imgdl_executor_dispatch(executor, 0, nil), 0)
            XCTAssertEqual(download.name, "IMGDL_OK", download.record.message)
            XCTAssertEqual(memoryInUse, 0, "own: \(isRequestsOwn)")
        }
        replaceDownloader { _ in }
        imgdl_executor_release(executor)
    }

    private var memoryInUse: Int { Int(stats.memory) }

    private var stats: imgdl_stats {
        var stats = imgdl_stats()
        imgdl_stats_init(&stats, MemoryLayout<imgdl_stats>.stride)
        XCTAssertEqual(imgdl_downloader_stats(downloader, &stats), 0)
        return stats
    }

    /// It is held up while an earlier one leads, and what has been read of it unpacks to more than any limit.
    func testABombThatIsHeldUpMeetsItsLimit() {
        replaceDownloader { $0.memory_budget = 1 << 20 }
        let leader = start(picture("baseline.jpg", "hold_after=1000&gate=hold"))
        leader.waitFor(IMGDL_EVENT_PROGRESS)
        let bomb = start(picture("rgba.png", "gzip_bomb=200000000")) {
            $0.max_body_bytes = 32 << 20
            $0.flags = UInt32(IMGDL_REQUEST_BODY)
        }
        assertOriginSees("all of it has been sent") { $0.arrivals.contains { $0.finished != nil } }
        origin.gate("hold").open()
        assertEnds(bomb, "IMGDL_ERROR_BODY_LIMIT")
        assertEnds(leader, "IMGDL_OK")
    }
}
