import CImgdl
import Origin
import XCTest

/// Retries, validation and failed URLs through the C API (features B14, B19, C9, C10, E4, I29, I30).
final class RetryTests: DownloaderTestCase {
    /// Answers with these statuses one after the other, the last of them again and again; a picture with a 200.
    private func route(_ statuses: [Int], headers: Headers = [:]) -> (url: String, requests: Monitor<Int>) {
        let requests = Monitor(0)
        origin.route("/flaky.png") { exchange in
            var number = 0
            requests.change {
                number = $0
                $0 += 1
            }
            let status = statuses[min(number, statuses.count - 1)]
            if status == 200 {
                try exchange.respond(200, headers: ["Content-Type": "image/png"], body: Pictures.bytes("rgba.png"))
            } else {
                try exchange.respond(status, headers: headers, text: "no")
            }
        }
        return (origin.url("/flaky.png"), requests)
    }

    func testTwoErrorsThenAPicture() {
        let (url, requests) = route([503, 503, 200])
        let download = start(url) {
            $0.retry_count = 3
            $0.retry_base_ms = 1
        }
        assertEnds(download, "IMGDL_OK")
        XCTAssertEqual(requests.read { $0 }, 3)
        let once = [IMGDL_EVENT_STARTED, IMGDL_EVENT_RESPONSE, IMGDL_EVENT_HEADER].map { UInt32($0) }
        for kind in once { XCTAssertEqual(download.kinds.filter { $0 == kind }.count, 1) }
    }

    func testNotFoundIsNotTriedAgain_NorAnythingWithoutRetries() {
        for (status, count) in [(404, 3), (503, 0)] as [(Int, UInt32)] {
            let (url, requests) = route([status])
            assertEnds(start(url) { $0.retry_count = count }, "IMGDL_ERROR_INVALID_STATUS")
            XCTAssertEqual(requests.read { $0 }, 1)
        }
    }

    func testACancelEndsAWaitAtOnce() {
        let (url, requests) = route([429], headers: ["Retry-After": "50"])
        let download = start(url) { $0.retry_count = 1 }
        assertOriginSees("the refusal is sent") { $0.requests.count == 1 && $0.inFlight == 0 }
        download.cancel()
        assertEnds(download, "IMGDL_ERROR_CANCELLED")
        XCTAssertEqual(requests.read { $0 }, 1)
    }

    /// A rest of 50 s is nothing to one that never asked to be tried again.
    func testOneWithoutRetriesDoesNotWaitForAnothers() {
        let (url, requests) = route([429, 200], headers: ["Retry-After": "50"])
        let patient = start(url) { $0.retry_count = 1 }
        assertOriginSees("the refusal is sent") { $0.requests.count == 1 && $0.inFlight == 0 }
        // What was answered after it has been read, so that has been, too.
        assertEnds(start(picture("baseline.jpg")), "IMGDL_OK")
        let began = Moment.now
        assertEnds(start(url) { $0.retry_count = UInt32(IMGDL_RETRY_NONE) }, "IMGDL_OK")
        XCTAssertLessThan(Moment.now - began, .seconds(25))
        XCTAssertEqual(requests.read { $0 }, 2)
        XCTAssertEqual(patient.record.terminals, 0, "it rests on")
        patient.cancel()
        assertEnds(patient, "IMGDL_ERROR_CANCELLED")
    }

    func testRetryAfterBeyondTheMaximumEndsIt() {
        let (url, _) = route([429], headers: ["Retry-After": "50"])
        let download = start(url) {
            $0.retry_count = 1
            $0.retry_max_ms = 1_000
        }
        assertEnds(download, "IMGDL_ERROR_INVALID_STATUS")
        XCTAssertEqual(download.record.httpStatus, 429)
    }

    /// The decoder of the first attempt has seen bytes: none of them is in the picture.
    func testAConnectionLostHalfwayBeginsAnew() {
        let bytes = Pictures.bytes("progressive.jpg")
        let requests = Monitor(0)
        origin.route("/cut.jpg") { exchange in
            var number = 0
            requests.change {
                number = $0
                $0 += 1
            }
            try exchange.send(status: 200, headers: ["Content-Length": "\(bytes.count)", "Content-Type": "image/jpeg"])
            // The first attempt is of another picture's bytes.
            let body = number == 0 ? Pictures.bytes("baseline.jpg").prefix(bytes.count / 2) : bytes[...]
            try exchange.send(body: body)
            if number == 0 { exchange.close() }
        }
        let whole = start(picture("progressive.jpg"))
        assertEnds(whole, "IMGDL_OK")
        let download = start(origin.url("/cut.jpg")) {
            $0.retry_count = 1
            $0.retry_base_ms = 1
        }
        assertEnds(download, "IMGDL_OK")
        XCTAssertEqual(requests.read { $0 }, 2)
        XCTAssertEqual(download.record.pixels, whole.record.pixels)
        let progress = download.record.seen.filter { $0.kind == UInt32(IMGDL_EVENT_PROGRESS) }.map(\.received)
        XCTAssertEqual(progress, progress.sorted())
    }

    func testAPageInPlaceOfAPictureIsRefusedByItsType() {
        origin.content["page"] = Picture(Array("<html>".utf8), type: "text/html; charset=utf-8")
        let download = "image/*".withCString { type in
            withUnsafePointer(to: UnsafePointer<CChar>?.some(type)) { types in
                start(picture("page")) {
                    $0.accepted_types = types
                    $0.accepted_type_count = 1
                }
            }
        }
        assertEnds(download, "IMGDL_ERROR_INVALID_CONTENT_TYPE")
        XCTAssertTrue(download.record.message.contains("text/html"))
    }

    func testWhatIsNoPictureIsNotAskedForAgain() {
        replaceDownloader { $0.failure_ttl_ms = 600_000 }
        origin.content["page"] = Picture(Array("<html>".utf8), type: "image/png")
        assertEnds(start(picture("page")), "IMGDL_ERROR_BAD_IMAGE_DATA")
        assertEnds(start(picture("page")), "IMGDL_ERROR_BLACKLISTED")
        XCTAssertEqual(origin.log.count("/pictures/page"), 1)
        let insistent = start(picture("page")) { $0.flags = UInt32(IMGDL_REQUEST_RETRY_FAILED) }
        assertEnds(insistent, "IMGDL_ERROR_BAD_IMAGE_DATA")
        XCTAssertEqual(origin.log.count("/pictures/page"), 2)
    }
}
