import CImgdl
import Origin
import XCTest

/// One request as a test makes it, and everything that was called for it.
final class Download: @unchecked Sendable {
    struct Seen: Equatable {
        var kind: UInt32
        var received: Int64
        var expected: Int64
        /// HEADER: width and height; PARTIAL and TERMINAL: of the image.
        var width: UInt32 = 0
        var height: UInt32 = 0
        var status: Int32 = 0
    }

    struct Record {
        var seen: [Seen] = []
        var code: Int32?
        var message = ""
        var httpStatus: Int32 = 0
        var body: [UInt8]?
        var pixels: [UInt8]?
        var imageFormat: UInt32 = 0
        var hasImage = false
        var terminals = 0
        var destructors = 0
        var isInside = false
        var overlapped = false
        var threads: Set<UInt> = []
        var responseURL = ""
        var responseFields: [String: String] = [:]
        var redirects: UInt32 = 0
        var httpVersion: Int32 = 0
        /// Of the terminal.
        var contentType = ""
        var preview: [UInt8] = []
    }

    let monitor = Monitor(Record())
    private let accepted = Monitor((token: OpaquePointer?.none, status: Int32(0)))
    /// Copies the pixels and the body to the record; else `onEvent` looks at them. Set before `start`.
    var keepsResult = true
    /// Runs inside each callback; set before `start`.
    var onEvent: ((imgdl_event) -> Void)?

    deinit { imgdl_token_release(token) }

    var token: OpaquePointer? { accepted.read(\.token) }
    /// What imgdl_download returned.
    var status: Int32 { accepted.read(\.status) }

    var record: Record { monitor.read { $0 } }
    var contentType: String { record.contentType }
    var preview: [UInt8] { record.preview }
    var kinds: [UInt32] { record.seen.map(\.kind) }
    var name: String { record.code.map { String(cString: imgdl_error_name($0)) } ?? "(no terminal)" }

    /// Asks; `configure` sets what the test is about.
    @discardableResult
    func start(
        _ downloader: OpaquePointer?, _ url: String, events: UInt32 = UInt32(IMGDL_EVENT_ALL),
        headers: [(String, String?)] = [], _ configure: (inout imgdl_request) -> Void = { _ in }
    ) -> Download {
        var request = imgdl_request()
        imgdl_request_init(&request, MemoryLayout<imgdl_request>.stride)
        request.event_mask = events
        prepare(&request)
        let fields = headers.map { ($0.0.withCString { strdup($0) }, $0.1.flatMap { strdup($0) }) }
        defer { for field in fields { free(field.0); free(field.1) } }
        let list = fields.map { imgdl_header(name: $0.0, value: $0.1) }
        url.withCString { text in
            list.withUnsafeBufferPointer { list in
                request.url = text
                request.headers = list.baseAddress
                request.header_count = list.count
                configure(&request)
                var token: OpaquePointer?
                let status = imgdl_download(downloader, &request, &token)
                accepted.change { $0 = (token, status) }
            }
        }
        return self
    }

    /// Everything that is called for this request comes here.
    func prepare(_ request: inout imgdl_request) {
        request.callback = { event, data in Download.from(data).received(event!.pointee) }
        request.destructor = { data in
            Download.from(data).monitor.change { $0.destructors += 1 }
            Unmanaged<Download>.fromOpaque(data!).release()
        }
        request.user_data = Unmanaged.passRetained(self).toOpaque()
    }

    func cancel() { XCTAssertEqual(imgdl_token_cancel(token), 0) }

    /// Until the destructor has run: nothing is called after it.
    @discardableResult
    func wait(_ file: StaticString = #filePath, _ line: UInt = #line) -> Download {
        let isOver = monitor.wait(until: .patient) { $0.destructors > 0 ? true : nil } ?? false
        XCTAssertTrue(isOver, "no end; seen \(kinds)", file: file, line: line)
        let record = record
        XCTAssertEqual(record.terminals, status == 0 ? 1 : 0, "terminals (B1)", file: file, line: line)
        XCTAssertEqual(record.destructors, 1, "destructors", file: file, line: line)
        XCTAssertFalse(record.overlapped, "callbacks of one token overlap", file: file, line: line)
        return self
    }

    @discardableResult
    func waitFor(_ kind: Int, count: Int = 1, _ file: StaticString = #filePath, _ line: UInt = #line) -> Download {
        let isSeen = monitor.wait(until: .patient) { record in
            record.seen.filter { $0.kind == UInt32(kind) }.count >= count ? true : nil
        }
        XCTAssertNotNil(isSeen, "event \(kind) does not come; seen \(kinds)", file: file, line: line)
        return self
    }

    /// Until so many bytes have been told.
    @discardableResult
    func waitFor(received bytes: Int, _ file: StaticString = #filePath, _ line: UInt = #line) -> Download {
        let areSeen = monitor.wait(until: .patient) { record in
            record.seen.contains { $0.received >= Int64(bytes) } ? true : nil
        }
        XCTAssertNotNil(areSeen, "\(bytes) bytes do not come; seen \(kinds)", file: file, line: line)
        return self
    }

    private static func from(_ data: UnsafeMutableRawPointer?) -> Download {
        Unmanaged<Download>.fromOpaque(data!).takeUnretainedValue()
    }

    private func received(_ event: imgdl_event) {
        monitor.change { record in
            if record.isInside { record.overlapped = true }
            record.isInside = true
            record.threads.insert(UInt(pthread_self()))
            var seen = Seen(kind: event.kind, received: event.received, expected: event.expected)
            if let info = event.info {
                seen.width = info.pointee.width
                seen.height = info.pointee.height
            }
            if let image = event.image {
                seen.width = imgdl_image_width(image)
                seen.height = imgdl_image_height(image)
            }
            if let response = event.response {
                seen.status = response.pointee.status
                record.responseURL = String(cString: response.pointee.url)
                record.httpVersion = response.pointee.http_version
                record.redirects = response.pointee.redirect_count
                for index in 0..<response.pointee.header_count {
                    let field = response.pointee.headers[index]
                    record.responseFields[String(cString: field.name)] = String(cString: field.value)
                }
            }
            record.seen.append(seen)
            guard event.kind == UInt32(IMGDL_EVENT_TERMINAL) else { return }
            record.terminals += 1
            record.code = event.code
            record.message = String(cString: event.message)
            record.httpStatus = event.http_status
            record.contentType = String(cString: event.content_type)
            record.preview = [UInt8](UnsafeRawBufferPointer(start: event.preview, count: event.preview_length))
            record.hasImage = event.image != nil
            if keepsResult, let image = event.image, let pixels = imgdl_image_pixels(image) {
                record.imageFormat = imgdl_image_format(image)
                let size = imgdl_image_stride(image) * Int(imgdl_image_height(image))
                record.pixels = [UInt8](UnsafeRawBufferPointer(start: pixels, count: size))
            }
            if keepsResult, let data = event.data {
                record.body = [UInt8](
                    UnsafeRawBufferPointer(start: imgdl_data_bytes(data), count: imgdl_data_length(data)))
            }
        }
        onEvent?(event)
        monitor.change { $0.isInside = false }
    }
}
