import Glibc
import Origin
import XCTest

/// Who is let in, what is remembered, when to come again, and how much was taken.
final class ServiceTests: XCTestCase {
    private var origin: Origin!

    override func setUpWithError() throws {
        continueAfterFailure = false
        origin = try Origin()
        origin.content["a.png"] = Picture([1, 2, 3], type: "image/png")
    }

    override func tearDown() {
        origin.stop()
        origin = nil
    }

    private func get(_ path: String, headers: String = "") throws -> (RawClient, RawClient.Response) {
        let client = try RawClient(port: origin.port)
        client.get(path, headers: headers)
        return (client, client.readResponse())
    }

    // MARK: Authentication

    private func curlStatus(_ arguments: [String]) throws -> String {
        try startCurl(["-o", "/dev/null", "-w", "%{http_code}"] + arguments).result().output
    }

    func testBasic() throws {
        let path = "/auth/basic?user=me&password=s%20ecret&picture=a.png"
        let (client, refusal) = try get(path)
        XCTAssertEqual(refusal.status, 401)
        XCTAssertEqual(client.header("WWW-Authenticate", in: refusal.head), "Basic realm=\"origin\"")
        XCTAssertEqual(String(decoding: refusal.body, as: UTF8.self), "who are you?\n")
        client.get(path, headers: "Authorization: Basic bWU6cyBlY3JldA==\r\n")
        XCTAssertEqual(client.readResponse().body, [1, 2, 3])
        client.get(path, headers: "Authorization: Basic bWU6c2VjcmV0\r\n")
        XCTAssertEqual(client.readResponse().status, 401)
        XCTAssertEqual(try curlStatus(["-u", "me:s ecret", origin.url(path)]), "200")
        for path in [
            "/auth/basic?user=me", "/auth/other?user=a&password=b", "/auth/digest?user=a&password=b&algorithm=x",
        ] {
            XCTAssertEqual(try get(path).1.status, 400, path)
        }
    }

    func testDigest() throws {
        for algorithm in ["", "&algorithm=md5", "&algorithm=sha-256"] {
            let url = origin.url("/auth/digest?user=me&password=secret\(algorithm)")
            XCTAssertEqual(try curlStatus(["--digest", "-u", "me:secret", url]), "200", algorithm)
            XCTAssertEqual(try curlStatus(["--digest", "-u", "me:wrong", url]), "401", algorithm)
            XCTAssertEqual(try curlStatus(["--digest", "-u", "you:secret", url]), "401", algorithm)
            XCTAssertEqual(try curlStatus(["--basic", "-u", "me:secret", url]), "401", algorithm)
        }
    }

    func testAnAnswerToAChallengeIsGoodOnce() throws {
        let path = "/auth/digest?user=me&password=secret"
        XCTAssertEqual(try curlStatus(["--digest", "-u", "me:secret", origin.url(path)]), "200")
        let heard = try XCTUnwrap(origin.log.requests.compactMap { $0.headers["Authorization"] }.last)
        let (client, again) = try get(path, headers: "Authorization: \(heard)\r\n")
        XCTAssertEqual(again.status, 401)
        XCTAssertTrue(client.header("WWW-Authenticate", in: again.head)?.hasSuffix("stale=true") ?? false, again.head)
        let nonces = try (0..<2).map { _ in
            let (client, response) = try get(path)
            return client.header("WWW-Authenticate", in: response.head)
        }
        XCTAssertNotEqual(nonces[0], nonces[1])
    }

    func testAnyOffersBoth() throws {
        let path = "/auth/any?user=me&password=secret"
        let (_, refusal) = try get(path)
        let challenges = refusal.head.lowercased().components("\r\n").filter { $0.hasPrefix("www-authenticate: ") }
        XCTAssertEqual(challenges.map { $0.split(separator: " ")[1] }, ["digest", "basic"])
        for scheme in ["--digest", "--basic", "--anyauth"] {
            XCTAssertEqual(try curlStatus([scheme, "-u", "me:secret", origin.url(path)]), "200", scheme)
        }
        XCTAssertTrue(origin.log.requests.last?.headers["Authorization"]?.hasPrefix("Digest ") ?? false)
    }

    // MARK: Cookies

    func testCookies() throws {
        let (_, response) = try get("/cookies/set?a=1&b=2&path=/p&domain=127.0.0.1&max_age=5&secure=1&same_site=Lax")
        let attributes = "; Path=/p; Domain=127.0.0.1; Max-Age=5; Secure; SameSite=Lax"
        XCTAssertEqual(
            response.head.components("\r\n").filter { $0.hasPrefix("Set-Cookie") },
            ["Set-Cookie: a=1\(attributes)", "Set-Cookie: b=2\(attributes)"])
        let (client, picture) = try get("/cookies/set?picture=a.png&a=1")
        XCTAssertEqual(picture.body, [1, 2, 3])
        XCTAssertEqual(client.header("Set-Cookie", in: picture.head), "a=1")
        let scratch = try ScratchDirectory()
        let jar = scratch.path + "/jar"
        _ = try curl("-c", jar, origin.url("/cookies/set?seen=yes&path=/"))
        XCTAssertTrue(try curl("-b", jar, origin.url("/echo")).output.contains(#"["Cookie","seen=yes"]"#))
    }

    // MARK: Retry-After

    func testRetryAfter() throws {
        for path in ["/status/503", "/flaky"] {
            let (client, seconds) = try get(path + "?id=1&retry_after=7")
            XCTAssertEqual(client.header("Retry-After", in: seconds.head), "7")
            let (other, date) = try get(path + "?id=2&retry_after_date=90")
            let text = try XCTUnwrap(other.header("Retry-After", in: date.head))
            XCTAssertEqual(text.utf8.count, "Sun, 06 Nov 1994 08:49:37 GMT".utf8.count)
            XCTAssertTrue((80...90).map { httpDate(secondsFromNow: $0) }.contains(text), text)
        }
    }

    // MARK: Bodies without end

    func testAClientThatReadsNothingHoldsTheBodyBack() throws {
        let count = 64 << 20
        let client = try RawClient(port: origin.port)
        client.get("/huge?bytes=\(count)&type=image/jpeg")
        XCTAssertTrue(origin.wait { $0.connections.first?.isHeldBack == true && $0.arrivals[0].bytesSent > 0 })
        let asking = try get("/_wait?held_back=1&bytes_sent=1&handshakes=0").1
        XCTAssertEqual(asking.status, 200)
        XCTAssertTrue(String(decoding: asking.body, as: UTF8.self).contains("\"held_back\":true"))
        let before = origin.log.arrivals[0].bytesSent
        XCTAssertLessThan(before, count / 2)
        let head = client.readHead()
        XCTAssertEqual(client.header("Content-Length", in: head), "\(count)")
        XCTAssertEqual(client.header("Content-Type", in: head), "image/jpeg")
        XCTAssertEqual(client.read(before + 1).count, before + 1)
        XCTAssertTrue(origin.wait { $0.arrivals[0].bytesSent > before })
        client.close()
        XCTAssertTrue(origin.wait { $0.inFlight == 0 && $0.connectionsClosedByClient == 1 })
        XCTAssertTrue(origin.log.arrivals[0].isAbandoned)
    }

    func testAHugeBodyToItsEnd() throws {
        let client = try RawClient(port: origin.port)
        client.get("/huge?bytes=1000000")
        XCTAssertEqual(client.readResponse().body.count, 1_000_000)
        XCTAssertEqual(origin.log.arrivals[0].bytesSent, 1_000_000)
        client.get("/huge?bytes=0")
        XCTAssertEqual(client.readResponse().status, 200)
        client.get("/huge?bytes=x")
        XCTAssertEqual(client.readResponse().status, 400)
    }
}
