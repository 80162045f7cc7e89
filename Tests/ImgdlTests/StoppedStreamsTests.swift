import CImgdl
import Origin
import OriginHTTP2
import XCTest

/// Streams of HTTP/2 that end before their answers do, for whatever reason. Servers take it for an attack when a client opens
/// streams and resets them all: each reason keeps to the pace that cancels keep to.
final class StoppedStreamsTests: XCTestCase {
    private static let count = 90

    private var origin: HTTP2Origin!
    private var downloader: OpaquePointer!

    /// In place of what was begun before.
    private func begin() throws {
        end()
        origin = try HTTP2Origin(security: .tls(.valid), maxConcurrentStreams: 4 * Self.count)
        var config = imgdl_config()
        imgdl_config_init(&config, MemoryLayout<imgdl_config>.stride)
        let status = origin.caFile.withCString { path in
            config.ca_file = path
            config.max_concurrent = UInt32(Self.count + 1)
            return imgdl_downloader_create(&config, &downloader)
        }
        XCTAssertEqual(status, 0)
    }

    override func tearDown() { end() }

    private func end() {
        if downloader != nil { _ = imgdl_downloader_destroy(downloader) }
        downloader = nil
        origin?.stop()
        origin = nil
    }

    /// Of those that were to be stopped. curl resets others, too, where their END_STREAM comes behind their last byte, and
    /// was not read with it: these the server has ended.
    private func resets(_ log: Log) -> Int {
        let stopped = Set(
            log.requests.filter { $0.path.hasPrefix("/stopped/") }.map { [$0.connection, Int($0.stream)] })
        return log.streamsResetByClient.count { stopped.contains([$0.connection, Int($0.id)]) }
    }

    /// An answer with this head and body, that never ends.
    private func answer(
        _ status: Int, _ headers: Headers, _ body: [UInt8] = []
    ) -> @Sendable (StreamExchange) throws -> Void {
        { exchange in
            try exchange.send(status: status, headers: headers)
            try exchange.send(body: body)
            try exchange.wait("never")
        }
    }

    /// Rounds of requests that all come to this end, beside a picture that is on its way on the same connection. Their ends
    /// are told at once, their streams are reset at the pace, and the picture arrives.
    private func assertIsPaced(
        _ what: String, _ code: String, endsAll: Bool = false, isFollowed: Bool = false, line: UInt = #line,
        _ script: @escaping @Sendable (StreamExchange) throws -> Void,
        _ configure: @escaping (inout imgdl_request) -> Void = { _ in }
    ) throws {
        let sibling = try startSibling(script)
        let began = ContinuousClock.now
        // Where the machine is slow the pace may have allowed as many as there were, or will in a second: then there are more.
        var rounds = 0
        repeat {
            assertAllEnd(round: rounds, code, line: line, configure)
            rounds += 1
        } while rounds < 8 && (rounds < 2 || rounds * Self.count <= Resets.allowed(since: began) + 30)
        assertEnds(Download().start(downloader, origin.url("/other.jpg")), "IMGDL_OK", #filePath, line)
        let resets = resets(origin.log)
        let allowed = Resets.allowed(since: began)
        XCTAssertLessThanOrEqual(resets, allowed, what, line: line)
        XCTAssertGreaterThanOrEqual(resets, 100, "\(what): the first ones need not wait", line: line)
        XCTAssertLessThan(allowed, rounds * Self.count, "\(what): there are as many as the pace allows", line: line)
        if endsAll {
            XCTAssertTrue(
                origin.wait { self.resets($0) == rounds * Self.count }, "each is reset in the end", line: line)
        }
        origin.gate("go").open()
        assertEnds(sibling, "IMGDL_OK", #filePath, line)
        // With what follows them, and with more rounds, there are more streams than curl has on a connection.
        if !isFollowed, rounds == 2 { XCTAssertEqual(origin.log.connections.count, 1, what, line: line) }
    }

    /// A picture whose first half has come, and whose other half comes when the gate "go" opens.
    private func startSibling(_ script: @escaping @Sendable (StreamExchange) throws -> Void) throws -> Download {
        try begin()
        let picture = Pictures.bytes("baseline.jpg")
        origin.route("/sibling.jpg") { exchange in
            try exchange.send(status: 200, headers: ["Content-Type": "image/jpeg"])
            try exchange.send(body: picture.prefix(picture.count / 2))
            try exchange.wait("go")
            try exchange.send(body: picture.suffix(picture.count - picture.count / 2))
            try exchange.end()
        }
        origin.route("/other.jpg") { try $0.respond(body: picture) }
        origin.route(prefix: "/stopped/", script)
        let sibling = Download().start(downloader, origin.url("/sibling.jpg"))
        sibling.waitFor(IMGDL_EVENT_PROGRESS)
        return sibling
    }

    private func assertAllEnd(
        round: Int, _ code: String, line: UInt, _ configure: @escaping (inout imgdl_request) -> Void = { _ in }
    ) {
        let downloads = (0..<Self.count).map {
            Download().start(downloader, origin.url("/stopped/\(round)-\($0).jpg"), configure)
        }
        for download in downloads { assertEnds(download, code, #filePath, line) }
    }

    func testBodiesOverTheirLimit() throws {
        let script = answer(200, ["Content-Type": "image/png"], [UInt8](repeating: 0, count: 2_000))
        try assertIsPaced("more than allowed", "IMGDL_ERROR_BODY_LIMIT", endsAll: true, script) {
            $0.max_body_bytes = 1_000
            $0.flags = UInt32(IMGDL_REQUEST_BODY)
        }
        try assertIsPaced(
            "more announced", "IMGDL_ERROR_BODY_LIMIT", answer(200, ["Content-Length": "2000"], [1])
        ) { $0.max_body_bytes = 1_000 }
    }

    /// The beginning of the page is kept, and its rest is more than a reset costs.
    func testPagesThatNobodyWants() throws {
        let page = [UInt8](repeating: UInt8(ascii: "x"), count: 4_000)
        try assertIsPaced(
            "an error's page", "IMGDL_ERROR_INVALID_STATUS",
            answer(404, ["Content-Type": "text/html", "Content-Length": "1000000"], page))
        try assertIsPaced(
            "a type that is not accepted", "IMGDL_ERROR_INVALID_CONTENT_TYPE",
            answer(200, ["Content-Type": "text/html", "Content-Length": "1000000"], page)
        ) { request in
            request.accepted_types = Self.pictures
            request.accepted_type_count = 1
        }
    }

    private nonisolated(unsafe) static let pictures: UnsafePointer<UnsafePointer<CChar>?> = {
        let list = UnsafeMutablePointer<UnsafePointer<CChar>?>.allocate(capacity: 1)
        list.initialize(to: UnsafePointer(strdup("image/*")))
        return UnsafePointer(list)
    }()

    /// It says nothing, and ends with its head.
    func testRedirectsWithLongBodies() throws {
        let script = answer(302, ["Location": "/other.jpg", "Content-Length": "1000000"])
        try assertIsPaced("a redirect", "IMGDL_OK", isFollowed: true, script)
    }

    func testBodiesThatAreNoPictures() throws {
        let text = [UInt8](repeating: UInt8(ascii: "x"), count: 4_000)
        try assertIsPaced("no picture", "IMGDL_ERROR_BAD_IMAGE_DATA", answer(200, ["Content-Type": "image/png"], text))
    }

    func testCodingsThatAreBroken() throws {
        let headers: Headers = ["Content-Type": "image/png", "Content-Encoding": "gzip"]
        try assertIsPaced(
            "broken gzip", "IMGDL_ERROR_CONTENT_ENCODING", answer(200, headers, Array("no gzip at all".utf8)))
        var layered = headers
        layered.add("content-encoding", "gzip, gzip, gzip, gzip, gzip")
        try assertIsPaced("too many layers", "IMGDL_ERROR_CONTENT_ENCODING", answer(200, layered, [0x1F, 0x8B]))
    }

    func testHeadersOverTheirLimit() throws {
        var headers: Headers = [:]
        for number in 0..<1_001 { headers.add("a\(number)", "") }
        try assertIsPaced("a long header", "IMGDL_ERROR_HEADER_LIMIT", answer(200, headers))
    }

    /// What libcurl keeps of those that nobody reads any more has to have a bound: they are reset as they come, whatever the
    /// pace, and others wait for that.
    func testHeadersFarOverTheirLimit() throws {
        var headers: Headers = [:]
        // No more: lines over the limit pay for nothing, and on a slow machine many in each stream are a flood.
        for number in 0..<1_050 { headers.add("a\(number)", "") }
        let sibling = try startSibling(answer(200, headers))
        for round in 0..<2 { assertAllEnd(round: round, "IMGDL_ERROR_HEADER_LIMIT", line: #line) }
        XCTAssertTrue(origin.wait { self.resets($0) == 2 * Self.count })
        origin.gate("go").open()
        assertEnds(sibling, "IMGDL_OK")
        assertEnds(Download().start(downloader, origin.url("/other.jpg")), "IMGDL_OK")
        XCTAssertEqual(origin.log.connections.count, 1)
    }
}
