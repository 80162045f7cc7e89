import ImgdlCore
import XCTest

@testable import ImgdlTransport

/// Who waits for whose handshake.
final class HandshakeTurnsTests: XCTestCase {
    private let turns = HandshakeTurns()
    private let now = Instant(nanoseconds: 5_000_000_000)
    private let ids = (0..<10).map { TransferID(rawValue: UInt64($0)) }

    func testTheFirstHandshakeIsWaitedForAndNoOther() {
        XCTAssertTrue(turns.begins(ids[0], now))
        XCTAssertFalse(turns.begins(ids[1], now))
        XCTAssertFalse(turns.begins(ids[2], now))
        XCTAssertEqual(turns.connects(ids[0]), [ids[1], ids[2]])
        XCTAssertTrue(turns.begins(ids[3], now), "though nothing has been answered")
        turns.answers(inHTTP2: false)
        XCTAssertTrue(turns.begins(ids[4], now))
        XCTAssertTrue(turns.begins(ids[5], now))
        for id in [ids[0], ids[1], ids[2]] {
            if id != ids[0] { XCTAssertEqual(turns.connects(id), []) }
            XCTAssertEqual(turns.ends(id, wasConnected: true, handshakeEnded: true), [])
        }
        XCTAssertTrue(turns.begins(ids[6], now), "HTTP/1.1 stays what it is")
        XCTAssertTrue(turns.begins(ids[7], now))
    }

    /// What is known to be shared is waited for again, once nobody has it.
    func testASharedConnectionIsOpenedOnce() {
        XCTAssertTrue(turns.begins(ids[0], now))
        XCTAssertEqual(turns.connects(ids[0]), [])
        turns.answers(inHTTP2: true)
        XCTAssertTrue(turns.begins(ids[1], now))
        XCTAssertEqual(turns.connects(ids[1]), [])
        XCTAssertEqual(turns.ends(ids[0], wasConnected: true, handshakeEnded: true), [])
        XCTAssertTrue(turns.begins(ids[2], now), "another has it")
        XCTAssertEqual(turns.ends(ids[1], wasConnected: true, handshakeEnded: true), [])
        XCTAssertEqual(turns.ends(ids[2], wasConnected: false, handshakeEnded: true), [])
        XCTAssertTrue(turns.begins(ids[3], now))
        XCTAssertFalse(turns.begins(ids[4], now))
        XCTAssertEqual(turns.connects(ids[3]), [ids[4]])
    }

    /// One that stalls holds nobody up for longer than that, and whoever comes later not at all.
    func testAHandshakeThatStalls() {
        let late = now.advanced(byMilliseconds: HandshakeTurns.patience)
        XCTAssertTrue(turns.begins(ids[0], now))
        XCTAssertNil(turns.overdue)
        XCTAssertFalse(turns.begins(ids[1], now))
        XCTAssertFalse(turns.begins(ids[2], now.advanced(byMilliseconds: HandshakeTurns.patience - 1)))
        XCTAssertEqual(turns.overdue, late)
        XCTAssertEqual(turns.losesPatience(now), [])
        XCTAssertEqual(turns.losesPatience(late), [ids[1], ids[2]])
        XCTAssertNil(turns.overdue)
        XCTAssertEqual(turns.losesPatience(late), [])
        XCTAssertTrue(turns.begins(ids[3], late))
        XCTAssertEqual(turns.connects(ids[1]), [])
        XCTAssertTrue(turns.begins(ids[4], now), "a handshake has ended")
        XCTAssertEqual(turns.ends(ids[0], wasConnected: false, handshakeEnded: true), [])
    }

    /// Whoever takes over does not make the others wait anew.
    func testPatienceIsNotBegunAnew() {
        let late = now.advanced(byMilliseconds: HandshakeTurns.patience)
        XCTAssertTrue(turns.begins(ids[0], now))
        for id in ids[1...3] { XCTAssertFalse(turns.begins(id, now)) }
        XCTAssertEqual(turns.ends(ids[0], wasConnected: false, handshakeEnded: false), [ids[1]])
        XCTAssertEqual(turns.overdue, late)
    }

    func testAHandshakeThatFailsLetsAllGo() {
        XCTAssertTrue(turns.begins(ids[0], now))
        for id in ids[1...3] { XCTAssertFalse(turns.begins(id, now)) }
        XCTAssertEqual(turns.ends(ids[0], wasConnected: false, handshakeEnded: true), Array(ids[1...3]))
        XCTAssertTrue(turns.isIdle)
    }

    func testWhoeverCancelsLeavesItToTheNext() {
        XCTAssertTrue(turns.begins(ids[0], now))
        for id in ids[1...3] { XCTAssertFalse(turns.begins(id, now)) }
        XCTAssertEqual(turns.ends(ids[2], wasConnected: false, handshakeEnded: false), [], "it waited")
        XCTAssertEqual(turns.ends(ids[0], wasConnected: false, handshakeEnded: false), [ids[1]])
        XCTAssertEqual(turns.connects(ids[1]), [ids[3]])
        XCTAssertEqual(turns.ends(ids[1], wasConnected: true, handshakeEnded: false), [])
        XCTAssertEqual(turns.ends(ids[3], wasConnected: false, handshakeEnded: false), [])
        XCTAssertTrue(turns.isIdle)
    }

    /// A connection that ends without an answer has told nothing.
    func testNothingIsKnownWithoutAnAnswer() {
        XCTAssertTrue(turns.begins(ids[0], now))
        XCTAssertEqual(turns.connects(ids[0]), [])
        XCTAssertEqual(turns.ends(ids[0], wasConnected: true, handshakeEnded: true), [])
        XCTAssertTrue(turns.begins(ids[1], now))
        XCTAssertFalse(turns.begins(ids[2], now))
    }

    func testIdleServersAreNotKept() throws {
        var table = HandshakeTable()
        let busy = try URLParser.parse("https://busy.example/")
        let held = table.turns(for: busy)
        XCTAssertTrue(held.begins(ids[0], now))
        for number in 0..<5_000 { _ = table.turns(for: try URLParser.parse("https://h\(number).example/")) }
        XCTAssertLessThanOrEqual(table.count, 1_001)
        XCTAssertTrue(table.turns(for: busy) === held)
    }
}
