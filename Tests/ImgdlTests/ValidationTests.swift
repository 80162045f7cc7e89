import CImgdl
import Foundation
import Origin
import XCTest

/// Which responses are taken, and what an error says of those that are not (features B19, C9, C10, T29, K9).
final class ValidationTests: DownloaderTestCase {
    func testT29_AStatusThatIsNotAccepted() {
        let download = start(picture("baseline.jpg")) { self.accept([(300, 399)], &$0) }
        assertRefused(download, "IMGDL_ERROR_INVALID_STATUS", status: 200, type: "image/jpeg")
        XCTAssertEqual(download.preview, Array(Pictures.bytes("baseline.jpg").prefix(512)))
    }

    func testC9_StatusesOfTheCallersOwn() {
        assertEnds(
            start(picture("baseline.jpg", "status=404")) { self.accept([(200, 299), (404, 404)], &$0) }, "IMGDL_OK")
    }

    func testT29_ATypeThatIsNotAccepted() {
        let download = start(picture("page.html")) { self.accept(["image/*"], &$0) }
        assertRefused(download, "IMGDL_ERROR_INVALID_CONTENT_TYPE", status: 200, type: "text/html")
        XCTAssertEqual(download.preview, Array(Pictures.bytes("page.html").prefix(512)))
        XCTAssertTrue(download.record.message.contains("text/html"), download.record.message)
    }

    func testT29_WildcardsParametersAndCapitals() {
        for type in ["image/*", "*/*", "IMAGE/JPEG"] {
            assertEnds(
                start(picture("baseline.jpg", "type=Image/JPEG;charset=x")) { self.accept([type], &$0) }, "IMGDL_OK")
        }
    }

    func testC10_AMissingTypePasses() {
        origin.route("/untyped") { try $0.respond(body: Pictures.bytes("rgba.png")) }
        assertEnds(start(origin.url("/untyped")) { self.accept(["image/png"], &$0) }, "IMGDL_OK")
    }

    func testB19_TheErrorPageIsInTheError() {
        origin.route("/page") {
            try $0.respond(503, headers: ["Content-Type": "text/html; charset=utf-8"], text: "<h1>maintenance</h1>")
        }
        let download = start(origin.url("/page"))
        assertRefused(download, "IMGDL_ERROR_INVALID_STATUS", status: 503, type: "text/html")
        XCTAssertEqual(String(decoding: download.preview, as: UTF8.self), "<h1>maintenance</h1>")
    }

    func testB19_WhatIsNoPictureShowsItsFirstBytes() {
        let download = start(picture("page.html", "type=image/png"))
        assertRefused(download, "IMGDL_ERROR_BAD_IMAGE_DATA", status: 200, type: "image/png")
        XCTAssertTrue(String(decoding: download.preview, as: UTF8.self).hasPrefix("<!DOCTYPE html>"))
    }

    func testASuccessHasNoPreview() {
        let download = start(picture("baseline.jpg"))
        assertEnds(download, "IMGDL_OK")
        XCTAssertEqual(download.preview, [])
        XCTAssertEqual(download.contentType, "image/jpeg")
    }

    func testValidationIsEachSubscribersOwn() {
        let url = picture("baseline.jpg", "hold_head=1&gate=go")
        let takes = start(url)
        let refuses = start(url) { self.accept(["image/png"], &$0) }
        origin.gate("go").open()
        assertEnds(refuses, "IMGDL_ERROR_INVALID_CONTENT_TYPE")
        assertEnds(takes, "IMGDL_OK")
        XCTAssertEqual(origin.log.count("/pictures/baseline.jpg"), 1)
    }

    /// A token without callback tells the same.
    func testTheResultTellsTypeAndPreview() {
        let download = start(picture("page.html")) {
            $0.callback = nil
            $0.event_mask = 0
            self.accept(["image/*"], &$0)
        }
        XCTAssertEqual(imgdl_token_wait(download.token, -1), 0)
        var result = imgdl_result()
        imgdl_result_init(&result, MemoryLayout<imgdl_result>.stride)
        XCTAssertEqual(imgdl_token_result(download.token, &result), 0)
        XCTAssertEqual(result.code, Int32(IMGDL_ERROR_INVALID_CONTENT_TYPE))
        XCTAssertEqual(String(cString: result.content_type), "text/html")
        let preview = UnsafeRawBufferPointer(start: result.preview, count: result.preview_length)
        XCTAssertEqual(Array(preview), Array(Pictures.bytes("page.html").prefix(512)))
    }

    // MARK: Redirects and what is shown of them

    func testI25_EveryHopIsReported() {
        let target = "/redirect?code=307&to=" + "/pictures/rgba.png%3Ftoken%3Dsecret"
        let seen = Monitor<[String]>([])
        for showsAll in [false, true] {
            let download = Download()
            download.onEvent = { event in
                guard event.kind == UInt32(IMGDL_EVENT_RESPONSE), let response = event.response?.pointee else { return }
                let hops = (0..<Int(response.redirect_count)).map { response.hops[$0] }
                seen.change {
                    $0 = hops.map { "\($0.status) \(String(cString: $0.url))" } + [String(cString: response.url)]
                }
            }
            download.start(downloader, origin.url(target)) {
                if showsAll { $0.flags = UInt32(IMGDL_REQUEST_FULL_URLS) }
            }
            // The origin does not know the key: the answer is 400, and still a response.
            download.wait()
            let shown = seen.read { $0 }
            XCTAssertEqual(shown.count, 2)
            XCTAssertTrue(shown[0].hasPrefix("307 \(origin.url("/redirect"))"), shown[0])
            XCTAssertEqual(shown[1].contains("secret"), showsAll, shown[1])
            XCTAssertEqual(shown[0].contains("secret"), showsAll, shown[0])
        }
    }

    // MARK: -

    private func accept(_ ranges: [(Int32, Int32)], _ request: inout imgdl_request) {
        let list = UnsafeMutablePointer<imgdl_status_range>.allocate(capacity: ranges.count)
        addTeardownBlock { list.deallocate() }
        for (index, range) in ranges.enumerated() { list[index] = imgdl_status_range(first: range.0, last: range.1) }
        request.accepted_statuses = UnsafePointer(list)
        request.accepted_status_count = ranges.count
    }

    private func accept(_ types: [String], _ request: inout imgdl_request) {
        let list = UnsafeMutablePointer<UnsafePointer<CChar>?>.allocate(capacity: types.count)
        for (index, type) in types.enumerated() { list[index] = UnsafePointer(strdup(type)) }
        addTeardownBlock {
            for index in types.indices { free(UnsafeMutablePointer(mutating: list[index])) }
            list.deallocate()
        }
        request.accepted_types = UnsafePointer(list)
        request.accepted_type_count = types.count
    }

    private func assertRefused(
        _ download: Download, _ name: String, status: Int32, type: String, _ file: StaticString = #filePath,
        _ line: UInt = #line
    ) {
        assertEnds(download, name, file, line)
        XCTAssertEqual(download.record.httpStatus, status, file: file, line: line)
        XCTAssertEqual(download.contentType, type, file: file, line: line)
        XCTAssertFalse(download.record.hasImage, file: file, line: line)
    }
}
