import CCurl
import ImgdlCore
import Origin
import OriginHTTP2
import XCTest

@testable import ImgdlTransport

/// Easy handles that are used again: as they are for requests that are alike, bare for others.
final class HandleTests: TransportTestCase {
    private func setup(_ fields: [HeaderField] = [], host: String = "a.example") throws -> HandleSetup {
        let request = TransportRequest(
            url: try transport.parse("http://\(host)/"), method: "GET", fields: fields, body: nil,
            maximumHeaderBytes: 1)
        return HandleSetup(request.url, request.manner, addresses: [])
    }

    private func makeLane() throws -> Lane {
        let multi = try CurlMulti(loop: loop, maximumIdleConnections: 1, watch: TurnWatch())
        return try Lane(RequestTrust(), multi, reusesHandles: true)
    }

    func testIsSetUpOnceForRequestsThatAreAlike() throws {
        let lane = try makeLane()
        let handle = try lane.takeHandle(for: try setup())
        XCTAssertNil(handle.setup)
        handle.setup = try setup()
        lane.giveBack(handle)
        XCTAssertTrue(try lane.takeHandle(for: try setup()) === handle)
        XCTAssertEqual(handle.setup, try setup())
        lane.giveBack(handle)
        for other in [try setup([HeaderField("X", "1")]), try setup(host: "b.example"), nil] {
            handle.setup = try setup()
            XCTAssertTrue(try lane.takeHandle(for: other) === handle)
            XCTAssertNil(handle.setup, "made bare")
            lane.giveBack(handle)
        }
        XCTAssertEqual(lane.running, 0)
    }

    /// What was for one transfer alone.
    func testIsNotKeptAsItIs() throws {
        let changes: [(EasyHandle) -> Void] = [
            { $0.forbidReuse() }, { $0.setPriority(.high) }, { $0.setOnce(CURLOPT_FRESH_CONNECT, 1) },
        ]
        for change in changes {
            let lane = try makeLane()
            let handle = try lane.takeHandle(for: try setup())
            handle.setup = try setup()
            change(handle)
            lane.giveBack(handle)
            XCTAssertTrue(try lane.takeHandle(for: try setup()) === handle)
            XCTAssertNil(handle.setup)
        }
    }

    /// Those that wait for the next transfer go with the first memory that is given back; connections stay.
    func testSpareHandlesAreGivenBackWhereMemoryIsShort() throws {
        try checkSpareHandlesGo(try makeLane()) { $0.releaseSpareHandles() }
    }

    func testSpareHandlesOfThisMachinesLibcurlAreGivenBack() throws {
        try XCTSkipUnless(CurlVersion.canReuseHandles, "this machine cannot: handles of its libcurl are not used again")
        let common = transport.lanes.common
        try checkSpareHandlesGo(common) { _ in transport.trim(connections: false) }
        XCTAssertTrue(transport.lanes.common === common)
    }

    private func checkSpareHandlesGo(_ lane: Lane, _ trim: (Lane) -> Void) throws {
        for _ in 0..<2 {
            weak var spare = try useHandle(of: lane)
            XCTAssertNotNil(spare)
            trim(lane)
            XCTAssertNil(spare)
        }
    }

    /// It is one that nobody has used, and waits for another use now.
    private func useHandle(of lane: Lane) throws -> EasyHandle {
        let handle = try lane.takeHandle(for: try setup())
        XCTAssertNil(handle.setup)
        handle.setup = try setup()
        lane.giveBack(handle)
        return handle
    }

    func testOnlyUsualRequestsAreAlike() throws {
        let url = try transport.parse("http://a.example/x")
        func request(
            _ method: String = "GET", body: [UInt8]? = nil, credential: Credential? = nil, usesCookies: Bool = false,
            priority: Priority = .normal
        ) -> TransportRequest {
            TransportRequest(
                url: url, method: method, fields: [], body: body, maximumHeaderBytes: 1000,
                identity: RequestIdentity(credential: credential, usesCookies: usesCookies), priority: priority)
        }
        XCTAssertEqual(transport.options.setup(for: request(), .normal, addresses: []), try setup())
        for special in [
            request("HEAD"), request("POST", body: [1]), request(body: [1]), request(usesCookies: true),
            request(credential: Credential(user: "me", password: "secret")), request(priority: .high),
        ] {
            XCTAssertNil(transport.options.setup(for: special, special.priority, addresses: []))
        }
    }

    /// On one connection and one handle, each request says what it was asked to say, and nothing of those before it.
    func testNothingIsLeftOfTheRequestBefore() throws {
        let field = HeaderField("X-Secret", "1")
        let turns: [(method: String, fields: [HeaderField], body: [UInt8]?)] = [
            ("GET", [], nil), ("GET", [field], nil), ("GET", [field], nil), ("GET", [], nil), ("POST", [], [1, 2]),
            ("GET", [], nil), ("HEAD", [], nil), ("GET", [], nil), ("GET", [field], nil), ("DELETE", [], nil),
            ("GET", [], nil),
        ]
        for turn in turns {
            let record = record(
                of: try start(origin.url("/echo"), method: turn.method, fields: turn.fields, body: turn.body))
            XCTAssertNil(record.failure)
            let request = try XCTUnwrap(origin.log.requests.last)
            XCTAssertEqual(request.method, turn.method)
            XCTAssertEqual(request.headers["X-Secret"], turn.fields.isEmpty ? nil : "1")
            XCTAssertEqual(request.headers["Content-Length"], turn.body.map { "\($0.count)" })
        }
        XCTAssertEqual(origin.log.connections.count, 1)
    }

    /// A handle that is used again gets its URL in parts, where curl leaves them as they are.
    func testEachURLIsSentAsItIs() throws {
        origin.route(prefix: "/") { try $0.respond(text: "a") }
        let targets = [
            "/a", "/b?x=1", "/", "/c", "/%2Fup%2fdown", "/d?y=%2B", "/e?", "/f?z=1?2", "/g?", "/h", "/%41", "/i//j/",
            "/k?url=http://x/y:z", "/l", "/m;n=1@o:2", "/p?q", "/a",
        ]
        for target in targets {
            _ = try fetchSucceeding(origin.url(target))
            let isEmptyQuery = target.last == "?"
            XCTAssertEqual(origin.log.requests.last?.target, isEmptyQuery ? String(target.dropLast()) : target)
        }
        XCTAssertEqual(origin.log.connections.count, 1)
    }

    /// Whatever the version of curl: signatures are made over escapes as they are written.
    func testEscapesKeepTheirCase() throws {
        let secure = try HTTP2Origin(security: .tls)
        defer { secure.stop() }
        secure.route(prefix: "/") { try $0.respond(body: [1]) }
        try makeTransport(TransportConfiguration(certificateAuthorities: secure.caFile, proxy: ""))
        for target in ["/%2Fup%2fdown?y=%2b%2B", "/plain", "/%c3%a4", "/plain?x"] {
            _ = try fetchSucceeding(secure.url(target))
            XCTAssertEqual(secure.log.requests.last?.target, target)
        }
        let base = try transport.parse("https://a.example/x%2fy/z?q=%2f")
        for (reference, expected) in [
            ("b%2fc%2F", "https://a.example/x%2fy/b%2fc%2F"), ("../%aa", "https://a.example/%aa"),
            ("?%ab", "https://a.example/x%2fy/z?%ab"), ("", "https://a.example/x%2fy/z?q=%2f"),
            ("/%2f/../%2e", "https://a.example/"), ("//b.example/%2f", "https://b.example/%2f"),
        ] {
            XCTAssertEqual(try transport.resolveReference(reference, against: base).canonical, expected, reference)
        }
    }

    /// What the system said of a transfer before is no fact about the next one on its handle.
    func testAnErrorOfTheTransferBefore() throws {
        origin.route("/garbage") { exchange in
            try exchange.send(raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nno size\r\n")
            try exchange.wait("never")
        }
        for _ in 0..<3 {
            XCTAssertEqual(try failure(of: "http://127.0.0.1:1/")?.code, .connectFailed)
            let failure = try failure(of: origin.url("/garbage"))
            XCTAssertEqual(failure?.code, .protocolError, failure?.message ?? "")
        }
    }

    /// curl's words about a transfer are not taken for words about a connection of the next one.
    func testAMessageOfTheTransferBefore() throws {
        let handle = try EasyHandle()
        handle.setErrorBuffer()
        handle.set(CURLOPT_URL, "nothing://a.example/")
        XCTAssertNotEqual(curl_easy_perform(handle.easy), CURLE_OK)
        XCTAssertGreaterThan(handle.errorMessage.utf8.count, 8)
        XCTAssertEqual(handle.messageOfLastConnection, handle.errorMessage)
        handle.forgetOutcome()
        XCTAssertEqual(handle.errorMessage, "")
        XCTAssertEqual(handle.messageOfLastConnection, "")
    }

    /// curl begins such a request again by itself: with the URL that it was asked for, not the handle's first.
    func testAConnectionThatDiesUnderTheRequest() throws {
        let origin = origin!
        origin.route(prefix: "/") { exchange in
            let target = exchange.request.target
            let isFirst = origin.log.requests.count { $0.target == target } == 1
            if target == "/dies", isFirst { return exchange.close() }
            try exchange.respond(text: "a")
        }
        for target in ["/a", "/b", "/dies", "/c", "/d"] {
            XCTAssertEqual(try fetchSucceeding(origin.url(target)).text, "a")
            XCTAssertEqual(origin.log.requests.last?.target, target)
        }
        XCTAssertEqual(origin.log.connections.count, 2)
    }

    /// A coding that curl cannot undo is left on that body alone.
    func testDecodingGoesOnAfterABodyThatIsLeftEncoded() throws {
        origin.route("/unknown") { try $0.respond(200, headers: ["Content-Encoding": "x-unknown"], text: "raw") }
        origin.content["p"] = Picture(Array(repeating: 7, count: 10_000), type: "image/x")
        for _ in 0..<2 {
            XCTAssertEqual(try fetchSucceeding(origin.url("/unknown")).text, "raw")
            let record = try fetchSucceeding(origin.url("/pictures/p?gzip=1"))
            XCTAssertEqual(record.body, Array(repeating: 7, count: 10_000))
        }
    }
}
