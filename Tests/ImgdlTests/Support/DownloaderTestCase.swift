import CImgdl
import Glibc
import Origin
import TestPictures
import XCTest

/// A scripted origin with pictures and a downloader, for each test anew. IMGDL_ORIGIN_SEGMENT and IMGDL_ORIGIN_LATENCY
/// rerun every suite with answers cut into small pieces, or late.
class DownloaderTestCase: XCTestCase {
    var origin: Origin!
    var downloader: OpaquePointer!
    private var texts: [UnsafeMutablePointer<CChar>] = []

    override func setUp() async throws {
        continueAfterFailure = false
        origin = try Origin()
        for (name, picture) in Pictures.all { origin.content[name] = picture }
        downloader = makeDownloader()
    }

    override func tearDown() async throws {
        _ = imgdl_downloader_destroy(downloader)
        origin.stop()
        for text in texts { free(text) }
        texts = []
    }

    /// For a struct of C, for as long as the test runs.
    func text(_ string: String?) -> UnsafePointer<CChar>? {
        guard let string, let copy = strdup(string) else { return nil }
        texts.append(copy)
        return UnsafePointer(copy)
    }

    func makeDownloader(_ configure: (inout imgdl_config) -> Void = { _ in }) -> OpaquePointer? {
        var config = imgdl_config()
        imgdl_config_init(&config, MemoryLayout<imgdl_config>.stride)
        configure(&config)
        var downloader: OpaquePointer?
        XCTAssertEqual(imgdl_downloader_create(&config, &downloader), 0, String(cString: imgdl_last_error()))
        return downloader
    }

    /// Another one for the rest of this test.
    func replaceDownloader(_ configure: (inout imgdl_config) -> Void) {
        _ = imgdl_downloader_destroy(downloader)
        downloader = makeDownloader(configure)
    }

    func picture(_ name: String, _ faults: String = "") -> String {
        origin.url("/pictures/\(name)\(faults.isEmpty ? "" : "?\(faults)")")
    }

    func start(
        _ url: String, events: Int = IMGDL_EVENT_ALL_BITS, headers: [(String, String?)] = [],
        _ configure: (inout imgdl_request) -> Void = { _ in }
    ) -> Download {
        Download().start(downloader, url, events: UInt32(events), headers: headers, configure)
    }

    func assertOriginSees(
        _ what: String, _ file: StaticString = #filePath, _ line: UInt = #line, _ condition: (Log) -> Bool
    ) {
        XCTAssertTrue(origin.wait(for: condition), what, file: file, line: line)
    }
}

let IMGDL_EVENT_ALL_BITS = 63

/// Generated once for all tests.
enum Pictures {
    static let all: [(String, Picture)] = [
        ("baseline.jpg", jpeg(PICTURE_JPEG_BASELINE)),
        ("progressive.jpg", jpeg(PICTURE_JPEG_PROGRESSIVE)),
        ("oriented.jpg", encode(PICTURE_JPEG_BASELINE, "image/jpeg") { $0.orientation = 6 }),
        ("rgba.png", encode(PICTURE_PNG_RGBA, "image/png")),
        ("adam7.png", encode(PICTURE_PNG_ADAM7, "image/png")),
        ("lossy.webp", encode(PICTURE_WEBP_LOSSY, "image/webp")),
        ("lossless.webp", encode(PICTURE_WEBP_LOSSLESS, "image/webp")),
        ("page.html", Picture(Array("<!DOCTYPE html><html><body>no picture</body></html>".utf8), type: "text/html")),
        ("empty", Picture([], type: "image/png")),
    ]

    static let width = 320
    static let height = 240

    static func bytes(_ name: String) -> [UInt8] { all.first { $0.0 == name }?.1.bytes ?? [] }

    static func encode(
        _ kind: picture_kind, _ type: String, width: Int = width, height: Int = height,
        _ configure: (inout picture_spec) -> Void = { _ in }
    ) -> Picture {
        var spec = picture_spec()
        spec.kind = kind.rawValue
        spec.width = Int32(width)
        spec.height = Int32(height)
        spec.seed = 7
        configure(&spec)
        var size = 0
        guard let bytes = picture_encode(&spec, &size) else { return Picture([], type: type) }
        defer { picture_free(bytes) }
        return Picture(Array(UnsafeBufferPointer(start: bytes, count: size)), type: type)
    }

    private static func jpeg(_ kind: picture_kind) -> Picture { encode(kind, "image/jpeg") }
}

extension XCTestCase {
    func assertEnds(
        _ download: Download, _ name: String, _ file: StaticString = #filePath, _ line: UInt = #line
    ) {
        download.wait(file, line)
        XCTAssertEqual(download.name, name, download.record.message, file: file, line: line)
    }
}

extension String? {
    func withCString<Result>(_ body: (UnsafePointer<CChar>?) -> Result) -> Result {
        switch self {
        case .some(let text): text.withCString { body($0) }
        case .none: body(nil)
        }
    }
}

/// What imgdl_decode makes of these bytes.
func decodedPixels(_ bytes: [UInt8]) -> [UInt8]? {
    var image: OpaquePointer?
    guard imgdl_decode(bytes, bytes.count, nil, &image) == 0 else { return nil }
    defer { imgdl_image_release(image) }
    let size = imgdl_image_stride(image) * Int(imgdl_image_height(image))
    return imgdl_image_pixels(image).map { [UInt8](UnsafeRawBufferPointer(start: $0, count: size)) }
}
