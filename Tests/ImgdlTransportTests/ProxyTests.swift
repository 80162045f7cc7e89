import CCurl
import ImgdlCore
import Origin
import XCTest

@testable import ImgdlTransport

/// Features B17: through a proxy that wants a name and a password.
final class ProxyTests: TransportTestCase {
    private var proxy: ProxyOrigin!
    private var secure: Origin!

    override func setUpWithError() throws {
        try super.setUpWithError()
        proxy = try ProxyOrigin(user: "me", password: "a:b@c")
        secure = try Origin(tls: TLS())
        for server in [origin!, secure!] { server.route("/a") { try $0.respond(text: "a") } }
    }

    override func tearDown() {
        super.tearDown()
        secure?.stop()
        proxy?.stop()
    }

    private func use(_ login: String, port: Int? = nil) throws {
        let address = "http://\(login)127.0.0.1:\(port ?? proxy.port)"
        try makeTransport(TransportConfiguration(certificateAuthorities: secure.authority?.file, proxy: address))
    }

    func testBasic() throws {
        try use("me:a%3Ab%40c@")
        XCTAssertEqual(try fetchSucceeding("http://pictures.example:\(origin.port)/a").text, "a")
        XCTAssertEqual(try fetchSucceeding("https://localhost:\(secure.port)/a").text, "a")
        XCTAssertEqual(proxy.log.requests.last?.target, "localhost:\(secure.port)")
        XCTAssertNil(origin.log.requests.last?.headers["Proxy-Authorization"])
    }

    /// It is trusted as servers are: by the configuration's authorities alone, where it has any.
    func testAProxyOverTLS() throws {
        secure.route(prefix: "/") { try $0.respond(text: "by proxy") }
        let other = try Origin(tls: TLS())
        defer { other.stop() }
        for (file, isTrusted) in [(secure.authority?.file, true), (other.authority?.file, false), (nil, false)] {
            let address = "https://localhost:\(secure.port)"
            try makeTransport(TransportConfiguration(certificateAuthorities: file, proxy: address))
            let record = try fetch("http://pictures.example/d")
            XCTAssertEqual(record.text, isTrusted ? "by proxy" : "")
            XCTAssertEqual(record.failure?.code, isTrusted ? nil : .tlsCertificate)
        }
    }

    func testWrongOrMissing() throws {
        for login in ["me:secret@", ""] {
            try use(login)
            for url in ["http://pictures.example:\(origin.port)/a", "https://localhost:\(secure.port)/a"] {
                let failure = try failure(of: url)
                XCTAssertEqual(failure?.code, .proxyFailed)
                XCTAssertTrue(failure?.message.contains("407") ?? false, failure?.message ?? "")
                XCTAssertFalse(failure?.message.contains("secret") ?? true)
            }
        }
        XCTAssertEqual(origin.log.requests.count + secure.log.requests.count, 0)
    }

    func testDigest() throws {
        let script: (Exchange) throws -> Void = { exchange in
            guard exchange.request.headers["Proxy-Authorization"]?.hasPrefix("Digest username=\"me\"") == true else {
                let challenge = "Digest realm=\"x\", nonce=\"n\", qop=\"auth\""
                return try exchange.respond(407, headers: ["Proxy-Authenticate": challenge], text: "no")
            }
            try exchange.respond(text: "by proxy")
        }
        origin.route(prefix: "/", script)
        try use("me:x@", port: Int(origin.port))
        XCTAssertEqual(try fetchSucceeding("http://pictures.example/d").text, "by proxy")
        XCTAssertEqual(origin.log.requests.count, 2)
        origin.route(prefix: "pictures.example") { exchange in
            if exchange.request.headers["Proxy-Authorization"] == nil { return try script(exchange) }
            try exchange.respond(502)
        }
        let failure = try failure(of: "https://pictures.example/d")
        XCTAssertEqual(failure?.code, .proxyFailed)
        XCTAssertTrue(failure?.message.contains("502") ?? false, failure?.message ?? "")
        let tunnels = origin.log.requests.filter { $0.method == "CONNECT" }
        XCTAssertEqual(tunnels.map { $0.headers["Proxy-Authorization"]?.hasPrefix("Digest") }, [nil, true])
    }

    /// Nobody listens: it is the proxy that is missing, whatever the server is, and the message says which and whose words.
    func testAProxyThatIsNotThere() throws {
        for scheme in ["http", "https", "socks4", "socks5", "socks5h"] {
            let address = "\(scheme)://me:secret@127.0.0.1:1"
            try makeTransport(TransportConfiguration(proxy: address))
            for url in ["http://pictures.example/a", "https://pictures.example/a", "http://127.0.0.1:\(origin.port)/a"]
            {
                // The names of servers are curl's to look up for these two.
                if ["socks4", "socks5"].contains(scheme), url.contains("example") { continue }
                let failure = try failure(of: url)
                XCTAssertEqual(failure?.code, .proxyFailed, "\(address), \(url)")
                XCTAssertEqual(
                    failure?.message,
                    "the proxy 127.0.0.1 port 1, named by the option proxy, cannot be reached: Connection refused")
            }
        }
        XCTAssertEqual(origin.log.connections.count, 0)
    }

    func testMessagesSayWhichVariableNamesTheProxy() throws {
        for (variable, url) in [
            ("http_proxy", "http://h/"), ("HTTPS_PROXY", "https://h/"), ("all_proxy", "https://h/"),
        ] {
            let rules = try ProxyRules(configured: nil) { $0 == variable ? "http://me:secret@p.example:8080" : nil }
            let outcome = CurlOutcome(
                code: CURLE_COULDNT_CONNECT, message: "words", systemError: ECONNREFUSED,
                proxy: try rules.proxy(for: URLParser.parse(url)))
            XCTAssertEqual(
                CurlErrors.failure(outcome),
                Failure(
                    .proxyFailed,
                    "the proxy p.example port 8080, named by \(variable) of the environment, cannot be reached: "
                        + "Connection refused"))
        }
    }

    func testProxiesThatAreNone() throws {
        for text in [
            "http://me:x\r\nY: z@h", "http://me%0d%0aY:z@h", "http://me:x%00@h", "ftp://h", "http://", "http://h:x",
            "h\n",
        ] {
            XCTAssertThrowsError(try makeTransport(TransportConfiguration(proxy: text)), text) { error in
                XCTAssertEqual((error as? Failure)?.code, .invalidURL)
                XCTAssertFalse((error as? Failure)?.message.contains("me") ?? true)
            }
        }
        for (text, shown) in [
            ("nonsense://", "nonsense://"), ("nonsense://me:p@ss@host:1", "nonsense://…@host:1"),
            ("nonsense://me:secret", "nonsense://me:…"), ("me:secret@h:x", "…@h:…"),
            ("http://me:secret%40h:80", "http://…%40h:80"), ("http://me:secret:1", "http://me:…"),
            ("me:secret://h", "me:…"), ("http://[::1]:x", "http://[::1]:…"), ("h:99999", "h:99999"),
            ("http:///me:se/cret@h:x", "http://…@h:…"),
        ] {
            XCTAssertThrowsError(try makeTransport(TransportConfiguration(proxy: text)), text) { error in
                XCTAssertTrue(
                    (error as? Failure)?.message.hasPrefix("the proxy “\(shown)” is not") ?? false, "\(error)")
            }
        }
    }
}
