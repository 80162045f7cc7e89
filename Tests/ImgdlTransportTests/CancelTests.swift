import ImgdlCore
import Origin
import XCTest

@testable import ImgdlTransport

/// Cancelling in every state, from outside and from inside a report: silence from then on, and the server sees it.
final class CancelTests: TransportTestCase {
    private func serveSlowly() {
        origin.route("/slow") { exchange in
            try exchange.wait("head")
            try exchange.send(status: 200, headers: ["Content-Length": "10"])
            try exchange.send(body: [1])
            try exchange.wait("end")
            try exchange.send(body: [UInt8](repeating: 1, count: 9))
        }
    }

    private func assertSilent(_ id: TransferID, after record: TransferRecord, closed: Int = 1) {
        XCTAssertTrue(origin.wait { $0.connectionsClosedByClient == closed && $0.inFlight == 0 })
        for _ in 0..<3 { loop.turn(transport) }
        XCTAssertFalse(recorder[id].hasEnded)
        XCTAssertEqual(recorder[id].body, record.body)
        XCTAssertEqual(recorder[id].connections, record.connections)
    }

    func testBeforeAnythingHappened() throws {
        let id = try start(origin.url("/slow"))
        transport.cancel(id)
        transport.cancel(id)
        for _ in 0..<3 { loop.turn(transport) }
        XCTAssertNil(recorder.records[id])
        XCTAssertEqual(origin.log.requests.count, 0)
    }

    func testWhileTheServerThinks() throws {
        serveSlowly()
        let id = try start(origin.url("/slow"))
        run(until: recorder[id].connections == 1)
        loop.turn(transport)
        XCTAssertTrue(origin.gate("head").waitUntilReached())
        transport.cancel(id)
        assertSilent(id, after: recorder[id])
    }

    func testInTheBody() throws {
        serveSlowly()
        origin.gate("head").open()
        let id = try start(origin.url("/slow"))
        run(until: recorder[id].body.count == 1)
        transport.cancel(id)
        assertSilent(id, after: recorder[id])
    }

    func testInsideEachReport() throws {
        for report in ["connected", "head", "body"] {
            origin.resetLog()
            serveSlowly()
            origin.gate("head").open()
            let transport = transport!
            let cancel = { (name: String, id: TransferID) in if name == report { transport.cancel(id) } }
            recorder.onConnected = { cancel("connected", $0) }
            recorder.onHead = { id, _ in
                cancel("head", id)
                return .receive
            }
            recorder.onBody = { id, _ in cancel("body", id) }
            let id = try start(origin.url("/slow"))
            run(
                until: report == "connected"
                    ? recorder[id].connections == 1
                    : report == "head" ? recorder[id].head != nil : !recorder[id].body.isEmpty)
            let record = recorder[id]
            XCTAssertTrue(origin.wait { $0.connections.count == 1 && $0.connectionsClosedByClient == 1 }, report)
            for _ in 0..<3 { loop.turn(transport) }
            XCTAssertFalse(recorder[id].hasEnded)
            XCTAssertEqual(recorder[id].body, record.body)
            XCTAssertEqual(recorder[id].head == nil, record.head == nil)
        }
    }

    func testOneCancelsAllInsideAReport() throws {
        serveSlowly()
        origin.gate("head").open()
        var ids: [TransferID] = []
        let transport = transport!
        recorder.onBody = { _, _ in
            for id in ids { transport.cancel(id) }
        }
        for _ in 0..<8 { ids.append(try start(origin.url("/slow"))) }
        run(until: ids.contains { !recorder[$0].body.isEmpty })
        XCTAssertTrue(origin.wait { $0.openConnections == 0 })
        for _ in 0..<3 { loop.turn(transport) }
        XCTAssertEqual(ids.filter { !recorder[$0].body.isEmpty }.count, 1)
        XCTAssertEqual(ids.filter { recorder[$0].hasEnded }.count, 0)
    }

    func testStartInsideTheEndOfAnotherUnderTheSameNumber() throws {
        origin.route("/a") { try $0.respond(302, headers: ["Location": "/b"]) }
        origin.route("/b") { try $0.respond(text: "there") }
        let transport = transport!
        let next = TransportRequest(
            url: try transport.parse(origin.url("/b")), method: "GET", fields: [], body: nil,
            maximumHeaderBytes: 10_000)
        recorder.onHead = { _, head in head.status == 302 ? .discard : .receive }
        recorder.onEnd = { [unowned recorder] id in
            guard recorder![id].head?.status == 302 else { return }
            recorder!.records[id] = nil
            transport.start(id, next)
        }
        let id = try start(origin.url("/a"))
        run(until: recorder[id].text == "there" && recorder[id].isFinished)
        XCTAssertEqual(origin.log.connections.count, 1)
    }

    func testANewTransferInheritsNothing() throws {
        serveSlowly()
        origin.route("/a") { try $0.respond(text: "whole") }
        origin.gate("head").open()
        for _ in 0..<20 {
            let dying = try start(origin.url("/slow"))
            run(until: recorder[dying].body.count == 1)
            transport.cancel(dying)
            XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "whole")
        }
    }

    func testCloseWithRunningTransfers() throws {
        serveSlowly()
        origin.gate("head").open()
        let ids = try (0..<4).map { _ in try start(origin.url("/slow")) }
        run(until: ids.allSatisfy { recorder[$0].body.count == 1 })
        transport.close()
        XCTAssertEqual(loop.watched, [])
        XCTAssertTrue(origin.wait { $0.openConnections == 0 })
        XCTAssertEqual(ids.filter { recorder[$0].hasEnded }.count, 0)
    }

    func testCloseInsideAReport() throws {
        serveSlowly()
        origin.gate("head").open()
        let transport = transport!
        recorder.onBody = { _, _ in transport.close() }
        let ids = try (0..<4).map { _ in try start(origin.url("/slow")) }
        run(until: ids.contains { !recorder[$0].body.isEmpty })
        XCTAssertTrue(origin.wait { $0.openConnections == 0 })
        XCTAssertEqual(ids.filter { recorder[$0].hasEnded }.count, 0)
    }
}
