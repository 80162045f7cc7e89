import Origin
import OriginHTTP2
import XCTest

final class ProxyTests: XCTestCase {
    private var origin: Origin!
    private var proxy: ProxyOrigin!

    override func setUpWithError() throws {
        continueAfterFailure = false
        origin = try Origin()
        origin.content["a.png"] = Picture(Array(repeating: 7, count: 300_000), type: "image/png")
        proxy = try ProxyOrigin()
    }

    override func tearDown() {
        proxy.stop()
        origin.stop()
    }

    private func status(_ arguments: String...) throws -> String {
        try startCurl(["-o", "/dev/null", "-w", "%{http_code} %{size_download}", "--proxy", proxy.base] + arguments)
            .result().output
    }

    func testPassesRequestsOn() throws {
        // A name that no resolver knows.
        let url = "http://pictures.invalid:\(origin.port)/pictures/a.png?chunk=1000"
        XCTAssertEqual(try status(url, "-H", "X-Me: you"), "200 300000")
        XCTAssertEqual(proxy.log.requests.map(\.target), [url])
        let seen = origin.log.requests[0]
        XCTAssertEqual(seen.target, "/pictures/a.png?chunk=1000")
        XCTAssertEqual(seen.headers["Host"], "pictures.invalid:\(origin.port)")
        XCTAssertEqual(seen.headers["X-Me"], "you")
        XCTAssertEqual(seen.headers["Via"], "1.1 proxy")
        XCTAssertNil(seen.headers["Proxy-Connection"])
        XCTAssertEqual(
            try curl("--proxy", proxy.base, "-d", "body", origin.url("/echo")).output.contains("\"body\""), true)
        XCTAssertTrue(proxy.wait { $0.openConnections == 0 && $0.inFlight == 0 })
        XCTAssertTrue(origin.wait { $0.openConnections == 0 && $0.inFlight == 0 })
    }

    func testTunnels() throws {
        let secure = try Origin(tls: TLS())
        defer { secure.stop() }
        secure.content["a.png"] = Picture(Array(repeating: 7, count: 300_000), type: "image/png")
        let ca = try XCTUnwrap(secure.authority?.file)
        XCTAssertEqual(try status("--cacert", ca, secure.url("/pictures/a.png")), "200 300000")
        XCTAssertEqual(proxy.log.requests.map(\.method), ["CONNECT"])
        XCTAssertEqual(proxy.log.requests.map(\.target), ["127.0.0.1:\(secure.port)"])
        XCTAssertEqual(secure.log.handshakes, 1)
        XCTAssertTrue(proxy.wait { $0.openConnections == 0 && $0.inFlight == 0 })
    }

    func testAsksForAName() throws {
        proxy.stop()
        proxy = try ProxyOrigin(user: "me", password: "se:cret")
        XCTAssertEqual(try status(origin.url("/pictures/a.png")).prefix(3), "407")
        XCTAssertEqual(try status(origin.url("/pictures/a.png"), "--proxy-user", "me:wrong").prefix(3), "407")
        XCTAssertEqual(origin.log.requests.count, 0)
        XCTAssertEqual(try status(origin.url("/pictures/a.png"), "--proxy-user", "me:se:cret"), "200 300000")
        XCTAssertNil(origin.log.requests[0].headers["Proxy-Authorization"])
        let tunnel = try startCurl(["--proxytunnel", "--proxy", proxy.base, origin.url("/echo")]).result()
        XCTAssertTrue([56, 7].contains(tunnel.exitCode), "a tunnel is refused likewise: \(tunnel.exitCode)")
    }

    func testCarriesFaultsOn() throws {
        XCTAssertEqual(try curl("--proxy", proxy.base, origin.url("/pictures/a.png?reset_after=1000")).exitCode, 56)
        XCTAssertEqual(try curl("--proxy", proxy.base, origin.url("/pictures/a.png?close_after=1000")).exitCode, 18)
        let client = try RawClient(port: proxy.port)
        client.get(origin.url("/pictures/a.png?stall_after=1000"))
        XCTAssertEqual(client.readHead().components("\r\n").contains("Connection: close"), true)
        XCTAssertEqual(client.read(1000).count, 1000)
        client.close()
        XCTAssertTrue(origin.wait { $0.inFlight == 0 && $0.arrivals.last?.isAbandoned == true })
    }

    func testIsNoServer() throws {
        let client = try RawClient(port: proxy.port)
        client.get("/pictures/a.png")
        XCTAssertEqual(client.readResponse().status, 400)
        client.get("http://127.0.0.1:1/")
        XCTAssertEqual(client.readResponse().status, 502)
        client.get("/_log")
        XCTAssertEqual(client.readResponse().status, 200)
        XCTAssertEqual(proxy.log.requests.count, 2)
    }
}
