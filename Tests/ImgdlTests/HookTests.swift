import CImgdl
import Foundation
import Origin
import XCTest

/// Functions of the host that a download asks on its way, through the C API (features R1–R3, M7, M8, M16, B23).
final class HookTests: DownloaderTestCase {
    private let hooks = TestHooks()

    override func tearDown() async throws {
        hooks.release()
        try await super.tearDown()
        XCTAssertNotNil(
            hooks.destroyed.wait(until: .patient) { $0 == 1 ? true : nil } as Bool?, "the table's destructor runs once")
    }

    // MARK: The request

    func testT23_RequestHookAddsHeaders() throws {
        hooks.modifyRequest = { request, next in
            XCTAssertEqual(String(cString: request.method), "GET")
            let names = (0..<request.header_count).map { String(cString: request.headers[$0].name) }
            XCTAssertTrue(names.contains("Accept"), "the downloader's are there")
            XCTAssertEqual(withOutgoing(headers: [("X-Signed", "yes")]) { imgdl_continue_with_request(next, $0) }, 0)
        }
        let echo = try echoed(start(origin.url("/echo")) { self.hook(&$0) })
        XCTAssertTrue(echo.contains("X-Signed") && !echo.contains("image/*"), echo)
    }

    func testT23_RequestHookChangesTheURLAndTheMethod() throws {
        hooks.modifyRequest = { [origin] _, next in
            let status = withOutgoing(url: origin!.url("/echo?signature=1"), method: "PUT", body: Array("sent".utf8)) {
                imgdl_continue_with_request(next, $0)
            }
            XCTAssertEqual(status, 0)
        }
        let echo = try echoed(start(picture("baseline.jpg")) { self.hook(&$0) })
        XCTAssertTrue(echo.contains("signature=1") && echo.contains("PUT") && echo.contains("sent"), echo)
        XCTAssertEqual(origin.log.count("/pictures/baseline.jpg"), 0)
    }

    func testT23_RequestHookRefuses() {
        hooks.modifyRequest = { _, next in XCTAssertEqual(imgdl_continue_refused(next, 0, nil), 0) }
        assertEnds(start(picture("baseline.jpg")) { $0.hooks = self.hooks.handle }, "IMGDL_ERROR_INVALID_OPERATION")
        XCTAssertEqual(origin.log.requests.count, 0)
    }

    func testRequestHookRefusesWithItsOwnCodeAndWords() {
        hooks.modifyRequest = { _, next in
            XCTAssertEqual(imgdl_continue_refused(next, Int32(IMGDL_ERROR_INVALID_ARGUMENT), "no ticket"), 0)
        }
        let download = start(picture("baseline.jpg")) { $0.hooks = self.hooks.handle }
        assertEnds(download, "IMGDL_ERROR_INVALID_ARGUMENT")
        XCTAssertTrue(download.record.message.hasSuffix("no ticket"), download.record.message)
    }

    func testAHookOfTheDownloaderIsUsedByRequestsWithoutOne() {
        let counted = Monitor(0)
        hooks.modifyRequest = { _, next in
            counted.change { $0 += 1 }
            _ = imgdl_continue_unchanged(next)
        }
        replaceDownloader { $0.hooks = self.hooks.handle }
        assertEnds(start(picture("baseline.jpg")), "IMGDL_OK")
        XCTAssertEqual(counted.read { $0 }, 1)
    }

    func testSharedRequestsAreAskedOnce_OtherHooksDoNotShare() {
        let counted = Monitor(0)
        hooks.modifyRequest = { _, next in
            counted.change { $0 += 1 }
            _ = imgdl_continue_unchanged(next)
        }
        let url = picture("baseline.jpg", "hold_after=10")
        let first = start(url) { $0.hooks = self.hooks.handle }
        let second = start(url) { $0.hooks = self.hooks.handle }
        let other = start(url)
        assertOriginSees("two requests") { $0.requests.count == 2 }
        origin.gate("hold").open()
        for download in [first, second, other] { assertEnds(download, "IMGDL_OK") }
        XCTAssertEqual(counted.read { $0 }, 1)
        XCTAssertEqual(origin.log.requests.count, 2)
    }

    func testAnAnswerThatComesLaterFromAnotherThread() {
        let asked = Monitor<OpaquePointer?>(nil)
        hooks.modifyRequest = { _, next in asked.change { $0 = next } }
        let download = start(picture("baseline.jpg")) { $0.hooks = self.hooks.handle }
        let next = asked.wait(until: .patient) { $0 }
        XCTAssertNotNil(next)
        XCTAssertEqual(origin.log.requests.count, 0)
        let thread = Thread { XCTAssertEqual(imgdl_continue_unchanged(next!), 0) }
        thread.start()
        assertEnds(download, "IMGDL_OK")
        XCTAssertEqual(imgdl_continue_unchanged(next!), Int32(IMGDL_ERROR_INVALID_HANDLE), "answered twice")
    }

    func testAHookThatNeverAnswersEndsWithTheTotalTimeout() {
        let asked = Monitor<OpaquePointer?>(nil)
        hooks.modifyRequest = { _, next in asked.change { $0 = next } }
        let download = start(picture("baseline.jpg")) {
            $0.hooks = self.hooks.handle
            $0.total_timeout_ms = 50
        }
        assertEnds(download, "IMGDL_ERROR_TOTAL_TIMEOUT")
        XCTAssertEqual(imgdl_continue_unchanged(asked.read { $0 }!), 0, "an answer that comes too late is no error")
    }

    func testCancelWhileAHookIsAskedEndsAtOnce() {
        let asked = Monitor<OpaquePointer?>(nil)
        hooks.modifyRequest = { _, next in asked.change { $0 = next } }
        let download = start(picture("baseline.jpg")) { $0.hooks = self.hooks.handle }
        let next = asked.wait(until: .patient) { $0 }
        download.cancel()
        assertEnds(download, "IMGDL_ERROR_CANCELLED")
        XCTAssertEqual(imgdl_continue_refused(next!, 0, nil), 0)
        // Its slot is free again.
        assertEnds(start(picture("rgba.png")), "IMGDL_OK")
    }

    func testAWrongAnswerIsRefusedAndTheRightOneStillTaken() {
        hooks.modifyRequest = { _, next in
            XCTAssertEqual(imgdl_continue_with_data(next, nil, 0), Int32(IMGDL_ERROR_INVALID_ARGUMENT))
            XCTAssertEqual(
                withOutgoing(headers: [("Bad\r\nName", "x")]) { imgdl_continue_with_request(next, $0) },
                Int32(IMGDL_ERROR_INVALID_HEADER))
            for name in ["Content-Length", "TRANSFER-ENCODING", "expect"] {
                XCTAssertEqual(
                    withOutgoing(headers: [(name, "1")]) { imgdl_continue_with_request(next, $0) },
                    Int32(IMGDL_ERROR_INVALID_HEADER), name)
            }
            XCTAssertEqual(
                withOutgoing(url: "http://") { imgdl_continue_with_request(next, $0) },
                Int32(IMGDL_ERROR_INVALID_URL))
            XCTAssertEqual(imgdl_continue_refused(next, 31, nil), Int32(IMGDL_ERROR_INVALID_ARGUMENT))
            XCTAssertEqual(imgdl_continue_unchanged(next), 0)
        }
        assertEnds(start(picture("baseline.jpg")) { $0.hooks = self.hooks.handle }, "IMGDL_OK")
    }

    /// A condition that is sent counts, whoever made it: a 304 is no failure of the server's then.
    func testAConditionOfARequestHookCounts() {
        origin.route("/same") { try $0.respond(304, headers: ["ETag": "\"a\""]) }
        let own = [("If-None-Match", "\"a\"")]
        for (asked, sent, name) in [
            ([], own, "NOT_MODIFIED"), (own, [], "INVALID_STATUS"), (own, own, "NOT_MODIFIED"),
            ([], [], "INVALID_STATUS"),
        ] {
            hooks.modifyRequest = { _, next in
                XCTAssertEqual(withOutgoing(headers: sent) { imgdl_continue_with_request(next, $0) }, 0)
            }
            let download = start(origin.url("/same"), headers: asked) { $0.hooks = self.hooks.handle }
            assertEnds(download, "IMGDL_ERROR_" + name)
        }
    }

    // MARK: The response

    func testT24_ResponseHookChangesStatusAndHeaders() {
        hooks.modifyResponse = { response, next in
            XCTAssertEqual(response.status, 200)
            "X-Seen".withCString { name in
                "1".withCString { value in
                    var header = imgdl_header(name: name, value: value)
                    XCTAssertEqual(imgdl_continue_with_response(next, 404, &header, 1), 0)
                }
            }
        }
        let download = start(picture("baseline.jpg")) { $0.hooks = self.hooks.handle }
        assertEnds(download, "IMGDL_ERROR_INVALID_STATUS")
        XCTAssertEqual(download.record.httpStatus, 404)
        XCTAssertEqual(download.record.responseFields["X-Seen"], "1")
    }

    func testT24_ResponseHookTurnsAFailureIntoASuccess() {
        hooks.modifyResponse = { _, next in XCTAssertEqual(imgdl_continue_with_response(next, 200, nil, 0), 0) }
        assertEnds(start(picture("baseline.jpg", "status=404")) { $0.hooks = self.hooks.handle }, "IMGDL_OK")
    }

    func testT24_ResponseHookRefuses() {
        hooks.modifyResponse = { _, next in _ = imgdl_continue_refused(next, 0, nil) }
        assertEnds(start(picture("baseline.jpg")) { $0.hooks = self.hooks.handle }, "IMGDL_ERROR_INVALID_RESPONSE")
    }

    func testTheBodyWaitsWhileTheResponseHookIsAsked() {
        let asked = Monitor<OpaquePointer?>(nil)
        hooks.modifyResponse = { _, next in asked.change { $0 = next } }
        let download = start(picture("baseline.jpg")) { $0.hooks = self.hooks.handle }
        let next = asked.wait(until: .patient) { $0 }
        assertOriginSees("all is sent") { $0.requests.count == 1 && $0.inFlight == 0 }
        download.waitFor(IMGDL_EVENT_STARTED)
        XCTAssertEqual(download.kinds, [UInt32(IMGDL_EVENT_STARTED)])
        _ = imgdl_continue_unchanged(next!)
        assertEnds(download, "IMGDL_OK")
    }

    // MARK: The body

    func testT25_BodyHookDecrypts() {
        let plain = Pictures.bytes("rgba.png")
        origin.content["secret"] = Picture(plain.map { $0 ^ 0x5A }, type: "application/octet-stream")
        hooks.transformBody = { body, next in
            let clear = body.map { $0 ^ 0x5A }
            XCTAssertEqual(imgdl_continue_with_data(next, clear, clear.count), 0)
        }
        let download = start(picture("secret")) {
            $0.hooks = self.hooks.handle
            $0.flags = UInt32(IMGDL_REQUEST_BODY) | UInt32(IMGDL_REQUEST_DECODE)
        }
        assertEnds(download, "IMGDL_OK")
        XCTAssertEqual(download.record.body, plain)
        XCTAssertNotNil(download.record.pixels)
        XCTAssertFalse(download.kinds.contains(UInt32(IMGDL_EVENT_PARTIAL)))
    }

    func testT25_BodyHookRefusesOrGivesNothing() {
        hooks.transformBody = { body, next in
            let isRefused = body.count > 100
            _ = isRefused ? imgdl_continue_refused(next, 0, nil) : imgdl_continue_with_data(next, nil, 0)
        }
        origin.content["short"] = Picture([1, 2, 3], type: "image/png")
        for name in ["rgba.png", "short"] {
            assertEnds(start(picture(name)) { $0.hooks = self.hooks.handle }, "IMGDL_ERROR_BAD_IMAGE_DATA")
        }
    }

    /// The budget is full of bodies whose answers wait for other requests of the same downloader.
    func testBodyHooksThatFetchKeysGoOnThoughTheirBodiesFillTheBudget() {
        replaceDownloader { $0.memory_budget = 1 << 20 }
        origin.content["secret"] = Picture([UInt8](repeating: 1, count: 600_000), type: "application/octet-stream")
        let asked = Monitor<[OpaquePointer]>([])
        hooks.transformBody = { _, next in asked.change { $0.append(next) } }
        XCTAssertEqual(imgdl_downloader_set_suspended(downloader, 1), 0)
        let downloads = (0..<20).map { number in
            start(picture("secret", "_=\(number)")) {
                $0.hooks = self.hooks.handle
                $0.flags = UInt32(IMGDL_REQUEST_BODY)
            }
        }
        XCTAssertEqual(imgdl_downloader_set_suspended(downloader, 0), 0)
        XCTAssertNotNil(asked.wait(until: .patient) { $0.count == 6 ? true : nil } as Bool?, "what has begun comes in")
        for number in downloads.indices {
            guard let next = asked.wait(until: .patient, for: { $0.count > number ? $0[number] : nil }) else {
                return XCTFail("only \(number) of them were asked about")
            }
            assertEnds(start(picture("rgba.png", "_=key-\(number)")), "IMGDL_OK")
            XCTAssertEqual(imgdl_continue_unchanged(next), 0)
        }
        for download in downloads { assertEnds(download, "IMGDL_OK") }
    }

    // MARK: Redirects

    func testM16_RedirectHookRefusesAndReplaces() {
        let target = picture("rgba.png")
        hooks.redirect = { response, url, next in
            XCTAssertEqual(response.status, 302)
            if url.contains("refused") {
                _ = imgdl_continue_refused(next, 0, nil)
            } else if url.contains("other") {
                XCTAssertEqual(withOutgoing(url: target) { imgdl_continue_with_request(next, $0) }, 0)
            } else {
                _ = imgdl_continue_unchanged(next)
            }
        }
        assertEnds(
            start(origin.url("/redirect?to=/pictures/baseline.jpg?_refused=1")) { $0.hooks = self.hooks.handle },
            "IMGDL_ERROR_REDIRECT_REFUSED")
        let replaced = start(origin.url("/redirect?to=/pictures/other.jpg")) { $0.hooks = self.hooks.handle }
        assertEnds(replaced, "IMGDL_OK")
        XCTAssertEqual(replaced.record.responseURL, target)
        XCTAssertEqual(replaced.record.redirects, 1)
        assertEnds(
            start(origin.url("/redirect?to=/pictures/baseline.jpg")) { $0.hooks = self.hooks.handle }, "IMGDL_OK")
    }

    // MARK: Credentials

    func testK11_AuthenticateHookIsAskedOnce() {
        let counted = Monitor(0)
        hooks.authenticate = { challenge, next in
            XCTAssertEqual(challenge.status, 401)
            counted.change { $0 += 1 }
            XCTAssertEqual(imgdl_continue_with_credentials(next, "someone", "secret"), 0)
        }
        origin.route("/protected.png") { exchange in
            let authorization = exchange.request.headers["Authorization"] ?? ""
            if authorization == "Basic " + Data("someone:secret".utf8).base64EncodedString() {
                try exchange.respond(200, headers: ["Content-Type": "image/png"], body: Pictures.bytes("rgba.png"))
            } else {
                try exchange.respond(401, headers: ["WWW-Authenticate": "Basic realm=\"pictures\""], text: "who?")
            }
        }
        assertEnds(start(origin.url("/protected.png")) { self.hookWithBasic(&$0) }, "IMGDL_OK")
        XCTAssertEqual(counted.read { $0 }, 1)
    }

    /// What the hook gave for an origin is not sent there again once another one has led back to it.
    func testK11_CredentialsOfTheHookStayDropped() throws {
        let other = try Origin()
        defer { other.stop() }
        hooks.authenticate = { _, next in _ = imgdl_continue_with_credentials(next, "someone", "secret") }
        let challenge: Headers = ["WWW-Authenticate": "Basic realm=x"]
        origin.route("/first") { exchange in
            if exchange.request.headers["Authorization"] == nil {
                try exchange.respond(401, headers: challenge, text: "who?")
            } else {
                try exchange.respond(302, headers: ["Location": other.url("/between")])
            }
        }
        other.route("/between") { [origin] in try $0.respond(302, headers: ["Location": origin!.url("/last")]) }
        origin.route("/last") { try $0.respond(401, headers: challenge, text: "who?") }
        let download = start(origin.url("/first")) { self.hookWithBasic(&$0) }
        assertEnds(download, "IMGDL_ERROR_INVALID_STATUS")
        XCTAssertEqual(download.record.httpStatus, 401)
        XCTAssertEqual(
            origin.log.requests.filter { $0.path == "/first" }.compactMap { $0.headers["Authorization"] }.count, 1)
        XCTAssertEqual(
            origin.log.requests.filter { $0.path == "/last" }.map { $0.headers["Authorization"] }, [nil])
    }

    func testK11_WrongCredentialsOfTheHookEndOnceWith401() {
        let counted = Monitor(0)
        hooks.authenticate = { _, next in
            counted.change { $0 += 1 }
            _ = imgdl_continue_with_credentials(next, "someone", "wrong")
        }
        origin.route("/protected.png") { exchange in
            try exchange.respond(401, headers: ["WWW-Authenticate": "Basic realm=\"pictures\""], text: "who?")
        }
        let download = start(origin.url("/protected.png")) { self.hookWithBasic(&$0) }
        assertEnds(download, "IMGDL_ERROR_INVALID_STATUS")
        XCTAssertEqual(download.record.httpStatus, 401)
        XCTAssertEqual(counted.read { $0 }, 1)
        XCTAssertFalse(download.record.message.contains("wrong"))
    }

    // MARK: Bad tables

    func testATableWithoutAFunctionIsRefused() {
        var table = imgdl_hooks_table()
        table.struct_size = UInt32(MemoryLayout<imgdl_hooks_table>.stride)
        var handle: OpaquePointer?
        XCTAssertEqual(imgdl_hooks_create(&table, &handle), Int32(IMGDL_ERROR_INVALID_ARGUMENT))
        XCTAssertEqual(imgdl_hooks_create(nil, &handle), Int32(IMGDL_ERROR_INVALID_ARGUMENT))
        table.struct_size = 12
        XCTAssertEqual(imgdl_hooks_create(&table, &handle), Int32(IMGDL_ERROR_UNSUPPORTED_OPTION))
        XCTAssertNil(imgdl_hooks_retain(nil))
        hooks.modifyRequest = { _, next in _ = imgdl_continue_unchanged(next) }
    }

    // MARK: -

    private func hook(_ request: inout imgdl_request) {
        request.hooks = hooks.handle
        request.flags = UInt32(IMGDL_REQUEST_BODY)
    }

    private func hookWithBasic(_ request: inout imgdl_request) {
        request.hooks = hooks.handle
        request.flags = UInt32(IMGDL_REQUEST_BASIC_OVER_HTTP)
    }

    private func echoed(_ download: Download) throws -> String {
        assertEnds(download, "IMGDL_OK")
        return String(decoding: try XCTUnwrap(download.record.body), as: UTF8.self)
    }
}
