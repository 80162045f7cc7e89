import CImgdl
import Foundation
import Origin
import XCTest

/// What a downloader goes by while it lives, through the C API: background, invalidation, reconfiguration, limits.
final class SessionTests: DownloaderTestCase {
    // MARK: Header fields

    func testT03_HeadersCanBeAskedFor() {
        XCTAssertEqual(header("accept"), "image/*,*/*;q=0.8")
        XCTAssertEqual(imgdl_downloader_set_header(downloader, "X-Thing", "one"), 0)
        XCTAssertEqual(header("x-thing"), "one")
        XCTAssertEqual(imgdl_downloader_set_header(downloader, "X-THING", nil), 0)
        XCTAssertNil(header("x-thing"))
        var length = 0
        var buffer = [CChar](repeating: 1, count: 4)
        XCTAssertEqual(imgdl_downloader_get_header(downloader, "Accept", &buffer, 4, &length), 0)
        XCTAssertEqual(length, 17)
        XCTAssertEqual(String(cString: buffer), "ima", "as far as the buffer reaches")
        XCTAssertEqual(imgdl_downloader_get_header(downloader, "Accept", nil, 0, &length), 0)
        XCTAssertEqual(imgdl_downloader_get_header(downloader, nil, nil, 0, nil), Int32(IMGDL_ERROR_INVALID_ARGUMENT))
        XCTAssertEqual(
            imgdl_downloader_get_header(downloader, "Accept", nil, 9, nil), Int32(IMGDL_ERROR_INVALID_ARGUMENT))
        XCTAssertEqual(imgdl_downloader_get_header(nil, "Accept", nil, 0, nil), Int32(IMGDL_ERROR_INVALID_HANDLE))
    }

    private func header(_ name: String) -> String? {
        var buffer = [CChar](repeating: 0, count: 200)
        let status = imgdl_downloader_get_header(downloader, name, &buffer, buffer.count, nil)
        if status == Int32(IMGDL_ERROR_NOT_READY) { return nil }
        XCTAssertEqual(status, 0)
        return String(cString: buffer)
    }

    // MARK: Limits

    func testB13_LimitsAreReadAndSet() {
        XCTAssertEqual(imgdl_downloader_max_concurrent(downloader), 6)
        XCTAssertEqual(imgdl_downloader_set_max_concurrent(downloader, 3), 0)
        XCTAssertEqual(imgdl_downloader_max_concurrent(downloader), 3)
        XCTAssertEqual(imgdl_downloader_max_concurrent(nil), 0)
        XCTAssertEqual(imgdl_downloader_set_max_per_host(downloader, 10_001), Int32(IMGDL_ERROR_INVALID_ARGUMENT))
        XCTAssertEqual(imgdl_downloader_is_suspended(downloader), 0)
        XCTAssertEqual(imgdl_downloader_set_suspended(downloader, 1), 0)
        XCTAssertEqual(imgdl_downloader_is_suspended(downloader), 1)
        XCTAssertEqual(imgdl_downloader_is_suspended(nil), 0)
    }

    /// Three hosts are three ports of the loopback.
    func testB13_NoHostGetsMoreThanItsShare() throws {
        let others = [try Origin(), try Origin()]
        defer { for other in others { other.stop() } }
        for other in others { for (name, picture) in Pictures.all { other.content[name] = picture } }
        let origins = [origin!] + others
        replaceDownloader {
            $0.max_concurrent = 6
            $0.max_per_host = 2
        }
        var downloads: [Download] = []
        for number in 0..<5 {
            for origin in origins {
                downloads.append(start(origin.url("/pictures/rgba.png?hold_after=10&gate=go&n=\(number)")))
            }
        }
        for origin in origins {
            XCTAssertTrue(origin.wait { $0.inFlight == 2 })
            XCTAssertEqual(origin.log.requests.count, 2, "its share, though one place in three is free")
        }
        for origin in origins { origin.gate("go").open() }
        for download in downloads { assertEnds(download, "IMGDL_OK") }
        for origin in origins { XCTAssertEqual(origin.log.maxInFlight, 2) }
    }

    /// Hooks and redirects lead to a host that allows one at a time, and whoever must wait there holds no place elsewhere.
    func testB13_RedirectsAndHooksURLsCountAtTheirHost() throws {
        let hooks = TestHooks()
        defer { hooks.release() }
        let others = try (0..<3).map { _ in try Origin() }
        defer { for other in others { other.stop() } }
        replaceDownloader {
            $0.max_concurrent = 16
            $0.max_per_host = 1
        }
        hooks.modifyRequest = { [origin] request, next in
            let number = String(cString: request.url).suffix(1)
            let url = origin!.url("/pictures/rgba.png?hold_after=10&gate=go&n=hook\(number)")
            XCTAssertEqual(withOutgoing(url: url) { imgdl_continue_with_request(next, $0) }, 0)
        }
        var downloads: [Download] = []
        for (number, other) in others.enumerated() {
            let target = origin.url("/pictures/rgba.png?hold_after=10&gate=go&n=\(number)")
            let encoded = target.addingPercentEncoding(withAllowedCharacters: .alphanumerics)!
            downloads.append(start(other.url("/redirect?to=\(encoded)")))
            downloads.append(start(other.url("/hooked?n=\(number)")) { $0.hooks = hooks.handle })
        }
        for other in others { XCTAssertTrue(other.wait { $0.count("/redirect") == 1 && $0.inFlight == 0 }) }
        assertOriginSees("the first of them") { $0.inFlight == 1 }
        origin.gate("go").open()
        for download in downloads { assertEnds(download, "IMGDL_OK") }
        XCTAssertEqual(origin.log.requests.count, 6)
        XCTAssertEqual(origin.log.maxInFlight, 1)
    }

    // MARK: Background

    private var goesOn: (inout imgdl_request) -> Void {
        { $0.flags = UInt32(IMGDL_REQUEST_CONTINUE_IN_BACKGROUND) }
    }

    func testO4_AHooksLateAnswerSendsNothingInTheBackground() {
        let hooks = TestHooks()
        defer { hooks.release() }
        let asked = Monitor<TestHooks.Next?>(nil)
        hooks.modifyRequest = { _, next in asked.change { $0 = next } }
        let late = start(picture("baseline.jpg")) { $0.hooks = hooks.handle }
        let next = asked.wait(until: .patient) { $0 } as TestHooks.Next?
        XCTAssertEqual(imgdl_downloader_enter_background(downloader, 0), 0)
        XCTAssertEqual(imgdl_continue_unchanged(next), 0)
        assertEnds(start(picture("rgba.png"), goesOn), "IMGDL_OK")
        XCTAssertEqual(origin.log.count("/pictures/baseline.jpg"), 0)
        XCTAssertEqual(imgdl_downloader_enter_foreground(downloader), 0)
        assertEnds(late, "IMGDL_OK")
    }

    /// Also when it is given before the hook's call has returned, on this thread or on another.
    func testO4_AHooksAnswerIsHeardAfterWhatWasSaidBefore() {
        for isOnAnotherThread in [false, true] {
            let hooks = TestHooks()
            defer { hooks.release() }
            let asked = Monitor<TestHooks.Next?>(nil)
            let answered = Monitor(false)
            func answer(_ next: TestHooks.Next?) {
                XCTAssertEqual(imgdl_downloader_enter_background(downloader, 0), 0)
                XCTAssertEqual(imgdl_continue_unchanged(next), 0)
            }
            hooks.modifyRequest = { _, next in
                if !isOnAnotherThread { answer(next) }
                asked.change { $0 = next }
                if isOnAnotherThread { _ = answered.wait(until: .patient) { $0 ? true : nil } }
            }
            let name = isOnAnotherThread ? "baseline.jpg" : "lossy.webp"
            let asking = start(picture(name)) { $0.hooks = hooks.handle }
            let next = asked.wait(until: .patient) { $0 } as TestHooks.Next?
            if isOnAnotherThread { answer(next) }
            answered.change { $0 = true }
            assertEnds(start(picture("rgba.png", "n=\(name)"), goesOn), "IMGDL_OK")
            XCTAssertEqual(origin.log.count("/pictures/\(name)"), 0)
            XCTAssertEqual(imgdl_downloader_enter_foreground(downloader), 0)
            assertEnds(asking, "IMGDL_OK")
        }
    }

    func testO4_ARedirectSendsNothingInTheBackground() {
        let moved = start(
            picture("baseline.jpg", "status=302&header=Location:/pictures/lossy.webp&empty=1&hold_head=1&gate=moved"))
        assertOriginSees("the request") { $0.inFlight == 1 }
        XCTAssertEqual(imgdl_downloader_enter_background(downloader, 0), 0)
        // It has been paused when this one has ended, and the answer is there when the next one has.
        assertEnds(start(picture("rgba.png"), goesOn), "IMGDL_OK")
        origin.gate("moved").open()
        assertOriginSees("the answer is out") { $0.inFlight == 0 }
        for number in 0..<3 { assertEnds(start(picture("rgba.png", "n=\(number)"), goesOn), "IMGDL_OK") }
        XCTAssertEqual(origin.log.count("/pictures/lossy.webp"), 0)
        XCTAssertEqual(imgdl_downloader_enter_foreground(downloader), 0)
        assertEnds(moved, "IMGDL_OK")
        XCTAssertEqual(origin.log.count("/pictures/lossy.webp"), 1)
    }

    /// Three that libcurl would send by itself: with a credential, once more, and when a handshake has ended.
    func testO4_WhatLibcurlSendsByItselfWaitsForTheForeground() throws {
        let picture = Pictures.bytes("baseline.jpg")
        origin.route("/challenge") { exchange in
            guard exchange.request.headers["Authorization"] == nil else { return try exchange.respond(body: picture) }
            try exchange.wait("go")
            try exchange.respond(401, headers: ["WWW-Authenticate": "Digest realm=\"x\", nonce=\"n\", qop=\"auth\""])
        }
        origin.route("/kept") { exchange in
            guard exchange.request.connection == 1 else { return try exchange.respond(body: picture) }
            try exchange.wait("go")
            exchange.close()
        }
        let (signals, accepted, received) = (Signals(), Monitor(0), Monitor(0))
        let authority = try Authority(TLS(), protocols: ["http/1.1"])
        defer { authority.removeFiles() }
        let slow = try Listener(journal: Journal(), signals: signals)
        defer { slow.stop() }
        try slow.start { connection in
            accepted.change { $0 += 1 }
            _ = signals.wait(gate: "go", party: connection.party, until: .never)
            guard (try? connection.secure(by: authority)) != nil else { return }
            var bytes = [UInt8](repeating: 0, count: 4096)
            guard let count = try? bytes.withUnsafeMutableBytes({ try connection.receive(into: $0) }), count > 0 else {
                return
            }
            received.change { $0 += 1 }
            let head = "HTTP/1.1 200 OK\r\nContent-Length: \(picture.count)\r\n\r\n"
            try? (Array(head.utf8) + picture).withUnsafeBytes { try connection.send($0) }
        }
        assertEnds(start(self.picture("rgba.png")), "IMGDL_OK")
        XCTAssertEqual(origin.log.connections.count, 1)
        let kept = start(origin.url("/kept")) { $0.retry_count = 0 }
        assertOriginSees("it uses the kept connection") { $0.count("/kept") == 1 }
        let challenged = "me".withCString { user in
            "secret".withCString { password in
                start(origin.url("/challenge")) {
                    $0.user = user
                    $0.password = password
                }
            }
        }
        assertOriginSees("the request without a credential") { $0.count("/challenge") == 1 }
        let handshaking = start("https://127.0.0.1:\(slow.port)/") {
            $0.flags = UInt32(IMGDL_REQUEST_ALLOW_INVALID_CERTIFICATES)
        }
        XCTAssertNotNil(accepted.wait(until: .patient) { $0 == 1 ? true : nil })
        XCTAssertEqual(imgdl_downloader_enter_background(downloader, 0), 0)
        // They have been paused when this one has ended.
        assertEnds(start(self.picture("rgba.png", "n=background"), goesOn), "IMGDL_OK")
        origin.gate("go").open()
        signals.gate("go").open()
        assertOriginSees("the answer and the end are out") { $0.inFlight == 0 }
        for number in 0..<5 { assertEnds(start(self.picture("rgba.png", "n=\(number)"), goesOn), "IMGDL_OK") }
        XCTAssertEqual(origin.log.count("/kept"), 1)
        XCTAssertEqual(origin.log.count("/challenge"), 1)
        XCTAssertEqual(received.read { $0 }, 0)
        XCTAssertEqual([kept, challenged, handshaking].map(\.record.terminals), [0, 0, 0])
        XCTAssertEqual(imgdl_downloader_enter_foreground(downloader), 0)
        for download in [kept, challenged, handshaking] { assertEnds(download, "IMGDL_OK") }
        XCTAssertEqual(origin.log.count("/kept"), 2)
        XCTAssertEqual(origin.log.count("/challenge"), 3)
        XCTAssertEqual(received.read { $0 }, 1)
    }

    func testO4_OnlyWhatAskedForItRunsInTheBackground() {
        let flag = UInt32(IMGDL_REQUEST_CONTINUE_IN_BACKGROUND)
        let size = Pictures.bytes("baseline.jpg").count
        let paused = start(picture("baseline.jpg", "hold_after=\(size / 2)&gate=paused"))
        let goes = start(picture("baseline.jpg", "hold_after=\(size / 2)&gate=goes")) { $0.flags = flag }
        paused.waitFor(IMGDL_EVENT_PROGRESS)
        goes.waitFor(IMGDL_EVENT_PROGRESS)
        XCTAssertEqual(imgdl_downloader_enter_background(downloader, 0), 0)
        let later = start(picture("rgba.png"))
        let flagged = start(picture("rgba.png", "n=1")) { $0.flags = flag }
        origin.gate("goes").open()
        origin.gate("paused").open()
        assertEnds(goes, "IMGDL_OK")
        assertEnds(flagged, "IMGDL_OK")
        XCTAssertEqual(origin.log.count("/pictures/rgba.png"), 1, "what did not ask for it has not started")
        XCTAssertEqual([paused.record.terminals, later.record.terminals], [0, 0])
        XCTAssertEqual(imgdl_downloader_enter_foreground(downloader), 0)
        assertEnds(paused, "IMGDL_OK")
        assertEnds(later, "IMGDL_OK")
    }

    func testO4_TheGraceEndsWithACodeOfItsOwn() {
        let flag = UInt32(IMGDL_REQUEST_CONTINUE_IN_BACKGROUND)
        let stalled = start(picture("baseline.jpg", "stall_after=100")) { $0.flags = flag }
        let other = start(picture("rgba.png", "hold_after=100&gate=go"))
        stalled.waitFor(IMGDL_EVENT_PROGRESS)
        other.waitFor(IMGDL_EVENT_PROGRESS)
        XCTAssertEqual(imgdl_downloader_enter_background(downloader, 20), 0)
        assertEnds(stalled, "IMGDL_ERROR_BACKGROUND_EXPIRED")
        assertOriginSees("it is closed") { $0.connectionsClosedByClient == 1 }
        XCTAssertEqual(imgdl_downloader_enter_foreground(downloader), 0)
        origin.gate("go").open()
        assertEnds(other, "IMGDL_OK")
    }

    func testT13_TheFlagIsTakenInTheForegroundAndDoesNothing() {
        assertEnds(
            start(picture("rgba.png")) { $0.flags = UInt32(IMGDL_REQUEST_CONTINUE_IN_BACKGROUND) }, "IMGDL_OK")
    }

    // MARK: Sessions

    /// Theirs calls back with an error and keeps the slot and the table's entry for ever.
    func testD7_M5_AnInvalidatedSessionRefusesAtOnceAndHoldsNothing() {
        replaceDownloader { $0.max_concurrent = 1 }
        let running = start(picture("baseline.jpg", "hold_after=100&gate=go"))
        running.waitFor(IMGDL_EVENT_PROGRESS)
        let waiting = start(picture("rgba.png"))
        XCTAssertEqual(imgdl_downloader_invalidate(downloader, 0), 0)
        assertEnds(waiting, "IMGDL_ERROR_INVALID_OPERATION")
        let refused = start(picture("rgba.png"))
        XCTAssertEqual(refused.status, Int32(IMGDL_ERROR_INVALID_OPERATION))
        XCTAssertEqual(refused.record.destructors, 1)
        origin.gate("go").open()
        assertEnds(running, "IMGDL_OK")
        // A new session takes requests again, with the slot that is free.
        XCTAssertEqual(imgdl_downloader_reconfigure(downloader, nil), 0)
        assertEnds(start(picture("rgba.png")), "IMGDL_OK")
    }

    func testM5_InvalidatingWithCancel() {
        let running = start(picture("baseline.jpg", "stall_after=100"))
        running.waitFor(IMGDL_EVENT_PROGRESS)
        XCTAssertEqual(imgdl_downloader_invalidate(downloader, 1), 0)
        assertEnds(running, "IMGDL_ERROR_CANCELLED")
        assertOriginSees("it is closed") { $0.connectionsClosedByClient == 1 }
    }

    func testM4_ReconfiguringCancelsClosesAndGoesOn() {
        assertEnds(start(picture("rgba.png")), "IMGDL_OK")
        let running = start(picture("baseline.jpg", "stall_after=100"))
        running.waitFor(IMGDL_EVENT_PROGRESS)
        var config = imgdl_config()
        imgdl_config_init(&config, MemoryLayout<imgdl_config>.stride)
        config.max_concurrent = 2
        "new/1".withCString { agent in
            config.user_agent = agent
            XCTAssertEqual(imgdl_downloader_reconfigure(downloader, &config), 0)
        }
        assertEnds(running, "IMGDL_ERROR_CANCELLED")
        XCTAssertEqual(imgdl_downloader_max_concurrent(downloader), 2)
        assertEnds(start(picture("rgba.png", "n=2")), "IMGDL_OK")
        XCTAssertEqual(origin.log.requests.last?.headers["User-Agent"], "new/1")
        assertOriginSees("none of the old connections is left") { $0.openConnections == 1 }
    }

    /// DESIGN section 2, promise 5: the destructor of the old session's hooks may call what it likes.
    func testM4_NoLockIsHeldWhileTheOldHooksEnd() {
        final class Seen: @unchecked Sendable {
            let width = Monitor(UInt32?.none)
            var downloader: OpaquePointer?
        }
        let seen = Seen()
        var table = imgdl_hooks_table()
        table.struct_size = UInt32(MemoryLayout<imgdl_hooks_table>.stride)
        table.modify_request = { _, next, _ in _ = imgdl_continue_unchanged(next) }
        table.user_data = Unmanaged.passRetained(seen).toOpaque()
        table.destructor = { data in
            let seen = Unmanaged<Seen>.fromOpaque(data!).takeRetainedValue()
            let width = imgdl_downloader_max_concurrent(seen.downloader)
            seen.width.change { $0 = width }
        }
        var hooks: OpaquePointer?
        XCTAssertEqual(imgdl_hooks_create(&table, &hooks), 0)
        replaceDownloader { $0.hooks = hooks }
        imgdl_hooks_release(hooks)
        seen.downloader = downloader
        let handle = downloader
        // On a thread of its own, so that a deadlock fails this test and does not stop the others.
        Thread { _ = imgdl_downloader_reconfigure(handle, nil) }.start()
        XCTAssertEqual(seen.width.wait(until: .patient) { $0 }, 6)
    }

    /// The same where downloads were the last that held the hooks: they end with their downloads, outside every lock.
    func testNoLockIsHeldWhileTheHooksOfADownloadEnd() {
        final class Seen: @unchecked Sendable {
            let status = Monitor(Int32?.none)
            var executor: OpaquePointer?
        }
        var executor: OpaquePointer?
        XCTAssertEqual(imgdl_executor_create_pumped(&executor), 0)
        defer { imgdl_executor_release(executor) }
        let all = (0..<3).map { number -> Seen in
            let seen = Seen()
            seen.executor = executor
            var table = imgdl_hooks_table()
            table.struct_size = UInt32(MemoryLayout<imgdl_hooks_table>.stride)
            table.modify_request = { _, next, _ in _ = imgdl_continue_unchanged(next) }
            table.user_data = Unmanaged.passRetained(seen).toOpaque()
            table.destructor = { data in
                let seen = Unmanaged<Seen>.fromOpaque(data!).takeRetainedValue()
                let status = imgdl_executor_dispatch(seen.executor, 0, nil)
                seen.status.change { $0 = status }
            }
            var hooks: OpaquePointer?
            XCTAssertEqual(imgdl_hooks_create(&table, &hooks), 0)
            var request = imgdl_request()
            imgdl_request_init(&request, MemoryLayout<imgdl_request>.stride)
            request.hooks = hooks
            request.executor = executor
            request.callback = { _, _ in }
            picture("rgba.png", "n=\(number)").withCString { url in
                request.url = url
                XCTAssertEqual(imgdl_download(downloader, &request, nil), 0)
            }
            imgdl_hooks_release(hooks)
            return seen
        }
        let deadline = Date(timeIntervalSinceNow: 10)
        var stats = imgdl_stats()
        imgdl_stats_init(&stats, MemoryLayout<imgdl_stats>.stride)
        while stats.succeeded < 3, Date() < deadline {
            XCTAssertEqual(imgdl_downloader_stats(downloader, &stats), 0)
            sched_yield()
        }
        // On a thread of its own, so that a deadlock fails this test and does not stop the others.
        Thread { _ = imgdl_executor_dispatch(executor, 0, nil) }.start()
        for seen in all { XCTAssertNotNil(seen.status.wait(until: .patient) { $0 }) }
    }

    func testM4_AConfigThatIsRefusedChangesNothing() {
        let running = start(picture("baseline.jpg", "hold_after=100&gate=go"))
        running.waitFor(IMGDL_EVENT_PROGRESS)
        var config = imgdl_config()
        imgdl_config_init(&config, MemoryLayout<imgdl_config>.stride)
        config.max_concurrent = 1_000_000
        XCTAssertEqual(imgdl_downloader_reconfigure(downloader, &config), Int32(IMGDL_ERROR_INVALID_ARGUMENT))
        XCTAssertEqual(imgdl_downloader_max_concurrent(downloader), 6)
        origin.gate("go").open()
        assertEnds(running, "IMGDL_OK")
    }

    func testTheSharedDownloaderKeepsItsSession() {
        var shared: OpaquePointer?
        XCTAssertEqual(imgdl_downloader_shared(&shared), 0)
        defer { imgdl_downloader_release(shared) }
        XCTAssertEqual(imgdl_downloader_invalidate(shared, 1), Int32(IMGDL_ERROR_INVALID_OPERATION))
        XCTAssertEqual(imgdl_downloader_reconfigure(shared, nil), Int32(IMGDL_ERROR_INVALID_OPERATION))
    }
}
