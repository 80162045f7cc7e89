import Glibc
import ImgdlCore
import Origin
import OriginHTTP2
import XCTest

@testable import ImgdlTransport

/// Streams of HTTP/2 that are stopped before their end: each costs one reset of its server's pace or none, and what the others
/// of its connection have to hear of it is told in a turn of their own.
final class StreamResetTests: TransportTestCase {
    private var secure: HTTP2Origin!

    override func setUpWithError() throws {
        try super.setUpWithError()
        secure = try HTTP2Origin(security: .tls)
        try makeTransport(TransportConfiguration(certificateAuthorities: secure.caFile, proxy: ""))
    }

    override func tearDown() {
        super.tearDown()
        secure?.stop()
    }

    /// Its head and so many bytes have been sent, and no more comes.
    private func route(_ path: String, status: Int = 200, headers: Headers = [:], bytes: Int) {
        let body = [UInt8](repeating: 7, count: bytes)
        secure.route(path) { stream in
            try stream.send(status: status, headers: headers)
            try stream.send(body: body)
            try stream.wait("never")
        }
    }

    // MARK: The others of its connection

    /// curl, which carries the reset with another stream of the connection, gives out what it has kept for that one.
    func testOthersOfTheConnectionHearNothingInsideACancel() throws {
        route("/first", bytes: 10)
        secure.route("/second") { stream in
            try stream.send(status: 200)
            try stream.wait("body")
            try stream.send(body: [UInt8](repeating: 7, count: 10))
            try stream.wait("never")
        }
        let first = try start(secure.url("/first"))
        let second = try start(secure.url("/second"))
        transport.setPaused(second, true)
        run(until: recorder[first].body.count == 10 && recorder[second].head != nil)
        XCTAssertEqual(secure.log.connections.count, 1)
        let transport = transport!
        let received = transport.watch.receivedBytes
        secure.gate("body").open()
        run(until: transport.watch.receivedBytes > received)
        XCTAssertEqual(recorder[second].body.count, 0, "curl keeps it")
        var isInsideCancel = false
        var reports = 0
        recorder.onBody = { id, _ in
            XCTAssertFalse(isInsideCancel, "a report inside a cancel")
            reports += 1
            transport.cancel(id)
        }
        transport.setPaused(second, false)
        isInsideCancel = true
        transport.cancel(first)
        isInsideCancel = false
        XCTAssertEqual(recorder[second].body.count, 0)
        run(until: reports == 1)
        XCTAssertTrue(secure.wait { $0.openConnections == 0 }, "nobody is left on it")
        for _ in 0..<3 { loop.turn(transport) }
        XCTAssertEqual(reports, 1)
    }

    func testTheResetIsSentThoughNothingElseIs() throws {
        for path in ["/first", "/second"] { route(path, bytes: 10) }
        let ids = try ["/first", "/second"].map { try start(secure.url($0)) }
        run(until: ids.allSatisfy { recorder[$0].body.count == 10 })
        transport.cancel(ids[0])
        for _ in 0..<3 { loop.turn(transport) }
        XCTAssertTrue(secure.wait { $0.streamsResetByClient.count == 1 })
        XCTAssertEqual(secure.log.connections.count, 1)
        XCTAssertEqual(secure.log.openConnections, 1)
    }
}
