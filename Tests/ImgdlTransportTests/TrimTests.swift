import ImgdlCore
import Origin
import XCTest

@testable import ImgdlTransport

/// What a transport keeps for later can be taken from it.
final class TrimTests: TransportTestCase {
    override func setUpWithError() throws {
        try super.setUpWithError()
        origin.route("/a") { try $0.respond(text: "a") }
    }

    func testIdleConnectionsAreClosed() throws {
        for partition in ["", "one", "two"] {
            let id = try start(origin.url("/a"), partition: partition)
            XCTAssertEqual(record(of: id).text, "a")
        }
        XCTAssertEqual(origin.log.connections.count, 3)
        XCTAssertEqual(origin.log.openConnections, 3)
        transport.trim(connections: true)
        XCTAssertTrue(origin.wait { $0.openConnections == 0 })
        XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "a")
        XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "a")
        XCTAssertEqual(origin.log.connections.count, 4)
    }

    func testConnectionsStayWhereNobodyAsksForThem() throws {
        _ = try fetchSucceeding(origin.url("/a"))
        transport.trim(connections: false)
        loop.turn(transport)
        _ = try fetchSucceeding(origin.url("/a"))
        XCTAssertEqual(origin.log.connections.count, 1)
    }

    /// It goes on, on a connection that nobody uses after it.
    func testWhatRunsIsNotDisturbed() throws {
        let gate = Monitor(false)
        origin.route("/slow") { exchange in
            try exchange.send(status: 200, headers: ["Content-Length": "6"])
            try exchange.send(body: Array("one".utf8))
            _ = gate.wait(until: .patient) { $0 ? true : nil }
            try exchange.send(body: Array("two".utf8))
        }
        let slow = try start(origin.url("/slow"))
        run(until: recorder[slow].body.count == 3)
        _ = try fetchSucceeding(origin.url("/a"))
        for _ in 0..<3 { transport.trim(connections: true) }
        _ = try fetchSucceeding(origin.url("/a"))
        XCTAssertEqual(origin.log.connections.count, 3)
        gate.change { $0 = true }
        XCTAssertEqual(record(of: slow).text, "onetwo")
        loop.turn(transport)
        _ = try fetchSucceeding(origin.url("/a"))
        XCTAssertEqual(origin.log.connections.count, 3)
        XCTAssertEqual(origin.log.openConnections, 1, "the slow one's is closed, too")
        transport.trim(connections: true)
        XCTAssertTrue(origin.wait { $0.openConnections == 0 })
    }

    /// As when a callback asks for it.
    func testInsideReports() throws {
        recorder.onHead = { [unowned self] _, _ in
            transport.trim(connections: true)
            return .receive
        }
        recorder.onEnd = { [unowned self] _ in transport.trim(connections: true) }
        for _ in 0..<3 { XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "a") }
        XCTAssertTrue(origin.wait { $0.openConnections == 0 })
        XCTAssertEqual(origin.log.connections.count, 3)
        let cancelled = try start(origin.url("/a"))
        recorder.onHead = { [unowned self] id, _ in
            transport.trim(connections: true)
            transport.cancel(id)
            return .receive
        }
        run(until: recorder[cancelled].head != nil)
        for _ in 0..<3 { loop.turn(transport) }
        XCTAssertTrue(origin.wait { $0.openConnections == 0 })
        XCTAssertEqual(loop.watched, [])
    }
}
