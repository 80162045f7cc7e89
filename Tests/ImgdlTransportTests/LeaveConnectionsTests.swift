import ImgdlCore
import Origin
import OriginHTTP2
import XCTest

@testable import ImgdlTransport

/// After a change of the network no request gets a connection that was open before, since it may be dead without a word.
final class LeaveConnectionsTests: HeldStreamTestCase {
    private func startHeld() throws -> TransferID {
        let held = try start(secure.url("/held"))
        run(until: recorder[held].body.count == 2)
        return held
    }

    func testAnIdleConnectionIsNotUsedAgain() throws {
        origin.route("/a") { try $0.respond(text: "hello") }
        for _ in 0..<2 { XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "hello") }
        XCTAssertEqual(origin.log.connections.count, 1)
        transport.leaveConnections()
        for _ in 0..<2 { XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "hello") }
        XCTAssertEqual(origin.log.connections.count, 2, "one new one, which is kept")
        XCTAssertTrue(transport.lanes.retired.isEmpty)
        XCTAssertTrue(origin.wait { $0.openConnections == 1 }, "the old one is closed")
    }

    /// The first answer comes over a new connection while the old one is as if the cable had been pulled.
    func testAConnectionThatIsDeadHoldsUpNothing() throws {
        let isDead = Monitor(false)
        origin.route("/a") { exchange in
            if exchange.request.connection == 1, isDead.read({ $0 }) { try exchange.stall() }
            try exchange.respond(text: "hello")
        }
        XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "hello")
        isDead.change { $0 = true }
        transport.leaveConnections()
        let began = loop.now
        XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "hello")
        XCTAssertLessThan(loop.now.milliseconds(since: began), 1_000)
    }

    // MARK: What has begun

    func testWhatHasBegunAndIsNotSentYetIsSentOverANewConnection() throws {
        origin.route("/a") { try $0.respond(text: "hello") }
        XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "hello")
        let begun = try (0..<3).map { _ in try start(origin.url("/a")) }
        transport.leaveConnections()
        for id in begun { XCTAssertEqual(record(of: id).text, "hello") }
        XCTAssertEqual(origin.log.requests.count, 4, "nothing is sent twice")
        XCTAssertFalse(origin.log.requests.dropFirst().contains { $0.connection == 1 })
        loop.turn(transport)
        XCTAssertTrue(transport.lanes.retired.isEmpty)
    }

    /// It is a stream of a connection that others use.
    func testAStreamThatIsNotSentYetIsOneOfANewConnection() throws {
        try serve()
        let held = try startHeld()
        let begun = try (0..<3).map { _ in try start(secure.url("/a")) }
        transport.leaveConnections()
        for id in begun { XCTAssertEqual(record(of: id).text, "hello") }
        XCTAssertEqual(secure.log.requests.map(\.connection), [1, 2, 2, 2])
        secure.gate("held").open()
        XCTAssertEqual(record(of: held).text, "begun", "what runs on the old one runs on")
    }

    /// Another thread may say so between any two steps: right before a request is sent it is asked for.
    func testTheNetworkIsLookedAtRightBeforeSomethingIsSent() throws {
        origin.route("/a") { try $0.respond(text: "hello") }
        XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "hello")
        var looks = 0
        recorder.onLook = { [unowned self] in
            looks += 1
            // Not when it begins, but when its connection has been chosen, time and again.
            if (2...5).contains(looks) { transport.leaveConnections() }
        }
        XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "hello")
        XCTAssertEqual(looks, 6)
        XCTAssertEqual(origin.log.requests.count, 2, "what was turned back was not sent")
        XCTAssertNotEqual(origin.log.requests.last?.connection, 1)
        loop.turn(transport)
        XCTAssertTrue(transport.lanes.retired.isEmpty)
    }

    /// It ends while it is turned back: nothing begins anew.
    func testWhatIsCancelledWhileItIsTurnedBackStaysSo() throws {
        origin.route("/a") { try $0.respond(text: "hello") }
        XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "hello")
        let begun = try start(origin.url("/a"))
        recorder.onLook = { [unowned self] in
            transport.leaveConnections()
            transport.cancel(begun)
        }
        for _ in 0..<20 { loop.turn(transport) }
        recorder.onLook = {}
        XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "hello")
        XCTAssertFalse(recorder[begun].hasEnded)
        XCTAssertEqual(origin.log.requests.count, 2)
    }

    /// curl answers a challenge by itself: that, too, is something that is sent.
    func testTheAnswerToAChallengeGoesOverANewConnection() throws {
        let right = Credential(user: "me", password: "secret")
        func fetch() throws -> String {
            let url = origin.url("/auth/digest?user=me&password=secret")
            return record(of: try start(url, credential: right)).text
        }
        XCTAssertEqual(try fetch(), "welcome\n")
        XCTAssertEqual(origin.log.requests.map(\.connection), [1, 1])
        var looks = 0
        recorder.onLook = { [unowned self] in
            looks += 1
            // It begins, asks without a credential, and is about to ask with one.
            if looks == 3 { transport.leaveConnections() }
        }
        XCTAssertEqual(try fetch(), "welcome\n")
        XCTAssertEqual(origin.log.requests.map(\.connection), [1, 1, 1, 2, 2], "from the beginning")
    }

    /// As after a sleep: its streams would wait for their timeouts, one after the other.
    func testASharedConnectionThatIsDeadHoldsUpNothing() throws {
        try serve()
        let isDead = Monitor(false)
        secure.route("/b") { stream in
            if stream.request.connection == 1, isDead.read({ $0 }) { try stream.stall() }
            try stream.respond(200, body: Array("hello".utf8))
        }
        XCTAssertEqual(try fetchSucceeding(secure.url("/b")).text, "hello")
        isDead.change { $0 = true }
        let silent = try start(secure.url("/b"))
        // The loop does not hear of what the origin hears.
        let end = loop.now.advanced(byMilliseconds: 20_000)
        while secure.log.requests.count < 2, loop.now < end { loop.turn(transport) }
        transport.leaveConnections()
        let began = loop.now
        XCTAssertEqual(try fetchSucceeding(secure.url("/b")).text, "hello")
        XCTAssertLessThan(loop.now.milliseconds(since: began), 1_000)
        XCTAssertFalse(recorder[silent].hasEnded)
    }

    func testAConnectionInUseIsNotShared() throws {
        try serve()
        let held = try startHeld()
        XCTAssertEqual(try fetchSucceeding(secure.url("/a")).text, "hello")
        XCTAssertEqual(secure.log.connections.count, 1, "streams of one connection")
        transport.leaveConnections()
        for _ in 0..<2 { XCTAssertEqual(try fetchSucceeding(secure.url("/a")).text, "hello") }
        XCTAssertEqual(secure.log.requests.map(\.connection), [1, 1, 2, 2])
        XCTAssertEqual(transport.lanes.retired.count, 1)
        secure.gate("held").open()
        XCTAssertEqual(record(of: held).text, "begun", "what runs on it runs on")
        loop.turn(transport)
        XCTAssertTrue(transport.lanes.retired.isEmpty)
        XCTAssertTrue(secure.wait { $0.openConnections == 1 })
    }

    func testWhatIsCancelledLeavesNothing() throws {
        try serve()
        let held = try startHeld()
        transport.leaveConnections()
        XCTAssertEqual(try fetchSucceeding(secure.url("/a")).text, "hello")
        transport.cancel(held)
        loop.turn(transport)
        XCTAssertTrue(transport.lanes.retired.isEmpty)
        XCTAssertTrue(secure.wait { $0.openConnections == 1 })
    }

    func testConnectionsOfOtherTrustAreLeftToo() throws {
        origin.route("/a") { try $0.respond(text: "hello") }
        func fetch() throws {
            XCTAssertEqual(record(of: try start(origin.url("/a"), partition: "other")).text, "hello")
        }
        for _ in 0..<2 { try fetch() }
        XCTAssertEqual(origin.log.connections.count, 1)
        transport.leaveConnections()
        try fetch()
        XCTAssertEqual(origin.log.connections.count, 2)
        XCTAssertEqual(transport.lanes.special.count, 1)
        XCTAssertTrue(transport.lanes.retired.isEmpty)
    }

    /// However often it is said: as many lanes as there are transfers at most.
    func testManyChangesOfTheNetworkLeaveNoLanes() throws {
        try serve()
        let held = try startHeld()
        for _ in 0..<1_000 { transport.leaveConnections() }
        for _ in 0..<5 {
            XCTAssertEqual(try fetchSucceeding(secure.url("/a")).text, "hello")
            transport.leaveConnections()
        }
        XCTAssertLessThanOrEqual(transport.lanes.retired.count, 2)
        secure.gate("held").open()
        XCTAssertEqual(record(of: held).text, "begun")
    }

    /// curl is at work: it is not called from its own callbacks.
    func testItMayBeSaidInsideAReport() throws {
        try serve()
        recorder.onHead = { [unowned self] _, _ in
            transport.leaveConnections()
            return .receive
        }
        for _ in 0..<3 { XCTAssertEqual(try fetchSucceeding(secure.url("/a")).text, "hello") }
        XCTAssertEqual(secure.log.connections.count, 3)
    }

    func testTheEndClosesWhatWasLeft() throws {
        try serve()
        _ = try startHeld()
        transport.leaveConnections()
        XCTAssertEqual(try fetchSucceeding(secure.url("/a")).text, "hello")
        transport.close()
        XCTAssertEqual(loop.watched, [])
        XCTAssertTrue(secure.wait { $0.openConnections == 0 })
    }
}
