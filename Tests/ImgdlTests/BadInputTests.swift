import CImgdl
import Origin
import Foundation
import XCTest

/// Every kind of bad input gives a clear error, which names its code, and loses nothing.
final class BadInputTests: DownloaderTestCase {
    func testUnresolvableHost() {
        let download = start("http://nosuch.invalid/a.png")
        assertEnds(download, "IMGDL_ERROR_RESOLVE_FAILED")
        XCTAssertTrue(download.record.message.contains("nosuch.invalid"), download.record.message)
    }

    func testRefusedConnection() throws {
        let gone = try Origin()
        let url = gone.url("/a.png")
        gone.stop()
        assertEnds(start(url), "IMGDL_ERROR_CONNECT_FAILED")
    }

    func testHTMLUnderAnImageType() {
        let download = start(picture("page.html", "type=image/png"))
        assertEnds(download, "IMGDL_ERROR_BAD_IMAGE_DATA")
        XCTAssertTrue(download.record.message.contains("<!DOCTYPE html"), download.record.message)
    }

    func testAPictureUnderAnotherType() {
        assertEnds(start(picture("rgba.png", "type=text/plain")), "IMGDL_OK")
    }

    func testEmptyBody() {
        assertEnds(start(picture("empty")), "IMGDL_ERROR_BAD_IMAGE_DATA")
        assertEnds(start(picture("baseline.jpg", "empty=1")), "IMGDL_ERROR_BAD_IMAGE_DATA")
    }

    func testB5_BodyCutAtEveryQuarter() {
        for name in ["baseline.jpg", "progressive.jpg", "rgba.png", "adam7.png", "lossy.webp", "lossless.webp"] {
            let size = Pictures.bytes(name).count
            for quarter in 1...3 {
                let cut = size * quarter / 4
                assertEnds(start(picture(name, "short_by=\(size - cut)")), "IMGDL_ERROR_TRUNCATED")
                assertEnds(start(picture(name, "chunked=1&cut_chunked=1&close_after=\(cut)")), "IMGDL_ERROR_TRUNCATED")
                // A server that announces what it sends, and sends a cut file: the picture itself ends too early.
                let cutPicture = Array(Pictures.bytes(name).prefix(cut))
                origin.content["cut"] = Picture(cutPicture, type: "image/jpeg")
                let download = start(picture("cut", "n=\(name)\(quarter)"))
                assertEnds(download, "IMGDL_ERROR_TRUNCATED")
                XCTAssertFalse(download.record.hasImage)
            }
        }
    }

    func testB5_SalvageBringsThePixels() {
        for name in ["baseline.jpg", "rgba.png", "lossy.webp"] {
            let size = Pictures.bytes(name).count
            var options = imgdl_decode_options()
            imgdl_decode_options_init(&options, MemoryLayout<imgdl_decode_options>.stride)
            options.flags = UInt32(IMGDL_DECODE_SALVAGE)
            let download = withUnsafePointer(to: options) { options in
                start(picture(name, "short_by=\(size / 2)")) { $0.decode = options }
            }
            assertEnds(download, "IMGDL_ERROR_TRUNCATED")
            XCTAssertTrue(download.record.hasImage, name)
            XCTAssertTrue(download.record.pixels?.contains { $0 != 0 } ?? false, name)
        }
    }

    func testWrongMagic() {
        origin.content["noise"] = Picture((0..<1000).map { UInt8(truncatingIfNeeded: $0 * 37) }, type: "image/jpeg")
        assertEnds(start(picture("noise")), "IMGDL_ERROR_BAD_IMAGE_DATA")
    }

    func testPixelLimit() {
        var options = imgdl_decode_options()
        imgdl_decode_options_init(&options, MemoryLayout<imgdl_decode_options>.stride)
        options.max_pixels = UInt64(Pictures.width * Pictures.height - 1)
        for name in ["baseline.jpg", "progressive.jpg", "rgba.png", "lossy.webp"] {
            let download = withUnsafePointer(to: options) { options in start(picture(name)) { $0.decode = options } }
            assertEnds(download, "IMGDL_ERROR_PIXEL_LIMIT")
        }
        options.max_pixels += 1
        let fits = withUnsafePointer(to: options) { options in start(picture("rgba.png")) { $0.decode = options } }
        assertEnds(fits, "IMGDL_OK")
    }

    func testBodyLimitAnnouncedAndReceived() {
        let size = Pictures.bytes("rgba.png").count
        let announced = start(picture("rgba.png")) { $0.max_body_bytes = UInt64(size - 1) }
        assertEnds(announced, "IMGDL_ERROR_BODY_LIMIT")
        XCTAssertTrue(announced.record.message.contains("\(size - 1)"), announced.record.message)
        XCTAssertFalse(announced.kinds.contains(UInt32(IMGDL_EVENT_PROGRESS)))
        assertEnds(
            start(picture("rgba.png", "chunked=1")) { $0.max_body_bytes = UInt64(size - 1) }, "IMGDL_ERROR_BODY_LIMIT")
        let bomb = start(picture("rgba.png", "gzip_bomb=10000000")) {
            $0.max_body_bytes = 100_000
            $0.flags = UInt32(IMGDL_REQUEST_BODY)
        }
        assertEnds(bomb, "IMGDL_ERROR_BODY_LIMIT")
        assertEnds(start(picture("rgba.png", "chunked=1")) { $0.max_body_bytes = UInt64(size) }, "IMGDL_OK")
    }

    func testB10_AnAnnouncedLengthIsNotBelieved() {
        let before = residentBytes()
        let download = start(picture("rgba.png", "length=\(UInt64(1) << 40)&close_after=10")) {
            $0.max_body_bytes = .max
        }
        assertEnds(download, "IMGDL_ERROR_TRUNCATED")
        // A sanitizer's own shadow memory grows too.
        let isSanitized = ProcessInfo.processInfo.environment["IMGDL_SANITIZER"] != nil
        XCTAssertLessThan(residentBytes() - before, isSanitized ? 64 << 20 : 1 << 20)
    }

    func testRedirectLoopsAndLimits() {
        assertEnds(start(origin.url("/redirect-loop")), "IMGDL_ERROR_TOO_MANY_REDIRECTS")
        assertEnds(start(origin.url("/redirect/11?to=\(picture("rgba.png"))")), "IMGDL_ERROR_TOO_MANY_REDIRECTS")
        assertEnds(start(origin.url("/redirect/10?to=\(picture("rgba.png"))")), "IMGDL_OK")
        assertEnds(start(origin.url("/redirect?to=file:///etc/passwd")), "IMGDL_ERROR_REDIRECT_REFUSED")
        assertEnds(start(origin.url("/redirect?to=ftp://127.0.0.1/a")), "IMGDL_ERROR_REDIRECT_REFUSED")
    }

    func testB16_OneBytePerSecondMeetsTheTotalTimeout() {
        let download = start(picture("baseline.jpg", "drip_ms=20")) { $0.total_timeout_ms = 2_000 }
        assertEnds(download, "IMGDL_ERROR_TOTAL_TIMEOUT")
        XCTAssertTrue(download.record.message.contains("2000"), download.record.message)
        assertOriginSees("the connection closed") { $0.connectionsClosedByClient == 1 }
    }

    func testB16_SilenceMeetsTheIdleTimeout() {
        replaceDownloader { $0.idle_timeout_ms = 200 }
        assertEnds(start(picture("baseline.jpg", "first_byte=never")), "IMGDL_ERROR_IDLE_TIMEOUT")
        assertEnds(start(picture("baseline.jpg", "stall_after=2000")), "IMGDL_ERROR_IDLE_TIMEOUT")
    }

    func testAStalledErrorPageIsStillItsStatus() {
        for status in [401, 404, 407] as [Int32] {
            let download = start(picture("page.html", "status=\(status)&stall_after=0"))
            assertEnds(download, "IMGDL_ERROR_INVALID_STATUS")
            XCTAssertEqual(download.record.httpStatus, status)
        }
    }

    func testConnectionsLost() {
        assertEnds(start(origin.url("/garbage")), "IMGDL_ERROR_PROTOCOL")
        assertEnds(start(picture("baseline.jpg", "reset_after=100")), "IMGDL_ERROR_CONNECTION_LOST")
        origin.route("/closed") { $0.close() }
        assertEnds(start(origin.url("/closed")), "IMGDL_ERROR_CONNECTION_LOST")
    }

    func testHeaderLimit() {
        assertEnds(start(picture("rgba.png", "headers=400")), "IMGDL_ERROR_HEADER_LIMIT")
        assertEnds(start(picture("rgba.png", "headers=10")), "IMGDL_OK")
    }

    func testHeaderInjection() {
        for field in [("X-A", "a\r\nX-B: b"), ("X-A\r\nX-B", "b"), ("X A", "b"), ("", "b"), ("X-A:", "b")] {
            let download = start(picture("rgba.png"), headers: [field])
            XCTAssertEqual(download.status, Int32(IMGDL_ERROR_INVALID_HEADER), "\(field)")
            download.wait()
        }
        XCTAssertEqual(imgdl_downloader_set_header(downloader, "X-A", "a\nb"), Int32(IMGDL_ERROR_INVALID_HEADER))
        let credentials = start("http://us%0d%0aer:pw@127.0.0.1:\(origin.port)/")
        XCTAssertEqual(credentials.status, Int32(IMGDL_ERROR_INVALID_URL))
        XCTAssertEqual(origin.log.requests.count, 0)
    }

    /// Who frames a request can hide another one in it: that is the library's alone, wherever a field comes from.
    func testFieldsThatAreTheLibrarysOwn() {
        let names = [
            "Content-Length", "transfer-encoding", "CONNECTION", "Upgrade", "te", "Trailer", "Expect", "keep-alive",
            "Proxy-Connection", "HTTP2-Settings", "Content_Length",
        ]
        for name in names {
            let download = start(picture("rgba.png"), headers: [("X-A", "b"), (name, "1")])
            XCTAssertEqual(download.status, Int32(IMGDL_ERROR_INVALID_HEADER), name)
            let message = String(cString: imgdl_last_error())
            XCTAssertTrue(message.contains("“\(name)”"), message)
            download.wait()
            XCTAssertEqual(imgdl_downloader_set_header(downloader, name, "1"), Int32(IMGDL_ERROR_INVALID_HEADER), name)
            // To leave it out is no harm.
            XCTAssertEqual(imgdl_downloader_set_header(downloader, name, nil), 0, name)
            name.withCString { text in
                var field = imgdl_header(name: text, value: nil)
                withUnsafePointer(to: &field) { pointer in
                    let download = start(picture("rgba.png")) {
                        $0.headers = pointer
                        $0.header_count = 1
                    }
                    assertEnds(download, "IMGDL_OK")
                }
            }
        }
        let twice = start(picture("rgba.png"), headers: [("Host", "a.test"), ("host", "b.test")])
        XCTAssertEqual(twice.status, Int32(IMGDL_ERROR_INVALID_HEADER))
        twice.wait()
        XCTAssertEqual(origin.log.requests.count, names.count, "those that left one out, alone")
    }

    func testFullURLsAreFullInErrorsToo() {
        let url = origin.url("/nothing?token=secret")
        for showsAll in [false, true] {
            let download = start(url) { if showsAll { $0.flags = UInt32(IMGDL_REQUEST_FULL_URLS) } }
            assertEnds(download, "IMGDL_ERROR_INVALID_STATUS")
            XCTAssertEqual(download.record.message.hasPrefix("\(url): "), showsAll, download.record.message)
            XCTAssertEqual(download.record.message.contains("secret"), showsAll, download.record.message)
        }
        let cancelled = start(origin.url("/pictures/rgba.png?first_byte=never&_=secret")) {
            $0.flags = UInt32(IMGDL_REQUEST_FULL_URLS)
        }
        cancelled.cancel()
        assertEnds(cancelled, "IMGDL_ERROR_CANCELLED")
        XCTAssertTrue(cancelled.record.message.contains("_=secret: cancelled"), cancelled.record.message)
        let credentials = start(url.replacingOccurrences(of: "://", with: "://me:hunter2@")) {
            $0.flags = UInt32(IMGDL_REQUEST_FULL_URLS)
        }
        assertEnds(credentials, "IMGDL_ERROR_INVALID_STATUS")
        XCTAssertFalse(credentials.record.message.contains("hunter2"), credentials.record.message)
    }

    /// What a server says can be printed and logged: no escape sequence, no line of its own, no other direction.
    func testWhatAServerSaysIsEscapedInMessages() {
        let evil = "\u{1b}]0;x\u{7}\u{9b}2J\u{202e}\u{2028}"
        origin.route("/type") { try $0.respond(200, headers: ["Content-Type": "text/\(evil)"], text: evil) }
        origin.route("/coding") { exchange in
            try exchange.send(raw: "HTTP/1.1 200 OK\r\nContent-Encoding: \(evil)\r\nContent-Length: 1\r\n\r\na")
        }
        origin.route("/reason") { exchange in
            try exchange.send(raw: "HTTP/1.1 404 \(evil)\r\nContent-Length: 0\r\n\r\n")
        }
        origin.route("/location") { exchange in
            try exchange.send(raw: "HTTP/1.1 302 x\r\nLocation: \(evil)://a/\r\nContent-Length: 0\r\n\r\n")
        }
        origin.route("/elsewhere") { exchange in
            try exchange.send(raw: "HTTP/1.1 302 x\r\nLocation: http://\(evil)/\r\nContent-Length: 0\r\n\r\n")
        }
        origin.route("/status") { try $0.send(raw: "\(evil) 200 OK\r\n\r\n") }
        origin.route("/line") { try $0.send(raw: "HTTP/1.1 200 OK\r\n\(evil)\r\nX: \(evil)\r\n\r\n\(evil)") }
        for (path, isAccepted) in [
            ("/type", false), ("/coding", false), ("/reason", false), ("/location", false), ("/elsewhere", false),
            ("/status", false), ("/line", false), ("/type", true), ("/nothing", false),
        ] {
            let type = strdup("image/*")
            defer { free(type) }
            var types = [UnsafePointer(type)]
            let download = types.withUnsafeMutableBufferPointer { types in
                start(origin.url("\(path)?\(isAccepted)")) {
                    if isAccepted {
                        $0.accepted_types = UnsafePointer(types.baseAddress)
                        $0.accepted_type_count = 1
                    }
                }
            }
            download.wait()
            XCTAssertNotEqual(download.record.message, "", path)
            for said in [download.record.message, download.record.contentType] {
                XCTAssertFalse(
                    said.unicodeScalars.contains { scalar in
                        scalar.value < 0x20 || 0x7F..<0xA0 ~= scalar.value || [0x202E, 0x2028].contains(scalar.value)
                    }, "\(path): \(said.debugDescription)")
            }
        }
    }

    /// What the caller sends is not told as a server's fault, who is not asked.
    func testRequestsThatAreTooLongAreNotSent() {
        let long = String(repeating: "a", count: 1_049_000)
        let byURL = start(origin.url("/pictures/rgba.png?" + long))
        assertEnds(byURL, "IMGDL_ERROR_INVALID_URL")
        XCTAssertTrue(byURL.record.message.contains("no more than 1000000"), byURL.record.message)
        let byField = start(picture("rgba.png"), headers: [("X-Long", long)])
        assertEnds(byField, "IMGDL_ERROR_INVALID_HEADER")
        XCTAssertTrue(byField.record.message.contains("no more than 1000000"), byField.record.message)
        let many = (0..<200).map { ("X-\($0)", String(repeating: "a", count: 10_000)) }
        assertEnds(start(picture("rgba.png"), headers: many), "IMGDL_ERROR_INVALID_HEADER")
        XCTAssertEqual(origin.log.requests.count, 0)
        // Less is sent; this server takes no more than it needs.
        assertEnds(start(picture("rgba.png") + "?" + long.dropLast(60_000)), "IMGDL_ERROR_INVALID_STATUS")
    }

    func testSecretsStayOutOfErrors() {
        let url = "http://me:hunter2@127.0.0.1:\(origin.port)/auth/basic?user=me&password=topsecret"
        let download = start(url) { $0.flags = UInt32(IMGDL_REQUEST_BASIC_OVER_HTTP) }
        assertEnds(download, "IMGDL_ERROR_INVALID_STATUS")
        let message = download.record.message
        XCTAssertFalse(message.contains("hunter2") || message.contains("topsecret") || message.contains("me:"), message)
        XCTAssertTrue(message.contains("password="), message)
        XCTAssertNil(origin.log.requests[0].headers["Authorization"], "nobody had asked")
        XCTAssertEqual(origin.log.requests[1].headers["Authorization"], "Basic bWU6aHVudGVyMg==")
    }

    private func residentBytes() -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        return (Int(text.split(separator: " ").dropFirst().first ?? "0") ?? 0) * 4096
    }
}
