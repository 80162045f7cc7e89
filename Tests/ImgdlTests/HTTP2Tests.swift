import CCurl
import CImgdl
import Origin
import OriginHTTP2
import XCTest

/// HTTP/2 and TLS, against an origin that scripts single streams.
final class HTTP2Tests: XCTestCase {
    /// From 8.14.0 on libcurl tells why a stream was reset, and begins again by itself more often.
    private let isNewer = curl_version_info(CURLVERSION_FIRST).pointee.version_num >= 0x080E00
    private var origin: HTTP2Origin!
    private var downloader: OpaquePointer!

    /// In place of what was begun before.
    private func begin(
        certificate: Certificate = .valid, trusting: Bool = true, alsoHTTP1: Bool = false, proxy: String? = nil,
        streams: Int = 100
    ) throws {
        end()
        origin = try HTTP2Origin(security: .tls(certificate), alsoHTTP1: alsoHTTP1, maxConcurrentStreams: streams)
        var config = imgdl_config()
        imgdl_config_init(&config, MemoryLayout<imgdl_config>.stride)
        // On a busy machine a stream that the server holds up waits for long, and one that idles out is one more reset.
        config.idle_timeout_ms = 600_000
        let file = trusting ? origin.caFile : nil
        let status = file.withCString { path in
            proxy.withCString { proxy in
                config.ca_file = path
                config.proxy = proxy
                return imgdl_downloader_create(&config, &downloader)
            }
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

    private func start(_ path: String, events: UInt32 = 63) -> Download {
        Download().start(downloader, origin.url(path), events: events)
    }

    /// A response in two halves, the second after the gate.
    private func routeHeld(_ path: String, gate: String = "go") {
        let body = Pictures.bytes("baseline.jpg")
        origin.route(path) { exchange in
            try exchange.send(status: 200, headers: ["Content-Type": "image/jpeg"])
            try exchange.send(body: body.prefix(body.count / 2))
            try exchange.wait(gate)
            try exchange.send(body: body.suffix(body.count - body.count / 2))
            try exchange.end()
        }
    }

    func testManyDownloadsAreStreamsOfOneConnection() throws {
        try begin()
        for n in 0..<6 { routeHeld("/\(n).jpg") }
        let downloads = (0..<6).map { start("/\($0).jpg") }
        XCTAssertTrue(origin.gate("go").waitUntilReached(6))
        origin.gate("go").open()
        for download in downloads { assertEnds(download, "IMGDL_OK") }
        XCTAssertEqual(origin.log.connections.count, 1)
        XCTAssertEqual(origin.log.requests[0].headers["Accept"], "image/*,*/*;q=0.8")
    }

    /// curl leaves a handle in another state when other streams still use its connection.
    func testStreamsThatEndBeforeTheirSibling() throws {
        try begin()
        routeHeld("/sibling.jpg")
        origin.route("/short.jpg") { try $0.respond(body: Pictures.bytes("rgba.png")) }
        let sibling = start("/sibling.jpg")
        sibling.waitFor(IMGDL_EVENT_PROGRESS)
        for _ in 0..<4 { assertEnds(start("/short.jpg"), "IMGDL_OK") }
        origin.gate("go").open()
        assertEnds(sibling, "IMGDL_OK")
        XCTAssertEqual(origin.log.connections.count, 1)
    }

    func testB2_CancelResetsOneStreamAndLeavesItsSiblings() throws {
        try begin()
        routeHeld("/a.jpg", gate: "never")
        routeHeld("/b.jpg")
        let cancelled = start("/a.jpg")
        let sibling = start("/b.jpg")
        cancelled.waitFor(IMGDL_EVENT_PROGRESS)
        sibling.waitFor(IMGDL_EVENT_PROGRESS)
        cancelled.cancel()
        assertEnds(cancelled, "IMGDL_ERROR_CANCELLED")
        XCTAssertTrue(origin.wait { $0.streamsResetByClient.count == 1 })
        origin.gate("go").open()
        assertEnds(sibling, "IMGDL_OK")
        XCTAssertEqual(origin.log.connections.count, 1)
    }

    func testAStreamResetByTheServer() throws {
        try begin()
        routeHeld("/b.jpg")
        origin.route("/reset.jpg") { exchange in
            try exchange.send(status: 200)
            try exchange.send(body: [0xFF, 0xD8])
            try exchange.reset()
        }
        let sibling = start("/b.jpg")
        sibling.waitFor(IMGDL_EVENT_PROGRESS)
        let download = start("/reset.jpg")
        assertEnds(download, "IMGDL_ERROR_CONNECTION_LOST")
        origin.gate("go").open()
        assertEnds(sibling, "IMGDL_OK")
    }

    func testGoAwayDoesNotHurtWhatRuns() throws {
        try begin()
        let body = Pictures.bytes("baseline.jpg")
        origin.route("/away.jpg") { exchange in
            try exchange.send(status: 200)
            try exchange.goAway(lastStream: exchange.request.stream)
            try exchange.send(body: body)
            try exchange.end()
        }
        assertEnds(start("/away.jpg"), "IMGDL_OK")
        origin.route("/next.jpg") { try $0.respond(body: body) }
        assertEnds(start("/next.jpg"), "IMGDL_OK")
    }

    /// TLS has ended the connection, TCP has not: nothing more is heard of it, and each stream is told.
    func testTheGoodbyeOfTLSEndsAllStreams() throws {
        try begin()
        let body = Pictures.bytes("baseline.jpg")
        for number in 0..<6 {
            origin.route("/\(number).jpg") { exchange in
                try exchange.send(status: 200)
                try exchange.send(body: body.prefix(body.count / 2))
                try exchange.wait("all")
                if number == 3 { try exchange.sayGoodbye() }
                try exchange.wait("never")
            }
        }
        let downloads = (0..<6).map { start("/\($0).jpg") }
        for download in downloads { download.waitFor(IMGDL_EVENT_PROGRESS) }
        XCTAssertTrue(origin.gate("all").waitUntilReached(6))
        origin.gate("all").open()
        for download in downloads { assertEnds(download, "IMGDL_ERROR_TRUNCATED") }
        XCTAssertEqual(origin.log.connections.count, 1)
    }

    /// A server that is killed after its GOAWAY says no goodbye: it has broken no rule.
    func testAConnectionThatEndsBehindItsGoAway() throws {
        for hasBody in [false, true] {
            try begin()
            let body = Pictures.bytes("baseline.jpg")
            origin.route("/a.jpg") { exchange in
                if hasBody {
                    try exchange.send(status: 200)
                    try exchange.send(body: body.prefix(body.count / 2))
                }
                try exchange.goAway(lastStream: exchange.request.stream)
                try exchange.shutDownSending()
                try exchange.wait("never")
            }
            let download = start("/a.jpg")
            assertEnds(download, hasBody ? "IMGDL_ERROR_TRUNCATED" : "IMGDL_ERROR_CONNECTION_LOST")
        }
    }

    /// The server has not looked at it: it is sent again, whether or not retries are asked for.
    func testARequestThatAGoAwayRefuses() throws {
        for (code, closes) in [
            (HTTP2Error.noError, false), (.enhanceYourCalm, false), (.enhanceYourCalm, true),
        ] {
            // On a new connection, and on one that has brought something.
            for used in [0, 1] {
                try begin()
                let body = Pictures.bytes("baseline.jpg")
                let origin = origin!
                origin.route("/first.jpg") { try $0.respond(body: body) }
                origin.route("/a.jpg") { exchange in
                    guard origin.log.requests.count == used + 1 else { return try exchange.respond(body: body) }
                    try exchange.goAway(lastStream: used == 0 ? 0 : exchange.request.stream - 2, code: code)
                    if closes { exchange.close() }
                }
                for _ in 0..<used { assertEnds(start("/first.jpg"), "IMGDL_OK") }
                assertEnds(start("/a.jpg"), "IMGDL_OK")
                XCTAssertEqual(origin.log.requests.count, used + 2, "\(code), used \(used) times")
            }
        }
    }

    /// Nor at one that it resets as refused behind its GOAWAY, whatever becomes of the connection.
    func testStreamsThatAreRefusedBehindAGoAway() throws {
        for ending in ConnectionEnding.allCases {
            try refuse("\(ending)") { try $0.refuse(others: true, ending: ending) }
        }
        for closes in [false, true] {
            try refuse("GOAWAY, \(closes)") { exchange in
                try exchange.goAway(lastStream: 0)
                if closes { exchange.close() }
            }
        }
    }

    /// All streams of a connection at once, which is a new one or has been used.
    private func refuse(_ manner: String, _ refuse: @escaping (StreamExchange) throws -> Void) throws {
        let body = Pictures.bytes("baseline.jpg")
        for (count, used) in [(1, 0), (1, 1), (6, 0), (6, 1)] {
            try begin()
            let origin = origin!
            origin.route("/first.jpg") { try $0.respond(body: body) }
            for number in 0..<count {
                origin.route("/\(number).jpg") { exchange in
                    guard exchange.request.connection == origin.log.requests.first?.connection else {
                        return try exchange.respond(body: body)
                    }
                    try exchange.wait("all")
                    // One of them does it for all.
                    if number == count / 2 { try refuse(exchange) }
                }
            }
            for _ in 0..<used { assertEnds(start("/first.jpg"), "IMGDL_OK") }
            let downloads = (0..<count).map { start("/\($0).jpg") }
            XCTAssertTrue(origin.gate("all").waitUntilReached(count))
            origin.gate("all").open()
            for download in downloads {
                download.wait()
                XCTAssertEqual(download.name, "IMGDL_OK", "\(manner), \(count), \(used): \(download.record.message)")
            }
            let requests = origin.log.requests.count
            XCTAssertTrue((used + count + 1...used + 4 * count).contains(requests), "\(requests)")
        }
    }

    /// Below 8.14.0 nobody knows whether it was looked at: libcurl does not tell it from one that was reset. Newer versions do, and
    /// what was refused is sent again, whatever its method.
    func testAPostThatIsRefusedBehindAGoAway() throws {
        try begin()
        origin.route("/a") { try $0.refuse(ending: .shutDown) }
        let download = "POST".withCString { method in
            Download().start(downloader, origin.url("/a")) { $0.method = method }
        }
        assertEnds(download, "IMGDL_ERROR_CONNECTION_LOST")
        let message = download.record.message
        let times = origin.log.requests.count
        XCTAssertTrue((isNewer ? 2...4 : 1...1).contains(times), "\(times)")
        let words = isNewer ? "refused another connection, of HTTP/1.1" : "POST is not sent again"
        XCTAssertTrue(message.contains(words), message)
    }

    /// Whatever it was reset for, it has no picture; and what may have been done is not done again.
    func testStreamsThatAreResetBehindAGoAway() throws {
        for hasBody in [false, true] {
            try begin(alsoHTTP1: true)
            origin.route("/a.jpg") { exchange in
                if hasBody {
                    try exchange.send(status: 200)
                    try exchange.send(body: [0xFF, 0xD8])
                    try exchange.wait("seen")
                }
                try exchange.refuse(code: .internalError, ending: .shutDown)
            }
            let download = start("/a.jpg")
            if hasBody { download.waitFor(IMGDL_EVENT_PROGRESS) }
            origin.gate("seen").open()
            assertEnds(download, "IMGDL_ERROR_CONNECTION_LOST")
            XCTAssertLessThanOrEqual(origin.log.requests.count, hasBody ? 1 : 4)
        }
    }

    /// Servers take it for an attack when a client opens streams and resets them all.
    func testAStormOfCancelsIsPaced() throws {
        try begin()
        _ = imgdl_downloader_set_max_concurrent(downloader, 91)
        routeHeld("/sibling.jpg")
        let sibling = start("/sibling.jpg")
        sibling.waitFor(IMGDL_EVENT_PROGRESS)
        for n in 0..<180 { routeHeld("/\(n).jpg", gate: "never") }
        routeHeld("/other.jpg", gate: "open")
        origin.gate("open").open()
        let began = ContinuousClock.now
        for round in 0..<2 {
            let downloads = (0..<90).map { start("/\(90 * round + $0).jpg") }
            for download in downloads { download.waitFor(IMGDL_EVENT_PROGRESS) }
            for download in downloads { download.cancel() }
            for download in downloads { assertEnds(download, "IMGDL_ERROR_CANCELLED") }
        }
        assertEnds(start("/other.jpg"), "IMGDL_OK")
        let resets = origin.log.streamsResetByClient.count
        XCTAssertLessThanOrEqual(resets, Resets.allowed(since: began))
        // What has ended curl may reset, too.
        func cancelledAndReset(_ log: Log) -> Int {
            let kept = Set(log.requests.filter { $0.path.hasPrefix("/sib") || $0.path.hasPrefix("/oth") }.map(\.stream))
            return log.streamsResetByClient.count { !kept.contains($0.id) }
        }
        XCTAssertTrue(
            origin.wait { cancelledAndReset($0) == 180 },
            "each is reset in the end: \(cancelledAndReset(origin.log))")
        origin.gate("go").open()
        assertEnds(sibling, "IMGDL_OK")
        XCTAssertEqual(origin.log.connections.count, 1)
    }

    /// A server that takes streams and answers none: that it speaks HTTP/2 is known from the handshake. Connections on
    /// which nobody waits are closed where many streams would wait for their reset, and the next request goes on.
    func testAStormOfCancelsBeforeAnyAnswerIsPaced() throws {
        try begin()
        _ = imgdl_downloader_set_max_concurrent(downloader, 91)
        origin.route(prefix: "/") { try $0.wait("never") }
        origin.route("/other.jpg") { try $0.respond(body: Pictures.bytes("baseline.jpg")) }
        let sibling = start("/sibling.jpg")
        XCTAssertTrue(origin.wait { $0.requests.count == 1 })
        let began = ContinuousClock.now
        for round in 0..<8 {
            let downloads = (0..<90).map { start("/\(round)/\($0).jpg") }
            XCTAssertTrue(origin.wait { $0.requests.count == 1 + 90 * (round + 1) })
            for download in downloads { download.cancel() }
            for download in downloads { assertEnds(download, "IMGDL_ERROR_CANCELLED") }
        }
        assertEnds(start("/other.jpg"), "IMGDL_OK")
        let resets = origin.log.streamsResetByClient.count
        XCTAssertLessThanOrEqual(resets, Resets.allowed(since: began))
        XCTAssertGreaterThanOrEqual(resets, 100)
        XCTAssertNil(sibling.record.code, "its connection is not closed: \(sibling.name)")
        sibling.cancel()
        assertEnds(sibling, "IMGDL_ERROR_CANCELLED")
    }

    /// Where somebody waits on each connection none can be closed: requests wait until few enough are left.
    func testRequestsWaitWhereTooManyStreamsWaitForTheirReset() throws {
        try begin()
        _ = imgdl_downloader_set_max_concurrent(downloader, 400)
        origin.route(prefix: "/") { try $0.wait("never") }
        origin.route("/other.jpg") { try $0.respond(body: Pictures.bytes("baseline.jpg")) }
        let began = ContinuousClock.now
        var kept: [Int: Download] = [:]
        var cancelled = 0
        for round in 0..<22 {
            let downloads = (0..<20).map { start("/\(round)/\($0).jpg") }
            XCTAssertTrue(origin.wait { $0.requests.count == 20 * (round + 1) })
            let connections = Dictionary(
                uniqueKeysWithValues: origin.log.requests.suffix(20).map { ($0.path, $0.connection) })
            for (number, download) in downloads.enumerated() {
                let connection = try XCTUnwrap(connections["/\(round)/\(number).jpg"])
                if kept[connection] == nil {
                    kept[connection] = download
                } else {
                    download.cancel()
                    assertEnds(download, "IMGDL_ERROR_CANCELLED")
                    cancelled += 1
                }
            }
        }
        assertEnds(start("/other.jpg"), "IMGDL_OK")
        let resets = origin.log.streamsResetByClient.count
        XCTAssertLessThanOrEqual(resets, Resets.allowed(since: began))
        XCTAssertGreaterThan(cancelled, 300)
        XCTAssertGreaterThan(resets, cancelled - 200, "so many may still wait")
        for download in kept.values {
            XCTAssertNil(download.record.code, download.name)
            download.cancel()
            assertEnds(download, "IMGDL_ERROR_CANCELLED")
        }
    }

    /// One that goes on sending to nobody is reset ahead of its turn: the pace alone would take 2.6 seconds for these.
    func testCancelledStreamsThatGoOnSendingAreResetAtOnce() throws {
        try begin()
        _ = imgdl_downloader_set_max_concurrent(downloader, 91)
        routeHeld("/sibling.jpg")
        let sibling = start("/sibling.jpg")
        sibling.waitFor(IMGDL_EVENT_PROGRESS)
        let part = Array(Pictures.bytes("baseline.jpg").prefix(1000))
        let began = ContinuousClock.now
        for n in 0..<180 {
            origin.route("/\(n).jpg") { exchange in
                try exchange.send(status: 200)
                try exchange.send(body: part)
                try exchange.wait("flood")
                for _ in 0..<4 { try exchange.send(body: [UInt8](repeating: 0, count: 64 * 1024)) }
            }
        }
        for round in 0..<2 {
            let downloads = (0..<90).map { start("/\(90 * round + $0).jpg") }
            for download in downloads { download.waitFor(IMGDL_EVENT_PROGRESS) }
            for download in downloads { download.cancel() }
            for download in downloads { assertEnds(download, "IMGDL_ERROR_CANCELLED") }
        }
        let resets = origin.log.streamsResetByClient.count
        XCTAssertLessThanOrEqual(resets, Resets.allowed(since: began))
        let opened = ContinuousClock.now
        origin.gate("flood").open()
        XCTAssertTrue(origin.wait { $0.streamsResetByClient.count == 180 })
        XCTAssertLessThan(ContinuousClock.now - opened, .seconds(1.5))
        origin.gate("go").open()
        assertEnds(sibling, "IMGDL_OK")
    }

    /// However many go on sending, resets ahead of their turn have a bound: the rest is read until it has its turn.
    func testAStormOfStreamsThatGoOnSendingIsPaced() throws {
        try begin()
        _ = imgdl_downloader_set_max_concurrent(downloader, 91)
        routeHeld("/sibling.jpg")
        let sibling = start("/sibling.jpg")
        sibling.waitFor(IMGDL_EVENT_PROGRESS)
        let part = Array(Pictures.bytes("baseline.jpg").prefix(1000))
        origin.route("/other.jpg") { try $0.respond(body: Pictures.bytes("baseline.jpg")) }
        let began = ContinuousClock.now
        for round in 0..<6 {
            origin.route(prefix: "/\(round)/") { exchange in
                try exchange.send(status: 200)
                try exchange.send(body: part)
                try exchange.wait("flood \(round)")
                // A little more than may be read: what comes behind a reset is for nobody, and takes a debug build long.
                for _ in 0..<2 { try exchange.send(body: [UInt8](repeating: 0, count: 48 * 1024)) }
                try exchange.wait("never")
            }
            let downloads = (0..<90).map { start("/\(round)/\($0).jpg") }
            for download in downloads { download.waitFor(IMGDL_EVENT_PROGRESS) }
            for download in downloads { download.cancel() }
            for download in downloads { assertEnds(download, "IMGDL_ERROR_CANCELLED") }
            origin.gate("flood \(round)").open()
            let expected = min(90 * (round + 1), 400)
            XCTAssertTrue(origin.wait { $0.streamsResetByClient.count >= expected }, "round \(round)")
        }
        assertEnds(start("/other.jpg"), "IMGDL_OK")
        XCTAssertLessThanOrEqual(origin.log.streamsResetByClient.count, 300 + Resets.allowed(since: began))
        XCTAssertNil(sibling.record.code, "its connection is not closed: \(sibling.name)")
        origin.gate("go").open()
        assertEnds(sibling, "IMGDL_OK")
    }

    /// Whatever becomes of streams, a connection that nobody shares is served.
    func testStreamsThatAreRefusedAgainAndAgain() throws {
        try begin(alsoHTTP1: true)
        origin.route("/a.jpg") { exchange in
            if exchange.request.stream > 0 { return try exchange.reset(.refusedStream) }
            try exchange.respond(body: Pictures.bytes("baseline.jpg"))
        }
        let download = start("/a.jpg")
        assertEnds(download, "IMGDL_OK")
        XCTAssertEqual(download.record.httpVersion, 11)
        XCTAssertTrue((2...4).contains(origin.log.requests.count), "\(origin.log.requests.count)")
    }

    /// A server that refuses the last attempt, too, since it speaks HTTP/2 alone, has not refused its client.
    func testStreamsThatAreRefusedWhereNothingElseIsSpoken() throws {
        let manners: [(StreamExchange) throws -> Void] = [
            { try $0.reset(.refusedStream) }, { try $0.goAway(lastStream: 0) }, { try $0.refuse(ending: .close) },
        ]
        for manner in manners {
            try begin()
            origin.route("/a.jpg", manner)
            let download = start("/a.jpg")
            assertEnds(download, "IMGDL_ERROR_CONNECTION_LOST")
            let message = download.record.message
            XCTAssertTrue(message.contains("refused another connection, of HTTP/1.1"), message)
            XCTAssertTrue((2...4).contains(origin.log.requests.count), "\(origin.log.requests.count)")
        }
    }

    /// Each connection has a tunnel of its own: what the proxy says of the last one is not the server's answer.
    func testConnectionsThatEndBehindAProxy() throws {
        let proxy = try ProxyOrigin()
        defer { proxy.stop() }
        try begin(alsoHTTP1: true, proxy: "http://127.0.0.1:\(proxy.port)")
        origin.route("/a.jpg") { exchange in
            if exchange.request.stream > 0 { return try exchange.goAway(lastStream: 0) }
            try exchange.respond(body: Pictures.bytes("baseline.jpg"))
        }
        let download = start("/a.jpg")
        assertEnds(download, "IMGDL_OK")
        XCTAssertEqual(download.record.httpVersion, 11)
        // How often curl itself begins again differs by its version.
        XCTAssertTrue((3...(isNewer ? 16 : 4)).contains(proxy.log.requests.count), "\(proxy.log.requests.count)")
        XCTAssertEqual(proxy.log.requests.count, origin.log.requests.count)
    }

    /// Requests come while another connection is being made through the proxy: curl 7.88 sends them on it at once.
    func testMoreStreamsThanOneConnectionHasBehindAProxy() throws {
        let proxy = try ProxyOrigin()
        defer { proxy.stop() }
        try begin(proxy: "http://127.0.0.1:\(proxy.port)", streams: 4)
        _ = imgdl_downloader_set_max_concurrent(downloader, 400)
        origin.route(prefix: "/") { stream in
            try stream.pause(.milliseconds(20))
            try stream.respond(body: Pictures.bytes("baseline.jpg"))
        }
        assertEnds(start("/first.jpg"), "IMGDL_OK")
        let downloads = (0..<100).map { number in
            usleep(200)
            return start("/\(number).jpg")
        }
        for download in downloads { download.wait() }
        XCTAssertEqual(downloads.filter { $0.name != "IMGDL_OK" }.map { $0.record.message ?? $0.name }, [])
    }

    func testCertificatesThatAreRefused() throws {
        for certificate in [Certificate.expired, .wrongHost] {
            try begin(certificate: certificate)
            origin.route("/a.jpg") { try $0.respond(body: []) }
            let download = start("/a.jpg")
            assertEnds(download, "IMGDL_ERROR_TLS_CERTIFICATE")
            XCTAssertEqual(origin.log.requests.count, 0)
        }
        try begin(trusting: false)
        let download = start("/a.jpg")
        assertEnds(download, "IMGDL_ERROR_TLS_CERTIFICATE")
        XCTAssertTrue(download.record.message.contains("https://127.0.0.1"), download.record.message)
    }
}
