import CImgdl
import Origin
import XCTest

/// What SDWebImage's own tests hold (features section 2), against a scripted origin.
final class DownloadTests: DownloaderTestCase {
    func testT01_TwoDownloadersShareNothing() {
        let other = makeDownloader()
        defer { _ = imgdl_downloader_destroy(other) }
        XCTAssertEqual(imgdl_downloader_set_header(other, "X-Mine", "1"), 0)
        let gate = origin.gate("go")
        let url = picture("baseline.jpg", "hold_after=10&gate=go")
        let first = start(url)
        let second = Download().start(other, url)
        assertOriginSees("two requests") { $0.count("/pictures/baseline.jpg") == 2 }
        gate.open()
        assertEnds(first, "IMGDL_OK")
        assertEnds(second, "IMGDL_OK")
        XCTAssertEqual(origin.log.requests.filter { $0.headers["X-Mine"] != nil }.count, 1)
    }

    func testT02_DefaultHeadersAtTheOrigin() {
        assertEnds(start(picture("baseline.jpg")), "IMGDL_OK")
        let headers = origin.log.requests[0].headers
        XCTAssertEqual(headers["Accept"], "image/*,*/*;q=0.8")
        XCTAssertEqual(headers["User-Agent"], "imgdl/1.1.0")
        XCTAssertNil(headers["Cookie"])
    }

    func testT03_HeadersAreSetReplacedAndRemoved() {
        XCTAssertEqual(imgdl_downloader_set_header(downloader, "X-One", "a"), 0)
        XCTAssertEqual(imgdl_downloader_set_header(downloader, "x-one", "b"), 0)
        XCTAssertEqual(imgdl_downloader_set_header(downloader, "X-Two", "c"), 0)
        XCTAssertEqual(imgdl_downloader_set_header(downloader, "X-Two", nil), 0)
        assertEnds(
            start(picture("baseline.jpg"), headers: [("X-Own", "d"), ("Accept", "image/png"), ("User-Agent", nil)]),
            "IMGDL_OK")
        let headers = origin.log.requests[0].headers
        XCTAssertEqual(headers.all("X-One"), ["b"])
        XCTAssertNil(headers["X-Two"])
        XCTAssertEqual(headers["X-Own"], "d")
        XCTAssertEqual(headers.all("Accept"), ["image/png"])
        XCTAssertNil(headers["User-Agent"])
    }

    func testT04_T14_EachFormatGivesItsPixels() {
        let formats = [
            "baseline.jpg": 1, "progressive.jpg": 1, "rgba.png": 2, "adam7.png": 2, "lossy.webp": 3, "lossless.webp": 3,
        ]
        for (name, format) in formats {
            let download = start(picture(name))
            assertEnds(download, "IMGDL_OK")
            XCTAssertEqual(download.record.imageFormat, UInt32(format), name)
            XCTAssertEqual(download.record.pixels?.count, Pictures.width * Pictures.height * 4, name)
            XCTAssertEqual(download.record.pixels, decoded(name), "\(name): as in one call (B7)")
            XCTAssertEqual(download.record.message, "")
        }
    }

    func testB22_OrientationIsAppliedOnce() {
        let download = start(picture("oriented.jpg"))
        assertEnds(download, "IMGDL_OK")
        let sizes = download.record.seen.filter { $0.width > 0 }.map { [$0.width, $0.height] }
        XCTAssertFalse(sizes.isEmpty)
        XCTAssertTrue(sizes.allSatisfy { $0 == [UInt32(Pictures.height), UInt32(Pictures.width)] }, "\(sizes)")
    }

    func testT05_NeverMoreThanTheLimitAtOnce() {
        replaceDownloader { $0.max_concurrent = 2 }
        let gate = origin.gate("go")
        let downloads = (0..<8).map { start(picture("baseline.jpg", "hold_after=10&gate=go&n=\($0)")) }
        assertOriginSees("two in flight") { $0.inFlight == 2 }
        XCTAssertEqual(imgdl_downloader_set_max_concurrent(downloader, 4), 0)
        assertOriginSees("four in flight") { $0.inFlight == 4 }
        XCTAssertEqual(imgdl_downloader_set_max_concurrent(downloader, 1), 0)
        gate.open()
        for download in downloads { assertEnds(download, "IMGDL_OK") }
        XCTAssertEqual(origin.log.maxInFlight, 4)
    }

    func testT07_RefusedURLs() {
        let cases: [(String, String)] = [
            ("", "IMGDL_ERROR_INVALID_URL"), ("not a url", "IMGDL_ERROR_INVALID_URL"),
            ("http://", "IMGDL_ERROR_INVALID_URL"), ("http://host:99999/", "IMGDL_ERROR_INVALID_URL"),
            ("http://a b/", "IMGDL_ERROR_INVALID_URL"), ("http://h/\r\nX: y", "IMGDL_ERROR_INVALID_URL"),
            ("ftp://host/a.png", "IMGDL_ERROR_UNSUPPORTED_SCHEME"),
            ("file:///etc/passwd", "IMGDL_ERROR_UNSUPPORTED_SCHEME"),
            ("data:image/png;base64,AAAA", "IMGDL_ERROR_UNSUPPORTED_SCHEME"),
        ]
        for (url, name) in cases {
            let download = start(url)
            XCTAssertEqual(String(cString: imgdl_error_name(download.status)), name, "“\(url)”")
            download.wait()
            XCTAssertEqual(download.record.terminals, 0, "a refused request has no callback but its destructor")
            XCTAssertFalse(String(cString: imgdl_last_error()).isEmpty)
        }
        let none = Download().start(downloader, "x") { $0.url = nil }
        XCTAssertEqual(none.status, Int32(IMGDL_ERROR_INVALID_URL))
    }

    func testT09_T33_ProgressivePicturesShowEarly() {
        for name in ["baseline.jpg", "progressive.jpg", "rgba.png", "adam7.png", "lossy.webp"] {
            let size = Pictures.bytes(name).count
            let gate = origin.gate(name)
            let download = start(picture(name, "hold_after=\(size * 3 / 4)&gate=\(name)&chunk=1000"))
            download.waitFor(IMGDL_EVENT_PARTIAL)
            gate.open()
            assertEnds(download, "IMGDL_OK")
            let partials = download.record.seen.filter { $0.kind == UInt32(IMGDL_EVENT_PARTIAL) }
            XCTAssertTrue(
                partials.allSatisfy { $0.width == UInt32(Pictures.width) && $0.height == UInt32(Pictures.height) }, name
            )
            XCTAssertEqual(download.record.pixels, decoded(name), name)
        }
    }

    func testT10_ErrorBodiesAreNeverDecoded() {
        for status in [400, 403, 404, 410, 500, 503] {
            let download = start(picture("baseline.jpg", "status=\(status)"))
            assertEnds(download, "IMGDL_ERROR_INVALID_STATUS")
            XCTAssertEqual(download.record.httpStatus, Int32(status))
            XCTAssertFalse(download.kinds.contains(UInt32(IMGDL_EVENT_HEADER)))
            XCTAssertTrue(download.record.message.contains("\(status)"), download.record.message)
            XCTAssertTrue(download.record.message.contains("/pictures/baseline.jpg"), download.record.message)
        }
    }

    func testT11_CancelEndsTheTransfer() {
        let download = start(picture("baseline.jpg", "stall_after=2000"))
        download.waitFor(IMGDL_EVENT_PROGRESS)
        XCTAssertEqual(imgdl_downloader_current_count(downloader), 1)
        download.cancel()
        assertEnds(download, "IMGDL_ERROR_CANCELLED")
        XCTAssertEqual(imgdl_downloader_current_count(downloader), 0)
        assertOriginSees("the connection closed") { $0.connectionsClosedByClient == 1 }
        download.cancel()
        XCTAssertEqual(download.record.terminals, 1)
    }

    func testT11b_CancelAll() {
        let downloads = (0..<10).map { start(picture("baseline.jpg", "stall_after=2000&n=\($0)")) }
        downloads[0].waitFor(IMGDL_EVENT_PROGRESS)
        XCTAssertEqual(imgdl_downloader_cancel_all(downloader), 0)
        for download in downloads { assertEnds(download, "IMGDL_ERROR_CANCELLED") }
        XCTAssertEqual(imgdl_downloader_wait_idle(downloader, 10_000), 0)
        assertOriginSees("no connection") { $0.openConnections == 0 || $0.inFlight == 0 }
    }

    func testT15_LastInFirstOut() {
        for width in [1, 4] {
            replaceDownloader {
                $0.max_concurrent = UInt32(width)
                $0.order = UInt32(IMGDL_ORDER_LIFO)
            }
            origin.resetLog()
            let gate = origin.gate("w\(width)")
            let url = { (n: Int) in self.picture("baseline.jpg", "hold_after=10&gate=w\(width)&n=\(n)") }
            var downloads = (1...7).map { start(url($0)) }
            assertOriginSees("the first at work") { $0.inFlight == width }
            XCTAssertEqual(imgdl_downloader_set_suspended(downloader, 1), 0)
            downloads += (8...14).map { start(url($0)) }
            XCTAssertEqual(imgdl_downloader_set_suspended(downloader, 0), 0)
            XCTAssertEqual(imgdl_downloader_current_count(downloader), 14)
            gate.open()
            for download in downloads { assertEnds(download, "IMGDL_OK") }
            let order = origin.log.requests.compactMap { $0.query["n"] }.compactMap { Int($0) }
            if width == 1 {
                XCTAssertEqual(order, [1] + (2...14).reversed())
            } else {
                XCTAssertEqual(Set(order.prefix(4)), [1, 2, 3, 4])
                XCTAssertEqual(origin.log.maxInFlight, 4, "LIFO costs no concurrency (I22)")
            }
        }
    }

    func testT17_FinalProgressIsAlwaysSeen() {
        let size = Int64(Pictures.bytes("baseline.jpg").count)
        let download = start(
            picture("baseline.jpg", "chunk=1000"),
            events: Int(IMGDL_EVENT_STARTED | IMGDL_EVENT_RESPONSE | IMGDL_EVENT_PROGRESS))
        assertEnds(download, "IMGDL_OK")
        let seen = download.record.seen
        XCTAssertEqual(seen[0], .init(kind: UInt32(IMGDL_EVENT_STARTED), received: 0, expected: -1))
        XCTAssertEqual(seen[1].kind, UInt32(IMGDL_EVENT_RESPONSE))
        XCTAssertEqual(seen[1].expected, size)
        XCTAssertEqual(seen[1].received, 0)
        let progress = seen.filter { $0.kind == UInt32(IMGDL_EVENT_PROGRESS) }
        XCTAssertEqual(progress.last?.received, size)
        XCTAssertEqual(progress.last?.expected, size)
        XCTAssertEqual(progress.map(\.received), progress.map(\.received).sorted())
    }

    /// Each more than half of the whole: two at most, and the last.
    func testT17_C3_ProgressComesAtTheIntervalThatWasAsked() {
        replaceDownloader { $0.progress_interval = 0.51 }
        let size = Int64(Pictures.bytes("baseline.jpg").count)
        for faults in ["chunk=100", "chunk=\(size / 3)"] {
            let download = start(picture("baseline.jpg", faults))
            assertEnds(download, "IMGDL_OK")
            let progress = download.record.seen.filter { $0.kind == UInt32(IMGDL_EVENT_PROGRESS) }
            XCTAssertTrue((1...4).contains(progress.count), "\(progress.count)")
            XCTAssertEqual(progress.last?.received, size)
        }
        // Where the whole is not known there is no part of it.
        let chunked = start(picture("baseline.jpg", "chunked=1&chunk=100"))
        assertEnds(chunked, "IMGDL_OK")
        XCTAssertEqual(chunked.record.seen.filter { $0.kind == UInt32(IMGDL_EVENT_PROGRESS) }.last?.received, size)
    }

    /// Theirs works without a session; here nothing has to be set up at all.
    func testT12_TheSharedDownloaderNeedsNoSetUp() {
        var shared: OpaquePointer?
        XCTAssertEqual(imgdl_downloader_shared(&shared), 0)
        defer { imgdl_downloader_release(shared) }
        assertEnds(Download().start(shared, picture("rgba.png")), "IMGDL_OK")
    }

    func testB8_WithoutContentLengthTheTotalIsUnknown() {
        let gate = origin.gate("go")
        let size = Int64(Pictures.bytes("baseline.jpg").count)
        let download = start(picture("baseline.jpg", "chunked=1&chunk=1000&hold_after=\(size * 3 / 4)&gate=go"))
        download.waitFor(IMGDL_EVENT_HEADER).waitFor(IMGDL_EVENT_PARTIAL)
        gate.open()
        assertEnds(download, "IMGDL_OK")
        let progress = download.record.seen.filter { $0.kind == UInt32(IMGDL_EVENT_PROGRESS) }
        XCTAssertTrue(progress.dropLast().allSatisfy { $0.expected == -1 })
        XCTAssertEqual(progress.last?.expected, size)
    }

    func testBodyModeHandsOverAnyType() {
        let download = start(picture("page.html")) { $0.flags = UInt32(IMGDL_REQUEST_BODY) }
        assertEnds(download, "IMGDL_OK")
        XCTAssertEqual(download.record.body, Pictures.bytes("page.html"))
        XCTAssertFalse(download.record.hasImage)
        let both = start(picture("rgba.png")) { $0.flags = UInt32(IMGDL_REQUEST_BODY | IMGDL_REQUEST_DECODE) }
        assertEnds(both, "IMGDL_OK")
        XCTAssertEqual(both.record.body, Pictures.bytes("rgba.png"))
        XCTAssertEqual(both.record.pixels, decoded("rgba.png"))
        let empty = start(picture("empty")) { $0.flags = UInt32(IMGDL_REQUEST_BODY) }
        assertEnds(empty, "IMGDL_OK")
        XCTAssertEqual(empty.record.body, [])
    }

    func testMethodAndBodyAreSent() {
        let body = Array("hello".utf8)
        let download = body.withUnsafeBytes { bytes in
            "POST".withCString { method in
                start(origin.url("/echo"), headers: [("Content-Type", "text/plain")]) {
                    $0.flags = UInt32(IMGDL_REQUEST_BODY)
                    $0.method = method
                    $0.body = bytes.baseAddress
                    $0.body_length = bytes.count
                }
            }
        }
        assertEnds(download, "IMGDL_OK")
        let request = origin.log.requests[0]
        XCTAssertEqual(request.method, "POST")
        XCTAssertEqual(request.body, body)
        XCTAssertEqual(request.headers.all("Content-Type"), ["text/plain"])
    }

    func testB17_RedirectsAreFollowedAndTold() {
        let target = picture("rgba.png")
        let download = start(origin.url("/redirect/3?to=\(target)"))
        assertEnds(download, "IMGDL_OK")
        XCTAssertEqual(download.record.redirects, 3)
        XCTAssertEqual(download.record.responseURL, target)
        XCTAssertEqual(download.kinds.filter { $0 == UInt32(IMGDL_EVENT_RESPONSE) }.count, 1)
        let seen = start(origin.url("/redirect/1?to=\(target)")) {
            $0.flags = UInt32(IMGDL_REQUEST_BODY | IMGDL_REQUEST_NO_REDIRECTS)
        }
        assertEnds(seen, "IMGDL_OK")
        XCTAssertEqual(seen.record.httpStatus, 302)
    }

    func testI24_AnotherOriginSeesNoCredentials() throws {
        let second = try Origin()
        defer { second.stop() }
        second.content["rgba.png"] = Picture(Pictures.bytes("rgba.png"), type: "image/png")
        let target = second.url("/pictures/rgba.png")
        let download = start(
            origin.url("/redirect?to=\(target)&code=307"),
            headers: [("Authorization", "Bearer secret"), ("Cookie", "a=b"), ("X-Other", "kept")])
        assertEnds(download, "IMGDL_OK")
        XCTAssertEqual(origin.log.requests[0].headers["Authorization"], "Bearer secret")
        let headers = second.log.requests[0].headers
        XCTAssertNil(headers["Authorization"])
        XCTAssertNil(headers["Cookie"])
        XCTAssertEqual(headers["X-Other"], "kept")
    }

    /// A message that named the first URL alone would blame a server that did as it should.
    func testMessagesNameWhereARedirectLed() throws {
        let second = try Origin()
        defer { second.stop() }
        second.content["page"] = Picture(Array("<html>".utf8), type: "text/html")
        func led(to target: String, _ code: String, flags: imgdl_request_flags = 0) throws -> String {
            origin.route("/away") { try $0.respond(302, headers: ["Location": target]) }
            let download = start(origin.url("/away?a=first")) { $0.flags = flags }
            assertEnds(download, code)
            return download.record.message
        }
        let redacted = origin.url("/away?a=…")
        let gone = second.url("/status/404")
        XCTAssertEqual(
            try led(to: gone + "?b=second", "IMGDL_ERROR_INVALID_STATUS"),
            "\(redacted), redirected to \(gone)?b=…: the server answered 404 (not found)")
        XCTAssertEqual(
            try led(to: gone + "?b=second", "IMGDL_ERROR_INVALID_STATUS", flags: UInt32(IMGDL_REQUEST_FULL_URLS)),
            "\(origin.url("/away?a=first")), redirected to \(gone)?b=second: the server answered 404 (not found)")
        for (target, code) in [
            (second.url("/pictures/page"), "IMGDL_ERROR_BAD_IMAGE_DATA"),
            ("http://127.0.0.1:1/", "IMGDL_ERROR_CONNECT_FAILED"),
            (second.url("/redirect?to=ftp://a.example/"), "IMGDL_ERROR_REDIRECT_REFUSED"),
        ] {
            let url = target.replacingOccurrences(of: "ftp://a.example/", with: "…")
            let message = try led(to: target, code)
            XCTAssertTrue(message.hasPrefix("\(redacted), redirected to \(url): "), message)
        }
        // What has not been followed is no redirect.
        let refused = try led(to: "ftp://a.example/", "IMGDL_ERROR_REDIRECT_REFUSED")
        XCTAssertTrue(refused.hasPrefix("\(redacted): a redirect"), refused)
        for target in ["ftp://me:hun@h/", "me:hun@h/", "http:///me:hun@h/", "http://me:hu/n@h/", "//me:hun@h:x/"] {
            let refused = try led(to: target, "IMGDL_ERROR_REDIRECT_REFUSED")
            XCTAssertTrue(refused.hasPrefix("\(redacted): a redirect"), refused)
            for secret in ["hu", "“me”", "me:"] { XCTAssertFalse(refused.contains(secret), refused) }
        }
        // Nor is one to the same address anything to tell apart.
        origin.route("/itself") { exchange in
            guard exchange.request.headers["Cookie"] == nil else { return try exchange.respond(404) }
            try exchange.respond(302, headers: ["Location": "/itself", "Set-Cookie": "a=b"])
        }
        let itself = start(origin.url("/itself")) { $0.flags = UInt32(IMGDL_REQUEST_COOKIES) }
        assertEnds(itself, "IMGDL_ERROR_INVALID_STATUS")
        XCTAssertEqual(itself.record.message, "\(origin.url("/itself")): the server answered 404 (not found)")
        replaceDownloader { $0.failure_ttl_ms = 600_000 }
        let page = second.url("/pictures/page")
        _ = try led(to: page, "IMGDL_ERROR_BAD_IMAGE_DATA")
        let again = try led(to: page, "IMGDL_ERROR_BLACKLISTED")
        XCTAssertTrue(again.contains("is not asked for again yet: redirected to \(page): "), again)
    }

    /// They are for one server, and another one has refused.
    func testMessagesSayThatARedirectLeftCredentialsOut() throws {
        let second = try Origin()
        defer { second.stop() }
        replaceDownloader { $0.flags = UInt32(IMGDL_CONFIG_BASIC_OVER_HTTP) }
        func message(_ path: String, _ target: String, headers: [(String, String)] = [], _ user: String? = nil)
            -> String
        {
            origin.route(path) { try $0.respond(302, headers: ["Location": target]) }
            let user = user.map { strdup($0) }
            defer { free(user ?? nil) }
            let download = start(origin.url(path), headers: headers) {
                if let user { $0.user = UnsafePointer(user) }
                if let user { $0.password = UnsafePointer(user) }
            }
            assertEnds(download, "IMGDL_ERROR_INVALID_STATUS")
            return download.record.message
        }
        let token = [("authorization", "Bearer t")]
        let words = "; the credentials are for \(origin.url("")) and were not sent"
        let back = "; the credentials were not sent, since a redirect had left their server"
        for status in [401, 403] {
            let target = second.url("/status/\(status)")
            for message in [message("/a", target, headers: token), message("/a", target, "me")] {
                XCTAssertTrue(message.contains("redirected to \(target): the server answered \(status) "), message)
                XCTAssertTrue(message.hasSuffix(")" + words), message)
            }
            XCTAssertFalse(message("/a", target).contains("credentials"))
            let own = message("/b", origin.url("/status/\(status)"), headers: token)
            XCTAssertFalse(own.contains("credentials"), own)
            second.route("/back") { [origin] in
                try $0.respond(302, headers: ["Location": origin!.url("/status/\(status)")])
            }
            let returned = message("/a", second.url("/back"), headers: token)
            XCTAssertTrue(returned.hasSuffix(back), returned)
            // Those of the redirect were sent.
            let named = message("/a", target.replacingOccurrences(of: "://", with: "://a:b@"), headers: token)
            XCTAssertFalse(named.contains("credentials"), named)
        }
        XCTAssertFalse(message("/a", second.url("/status/404"), headers: token).contains("credentials"))
    }

    func testI17_EncodedBodiesGiveNoFalseAlarm() {
        for encoding in ["gzip=1", "deflate=1", "gzip=1&chunked=1"] {
            let download = start(picture("rgba.png", encoding))
            assertEnds(download, "IMGDL_OK")
            XCTAssertEqual(download.record.pixels, decoded("rgba.png"), encoding)
        }
        XCTAssertTrue(origin.log.requests.allSatisfy { $0.headers["Accept-Encoding"]?.contains("gzip") ?? false })
        // It comes all the same, and is undone.
        XCTAssertFalse(origin.log.requests.contains { $0.headers["Accept-Encoding"]?.contains("deflate") ?? false })
    }

    func testConnectionsAreUsedAgain() {
        for _ in 0..<5 { assertEnds(start(picture("rgba.png")), "IMGDL_OK") }
        for _ in 0..<3 { assertEnds(start(origin.url("/status/404")), "IMGDL_ERROR_INVALID_STATUS") }
        assertEnds(start(origin.url("/redirect/2?to=\(picture("rgba.png"))")), "IMGDL_OK")
        XCTAssertEqual(origin.log.connections.count, 1)
    }

    func testI32_NoTimeoutWhileWaiting() {
        replaceDownloader {
            $0.max_concurrent = 1
            $0.idle_timeout_ms = 60_000
        }
        let gate = origin.gate("go")
        let first = start(picture("baseline.jpg", "hold_after=10&gate=go"))
        first.waitFor(IMGDL_EVENT_RESPONSE)
        let waiting = (0..<20).map { n in start(picture("rgba.png", "n=\(n)")) { $0.total_timeout_ms = 60_000 } }
        XCTAssertFalse(waiting.contains { $0.kinds.contains(UInt32(IMGDL_EVENT_STARTED)) })
        gate.open()
        assertEnds(first, "IMGDL_OK")
        for download in waiting { assertEnds(download, "IMGDL_OK") }
    }

    func testSuspendedStartsNothing() {
        XCTAssertEqual(imgdl_downloader_set_suspended(downloader, 1), 0)
        let download = start(picture("rgba.png"))
        let cancelled = start(picture("baseline.jpg"))
        cancelled.cancel()
        assertEnds(cancelled, "IMGDL_ERROR_CANCELLED")
        XCTAssertEqual(origin.log.requests.count, 0)
        XCTAssertEqual(imgdl_downloader_set_suspended(downloader, 0), 0)
        assertEnds(download, "IMGDL_OK")
    }

    func testSuspendingDoesNotHoldUpAShutdown() {
        replaceDownloader { $0.max_concurrent = 1 }
        let running = start(picture("baseline.jpg", "hold_after=10&gate=go"))
        running.waitFor(IMGDL_EVENT_RESPONSE)
        let waiting = start(picture("rgba.png"))
        XCTAssertEqual(imgdl_downloader_shutdown(downloader, UInt32(IMGDL_SHUTDOWN_FINISH), nil, nil), 0)
        XCTAssertEqual(imgdl_downloader_set_suspended(downloader, 1), 0)
        origin.gate("go").open()
        assertEnds(running, "IMGDL_OK")
        assertEnds(waiting, "IMGDL_OK")
    }

    func testB13_HighPriorityGoesFirst() {
        replaceDownloader { $0.max_concurrent = 1 }
        let gate = origin.gate("go")
        var downloads = [start(picture("baseline.jpg", "hold_after=10&gate=go"))]
        downloads[0].waitFor(IMGDL_EVENT_RESPONSE)
        // Whatever the engine sees first, nothing starts before it has seen all.
        XCTAssertEqual(imgdl_downloader_set_suspended(downloader, 1), 0)
        for (n, priority) in [IMGDL_PRIORITY_LOW, IMGDL_PRIORITY_NORMAL, IMGDL_PRIORITY_HIGH, IMGDL_PRIORITY_LOW]
            .enumerated()
        {
            downloads.append(start(picture("rgba.png", "n=\(n)")) { $0.priority = Int32(priority) })
        }
        // One that joins a waiting transfer lifts it (I18).
        downloads.append(start(picture("rgba.png", "n=3")) { $0.priority = Int32(IMGDL_PRIORITY_HIGH) })
        XCTAssertEqual(imgdl_downloader_set_suspended(downloader, 0), 0)
        gate.open()
        for download in downloads { assertEnds(download, "IMGDL_OK") }
        XCTAssertEqual(origin.log.requests.compactMap { $0.query["n"] }, ["2", "3", "1", "0"])
    }

    /// The next request's socket has the number of the one whose connection was still being made.
    func testACancelWhileConnectingConcernsThatRequestAlone() throws {
        replaceDownloader { $0.max_concurrent = 1 }
        let silent = try FullListener()
        let late = try FullListener()
        defer {
            silent.close()
            late.close()
        }
        let cancelled = start("http://127.0.0.1:\(silent.port)/")
        XCTAssertTrue(silent.waitForConnecting())
        let next = start("http://127.0.0.1:\(late.port)/")
        cancelled.cancel()
        assertEnds(cancelled, "IMGDL_ERROR_CANCELLED")
        XCTAssertTrue(late.waitForConnecting())
        late.answer(Pictures.bytes("rgba.png"))
        assertEnds(next, "IMGDL_OK")
    }

    /// The picture decoded by imgdl_decode, without a download.
    /// A program that the host starts meanwhile must not hold the library's connections open.
    func testNoConnectionIsInherited() {
        let download = start(picture("baseline.jpg", "hold_after=10&gate=go"))
        download.waitFor(IMGDL_EVENT_PROGRESS)
        let connections = (0..<Int32(1024)).filter { peerPort($0) == origin.port }
        XCTAssertEqual(connections.count, 1)
        for descriptor in connections { XCTAssertEqual(fcntl(descriptor, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC) }
        origin.gate("go").open()
        assertEnds(download, "IMGDL_OK")
    }

    /// Of a socket that is connected to somebody over IPv4; nil for any other descriptor.
    private func peerPort(_ descriptor: Int32) -> Int? {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) }
        }
        guard status == 0, address.sin_family == sa_family_t(AF_INET) else { return nil }
        return Int(UInt16(bigEndian: address.sin_port))
    }

    func decoded(_ name: String) -> [UInt8]? { decodedPixels(Pictures.bytes(name)) }
}
