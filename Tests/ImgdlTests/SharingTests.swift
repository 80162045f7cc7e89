import CImgdl
import Origin
import Foundation
import XCTest

/// Who shares a transfer, and that nobody is hurt by the others.
final class SharingTests: DownloaderTestCase {
    func testT20_CancelOfOneLeavesTheOther() {
        let gate = origin.gate("go")
        let url = picture("baseline.jpg", "hold_after=2000&gate=go")
        let first = start(url)
        let second = start(url)
        first.waitFor(IMGDL_EVENT_PROGRESS)
        second.waitFor(IMGDL_EVENT_PROGRESS)
        first.cancel()
        assertEnds(first, "IMGDL_ERROR_CANCELLED")
        gate.open()
        assertEnds(second, "IMGDL_OK")
        XCTAssertEqual(origin.log.count("/pictures/baseline.jpg"), 1)
        XCTAssertEqual(origin.log.connectionsClosedByClient, 0)
    }

    func testT21_RequestAgainAfterCancel() {
        let url = picture("baseline.jpg", "stall_after=2000&n=1")
        let stalled = start(url)
        stalled.waitFor(IMGDL_EVENT_PROGRESS)
        stalled.cancel()
        // Nothing waits for the first one's end: a new transfer at once (B3, I8).
        let again = start(picture("baseline.jpg"))
        assertEnds(stalled, "IMGDL_ERROR_CANCELLED")
        assertEnds(again, "IMGDL_OK")

        let same = start(url)
        same.waitFor(IMGDL_EVENT_PROGRESS)
        XCTAssertEqual(origin.log.requests.filter { $0.query["n"] == "1" }.count, 2)
        same.cancel()
        assertEnds(same, "IMGDL_ERROR_CANCELLED")
    }

    func testT21_RequestAgainInsideTheCancelledCallback() {
        let url = picture("rgba.png")
        let first = Download()
        let again = Download()
        let downloader = downloader
        first.onEvent = { event in
            if event.kind == UInt32(IMGDL_EVENT_TERMINAL) { again.start(downloader, url) }
        }
        first.start(downloader, picture("baseline.jpg", "stall_after=2000"))
        first.waitFor(IMGDL_EVENT_PROGRESS)
        first.cancel()
        assertEnds(first, "IMGDL_ERROR_CANCELLED")
        assertEnds(again, "IMGDL_OK")
    }

    func testD3_CancelQueuedAndRequestTwiceIsOneTransfer() {
        replaceDownloader { $0.max_concurrent = 1 }
        let gate = origin.gate("go")
        let blocker = start(picture("baseline.jpg", "hold_after=2000&gate=go"))
        blocker.waitFor(IMGDL_EVENT_RESPONSE)
        let url = picture("rgba.png")
        let queued = start(url)
        queued.cancel()
        let second = start(url)
        let third = start(url)
        gate.open()
        for download in [blocker, second, third] { assertEnds(download, "IMGDL_OK") }
        assertEnds(queued, "IMGDL_ERROR_CANCELLED")
        XCTAssertEqual(origin.log.count("/pictures/rgba.png"), 1)
    }

    func testB15_LateJoinerLearnsWhatItHasMissed() {
        let size = Pictures.bytes("baseline.jpg").count
        let gate = origin.gate("go")
        let url = picture("baseline.jpg", "hold_after=\(size * 4 / 5)&gate=go")
        let first = start(url)
        first.waitFor(IMGDL_EVENT_PARTIAL)
        let late = start(url)
        late.waitFor(IMGDL_EVENT_HEADER).waitFor(IMGDL_EVENT_PROGRESS).waitFor(IMGDL_EVENT_PARTIAL)
        XCTAssertEqual(
            Array(late.kinds.prefix(3)),
            [UInt32(IMGDL_EVENT_STARTED), UInt32(IMGDL_EVENT_RESPONSE), UInt32(IMGDL_EVENT_HEADER)])
        gate.open()
        assertEnds(first, "IMGDL_OK")
        assertEnds(late, "IMGDL_OK")
        XCTAssertEqual(origin.log.count("/pictures/baseline.jpg"), 1)
    }

    func testB15_WhoDecodesJoinsWhoTakesTheBodyAlone() {
        let size = Pictures.bytes("baseline.jpg").count
        let gate = origin.gate("go")
        let url = picture("baseline.jpg", "hold_after=\(size * 4 / 5)&gate=go")
        let body = start(url) { $0.flags = UInt32(IMGDL_REQUEST_BODY) }
        // The header among them: who joins before it has come is told of the bytes until then.
        body.waitFor(received: size / 2)
        let late = start(url)
        late.waitFor(IMGDL_EVENT_PARTIAL)
        XCTAssertEqual(
            Array(late.kinds.prefix(3)),
            [UInt32(IMGDL_EVENT_STARTED), UInt32(IMGDL_EVENT_RESPONSE), UInt32(IMGDL_EVENT_HEADER)])
        gate.open()
        assertEnds(body, "IMGDL_OK")
        assertEnds(late, "IMGDL_OK")
        XCTAssertEqual(origin.log.count("/pictures/baseline.jpg"), 1)
    }

    func testB4_WhatChangesTheBytesIsNotShared() {
        let gate = origin.gate("go")
        let url = picture("rgba.png", "hold_after=100&gate=go")
        let downloads = [
            start(url), start(url),
            start(url, headers: [("Authorization", "a")]), start(url, headers: [("Authorization", "b")]),
            // It says nothing of who asks, and is sent.
            start(url, headers: [("X-Request-Id", "a")]),
            start(url.replacingOccurrences("hold_after", "n=1&hold_after")),
            start(url) { $0.flags = UInt32(IMGDL_REQUEST_DECODE | IMGDL_REQUEST_ALLOW_DOWNGRADE) },
        ]
        assertOriginSees("six requests") { $0.requests.count == 6 }
        gate.open()
        for download in downloads { assertEnds(download, "IMGDL_OK") }
        XCTAssertEqual(origin.log.requests.count, 6)
    }

    func testB4_CredentialsCookiesTLSAndHooksAreNotSharedEither() {
        let hooks = TestHooks()
        hooks.modifyRequest = { _, next in _ = imgdl_continue_unchanged(next) }
        defer { hooks.release() }
        replaceDownloader { $0.max_concurrent = 20 }
        let url = picture("rgba.png", "hold_after=100&gate=go")
        let pin = strdup("sha256//" + String(repeating: "A", count: 43) + "=")
        let names = ["a", "b"].map { (text: String) in strdup(text) }
        defer { for text in names + [pin] { free(text) } }
        let kinds: [(inout imgdl_request) -> Void] = [
            { _ in }, { $0.user = UnsafePointer(names[0]) }, { $0.user = UnsafePointer(names[1]) },
            {
                $0.user = UnsafePointer(names[0]); $0.password = UnsafePointer(names[0])
            },
            { $0.flags = UInt32(IMGDL_REQUEST_COOKIES) },
            { $0.flags = UInt32(IMGDL_REQUEST_ALLOW_INVALID_CERTIFICATES) },
            { $0.pinned_public_key = UnsafePointer(pin) }, { $0.hooks = hooks.handle },
        ]
        // Each twice: the second of a kind shares the first one's transfer.
        let downloads = (kinds + kinds).map { start(url, $0) }
        assertOriginSees("one request of each kind") { $0.requests.count == kinds.count }
        origin.gate("go").open()
        for download in downloads { assertEnds(download, "IMGDL_OK") }
        XCTAssertEqual(origin.log.requests.count, kinds.count)
    }

    func testB4_URLsAreComparedInCanonicalForm() {
        let gate = origin.gate("go")
        let path = "/pictures/rgba.png?hold_after=100&gate=go"
        let downloads = [
            start("http://127.0.0.1:\(origin.port)\(path)"), start("HTTP://127.0.0.1:\(origin.port)\(path)#fragment"),
            start("http://127.0.0.1:\(origin.port)/x/..\(path)"),
        ]
        for download in downloads { download.waitFor(IMGDL_EVENT_RESPONSE) }
        gate.open()
        for download in downloads { assertEnds(download, "IMGDL_OK") }
        XCTAssertEqual(origin.log.requests.count, 1)
    }

    func testT30_DecodeOptionsAreEachSubscribersOwn() {
        let gate = origin.gate("go")
        let url = picture("rgba.png", "hold_after=100&gate=go")
        var downloads: [Download] = []
        for format in 1...4 {
            var options = imgdl_decode_options()
            imgdl_decode_options_init(&options, MemoryLayout<imgdl_decode_options>.stride)
            options.pixel_format = UInt32(format)
            downloads.append(withUnsafePointer(to: options) { options in start(url) { $0.decode = options } })
        }
        gate.open()
        for download in downloads { assertEnds(download, "IMGDL_OK") }
        XCTAssertEqual(origin.log.requests.count, 1)
        XCTAssertEqual(Set(downloads.compactMap { $0.record.pixels }).count, 4, "four different decodes")
    }

    func testLimitsAreEachSubscribersOwn() {
        let gate = origin.gate("go")
        let url = picture("rgba.png", "hold_head=1&gate=go")
        let small = start(url) { $0.max_body_bytes = 50 }
        let large = start(url)
        assertOriginSees("the request") { $0.requests.count == 1 }
        gate.open()
        assertEnds(small, "IMGDL_ERROR_BODY_LIMIT")
        assertEnds(large, "IMGDL_OK")
        XCTAssertEqual(origin.log.requests.count, 1)
    }

    func testT31_ManyRequestsForOneURLAreAllCalledBack() {
        let gate = origin.gate("go")
        let url = picture("baseline.jpg", "hold_after=2000&gate=go")
        let downloads = (0..<200).map { _ in start(url, events: 0) }
        gate.open()
        let late = (0..<200).map { _ in start(url, events: 0) }
        for download in downloads + late { assertEnds(download, "IMGDL_OK") }
    }

    func testT31b_ElevenRequestsForAnEmptyFile() {
        let downloads = (0..<11).map { _ in start(picture("empty")) }
        for download in downloads { assertEnds(download, "IMGDL_ERROR_BAD_IMAGE_DATA") }
    }

    func testTokensWithoutCallbackKeepTheirResult() {
        var request = imgdl_request()
        imgdl_request_init(&request, MemoryLayout<imgdl_request>.stride)
        var token: OpaquePointer?
        var result = imgdl_result()
        imgdl_result_init(&result, MemoryLayout<imgdl_result>.stride)
        let status = picture("rgba.png", "hold_after=10&gate=go").withCString { url in
            request.url = url
            return imgdl_download(downloader, &request, &token)
        }
        XCTAssertEqual(status, 0)
        XCTAssertEqual(imgdl_token_result(token, &result), Int32(IMGDL_ERROR_NOT_READY))
        XCTAssertEqual(imgdl_token_wait(token, 0), Int32(IMGDL_ERROR_WAIT_TIMEOUT))
        origin.gate("go").open()
        XCTAssertEqual(imgdl_token_wait(token, 20_000), 0)
        XCTAssertEqual(imgdl_token_result(token, &result), 0)
        XCTAssertEqual(result.code, 0)
        XCTAssertEqual(imgdl_image_width(result.image), UInt32(Pictures.width))
        XCTAssertEqual(result.response.pointee.status, 200)
        let image = imgdl_image_retain(result.image)
        imgdl_token_release(token)
        XCTAssertEqual(imgdl_token_wait(token, 0), Int32(IMGDL_ERROR_INVALID_HANDLE))
        XCTAssertEqual(imgdl_image_width(image), UInt32(Pictures.width), "a retained image outlives its token")
        // The library's thread may still be about to let go of the download.
        _ = imgdl_downloader_destroy(downloader)
        XCTAssertEqual(imgdl_image_width(image), UInt32(Pictures.width))
        imgdl_image_release(image)
        XCTAssertEqual(imgdl_image_width(image), 0)
    }
}

extension String {
    func replacingOccurrences(_ old: String, _ new: String) -> String {
        guard let range = range(of: old) else { return self }
        return replacingCharacters(in: range, with: new)
    }
}
