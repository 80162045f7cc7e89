import Origin
import XCTest

/// Scripts: every step does what it says, and the log tells what happened.
final class ScriptTests: XCTestCase {
    private var origin: Origin!

    override func setUpWithError() throws {
        origin = try Origin()
        continueAfterFailure = false
    }

    override func tearDown() {
        origin.stop()
        origin = nil
    }

    func testAnswersAndKeepsTheConnection() throws {
        origin.route("/a.jpg") { try $0.respond(headers: ["Content-Type": "image/jpeg"], body: [1, 2, 3]) }
        let client = try RawClient(port: origin.port)
        for _ in 0..<3 {
            client.get("/a.jpg?x=1")
            let response = client.readResponse()
            XCTAssertEqual(response.head, "HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nContent-Length: 3\r\n\r\n")
            XCTAssertEqual(response.body, [1, 2, 3])
        }
        XCTAssertEqual(origin.log.count("/a.jpg"), 3)
        XCTAssertEqual(origin.log.requests.map(\.connection), [1, 1, 1])
        XCTAssertEqual(origin.log.requests.map(\.sequence), [0, 1, 2])
        XCTAssertEqual(origin.log.connections.map(\.requests), [3])
        XCTAssertEqual(origin.log.inFlight, 0)
        XCTAssertEqual(origin.log.maxInFlight, 1)
    }

    func testRequestIsSeenAsSent() throws {
        origin.route("/path with space") { try $0.respond(body: $0.request.body) }
        let client = try RawClient(port: origin.port)
        client.send(
            "POST /path%20with%20space?a=1&b=%26&a=2 HTTP/1.1\r\nhOSt: x\r\nX-A:  1 \r\nX-A: 2\r\nContent-Length: 4\r\n\r\nbody"
        )
        XCTAssertEqual(client.readResponse().body, Array("body".utf8))
        let request = origin.log.requests[0]
        XCTAssertEqual(request.method, "POST")
        XCTAssertEqual(request.target, "/path%20with%20space?a=1&b=%26&a=2")
        XCTAssertEqual(request.path, "/path with space")
        XCTAssertEqual(request.query.all("a"), ["1", "2"])
        XCTAssertEqual(request.query["b"], "&")
        XCTAssertEqual(request.headers.map(\.name), ["hOSt", "X-A", "X-A", "Content-Length"])
        XCTAssertEqual(request.headers.all("x-a"), ["1", "2"])
    }

    func testChunkedRequestBodyAndPipelining() throws {
        origin.route("/") { try $0.respond(body: $0.request.body) }
        let client = try RawClient(port: origin.port)
        client.send(
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n"
        )
        XCTAssertEqual(client.readResponse().body, Array("abcde".utf8))
        XCTAssertEqual(client.readResponse().body, [])
    }

    func testInformationalAndRawAndChunked() throws {
        origin.route("/") { exchange in
            try exchange.send(status: 103, headers: ["Link": "</x>"])
            try exchange.send(status: 200, reason: "Fine", headers: ["Transfer-Encoding": "chunked"])
            try exchange.sendChunk([65, 66])
            try exchange.sendChunk([67])
            try exchange.end(trailers: ["X-T": "1"])
        }
        origin.route("/raw") { exchange in
            try exchange.send(raw: "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n")
            try exchange.end()
        }
        let client = try RawClient(port: origin.port)
        client.get("/")
        XCTAssertEqual(client.readHead(), "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
        XCTAssertEqual(client.readHead(), "HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\n\r\n")
        let chunks = "2\r\nAB\r\n1\r\nC\r\n0\r\nX-T: 1\r\n\r\n"
        XCTAssertEqual(client.read(chunks.utf8.count), Array(chunks.utf8))
        client.get("/raw")
        XCTAssertEqual(client.readHead(), "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n")
        client.get("/raw")
        XCTAssertFalse(client.readHead().isEmpty, "end() after raw bytes keeps the connection")
        XCTAssertEqual(origin.log.connections.count, 1)
    }

    func testHeadAndShortScriptsCloseOrKeepAsTheyMust() throws {
        origin.route("/full") { try $0.respond(body: [1, 2]) }
        origin.route("/short") { exchange in
            try exchange.send(status: 200, headers: ["Content-Length": "10"])
            try exchange.send(body: [1, 2, 3])
        }
        origin.route("/nothing") { _ in }
        let client = try RawClient(port: origin.port)
        client.get("/full", method: "HEAD")
        XCTAssertEqual(client.readResponse(hasBody: false).head, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
        client.get("/short")
        XCTAssertEqual(client.readHead(), "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
        XCTAssertEqual(client.readToEnd(), [1, 2, 3])
        XCTAssertEqual(client.ending, .closed)
        let second = try RawClient(port: origin.port)
        second.get("/nothing")
        XCTAssertEqual(second.readToEnd(), [])
        XCTAssertEqual(second.ending, .closed)
        XCTAssertEqual(origin.log.openConnections, 0, "what a client can see is in the log")
        XCTAssertEqual(origin.log.connectionsClosedByClient, 0)
    }

    func testResetAndConnectionClose() throws {
        origin.route("/reset") { exchange in
            try exchange.send(status: 200, headers: ["Content-Length": "10"])
            try exchange.send(body: [1, 2, 3])
            exchange.reset()
        }
        origin.route("/last") { try $0.respond(headers: ["Connection": "close"], body: [9]) }
        let client = try RawClient(port: origin.port)
        client.get("/reset")
        _ = client.readHead()
        XCTAssertEqual(client.readToEnd(), [1, 2, 3])
        XCTAssertEqual(client.ending, .reset)
        let second = try RawClient(port: origin.port)
        second.get("/last")
        XCTAssertEqual(second.readResponse().body, [9])
        XCTAssertEqual(origin.log.openConnections, 0)
        XCTAssertEqual(second.readToEnd(), [])
    }

    func testResetDeliversWhatWasSentToASlowReader() throws {
        let size = origin.segmentSize == nil ? 16 << 20 : 1 << 20
        origin.content["big"] = Picture([UInt8](repeating: 7, count: size), type: "image/png")
        let client = try RawClient(port: origin.port)
        client.get("/pictures/big?reset_after=\(size - 1)")
        _ = client.readHead()
        XCTAssertEqual(client.readToEnd().count, size - 1)
        XCTAssertEqual(client.ending, .reset)
    }

    func testGateHoldsUntilOpened() throws {
        origin.route("/") { exchange in
            try exchange.send(status: 200, headers: ["Content-Length": "2"])
            try exchange.send(body: [1])
            try exchange.wait("half")
            try exchange.send(body: [2])
        }
        let client = try RawClient(port: origin.port)
        client.get("/")
        _ = client.readHead()
        XCTAssertEqual(client.read(1), [1])
        let gate = origin.gate("half")
        XCTAssertTrue(gate.waitUntilReached())
        XCTAssertEqual(gate.waiting, 1)
        XCTAssertFalse(gate.isOpen)
        XCTAssertEqual(origin.log.inFlight, 1)
        gate.open()
        XCTAssertEqual(client.read(1), [2])
        XCTAssertEqual(origin.log.inFlight, 0)
    }

    func testClientCloseIsNoticedWhileAScriptWaits() throws {
        let seen = Monitor(false)
        origin.route("/") { exchange in
            let left = exchange.waitForClientClose()
            seen.change { $0 = left }
        }
        origin.route("/gate") { try $0.wait("never opened") }
        for closing in [{ (c: RawClient) in c.close() }, { $0.reset() }] {
            for path in ["/", "/gate"] {
                origin.resetLog()
                let client = try RawClient(port: origin.port)
                client.get(path)
                XCTAssertTrue(origin.wait { $0.count(path) == 1 })
                closing(client)
                XCTAssertTrue(origin.wait { $0.connectionsClosedByClient == 1 && $0.openConnections == 0 })
                XCTAssertTrue(origin.log.arrivals[0].isAbandoned)
                XCTAssertEqual(origin.log.inFlight, 0)
                XCTAssertNotNil(origin.log.connections[0].closedByClient)
            }
        }
        XCTAssertEqual(seen.wait(until: .patient) { $0 ? true : nil }, true)
    }

    func testCloseThenNewRequestIsNeverTwoInFlight() throws {
        origin.route("/") { try $0.stall() }
        for count in 1...50 {
            let client = try RawClient(port: origin.port)
            client.get("/")
            XCTAssertTrue(origin.wait { $0.arrivals.count == count && $0.inFlight == 1 })
            client.close()
        }
        XCTAssertEqual(origin.log.maxInFlight, 1, "a close that came first is noted first")
    }

    func testInFlightMaximumCountsParallelRequests() throws {
        origin.route(prefix: "/held/") { exchange in
            try exchange.wait("go")
            try exchange.respond(text: "done")
        }
        let clients = try (0..<8).map { _ in try RawClient(port: origin.port) }
        for (number, client) in clients.enumerated() { client.get("/held/\(number)") }
        XCTAssertTrue(origin.wait { $0.inFlight == 8 })
        XCTAssertTrue(origin.gate("go").waitUntilReached(8))
        origin.gate("go").open()
        for client in clients { XCTAssertEqual(client.readResponse().status, 200) }
        XCTAssertEqual(origin.log.maxInFlight, 8)
        XCTAssertEqual(origin.log.maxOpenConnections, 8)
        XCTAssertEqual(origin.log.inFlight, 0)
    }

    func testAFailingScriptAnswers500() throws {
        struct Bad: Error {}
        origin.route("/") { _ in throw Bad() }
        let client = try RawClient(port: origin.port)
        client.get("/")
        XCTAssertEqual(client.readResponse().status, 500)
        client.get("/nowhere")
        XCTAssertEqual(client.readResponse().status, 404)
    }

    func testMalformedRequestGets400() throws {
        let client = try RawClient(port: origin.port)
        client.send("NONSENSE\r\n\r\n")
        XCTAssertEqual(client.readResponse().status, 400)
        XCTAssertEqual(client.readToEnd(), [])
    }

    func testStopEndsEverything() throws {
        origin.route("/stall") { try $0.stall() }
        origin.route("/gate") { try $0.wait("shut") }
        origin.route("/send") { exchange in
            try exchange.send(status: 200, headers: [:])
            while true { try exchange.send(body: [UInt8](repeating: 0, count: 1 << 20)) }
        }
        let clients = try ["/stall", "/gate", "/send", "/idle"].map { path in
            let client = try RawClient(port: origin.port)
            if path != "/idle" { client.get(path) }
            return client
        }
        XCTAssertTrue(origin.wait { $0.arrivals.count == 3 && $0.connections.count == 4 })
        origin.stop()
        origin.stop()
        for client in clients {
            _ = client.readToEnd()
            XCTAssertNotEqual(client.ending, .deadline)
        }
        XCTAssertFalse(origin.wait { _ in false }, "a wait on a stopped origin ends at once")
        XCTAssertEqual(origin.log.connectionsClosedByClient, 0)
    }
}
