import ImgdlCore
import XCTest

@testable import ImgdlTransport

/// What is known of one server's connections.
final class ServerConnectionsTests: XCTestCase {
    private let server = ServerConnections()
    private let now = Instant(nanoseconds: 5_000_000_000)
    private let ids = (0..<10).map { TransferID(rawValue: UInt64($0)) }

    func testTheFirstHandshakeIsWaitedForAndNoOther() {
        XCTAssertTrue(server.begins(ids[0], now))
        XCTAssertFalse(server.begins(ids[1], now))
        XCTAssertFalse(server.begins(ids[2], now))
        XCTAssertEqual(server.connects(ids[0]), [ids[1], ids[2]])
        XCTAssertTrue(server.begins(ids[3], now), "though nothing has been answered")
        server.answers(inHTTP2: false)
        XCTAssertTrue(server.begins(ids[4], now))
        XCTAssertTrue(server.begins(ids[5], now))
        for id in [ids[0], ids[1], ids[2]] {
            if id != ids[0] { XCTAssertEqual(server.connects(id), []) }
            XCTAssertEqual(server.ends(id, wasConnected: true, handshakeEnded: true), [])
        }
        XCTAssertTrue(server.begins(ids[6], now), "HTTP/1.1 stays what it is")
        XCTAssertTrue(server.begins(ids[7], now))
    }

    /// What is known to be shared is waited for again, once nobody has it.
    func testASharedConnectionIsOpenedOnce() {
        XCTAssertTrue(server.begins(ids[0], now))
        XCTAssertEqual(server.connects(ids[0]), [])
        server.answers(inHTTP2: true)
        XCTAssertTrue(server.begins(ids[1], now))
        XCTAssertEqual(server.connects(ids[1]), [])
        XCTAssertEqual(server.ends(ids[0], wasConnected: true, handshakeEnded: true), [])
        XCTAssertTrue(server.begins(ids[2], now), "another has it")
        XCTAssertEqual(server.ends(ids[1], wasConnected: true, handshakeEnded: true), [])
        XCTAssertEqual(server.ends(ids[2], wasConnected: false, handshakeEnded: true), [])
        XCTAssertTrue(server.begins(ids[3], now))
        XCTAssertFalse(server.begins(ids[4], now))
        XCTAssertEqual(server.connects(ids[3]), [ids[4]])
    }

    /// One that stalls holds nobody up for longer than that, and whoever comes later not at all.
    func testAHandshakeThatStalls() {
        let late = now.advanced(byMilliseconds: ServerConnections.patience)
        XCTAssertTrue(server.begins(ids[0], now))
        XCTAssertNil(server.overdue)
        XCTAssertFalse(server.begins(ids[1], now))
        XCTAssertFalse(server.begins(ids[2], now.advanced(byMilliseconds: ServerConnections.patience - 1)))
        XCTAssertEqual(server.overdue, late)
        XCTAssertEqual(server.losesPatience(now), [])
        XCTAssertEqual(server.losesPatience(late), [ids[1], ids[2]])
        XCTAssertNil(server.overdue)
        XCTAssertEqual(server.losesPatience(late), [])
        XCTAssertTrue(server.begins(ids[3], late))
        XCTAssertEqual(server.connects(ids[1]), [])
        XCTAssertTrue(server.begins(ids[4], now), "a handshake has ended")
        XCTAssertEqual(server.ends(ids[0], wasConnected: false, handshakeEnded: true), [])
    }

    /// Whoever takes over does not make the others wait anew.
    func testPatienceIsNotBegunAnew() {
        let late = now.advanced(byMilliseconds: ServerConnections.patience)
        XCTAssertTrue(server.begins(ids[0], now))
        for id in ids[1...3] { XCTAssertFalse(server.begins(id, now)) }
        XCTAssertEqual(server.ends(ids[0], wasConnected: false, handshakeEnded: false), [ids[1]])
        XCTAssertEqual(server.overdue, late)
    }

    func testAHandshakeThatFailsLetsAllGo() {
        XCTAssertTrue(server.begins(ids[0], now))
        for id in ids[1...3] { XCTAssertFalse(server.begins(id, now)) }
        XCTAssertEqual(server.ends(ids[0], wasConnected: false, handshakeEnded: true), Array(ids[1...3]))
        XCTAssertTrue(server.isIdle(now))
    }

    func testWhoeverCancelsLeavesItToTheNext() {
        XCTAssertTrue(server.begins(ids[0], now))
        for id in ids[1...3] { XCTAssertFalse(server.begins(id, now)) }
        XCTAssertEqual(server.ends(ids[2], wasConnected: false, handshakeEnded: false), [], "it waited")
        XCTAssertEqual(server.ends(ids[0], wasConnected: false, handshakeEnded: false), [ids[1]])
        XCTAssertEqual(server.connects(ids[1]), [ids[3]])
        XCTAssertEqual(server.ends(ids[1], wasConnected: true, handshakeEnded: false), [])
        XCTAssertEqual(server.ends(ids[3], wasConnected: false, handshakeEnded: false), [])
        XCTAssertTrue(server.isIdle(now))
    }

    /// A connection that ends without an answer has told nothing.
    func testNothingIsKnownWithoutAnAnswer() {
        XCTAssertTrue(server.begins(ids[0], now))
        XCTAssertEqual(server.connects(ids[0]), [])
        XCTAssertEqual(server.ends(ids[0], wasConnected: true, handshakeEnded: true), [])
        XCTAssertTrue(server.begins(ids[1], now))
        XCTAssertFalse(server.begins(ids[2], now))
    }

    /// They wait for no handshake, so that the end of none lets them go; whoever is cancelled leaves.
    func testWhoIsHeldBack() {
        for id in ids[0...2] { server.hold(id) }
        XCTAssertFalse(server.isIdle(now))
        XCTAssertNil(server.overdue)
        XCTAssertTrue(server.begins(ids[3], now))
        XCTAssertEqual(server.connects(ids[3]), [])
        XCTAssertEqual(server.ends(ids[1], wasConnected: false, handshakeEnded: false), [])
        XCTAssertEqual(server.takeHeld(), [ids[0], ids[2]])
        XCTAssertEqual(server.takeHeld(), [])
        XCTAssertEqual(server.ends(ids[3], wasConnected: true, handshakeEnded: true), [])
        XCTAssertTrue(server.isIdle(now))
    }

    func testIdleServersAreNotKept() throws {
        var table = ServerTable()
        let busy = try URLParser.parse("https://busy.example/")
        let held = table.server(for: busy, now)
        XCTAssertTrue(held.begins(ids[0], now))
        for number in 0..<5_000 { _ = table.server(for: try URLParser.parse("https://h\(number).example/"), now) }
        XCTAssertLessThanOrEqual(table.count, 1_001)
        XCTAssertTrue(table.server(for: busy, now) === held)
    }

    /// With the server, the pace of its resets would begin anew.
    func testAServerWhosePaceIsUsedUpIsKept() throws {
        var table = ServerTable()
        let url = try URLParser.parse("https://reset.example/")
        let server = table.server(for: url, now)
        while server.resets.take(now) {}
        XCTAssertFalse(server.isIdle(now))
        func others(_ prefix: String, _ now: Instant) throws {
            for number in 0..<2_000 {
                _ = table.server(for: try URLParser.parse("https://\(prefix)\(number).example/"), now)
            }
        }
        try others("a", now)
        XCTAssertTrue(table.server(for: url, now) === server)
        let later = now.advanced(byMilliseconds: 60_000)
        XCTAssertTrue(server.isIdle(later))
        try others("b", later)
        XCTAssertFalse(table.server(for: url, later) === server, "after a rest nothing is lost with it")
    }

    /// It waits for nobody, and is counted like the others from then on.
    func testAFreshConnectionWaitsForNobody() {
        XCTAssertTrue(server.begins(ids[0], now))
        XCTAssertTrue(server.begins(ids[1], isFresh: true, now))
        XCTAssertFalse(server.begins(ids[2], now))
        XCTAssertEqual(server.connects(ids[1]), [ids[2]], "it can be shared")
        server.answers(inHTTP2: true)
        XCTAssertEqual(server.ends(ids[0], wasConnected: false, handshakeEnded: true), [])
        XCTAssertTrue(server.begins(ids[3], now))
        XCTAssertFalse(server.isIdle(now))
        XCTAssertEqual(server.ends(ids[1], wasConnected: true, handshakeEnded: true), [])
        XCTAssertTrue(server.isIdle(now))
    }
}
