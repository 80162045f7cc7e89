import ImgdlCore
import Origin
import OriginHTTP2
import XCTest

@testable import ImgdlTransport

/// Features B17, C7, C8, K11: names and passwords, sent as the server asks.
final class CredentialTests: TransportTestCase {
    private let right = Credential(user: "me", password: "p: ö\"w")

    private func path(_ scheme: String, _ more: String = "") -> String {
        "/auth/\(scheme)?user=me&password=p%3A%20%C3%B6%22w\(more)"
    }

    private func authorizations() -> [String] {
        origin.log.requests.map { $0.headers["Authorization"].map { String($0.prefix { $0 != " " }) } ?? "-" }
    }

    func testAsTheServerAsks() throws {
        let table = [
            ("basic", "", "Basic"), ("digest", "", "Digest"), ("digest", "&algorithm=sha-256", "Digest"),
            ("any", "", "Digest"),
        ]
        for (scheme, more, sent) in table {
            origin.resetLog()
            let record = record(of: try start(origin.url(path(scheme, more)), credential: right))
            XCTAssertTrue(record.isFinished, record.failure?.message ?? "")
            XCTAssertEqual(record.head?.status, 200)
            XCTAssertEqual(record.text, "welcome\n")
            XCTAssertEqual(authorizations(), ["-", sent], "the 401 was nobody's business")
        }
        XCTAssertEqual(origin.log.connections.count, 1)
        origin.resetLog()
        XCTAssertEqual(try fetchSucceeding(origin.url(path("any"))).head?.status, 401)
        XCTAssertEqual(authorizations(), ["-"], "a handle that is used again remembers nobody")
    }

    /// Over http Basic would show the password to everybody on the way; over https it is what the server asks.
    func testBasicOverHTTPIsNotAnsweredUnlessAllowed() throws {
        let table = [
            ("basic", ["-"], 401), ("digest", ["-", "Digest"], 200), ("any", ["-", "Digest"], 200),
        ]
        for method in ["GET", "POST"] {
            for (scheme, sent, status) in table {
                origin.resetLog()
                let id = try start(
                    origin.url(path(scheme)), method: method, body: method == "POST" ? [1, 2, 3] : nil,
                    credential: right, allowsBasicOverHTTP: false)
                let record = record(of: id)
                XCTAssertTrue(record.isFinished, record.failure?.message ?? "")
                XCTAssertEqual(record.head?.status, Int32(status), "\(method) \(scheme)")
                XCTAssertEqual(authorizations(), sent, "\(method) \(scheme)")
                XCTAssertFalse(record.body.isEmpty)
                let bodies = origin.log.requests.map { $0.body.count }
                XCTAssertEqual(Set(bodies), [method == "POST" ? 3 : 0], "no request without its body")
            }
        }
        let url = origin.url(path("basic")).replacing("http://", with: "http://me:p%3A%20%C3%B6%22w@")
        XCTAssertEqual(record(of: try start(url, allowsBasicOverHTTP: false)).head?.status, 401)
        XCTAssertFalse(authorizations().contains("Basic"))
        let secure = try Origin(tls: TLS())
        defer { secure.stop() }
        var tls = TLSOptions()
        tls.certificateAuthorities = try XCTUnwrap(secure.authority).file
        let id = try start(secure.url(path("basic")), credential: right, allowsBasicOverHTTP: false, tls: tls)
        XCTAssertEqual(record(of: id).head?.status, 200)
    }

    func testOfTheURL() throws {
        let url = origin.url(path("basic")).replacing("http://", with: "http://me:p%3A%20%C3%B6%22w@")
        XCTAssertEqual(try fetchSucceeding(url).head?.status, 200)
    }

    func testAWrongPasswordEndsOnce() throws {
        for scheme in ["basic", "digest", "any"] {
            origin.resetLog()
            for disposition in [BodyDisposition.receive, .discard] {
                recorder.onHead = { _, _ in disposition }
                let id = try start(origin.url(path(scheme)), credential: Credential(user: "me", password: "secret"))
                let record = record(of: id)
                XCTAssertEqual(record.head?.status, 401)
                XCTAssertTrue(record.isFinished)
                XCTAssertFalse(record.body.isEmpty)
            }
            XCTAssertEqual(origin.log.requests.count, 4)
        }
        XCTAssertEqual(try fetchSucceeding(origin.url(path("basic"))).head?.status, 401, "nobody gave any")
    }

    func testAChallengeWithoutBody() throws {
        origin.route("/bare") { exchange in
            try exchange.respond(401, headers: ["WWW-Authenticate": "Basic realm=\"x\""])
        }
        let id = try start(origin.url("/bare"), credential: right)
        XCTAssertEqual(record(of: id).head?.status, 401)
        let head = record(of: try start(origin.url("/bare"), method: "HEAD"))
        XCTAssertEqual(head.head?.status, 401)
        XCTAssertTrue(head.isFinished)
    }

    /// features T10: cancelled inside the report of a head that was held back.
    func testCancelInsideAHeldHead() throws {
        origin.route("/bare") { try $0.respond(401) }
        let transport = transport!
        recorder.onHead = { id, _ in
            transport.cancel(id)
            return .receive
        }
        let id = try start(origin.url("/bare"))
        run(until: recorder[id].head != nil)
        for _ in 0..<3 { loop.turn(transport) }
        XCTAssertFalse(recorder[id].hasEnded)
    }

    func testBodiesAreSentAgain() throws {
        let body = (0..<300_000).map { UInt8(truncatingIfNeeded: $0) }
        for method in ["POST", "PUT"] {
            for scheme in ["basic", "digest"] {
                let id = try start(origin.url(path(scheme)), method: method, body: body, credential: right)
                let record = record(of: id)
                XCTAssertEqual(record.head?.status, 200, record.failure?.message ?? "")
                XCTAssertEqual(origin.log.requests.last?.body, body)
            }
        }
    }

    func testOverTLSAndHTTP2() throws {
        let secure = try HTTP2Origin(security: .tls)
        defer { secure.stop() }
        secure.route("/a") { stream in
            guard stream.request.headers["Authorization"]?.hasPrefix("Digest username=\"me\"") == true else {
                let challenge = "Digest realm=\"x\", nonce=\"n\", qop=\"auth\""
                return try stream.respond(401, headers: ["WWW-Authenticate": challenge], body: Array("no".utf8))
            }
            try stream.respond(200, body: Array("welcome".utf8))
        }
        try makeTransport(TransportConfiguration(certificateAuthorities: secure.caFile, proxy: ""))
        XCTAssertEqual(record(of: try start(secure.url("/a"), credential: right)).text, "welcome")
        let tls = try Origin(tls: TLS())
        defer { tls.stop() }
        try makeTransport(TransportConfiguration(certificateAuthorities: tls.authority?.file, proxy: ""))
        XCTAssertEqual(record(of: try start(tls.url(path("digest")), credential: right)).text, "welcome\n")
    }

    func testTheCallersOwnFieldWins() throws {
        let fields = [HeaderField("authorization", "Bearer x")]
        _ = record(of: try start(origin.url(path("basic")), fields: fields, credential: right))
        XCTAssertEqual(origin.log.requests.map { $0.headers.all("Authorization") }, [["Bearer x"]])
    }

    func testAServerThatIsNeverSatisfied() throws {
        origin.route("/stale") { exchange in
            let challenge = "Digest realm=\"x\", nonce=\"n\(exchange.request.connection)\", stale=true, qop=\"auth\""
            try exchange.respond(401, headers: ["WWW-Authenticate": challenge], text: "again")
        }
        let record = record(of: try start(origin.url("/stale"), credential: right))
        XCTAssertTrue(record.failure?.code == .protocolError || record.head?.status == 401)
        XCTAssertLessThan(origin.log.requests.count, 8)
    }
}
