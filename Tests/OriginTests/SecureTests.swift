import Origin
import OriginHTTP2
import XCTest

/// TLS, of both origins.
final class SecureTests: XCTestCase {
    private var origin: Origin!

    override func setUp() { continueAfterFailure = false }

    override func tearDown() {
        origin?.stop()
        origin = nil
    }

    private func begin(_ tls: TLS = TLS()) throws -> Authority {
        origin = try Origin(tls: tls)
        origin.content["a.png"] = Picture(Array(repeating: 9, count: 100_000), type: "image/png")
        return try XCTUnwrap(origin.authority)
    }

    private func get(_ arguments: String...) throws -> CurlResult {
        try startCurl(["-o", "/dev/null", "-w", "%{http_version} %{http_code} %{size_download}"] + arguments).result()
    }

    func testPicturesAndFaultsOverTLS() throws {
        let authority = try begin()
        let trust = ["--cacert", authority.file]
        XCTAssertTrue(origin.base.hasPrefix("https://"))
        XCTAssertEqual(try get("--cacert", authority.file, origin.url("/pictures/a.png")).output, "1.1 200 100000")
        XCTAssertEqual(try get("--cacert", authority.file, origin.url("/pictures/a.png?close_after=9")).exitCode, 18)
        XCTAssertEqual(try get("--cacert", authority.file, origin.url("/pictures/a.png?reset_after=9")).exitCode, 56)
        let two = try startCurl(
            trust + [
                "-o", "/dev/null", "-o", "/dev/null", origin.url("/pictures/a.png?n=1"),
                origin.url("/pictures/a.png?n=2"),
            ])
        XCTAssertEqual(two.result().exitCode, 0)
        let log = origin.log
        XCTAssertEqual(log.requests.map(\.connection), [1, 2, 3, 4, 4])
        XCTAssertEqual(log.handshakes, 4)
        XCTAssertEqual(log.connection(4)?.handshake?.protocolName, "http/1.1")
        XCTAssertEqual(log.connection(4)?.handshake?.isResumed, false)
        XCTAssertNil(log.connection(4)?.handshake?.clientName)
        XCTAssertTrue(origin.wait { $0.openConnections == 0 })
    }

    func testSingleBytes() throws {
        let authority = try begin()
        origin.segmentSize = 1
        origin.content["b"] = Picture([1, 2, 3], type: "image/png")
        XCTAssertEqual(try get("--cacert", authority.file, origin.url("/pictures/b")).output, "1.1 200 3")
    }

    func testCertificates() throws {
        for certificate in [Certificate.expired, .wrongHost, .selfSigned] {
            let authority = try begin(TLS(certificate))
            XCTAssertEqual(try get("--cacert", authority.file, origin.url("/echo")).exitCode, 60, "\(certificate)")
            XCTAssertTrue(origin.wait { $0.connections.count == 1 && $0.openConnections == 0 })
            XCTAssertEqual(origin.log.requests.count, 0)
            XCTAssertEqual(try get("--insecure", origin.url("/echo")).exitCode, 0, "\(certificate)")
            origin.stop()
        }
    }

    func testPin() throws {
        let authority = try begin()
        let pinned = ["--cacert", authority.file, "--pinnedpubkey"]
        XCTAssertEqual(try startCurl(pinned + [authority.pin, origin.url("/status/200")]).result().exitCode, 0)
        let other = try Authority(.valid)
        XCTAssertEqual(try startCurl(pinned + [other.pin, origin.url("/status/200")]).result().exitCode, 90)
        XCTAssertEqual(origin.log.requests.count, 1)
    }

    func testClientCertificates() throws {
        for isAtMost12 in [false, true] {
            let authority = try begin(TLS(client: .required, isAtMost12: isAtMost12))
            let trust = ["--cacert", authority.file, origin.url("/status/200")]
            func exitCode(_ identity: Authority.Identity, key: String? = nil, _ more: String...) throws -> Int32 {
                try startCurl(trust + ["--cert", identity.certificate, "--key", key ?? identity.key] + more).result()
                    .exitCode
            }
            let (client, stranger) = (authority.client, authority.stranger)
            XCTAssertEqual(try exitCode(client), 0)
            XCTAssertEqual(origin.log.connections.last?.handshake?.clientName, "client")
            XCTAssertEqual(try exitCode(client, key: client.encryptedKey, "--pass", client.passphrase), 0)
            XCTAssertTrue([58, 43].contains(try exitCode(client, key: client.encryptedKey, "--pass", "wrong")))
            XCTAssertEqual(origin.log.requests.count, 2)
            // With TLS 1.3 the client learns it as it reads: a handshake of its own that was good all the same.
            XCTAssertEqual(try exitCode(stranger), isAtMost12 ? 35 : 56)
            XCTAssertEqual(try startCurl(trust).result().exitCode, isAtMost12 ? 35 : 56)
            XCTAssertEqual(origin.log.requests.count, 2)
            XCTAssertTrue(origin.wait { $0.openConnections == 0 && $0.handshakes == 2 })
            origin.stop()
        }
        let authority = try begin(TLS(client: .optional))
        XCTAssertEqual(try get("--cacert", authority.file, origin.url("/status/200")).exitCode, 0)
        XCTAssertNil(origin.log.connections[0].handshake?.clientName)
    }

    func testFilesGoWithTheOrigin() throws {
        let authority = try begin(TLS(client: .required))
        let files = [authority.file, authority.client.key, authority.stranger.encryptedKey]
        XCTAssertTrue(files.allSatisfy { access($0, R_OK) == 0 })
        origin.stop()
        XCTAssertTrue(files.allSatisfy { access($0, R_OK) != 0 })
    }

    func testEitherProtocolAsTheClientLikes() throws {
        let either = try HTTP2Origin(security: .secured(TLS(client: .required)), alsoHTTP1: true)
        defer { either.stop() }
        let authority = try XCTUnwrap(either.authority)
        either.route("/a") { stream in
            try stream.send(status: 200)
            try stream.send(body: [1, 2, 3])
            try stream.end()
        }
        either.route("/reset") { stream in
            try stream.send(status: 200)
            try stream.reset()
        }
        let identity = [
            "--cacert", authority.file, "--cert", authority.client.certificate, "--key", authority.client.key,
        ]
        for (flag, version) in [("--http2", "2"), ("--http1.1", "1.1"), ("--no-alpn", "1.1")] {
            let result = try startCurl(
                identity + [flag, "-o", "/dev/null", "-w", "%{http_version} %{size_download}", either.url("/a")]
            ).result()
            XCTAssertEqual(result.output, "\(version) 3", flag)
        }
        XCTAssertEqual(try startCurl(identity + ["--http1.1", either.url("/reset")]).result().exitCode, 56)
        XCTAssertEqual(
            either.log.connections.prefix(3).map { $0.handshake?.protocolName }, ["h2", "http/1.1", nil])
        XCTAssertEqual(either.log.connections.map { $0.handshake?.clientName }, Array(repeating: "client", count: 4))
    }
}
