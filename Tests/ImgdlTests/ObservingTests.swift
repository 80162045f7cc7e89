import CImgdl
import Origin
import XCTest

/// Metrics, the observer and statistics (features B24, K1, M15, N1–N4, T26, T27, D15, I40, R11).
final class ObservingTests: DownloaderTestCase {
    private static let started = 1
    private static let response = 2
    private static let stopped = 3
    private static let finished = 4

    private func metrics(_ download: Download, _ file: StaticString = #filePath, _ line: UInt = #line) -> imgdl_metrics
    {
        var metrics = imgdl_metrics()
        imgdl_metrics_init(&metrics, MemoryLayout<imgdl_metrics>.stride)
        XCTAssertEqual(imgdl_token_metrics(download.token, &metrics), 0, file: file, line: line)
        return metrics
    }

    private func stats() -> imgdl_stats {
        var stats = imgdl_stats()
        imgdl_stats_init(&stats, MemoryLayout<imgdl_stats>.stride)
        XCTAssertEqual(imgdl_downloader_stats(downloader, &stats), 0)
        return stats
    }

    /// Parts are none of them negative and fit into their sums.
    private func assertFits(_ metrics: imgdl_metrics, _ file: StaticString = #filePath, _ line: UInt = #line) {
        let parts = [metrics.resolve_ns, metrics.connect_ns, metrics.tls_ns, metrics.first_byte_ns, metrics.body_ns]
        XCTAssertTrue(parts.allSatisfy { $0 >= 0 }, "\(parts)", file: file, line: line)
        XCTAssertLessThanOrEqual(parts.reduce(0, +), metrics.transfer_ns, file: file, line: line)
        XCTAssertGreaterThan(metrics.transfer_ns, 0, file: file, line: line)
        XCTAssertGreaterThanOrEqual(metrics.queue_ns, 0, file: file, line: line)
        if metrics.is_shared == 0 {
            XCTAssertLessThanOrEqual(metrics.queue_ns + metrics.transfer_ns, metrics.total_ns, file: file, line: line)
        }
    }

    // MARK: Metrics

    func testT26_B24_D15_MetricsOfOneTransaction() {
        let body = Pictures.bytes("baseline.jpg")
        let head = Array("HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nContent-Length: \(body.count)\r\n\r\n".utf8)
        origin.route("/raw") { try $0.send(raw: head + body) }
        let download = Download()
        let told = Monitor(imgdl_metrics?.none)
        let address = Monitor("")
        download.onEvent = { event in
            guard event.kind == UInt32(IMGDL_EVENT_TERMINAL), let metrics = event.metrics else { return }
            told.change { $0 = metrics.pointee }
            address.change { $0 = String(cString: metrics.pointee.address) }
        }
        assertEnds(download.start(downloader, origin.url("/raw")), "IMGDL_OK")
        let metrics = told.read { $0 }!
        assertFits(metrics)
        XCTAssertEqual(metrics.http_version, 11)
        XCTAssertEqual(metrics.body_bytes, Int64(body.count))
        XCTAssertGreaterThan(metrics.decode_ns, 0)
        XCTAssertEqual([metrics.redirect_count, metrics.retry_count], [0, 0])
        XCTAssertEqual([metrics.is_connection_reused, metrics.is_shared], [0, 0])
        XCTAssertEqual(address.read { $0 }, "127.0.0.1")
        XCTAssertGreaterThan(metrics.connect_ns, 0)
        XCTAssertEqual(metrics.bytes_received, Int64(head.count + body.count), "as the server sent them")
        XCTAssertEqual(metrics.bytes_sent, Int64(origin.log.requests[0].head.count), "as the server got them")
        // The token tells the same (K1, D15: with the terminal, not later).
        let kept = self.metrics(download)
        XCTAssertEqual(kept.total_ns, metrics.total_ns)
        XCTAssertEqual(kept.transfer_ns, metrics.transfer_ns)
        XCTAssertEqual(String(cString: kept.address), "127.0.0.1")
        XCTAssertEqual(kept.address, self.metrics(download).address, "it lives as long as the token")
    }

    func testK1_TheResultHasThemToo() {
        let download = start(picture("baseline.jpg")) {
            $0.callback = nil; $0.event_mask = 0
        }
        XCTAssertEqual(imgdl_token_wait(download.token, -1), 0)
        var result = imgdl_result()
        imgdl_result_init(&result, MemoryLayout<imgdl_result>.stride)
        XCTAssertEqual(imgdl_token_result(download.token, &result), 0)
        assertFits(result.metrics.pointee)
        XCTAssertEqual(result.metrics.pointee.total_ns, metrics(download).total_ns)
        XCTAssertGreaterThan(result.metrics.pointee.decode_ns, 0)
    }

    func testB24_HopsAndASecondConnectionUse() {
        let target = picture("baseline.jpg")
        assertEnds(start(origin.url("/redirect/2?to=\(target)")), "IMGDL_OK")
        let download = start(origin.url("/redirect/2?to=\(target)&n=2"))
        assertEnds(download, "IMGDL_OK")
        let metrics = metrics(download)
        assertFits(metrics)
        XCTAssertEqual(metrics.redirect_count, 2)
        XCTAssertEqual(metrics.is_connection_reused, 1)
        XCTAssertEqual(metrics.connect_ns, 0)
    }

    func testB24_SoFar_WhileItWaitsRunsAndIsShared() {
        _ = imgdl_downloader_set_suspended(downloader, 1)
        let gate = origin.gate("go")
        let url = picture("baseline.jpg", "hold_after=100&gate=go")
        let first = start(url)
        var metrics = imgdl_metrics()
        imgdl_metrics_init(&metrics, MemoryLayout<imgdl_metrics>.stride)
        XCTAssertEqual(imgdl_token_metrics(first.token, &metrics), Int32(IMGDL_ERROR_NOT_READY))
        _ = imgdl_downloader_set_suspended(downloader, 0)
        first.waitFor(IMGDL_EVENT_PROGRESS)
        let second = start(url)
        second.waitFor(IMGDL_EVENT_PROGRESS)
        let soFar = self.metrics(first)
        XCTAssertEqual(soFar.body_bytes, 100)
        XCTAssertEqual(soFar.is_shared, 0)
        XCTAssertGreaterThan(soFar.queue_ns, 0)
        XCTAssertGreaterThan(soFar.transfer_ns, 0)
        gate.open()
        assertEnds(first, "IMGDL_OK")
        assertEnds(second, "IMGDL_OK")
        XCTAssertEqual(self.metrics(second).is_shared, 1)
        XCTAssertEqual(self.metrics(second).queue_ns, 0)
        XCTAssertLessThan(self.metrics(second).total_ns, self.metrics(first).total_ns)
        assertFits(self.metrics(first))
    }

    func testT27_CancelWhileRunningTellsWhatThereWas() {
        origin.gate("never")
        let download = start(picture("baseline.jpg", "hold_after=100&gate=never"))
        download.waitFor(IMGDL_EVENT_PROGRESS)
        download.cancel()
        assertEnds(download, "IMGDL_ERROR_CANCELLED")
        XCTAssertGreaterThan(metrics(download).transfer_ns, 0)
        XCTAssertEqual(metrics(download).body_bytes, 100)
    }

    func testB24_BadArguments() {
        let download = start(picture("baseline.jpg"))
        assertEnds(download, "IMGDL_OK")
        XCTAssertEqual(imgdl_token_metrics(download.token, nil), Int32(IMGDL_ERROR_INVALID_ARGUMENT))
        var metrics = imgdl_metrics()
        XCTAssertEqual(imgdl_token_metrics(download.token, &metrics), Int32(IMGDL_ERROR_UNSUPPORTED_OPTION))
        XCTAssertEqual(imgdl_token_metrics(nil, &metrics), Int32(IMGDL_ERROR_INVALID_HANDLE))
        XCTAssertEqual(imgdl_downloader_stats(downloader, nil), Int32(IMGDL_ERROR_INVALID_ARGUMENT))
        var stats = imgdl_stats()
        XCTAssertEqual(imgdl_downloader_stats(downloader, &stats), Int32(IMGDL_ERROR_UNSUPPORTED_OPTION))
        XCTAssertEqual(imgdl_downloader_stats(nil, &stats), Int32(IMGDL_ERROR_INVALID_HANDLE))
        XCTAssertEqual(imgdl_histogram_quantile(nil, 0.5), 0)
    }

    // MARK: The observer

    /// Inline, so that the order between observer and subscriber can be seen.
    private func startInline(_ url: String, _ order: Monitor<[Int]>) -> Download {
        let download = Download()
        download.onEvent = { event in
            if event.kind == UInt32(IMGDL_EVENT_TERMINAL) { order.change { $0.append(100) } }
        }
        return download.start(downloader, url, events: 0) { $0.executor = OpaquePointer(bitPattern: 1) }
    }

    private func observe(_ order: Monitor<[Int]>) -> SeenTransfers {
        let seen = SeenTransfers()
        seen.onSeen = { seen in order.change { $0.append(seen.kind) } }
        return seen.watch(downloader)
    }

    func testN1_N2_N3_N4_M15_InOrderAndBeforeTheTerminal() {
        let order = Monitor([Int]())
        let seen = observe(order)
        assertEnds(startInline(picture("baseline.jpg", "_token=secret"), order), "IMGDL_OK")
        XCTAssertEqual(order.read { $0 }, [1, 2, 3, 4, 100])
        let record = seen.record
        XCTAssertEqual(Set(record.seen.map(\.transfer)).count, 1)
        XCTAssertEqual(record.seen.map(\.status), [0, 200, 200, 200])
        XCTAssertEqual(record.seen.map(\.subscribers), [1, 1, 1, 1])
        XCTAssertTrue(record.seen.allSatisfy { !$0.url.contains("secret") && $0.url.contains("_token") })
        XCTAssertEqual(record.seen.map { $0.transferTime != nil }, [false, false, true, true])
        XCTAssertGreaterThan(record.seen[2].transferTime!, 0)
    }

    func testN2_N3_ARefusedResponseIsToldAndNotFinished() {
        let order = Monitor([Int]())
        let seen = observe(order)
        assertEnds(startInline(origin.url("/status/404"), order), "IMGDL_ERROR_INVALID_STATUS")
        XCTAssertEqual(order.read { $0 }, [1, 2, 3, 100])
        XCTAssertEqual(seen.record.seen.last?.code, "IMGDL_ERROR_INVALID_STATUS")
        XCTAssertEqual(seen.record.seen.last?.status, 404)
    }

    func testN3_ACancelIsAStop_BeforeTheTerminal() {
        let order = Monitor([Int]())
        let seen = observe(order)
        let gate = origin.gate("never")
        let download = startInline(picture("baseline.jpg", "hold_after=10&gate=never"), order)
        XCTAssertTrue(gate.waitUntilReached())
        XCTAssertNotNil(seen.monitor.wait(until: .patient) { $0.seen.count == 2 ? true : nil })
        download.cancel()
        assertEnds(download, "IMGDL_ERROR_CANCELLED")
        XCTAssertEqual(order.read { $0 }, [1, 2, 3, 100])
        XCTAssertEqual(seen.record.seen.last?.code, "IMGDL_ERROR_CANCELLED")
    }

    func testN3_NoConnection_NoResponse() {
        let order = Monitor([Int]())
        _ = observe(order)
        origin.route("/gone") { $0.close() }
        assertEnds(startInline(origin.url("/gone"), order), "IMGDL_ERROR_CONNECTION_LOST")
        XCTAssertEqual(order.read { $0 }, [1, 3, 100])
    }

    func testN4_ABrokenPictureIsFinishedAllTheSame() {
        let order = Monitor([Int]())
        let seen = observe(order)
        assertEnds(startInline(picture("page.html"), order), "IMGDL_ERROR_BAD_IMAGE_DATA")
        XCTAssertEqual(order.read { $0 }, [1, 2, 3, 4, 100])
        XCTAssertEqual(seen.record.seen.last?.code, "IMGDL_OK")
    }

    func testN1_WhatNeverLeftTheQueueIsNotObserved() {
        let seen = SeenTransfers().watch(downloader)
        _ = imgdl_downloader_set_suspended(downloader, 1)
        let download = start(picture("baseline.jpg"))
        download.cancel()
        assertEnds(download, "IMGDL_ERROR_CANCELLED")
        XCTAssertEqual(seen.kinds, [])
    }

    func testN1_SharedTransfersAreObservedOnce() {
        let seen = SeenTransfers().watch(downloader)
        _ = imgdl_downloader_set_suspended(downloader, 1)
        let downloads = (0..<3).map { _ in start(picture("baseline.jpg")) }
        _ = imgdl_downloader_set_suspended(downloader, 0)
        for download in downloads { assertEnds(download, "IMGDL_OK") }
        XCTAssertEqual(seen.kinds, [1, 2, 3, 4])
        XCTAssertEqual(seen.record.seen.map(\.subscribers), [3, 3, 3, 3])
    }

    func testN1_EachObserverIsCountedOutOnce() {
        let first = SeenTransfers().watch(downloader)
        assertEnds(start(picture("baseline.jpg")), "IMGDL_OK")
        let second = SeenTransfers().watch(downloader)
        first.waitForDestructor()
        assertEnds(start(picture("baseline.jpg")), "IMGDL_OK")
        XCTAssertEqual(imgdl_downloader_set_observer(downloader, nil, nil, nil), 0)
        second.waitForDestructor()
        assertEnds(start(picture("baseline.jpg")), "IMGDL_OK")
        let third = SeenTransfers().watch(downloader)
        _ = imgdl_downloader_destroy(downloader)
        XCTAssertEqual(third.record.destructors, 1, "with the downloader")
        downloader = makeDownloader()
        for seen in [first, second] {
            XCTAssertEqual(seen.kinds, [1, 2, 3, 4])
            XCTAssertEqual(seen.record.late, 0)
        }
    }

    func testN1_ARefusedObserverHasItsDestructorToo() {
        let destroyed = Monitor(0)
        let data = Unmanaged.passUnretained(destroyed).toOpaque()
        let destructor: @convention(c) (UnsafeMutableRawPointer?) -> Void = { data in
            Unmanaged<Monitor<Int>>.fromOpaque(data!).takeUnretainedValue().change { $0 += 1 }
        }
        XCTAssertEqual(
            imgdl_downloader_set_observer(nil, { _, _ in }, data, destructor), Int32(IMGDL_ERROR_INVALID_HANDLE))
        XCTAssertEqual(destroyed.read { $0 }, 1)
        XCTAssertEqual(imgdl_downloader_set_observer(downloader, nil, data, destructor), 0)
        XCTAssertEqual(destroyed.read { $0 }, 2)
    }

    func testN1_EverythingMayBeCalledInsideAnObserver() {
        let gate = origin.gate("never")
        let url = picture("baseline.jpg", "hold_after=10&gate=never")
        let other = picture("progressive.jpg")
        let inner = Download()
        let outer = Monitor(OpaquePointer?.none)
        let replacement = SeenTransfers()
        let seen = SeenTransfers()
        seen.onSeen = { [unowned self] seen in
            var metrics = imgdl_metrics()
            imgdl_metrics_init(&metrics, MemoryLayout<imgdl_metrics>.stride)
            var stats = imgdl_stats()
            imgdl_stats_init(&stats, MemoryLayout<imgdl_stats>.stride)
            XCTAssertEqual(imgdl_downloader_stats(downloader, &stats), 0)
            if seen.kind == 2 {
                _ = imgdl_token_metrics(outer.read { $0 }, &metrics)
                _ = imgdl_token_cancel(outer.read { $0 })
                replacement.watch(downloader)
                inner.start(downloader, other)
                XCTAssertEqual(imgdl_token_wait(inner.token, -1), Int32(IMGDL_ERROR_WOULD_DEADLOCK))
            }
        }
        seen.watch(downloader)
        _ = imgdl_downloader_set_suspended(downloader, 1)
        let download = start(url)
        outer.change { $0 = download.token }
        _ = imgdl_downloader_set_suspended(downloader, 0)
        assertEnds(download, "IMGDL_ERROR_CANCELLED")
        XCTAssertNotNil(inner.monitor.wait(until: .patient) { $0.destructors > 0 ? true : nil })
        XCTAssertEqual(inner.name, "IMGDL_OK")
        seen.waitForDestructor()
        XCTAssertEqual(seen.record.late, 0)
        XCTAssertEqual(replacement.kinds.last, 4)
        gate.open()
    }

    func testN1_DestroyInsideAnObserverDoesNotHang() {
        let seen = SeenTransfers()
        seen.onSeen = { [unowned self] seen in if seen.kind == 1 { _ = imgdl_downloader_destroy(downloader) } }
        seen.watch(downloader)
        let download = start(picture("baseline.jpg"))
        assertEnds(download, "IMGDL_ERROR_CANCELLED")
        seen.waitForDestructor()
        downloader = makeDownloader()
    }

    // MARK: Statistics

    func testR11_I40_StatisticsAddUp() {
        origin.route("/gone") { $0.close() }
        _ = imgdl_downloader_set_suspended(downloader, 1)
        let shared = (0..<3).map { _ in start(picture("baseline.jpg")) }
        let waiting = start(picture("rgba.png"))
        XCTAssertEqual(stats().submitted, 4)
        waiting.cancel()
        assertEnds(waiting, "IMGDL_ERROR_CANCELLED")
        XCTAssertEqual(stats().waiting, 1)
        _ = imgdl_downloader_set_suspended(downloader, 0)
        for download in shared { assertEnds(download, "IMGDL_OK") }
        assertEnds(start(origin.url("/gone")), "IMGDL_ERROR_CONNECTION_LOST")
        assertEnds(start(origin.url("/redirect/2?to=\(picture("adam7.png"))")), "IMGDL_OK")
        let now = stats()
        XCTAssertEqual([now.submitted, now.succeeded, now.failed, now.cancelled], [6, 4, 1, 1])
        XCTAssertEqual([now.shared, now.transfers, now.retries, now.redirects], [2, 3, 0, 2])
        XCTAssertEqual([now.waiting, now.running, now.decoding, now.paused], [0, 0, 0, 0])
        XCTAssertEqual(now.pixels, UInt64(2 * Pictures.width * Pictures.height))
        XCTAssertEqual([now.total.count, now.queue.count, now.transfer.count, now.decode.count], [6, 5, 3, 2])
        XCTAssertEqual(now.connections, UInt64(origin.log.connections.count))
        var copy = now
        let median = imgdl_histogram_quantile(&copy.transfer, 0.5)
        let longest = imgdl_histogram_quantile(&copy.transfer, 1)
        XCTAssertGreaterThan(median, 0)
        XCTAssertLessThanOrEqual(median, longest)
        XCTAssertLessThanOrEqual(Double(now.transfer.sum_us), longest * 3)
    }
}
