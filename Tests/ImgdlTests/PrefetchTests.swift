import CImgdl
import Origin
import TestPictures
import XCTest

/// Batches: what SDWebImagePrefetcherTests hold (features section 2, F1–F6), and what it lacks (R09).
final class PrefetchTests: DownloaderTestCase {
    private func urls(_ count: Int, _ faults: String = "") -> [String] {
        (0..<count).map { picture("baseline.jpg", "n=\($0)\(faults.isEmpty ? "" : "&\(faults)")") }
    }

    private func progress(_ batch: OpaquePointer?) -> imgdl_batch_progress {
        var progress = imgdl_batch_progress()
        progress.struct_size = UInt32(MemoryLayout<imgdl_batch_progress>.stride)
        XCTAssertEqual(imgdl_batch_progress_get(batch, &progress), 0)
        return progress
    }

    /// The `n` of what the origin was asked for.
    private func asked(after count: Int) -> [String] {
        origin.log.requests.dropFirst(count).map { String($0.target.split(separator: "=").last ?? "") }
    }

    // MARK: By the names of SDWebImagePrefetcherTests

    func test02_F1_PrefetchMultipleImages() {
        let run = BatchRun().start(downloader, urls(3)).wait()
        XCTAssertEqual(run.record.steps.last, .init(isFinished: true, finished: 3, failed: 0, cancelled: 0, total: 3))
        XCTAssertEqual(origin.log.requests.count, 3)
        XCTAssertEqual(imgdl_downloader_current_count(downloader), 0)
    }

    func test03_F1_PrefetchWithEmptyArrayWillCallTheCompletionWithAllZeros() {
        let run = BatchRun().start(downloader, []).wait()
        XCTAssertEqual(run.record.steps, [.init(isFinished: true, finished: 0, failed: 0, cancelled: 0, total: 0)])
        XCTAssertEqual(progress(run.batch).is_finished, 1)
    }

    func test04_F1_PrefetchWithMultipleArrayDifferentQueueWorks() {
        let runs = (0..<2).map { _ in BatchRun() }
        let lists = [urls(4), Array(urls(6).dropFirst(2))]
        DispatchQueue.concurrentPerform(iterations: 2) { index in runs[index].start(downloader, lists[index]) }
        for run in runs {
            run.wait()
            XCTAssertEqual(run.record.steps.last?.finished, 4)
            XCTAssertEqual(run.record.steps.last?.failed, 0)
        }
    }

    func test05_F4_PrefetchLargeURLsAndDelegateWorks() {
        let ends = Monitor(0)
        let downloads = (0..<20).map { _ in Download() }
        for download in downloads {
            download.onEvent = { event in
                if event.kind == UInt32(IMGDL_EVENT_TERMINAL) { ends.change { $0 += 1 } }
            }
        }
        let run = BatchRun()
        let early = Monitor(0)
        run.onProgress = { step in if ends.read({ $0 }) < step.finished { early.change { $0 += 1 } } }
        run.start(downloader, urls(20), downloads: downloads).wait()
        for download in downloads { assertEnds(download, "IMGDL_OK") }
        XCTAssertEqual(ends.read { $0 }, 20)
        XCTAssertEqual(early.read { $0 }, 0, "each is told before it is counted")
    }

    func test06_F5_PrefetchCancelToken() {
        origin.gate("never")
        let downloads = (0..<5).map { _ in Download() }
        let run = BatchRun().start(downloader, urls(5, "hold_after=10&gate=never"), downloads: downloads)
        assertOriginSees("three of them") { $0.inFlight == 3 }
        XCTAssertEqual(imgdl_downloader_current_count(downloader), 3)
        XCTAssertEqual(imgdl_batch_cancel(run.batch), 0)
        run.wait()
        for download in downloads { assertEnds(download, "IMGDL_ERROR_CANCELLED") }
        XCTAssertEqual(run.record.steps.last, .init(isFinished: true, finished: 5, failed: 0, cancelled: 5, total: 5))
        XCTAssertEqual(origin.log.requests.count, 3, "the others were never asked for")
        XCTAssertEqual(imgdl_downloader_current_count(downloader), 0)
        XCTAssertEqual(imgdl_batch_cancel(run.batch), 0, "again")
    }

    func test07_F5_DownloaderCancelDuringPrefetching() {
        origin.gate("never")
        let run = BatchRun().start(downloader, urls(5, "hold_after=10&gate=never"))
        assertOriginSees("three of them") { $0.inFlight == 3 }
        XCTAssertEqual(imgdl_downloader_cancel_all(downloader), 0)
        run.wait()
        XCTAssertEqual(run.record.steps.last?.cancelled, 5)
        XCTAssertEqual(imgdl_downloader_wait_idle(downloader, -1), 0)
    }

    // MARK: What a batch keeps

    func testF2_NeverMoreThanItsWidth() {
        replaceDownloader { $0.max_concurrent = 6 }
        let gate = origin.gate("go")
        let run = BatchRun().start(downloader, urls(9, "hold_after=10&gate=go")) { $0.max_concurrent = 2 }
        assertOriginSees("two in flight") { $0.inFlight == 2 }
        XCTAssertEqual(imgdl_downloader_current_count(downloader), 2, "the others are not accepted yet")
        gate.open()
        run.wait()
        XCTAssertEqual(origin.log.maxInFlight, 2)
    }

    func testF3_R09_LowUnlessRaised() {
        replaceDownloader { $0.max_concurrent = 1 }
        let gate = origin.gate("go")
        let first = start(picture("progressive.jpg", "hold_after=10&gate=go"))
        XCTAssertTrue(gate.waitUntilReached())
        let low = BatchRun().start(downloader, [picture("baseline.jpg", "n=low")]) { _ in
        } request: {
            $1.priority = Int32(IMGDL_PRIORITY_HIGH)
        }
        let kept = BatchRun().start(downloader, [picture("baseline.jpg", "n=kept")]) {
            $0.keeps_priority = 1
        } request: {
            $1.priority = Int32(IMGDL_PRIORITY_HIGH)
        }
        let normal = start(picture("baseline.jpg", "n=normal"))
        gate.open()
        for run in [low, kept] { run.wait() }
        assertEnds(first, "IMGDL_OK")
        assertEnds(normal, "IMGDL_OK")
        XCTAssertEqual(asked(after: 1), ["kept", "normal", "low"])
    }

    func testR09_PriorityOfTheWholeBatch() {
        replaceDownloader { $0.max_concurrent = 1 }
        let gate = origin.gate("go")
        let first = start(picture("progressive.jpg", "hold_after=10&gate=go"))
        XCTAssertTrue(gate.waitUntilReached())
        let run = BatchRun().start(downloader, urls(3)) { $0.max_concurrent = 2 }
        let normal = start(picture("baseline.jpg", "n=normal"))
        XCTAssertEqual(imgdl_batch_set_priority(run.batch, Int32(IMGDL_PRIORITY_HIGH)), 0)
        XCTAssertEqual(imgdl_batch_set_priority(run.batch, 7), Int32(IMGDL_ERROR_INVALID_ARGUMENT))
        gate.open()
        run.wait()
        for download in [first, normal] { assertEnds(download, "IMGDL_OK") }
        let order = asked(after: 1)
        XCTAssertEqual(order.prefix(2), ["0", "1"], "those that waited in the queue")
        XCTAssertEqual(Set(order), ["0", "1", "2", "normal"])
    }

    func testR09_PausedItBeginsNothing() {
        let gate = origin.gate("go")
        let run = BatchRun().start(downloader, urls(6, "hold_after=10&gate=go")) { $0.max_concurrent = 2 }
        assertOriginSees("two in flight") { $0.inFlight == 2 }
        XCTAssertEqual(imgdl_batch_set_paused(run.batch, 1), 0)
        gate.open()
        run.waitFor(finished: 2)
        XCTAssertEqual(imgdl_downloader_current_count(downloader), 0)
        XCTAssertEqual(origin.log.requests.count, 2)
        XCTAssertEqual(imgdl_batch_set_paused(run.batch, 0), 0)
        run.wait()
        XCTAssertEqual(origin.log.requests.count, 6)
    }

    func testF1_FailuresAreCountedAndOthersGoOn() {
        var list = urls(4)
        list[1] = origin.url("/status/404")
        list[2] = picture("page.html")
        let downloads = list.map { _ in Download() }
        let run = BatchRun().start(downloader, list, downloads: downloads).wait()
        XCTAssertEqual(run.record.steps.last, .init(isFinished: true, finished: 4, failed: 2, cancelled: 0, total: 4))
        assertEnds(downloads[0], "IMGDL_OK")
        assertEnds(downloads[1], "IMGDL_ERROR_INVALID_STATUS")
        assertEnds(downloads[2], "IMGDL_ERROR_BAD_IMAGE_DATA")
        XCTAssertNotNil(downloads[0].record.pixels)
    }

    func testF1_OneBadRequestRefusesAll() {
        var list = urls(3)
        list[2] = "not a url"
        let downloads = list.map { _ in Download() }
        let run = BatchRun().start(downloader, list, downloads: downloads)
        XCTAssertEqual(run.status, Int32(IMGDL_ERROR_INVALID_URL))
        XCTAssertTrue(
            String(cString: imgdl_last_error()).hasPrefix("requests[2]: "), String(cString: imgdl_last_error()))
        XCTAssertEqual(run.record.destructors, 1)
        XCTAssertEqual(run.record.steps, [])
        for download in downloads {
            XCTAssertEqual(download.record.destructors, 1)
            XCTAssertEqual(download.kinds, [])
        }
        XCTAssertEqual(origin.log.requests.count, 0)
    }

    func testF1_StructsOfOtherSizesAreRefused() {
        for (index, size) in [(0, 0), (0, 3), (1, 0), (1, 240)] {
            let downloads = (0..<3).map { _ in Download() }
            let run = BatchRun().start(downloader, urls(3), downloads: downloads) { _ in
            } request: {
                if $0 == index { $1.struct_size = UInt32(size) }
            }
            XCTAssertEqual(run.status, Int32(IMGDL_ERROR_UNSUPPORTED_OPTION), "\(index): \(size)")
            XCTAssertEqual(run.record.destructors, 1)
            for download in downloads where download.record.destructors == 0 {
                // Its struct could not be read.
                Unmanaged.passUnretained(download).release()
            }
        }
        let run = BatchRun().start(downloader, urls(1)) { $0.reserved = 1 }
        XCTAssertEqual(run.status, Int32(IMGDL_ERROR_UNSUPPORTED_OPTION))
        XCTAssertEqual(imgdl_downloader_prefetch(downloader, nil, 1, nil, nil), Int32(IMGDL_ERROR_INVALID_ARGUMENT))
        XCTAssertEqual(imgdl_downloader_prefetch(downloader, nil, -1, nil, nil), Int32(IMGDL_ERROR_INVALID_ARGUMENT))
        XCTAssertEqual(imgdl_downloader_prefetch(nil, nil, 0, nil, nil), Int32(IMGDL_ERROR_INVALID_HANDLE))
        XCTAssertEqual(imgdl_downloader_prefetch(downloader, nil, 0, nil, nil), 0)
    }

    func testF6_ProgressOnTheExecutorOfTheBatch() {
        var executor: OpaquePointer?
        XCTAssertEqual(imgdl_executor_create_pumped(&executor), 0)
        defer { imgdl_executor_release(executor) }
        let run = BatchRun().start(downloader, urls(3)) { $0.executor = executor }
        XCTAssertEqual(imgdl_downloader_wait_idle(downloader, -1), Int32(IMGDL_ERROR_WOULD_DEADLOCK))
        var waiting = pollfd(fd: imgdl_executor_fd(executor), events: Int16(POLLIN), revents: 0)
        while run.record.destructors == 0 {
            XCTAssertEqual(poll(&waiting, 1, 20_000), 1)
            XCTAssertEqual(imgdl_executor_dispatch(executor, 0, nil), 0)
        }
        run.wait()
        XCTAssertEqual(imgdl_downloader_wait_idle(downloader, -1), 0)
    }

    func testF6_InlineProgressNeverOverlaps() {
        let run = BatchRun().start(downloader, urls(40)) {
            $0.executor = OpaquePointer(bitPattern: 1)
            $0.max_concurrent = 6
        }
        run.wait()
    }

    func testF6_AnExecutorThatIsGoneHoldsNothingUp() {
        var executor: OpaquePointer?
        XCTAssertEqual(imgdl_executor_create_pumped(&executor), 0)
        let run = BatchRun().start(downloader, urls(3)) { $0.executor = executor }
        imgdl_executor_release(executor)
        XCTAssertNotNil(run.monitor.wait(until: .patient) { $0.destructors > 0 ? true : nil })
        XCTAssertFalse(run.record.steps.contains { $0.isFinished }, "nobody was left to call")
    }

    // MARK: The end

    func testF1_ReleasedItGoesOn() {
        let gate = origin.gate("go")
        let run = BatchRun().start(downloader, urls(5, "hold_after=10&gate=go"))
        assertOriginSees("three of them") { $0.inFlight == 3 }
        XCTAssertEqual(imgdl_batch_retain(run.batch), run.batch)
        imgdl_batch_release(run.batch)
        imgdl_batch_release(run.batch)
        XCTAssertEqual(imgdl_batch_cancel(run.batch), Int32(IMGDL_ERROR_INVALID_HANDLE))
        gate.open()
        run.wait()
        XCTAssertEqual(run.record.steps.last?.failed, 0)
        XCTAssertEqual(origin.log.requests.count, 5)
    }

    func testF5_ShutdownFinishesWhatWasBegun() {
        let gate = origin.gate("go")
        let downloads = (0..<5).map { _ in Download() }
        let run = BatchRun().start(downloader, urls(5, "hold_after=10&gate=go"), downloads: downloads)
        assertOriginSees("three of them") { $0.inFlight == 3 }
        let done = Monitor(false)
        XCTAssertEqual(
            imgdl_downloader_shutdown(
                downloader, UInt32(IMGDL_SHUTDOWN_FINISH),
                { Unmanaged<Monitor<Bool>>.fromOpaque($0!).takeUnretainedValue().change { $0 = true } },
                Unmanaged.passUnretained(done).toOpaque()), 0)
        run.waitFor(finished: 2)
        let late = BatchRun().start(downloader, urls(1))
        XCTAssertEqual(late.status, Int32(IMGDL_ERROR_SHUT_DOWN))
        gate.open()
        run.wait()
        XCTAssertEqual(run.record.steps.last, .init(isFinished: true, finished: 5, failed: 0, cancelled: 2, total: 5))
        for download in downloads[..<3] { assertEnds(download, "IMGDL_OK") }
        for download in downloads[3...] { assertEnds(download, "IMGDL_ERROR_CANCELLED") }
        XCTAssertNotNil(done.wait(until: .patient) { $0 ? true : nil })
    }

    func testF5_DestroyEndsABatch() {
        origin.gate("never")
        let run = BatchRun().start(downloader, urls(50, "hold_after=10&gate=never"))
        let paused = BatchRun().start(downloader, urls(5))
        XCTAssertEqual(imgdl_batch_set_paused(paused.batch, 1), 0)
        _ = imgdl_downloader_destroy(downloader)
        XCTAssertEqual([run.record.destructors, paused.record.destructors], [1, 1], "before destroy returns")
        run.wait()
        paused.wait()
        XCTAssertEqual(run.record.steps.last?.cancelled, 50)
        XCTAssertEqual(imgdl_batch_set_paused(run.batch, 0), 0, "a batch that has ended is still a handle")
        downloader = makeDownloader()
    }

    func testF5_EverythingMayBeCalledInsideProgress() {
        let next = BatchRun()
        let more = urls(3)
        let run = BatchRun()
        run.onProgress = { [unowned self] step in
            if step.finished == 2 {
                _ = imgdl_batch_set_paused(run.batch, 1)
                _ = imgdl_batch_set_paused(run.batch, 0)
                _ = imgdl_batch_set_priority(run.batch, 1)
                XCTAssertEqual(imgdl_downloader_wait_idle(downloader, -1), Int32(IMGDL_ERROR_WOULD_DEADLOCK))
                next.start(downloader, more)
                _ = imgdl_batch_cancel(run.batch)
            }
        }
        _ = imgdl_downloader_set_suspended(downloader, 1)
        run.start(downloader, urls(10))
        _ = imgdl_downloader_set_suspended(downloader, 0)
        run.wait()
        XCTAssertNotNil(next.monitor.wait(until: .patient) { $0.destructors > 0 ? true : nil })
        XCTAssertEqual(next.record.steps.last?.finished, 3)
    }

    // MARK: Many

    func testF1_AThousandWithFailuresAndCancels() {
        var random = SystemRandomNumberGenerator()
        let seed = UInt64.random(in: 0..<1_000_000, using: &random)
        var state = seed
        func number(_ limit: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % limit
        }
        let small = Pictures.encode(PICTURE_PNG_RGBA, "image/png", width: 8, height: 8)
        origin.content["small.png"] = small
        let list = (0..<1000).map { index -> String in
            switch number(10) {
            case 0: origin.url("/status/404?n=\(index)")
            case 1: picture("small.png", "n=\(index)&short_by=3")
            case 2: picture("page.html", "n=\(index)")
            default: picture("small.png", "n=\(index)")
            }
        }
        let downloads = list.map { _ in Download() }
        for download in downloads where number(5) == 0 {
            download.onEvent = { event in
                if event.kind == UInt32(IMGDL_EVENT_RESPONSE) { _ = imgdl_token_cancel(event.token) }
            }
        }
        replaceDownloader { $0.max_concurrent = 20 }
        let run = BatchRun()
        run.onProgress = { step in if step.finished == 700 { _ = imgdl_batch_cancel(run.batch) } }
        run.start(downloader, list, downloads: downloads) {
            $0.max_concurrent = 7
        } request: {
            $1.event_mask = UInt32(IMGDL_EVENT_RESPONSE)
        }
        run.wait()
        var counts: [String: Int] = [:]
        for download in downloads {
            download.wait()
            counts[download.name, default: 0] += 1
        }
        let last = run.record.steps.last!
        XCTAssertEqual(last.total, 1000)
        XCTAssertEqual(last.cancelled, counts["IMGDL_ERROR_CANCELLED"], "seed \(seed)")
        XCTAssertEqual(last.finished - last.failed - last.cancelled, counts["IMGDL_OK"], "seed \(seed)")
        XCTAssertGreaterThan(last.cancelled, 200)
        XCTAssertLessThanOrEqual(origin.log.maxInFlight, 7)
        XCTAssertEqual(imgdl_downloader_current_count(downloader), 0)
    }
}
