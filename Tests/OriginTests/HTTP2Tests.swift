import Origin
import OriginHTTP2
import XCTest

/// The HTTP/2 origin, against the curl tool over TLS and frame by frame in cleartext.
final class HTTP2Tests: XCTestCase {
    private var origin: HTTP2Origin!
    private typealias Frame = RawHTTP2Client.Frame

    override func setUp() { continueAfterFailure = false }

    override func tearDown() {
        origin?.stop()
        origin = nil
    }

    // MARK: TLS

    func testAnswersOverTLS() throws {
        origin = try HTTP2Origin()
        let body = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        origin.route("/a.jpg") { try $0.respond(headers: ["Content-Type": "image/jpeg"], body: body) }
        origin.route("/post") { try $0.respond(201, headers: ["X-Seen": $0.request.method], body: $0.request.body) }
        let ca = try XCTUnwrap(origin.caFile)
        let got = try curl(
            "--cacert", ca, "-w", "%{http_version} %{http_code} %{size_download}", "-o", "/dev/null",
            origin.url("/a.jpg?n=1"))
        XCTAssertEqual(got.exitCode, 0)
        XCTAssertEqual(got.output, "2 200 300000")
        let posted = try curl("--cacert", ca, "-d", "hello", "-H", "X-Me: You", origin.url("/post"))
        XCTAssertEqual(posted.output, "hello")
        let missing = try curl("--cacert", ca, "-w", "%{http_code}", origin.url("/nowhere"))
        XCTAssertEqual(missing.output, "404")

        let requests = origin.log.requests
        XCTAssertEqual(requests.map(\.method), ["GET", "POST", "GET"])
        XCTAssertEqual(requests[0].path, "/a.jpg")
        XCTAssertEqual(requests[0].target, "/a.jpg?n=1")
        XCTAssertEqual(requests[0].headers["Host"], "127.0.0.1:\(origin.port)")
        XCTAssertEqual(requests[1].headers["X-Me"], "You")
        XCTAssertEqual(requests.map(\.connection), [1, 2, 3])
        // Newer versions of the tool take their leave, and wait for the server to close.
        XCTAssertTrue(origin.wait { $0.openConnections == 0 })
    }

    func testSiblingsGoOnWhileAStreamIsHeld() throws {
        origin = try HTTP2Origin()
        origin.route("/held") { exchange in
            try exchange.send(status: 200)
            try exchange.send(body: [UInt8](repeating: 1, count: 10))
            try exchange.wait("go")
            try exchange.send(body: [2])
            try exchange.end()
        }
        origin.route("/quick") { try $0.respond(body: [3]) }
        let ca = try XCTUnwrap(origin.caFile)
        let running = try startCurl([
            "--cacert", ca, "--parallel", "--no-progress-meter", "--write-out", "%{size_download} ",
            "--output", "/dev/null", origin.url("/held"), "--output", "/dev/null", origin.url("/quick"),
        ])
        XCTAssertTrue(origin.gate("go").waitUntilReached())
        XCTAssertTrue(
            origin.wait { log in
                log.arrivals.contains { $0.request.path == "/quick" && $0.finished != nil } && log.inFlight == 1
            })
        origin.gate("go").open()
        let result = running.result()
        XCTAssertEqual(result.exitCode, 0)
        XCTAssertEqual(Set(result.output.split(separator: " ")), ["11", "1"])
        XCTAssertEqual(origin.log.connections.count, 1, "both streams share one connection")
        XCTAssertEqual(origin.log.maxInFlight, 2)
    }

    func testCertificatesThatAreRefused() throws {
        for certificate in [Certificate.expired, .wrongHost] {
            let origin = try HTTP2Origin(security: .tls(certificate))
            defer { origin.stop() }
            let ca = try XCTUnwrap(origin.caFile)
            XCTAssertEqual(try curl("--cacert", ca, origin.url("/")).exitCode, 60)
            XCTAssertTrue(origin.wait { $0.connections.count == 1 && $0.openConnections == 0 })
            XCTAssertTrue(origin.log.requests.isEmpty)
        }
        origin = try HTTP2Origin()
        XCTAssertEqual(try curl(origin.url("/")).exitCode, 60, "nobody else trusts the authority")
        let ca = try XCTUnwrap(origin.caFile)
        XCTAssertNotEqual(try curl("--cacert", ca, "--http1.1", origin.url("/")).exitCode, 0)
        origin.stop()
        XCTAssertNotEqual(access(ca, F_OK), 0, "the authority's file goes with the origin")
    }

    // MARK: Cleartext

    func testPriorKnowledge() throws {
        origin = try HTTP2Origin(security: .cleartext)
        origin.route(prefix: "/p/") { exchange in
            try exchange.send(status: 103, headers: ["link": "</x>"])
            try exchange.respond(body: Array("fine".utf8))
        }
        let result = try curl("--http2-prior-knowledge", "-w", " %{http_version}", origin.url("/p/x"))
        XCTAssertEqual(result.output, "fine 2")
        let head = try curl(
            "--http2-prior-knowledge", "--head", "-w", "%{http_code}", "-o", "/dev/null", origin.url("/p/x"))
        XCTAssertEqual(head.exitCode, 0)
    }

    func testServerResetsAStreamAfterItsBytes() throws {
        origin = try HTTP2Origin(security: .cleartext)
        origin.route("/reset") { exchange in
            try exchange.send(status: 200)
            try exchange.send(body: [1, 2, 3])
            try exchange.reset(.enhanceYourCalm)
        }
        origin.route("/refuse") { try $0.reset(.refusedStream) }
        origin.route("/after") { try $0.respond(body: [9]) }
        let client = try RawHTTP2Client(port: origin.port)
        client.get("/reset", stream: 1)
        XCTAssertEqual(client.next()?.type, Frame.headers)
        XCTAssertEqual(client.next()?.payload, [1, 2, 3])
        let reset = try XCTUnwrap(client.next())
        XCTAssertEqual(reset.type, Frame.resetStream)
        XCTAssertEqual(reset.number(at: 0), HTTP2Error.enhanceYourCalm.rawValue)
        client.get("/refuse", stream: 3)
        XCTAssertEqual(client.next()?.number(at: 0), HTTP2Error.refusedStream.rawValue)
        client.get("/after", stream: 5)
        XCTAssertEqual(client.next()?.type, Frame.headers, "the connection lives on")
        XCTAssertEqual(origin.log.streams.map(\.id), [1, 3, 5])
        XCTAssertTrue(origin.log.streamsResetByClient.isEmpty)
        XCTAssertEqual(try curl("--http2-prior-knowledge", origin.url("/reset")).exitCode, 92)
    }

    func testClientResetEndsTheScriptAndIsLogged() throws {
        origin = try HTTP2Origin(security: .cleartext)
        let left = Monitor(0)
        origin.route("/stalled") { exchange in
            try exchange.send(status: 200)
            if exchange.waitForClientReset() { left.change { $0 += 1 } }
        }
        origin.route("/sibling") { exchange in
            try exchange.wait("sibling")
            try exchange.respond(body: [5])
        }
        let client = try RawHTTP2Client(port: origin.port)
        client.get("/sibling", stream: 1)
        client.get("/stalled", stream: 3)
        XCTAssertEqual(client.next()?.stream, 3)
        client.reset(3, code: HTTP2Error.cancel.rawValue)
        XCTAssertTrue(origin.wait { $0.stream(3, on: 1)?.resetByClient == 8 })
        XCTAssertTrue(origin.log.arrivals.contains { $0.request.stream == 3 && $0.isAbandoned })
        XCTAssertEqual(left.wait(until: .patient) { $0 == 1 ? true : nil }, true)
        XCTAssertEqual(origin.log.inFlight, 1)
        origin.gate("sibling").open()
        XCTAssertEqual(client.next()?.stream, 1)
        XCTAssertEqual(client.next()?.payload, [5])
        XCTAssertEqual(origin.log.openConnections, 1)
        client.close()
        XCTAssertTrue(origin.wait { $0.connectionsClosedByClient == 1 })
    }

    func testClientCloseEndsAllStreams() throws {
        origin = try HTTP2Origin(security: .cleartext)
        origin.route("/") { try $0.stall() }
        let client = try RawHTTP2Client(port: origin.port)
        for stream: UInt32 in [1, 3, 5] { client.get("/", stream: stream) }
        XCTAssertTrue(origin.wait { $0.inFlight == 3 })
        client.close()
        XCTAssertTrue(origin.wait { $0.inFlight == 0 && $0.openConnections == 0 })
        XCTAssertEqual(origin.log.connectionsClosedByClient, 1)
        XCTAssertTrue(origin.log.streams.allSatisfy { $0.closed != nil })
    }

    func testGoAwayThenClose() throws {
        origin = try HTTP2Origin(security: .cleartext)
        origin.route("/leave") { exchange in
            try exchange.goAway(lastStream: 1, code: .noError)
            exchange.close()
        }
        origin.route("/first") { exchange in
            try exchange.send(status: 200)
            try exchange.stall()
        }
        let client = try RawHTTP2Client(port: origin.port)
        client.get("/first", stream: 1)
        XCTAssertEqual(client.next()?.type, Frame.headers)
        client.get("/leave", stream: 3)
        let goAway = try XCTUnwrap(client.next())
        XCTAssertEqual(goAway.type, Frame.goAway)
        XCTAssertEqual(goAway.number(at: 0), 1)
        XCTAssertEqual(goAway.number(at: 4), 0)
        XCTAssertNil(client.next())
        XCTAssertEqual(client.ending, .closed)
        XCTAssertEqual(origin.log.openConnections, 0)
        XCTAssertEqual(origin.log.connectionsClosedByClient, 0)
    }

    func testGoAwayLetsEarlierStreamsFinish() throws {
        origin = try HTTP2Origin(security: .cleartext)
        origin.route("/first") { exchange in
            try exchange.wait("finish")
            try exchange.respond(body: [7])
        }
        origin.route("/leave") { try $0.goAway(lastStream: 1, code: .enhanceYourCalm) }
        let client = try RawHTTP2Client(port: origin.port)
        client.get("/first", stream: 1)
        XCTAssertTrue(origin.gate("finish").waitUntilReached())
        client.get("/leave", stream: 3)
        XCTAssertEqual(client.next()?.number(at: 4), HTTP2Error.enhanceYourCalm.rawValue)
        origin.gate("finish").open()
        XCTAssertEqual(client.next()?.type, Frame.headers)
        XCTAssertEqual(client.next()?.payload, [7])
    }

    func testStreamLimit() throws {
        origin = try HTTP2Origin(security: .cleartext, maxConcurrentStreams: 1)
        origin.route("/") { try $0.stall() }
        let client = try RawHTTP2Client(port: origin.port)
        client.get("/", stream: 1)
        XCTAssertTrue(origin.wait { $0.inFlight == 1 })
        client.get("/", stream: 3)
        let refusal = try XCTUnwrap(client.next())
        XCTAssertEqual(refusal.stream, 3)
        XCTAssertEqual(refusal.number(at: 0), HTTP2Error.refusedStream.rawValue)
        XCTAssertEqual(origin.log.arrivals.count, 1)
    }

    func testStopWithStalledStreams() throws {
        origin = try HTTP2Origin(security: .cleartext)
        origin.route("/stall") { try $0.stall() }
        origin.route("/gate") { try $0.wait("shut") }
        let client = try RawHTTP2Client(port: origin.port)
        client.get("/stall", stream: 1)
        client.get("/gate", stream: 3)
        XCTAssertTrue(origin.wait { $0.inFlight == 2 })
        origin.stop()
        XCTAssertNil(client.next())
        XCTAssertEqual(client.ending, .closed)
        XCTAssertEqual(origin.log.connectionsClosedByClient, 0)
    }
}
