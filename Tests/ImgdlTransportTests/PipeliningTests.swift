import Foundation
import ImgdlCore
import Origin
import OriginHTTP2
import XCTest

@testable import ImgdlTransport

/// No request is sent on a connection of HTTP/1.1 on which another one waits for its answer: whoever reads first would get
/// what is meant for another, with another's credentials.
final class PipeliningTests: TransportTestCase {
    private var secure: HTTP2Origin!

    override func tearDown() {
        super.tearDown()
        secure?.stop()
    }

    /// Each answer is its request's path, every second one late.
    private func serve(http1Connections: Int = 0, secureConnections: Int = .max) throws {
        secure = try HTTP2Origin(
            alsoHTTP1: true, http1Connections: http1Connections, secureConnections: secureConnections)
        secure.route(prefix: "/") { stream in
            if stream.request.path.hasSuffix("1") { usleep(20_000) }
            try stream.respond(200, body: Array(stream.request.path.utf8))
        }
        let trust = try file(of: [secure.authority, secure.otherAuthority])
        try makeTransport(TransportConfiguration(certificateAuthorities: trust, proxy: ""))
    }

    private func assertEachGetsItsOwn(_ name: String, count: Int = 8) throws {
        let paths = (0..<count).map { "/\(name)/\($0)\($0 % 2)" }
        let ids = try paths.map { try start(secure.url($0)) }
        XCTAssertEqual(ids.map { record(of: $0).text }, paths)
    }

    /// Versions of libcurl that cannot send bodies in HTTP/2 have a connection for each.
    func testWhatFollowsAnUpload() throws {
        try serve()
        XCTAssertEqual(record(of: try start(secure.url("/upload"), method: "POST", body: [1, 2, 3])).text, "/upload")
        for number in 0..<3 { try assertEachGetsItsOwn("\(number)") }
        XCTAssertLessThanOrEqual(secure.log.connections.count, 2, "they share one")
    }

    /// While it is on its way, too.
    func testWhatComesBesideUploads() throws {
        try serve()
        try assertEachGetsItsOwn("before")
        let uploads = try (0..<4).map { try start(secure.url("/upload\($0)1"), method: "PUT", body: [1, 2, 3]) }
        for number in 0..<3 { try assertEachGetsItsOwn("\(number)") }
        XCTAssertEqual(uploads.map { record(of: $0).text }, (0..<4).map { "/upload\($0)1" })
    }

    /// A connection has become one of nobody else's, as others had been turned away.
    func testWhatFollowsGoAways() throws {
        try serve()
        secure.route("/away") { stream in
            if self.secure.log.connections.count <= 2 {
                return try stream.goAway(lastStream: 0, code: .noError)
            }
            try stream.respond(200, body: Array("/away".utf8))
        }
        XCTAssertEqual(record(of: try start(secure.url("/away"))).text, "/away")
        for number in 0..<3 { try assertEachGetsItsOwn("\(number)") }
    }

    /// One port for both: that it speaks HTTP/2 over TLS says nothing of http.
    func testHTTPOnThePortOfHTTPS() throws {
        try serve(secureConnections: 1)
        XCTAssertEqual(record(of: try start(secure.url("/secure"))).text, "/secure")
        secure.route("/held") { stream in
            try stream.wait("held")
            try stream.respond(200, body: Array("/held".utf8))
        }
        let clear = "http://127.0.0.1:\(secure.port)"
        for number in 0..<2 {
            let paths = ["/held"] + (1..<6).map { "/\(number)/\($0)" }
            var ids: [TransferID] = []
            for path in paths {
                let count = secure.log.requests.count
                ids.append(try start(clear + path))
                if path == "/held" { run(until: secure.log.requests.count > count) }
                for _ in 0..<5 { loop.turn(transport) }
            }
            secure.gate("held").open()
            XCTAssertEqual(ids.map { record(of: $0).text }, paths)
        }
    }

    /// A balancer with machines of both kinds: connections of HTTP/1.1 are kept when the first of HTTP/2 is made.
    func testAServerThatSpeaksBoth() throws {
        for http1Connections in 1...4 {
            try serve(http1Connections: http1Connections)
            let first = try (0..<http1Connections).map { try start(secure.url("/first\($0)1")) }
            XCTAssertEqual(
                first.map { record(of: $0).text }, (0..<http1Connections).map { "/first\($0)1" })
            for number in 0..<4 { try assertEachGetsItsOwn("\(number)") }
            secure.stop()
        }
    }
}
