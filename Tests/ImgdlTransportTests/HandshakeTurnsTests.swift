import ImgdlCore
import XCTest

@testable import ImgdlTransport

/// Who waits for whose handshake.
final class HandshakeTurnsTests: XCTestCase {
    private let turns = HandshakeTurns()
    private let ids = (0..<10).map { TransferID(rawValue: UInt64($0)) }

    func testTheFirstHandshakeIsWaitedForAndNoOther() {
        XCTAssertTrue(turns.begins(ids[0]))
        XCTAssertFalse(turns.begins(ids[1]))
        XCTAssertFalse(turns.begins(ids[2]))
        XCTAssertEqual(turns.connects(ids[0]), [ids[1], ids[2]])
        XCTAssertTrue(turns.begins(ids[3]), "though nothing has been answered")
        turns.answers(inHTTP2: false)
        XCTAssertTrue(turns.begins(ids[4]))
        XCTAssertTrue(turns.begins(ids[5]))
        for id in [ids[0], ids[1], ids[2]] {
            if id != ids[0] { XCTAssertEqual(turns.connects(id), []) }
            XCTAssertEqual(turns.ends(id, wasConnected: true, handshakeEnded: true), [])
        }
        XCTAssertTrue(turns.begins(ids[6]), "HTTP/1.1 stays what it is")
        XCTAssertTrue(turns.begins(ids[7]))
    }

    /// What is known to be shared is waited for again, once nobody has it.
    func testASharedConnectionIsOpenedOnce() {
        XCTAssertTrue(turns.begins(ids[0]))
        XCTAssertEqual(turns.connects(ids[0]), [])
        turns.answers(inHTTP2: true)
        XCTAssertTrue(turns.begins(ids[1]))
        XCTAssertEqual(turns.connects(ids[1]), [])
        XCTAssertEqual(turns.ends(ids[0], wasConnected: true, handshakeEnded: true), [])
        XCTAssertTrue(turns.begins(ids[2]), "another has it")
        XCTAssertEqual(turns.ends(ids[1], wasConnected: true, handshakeEnded: true), [])
        XCTAssertEqual(turns.ends(ids[2], wasConnected: false, handshakeEnded: true), [])
        XCTAssertTrue(turns.begins(ids[3]))
        XCTAssertFalse(turns.begins(ids[4]))
        XCTAssertEqual(turns.connects(ids[3]), [ids[4]])
    }

    func testAHandshakeThatFailsLetsAllGo() {
        XCTAssertTrue(turns.begins(ids[0]))
        for id in ids[1...3] { XCTAssertFalse(turns.begins(id)) }
        XCTAssertEqual(turns.ends(ids[0], wasConnected: false, handshakeEnded: true), Array(ids[1...3]))
        XCTAssertTrue(turns.isIdle)
    }

    func testWhoeverCancelsLeavesItToTheNext() {
        XCTAssertTrue(turns.begins(ids[0]))
        for id in ids[1...3] { XCTAssertFalse(turns.begins(id)) }
        XCTAssertEqual(turns.ends(ids[2], wasConnected: false, handshakeEnded: false), [], "it waited")
        XCTAssertEqual(turns.ends(ids[0], wasConnected: false, handshakeEnded: false), [ids[1]])
        XCTAssertEqual(turns.connects(ids[1]), [ids[3]])
        XCTAssertEqual(turns.ends(ids[1], wasConnected: true, handshakeEnded: false), [])
        XCTAssertEqual(turns.ends(ids[3], wasConnected: false, handshakeEnded: false), [])
        XCTAssertTrue(turns.isIdle)
    }

    /// A connection that ends without an answer has told nothing.
    func testNothingIsKnownWithoutAnAnswer() {
        XCTAssertTrue(turns.begins(ids[0]))
        XCTAssertEqual(turns.connects(ids[0]), [])
        XCTAssertEqual(turns.ends(ids[0], wasConnected: true, handshakeEnded: true), [])
        XCTAssertTrue(turns.begins(ids[1]))
        XCTAssertFalse(turns.begins(ids[2]))
    }

    func testIdleServersAreNotKept() throws {
        var table = HandshakeTable()
        let busy = try URLParser.parse("https://busy.example/")
        let held = table.turns(for: busy)
        XCTAssertTrue(held.begins(ids[0]))
        for number in 0..<5_000 { _ = table.turns(for: try URLParser.parse("https://h\(number).example/")) }
        XCTAssertLessThanOrEqual(table.count, 1_001)
        XCTAssertTrue(table.turns(for: busy) === held)
    }
}
