import ImgdlCore
import Origin
import OriginHTTP2
import XCTest

@testable import ImgdlTransport

/// What is paused sends no request, whatever libcurl would do by itself: it begins anew when the pause is over.
final class PausedBeforeSentTests: HeldStreamTestCase {
    private func isParked(_ id: TransferID) -> Bool { transport.transfers[id]?.isParked == true }

    private func runUntilParked(_ id: TransferID, _ line: UInt = #line) {
        run(until: isParked(id), line: line)
        for _ in 0..<10 { loop.turn(transport) }
        XCTAssertFalse(recorder[id].hasEnded, line: line)
        XCTAssertNil(recorder[id].head, line: line)
    }

    /// Until the origin has seen so many.
    private func runUntilRequested(_ count: Int) {
        let end = loop.now.advanced(byMilliseconds: 20_000)
        while origin.log.requests.count < count, loop.now < end { loop.turn(transport) }
        XCTAssertEqual(origin.log.requests.count, count)
    }

    // MARK: A challenge

    func testTheAnswerToAChallengeWaits() throws {
        let challenges = ["Basic realm=\"x\"", "Digest realm=\"x\", nonce=\"n\", qop=\"auth\""]
        for (number, challenge) in challenges.enumerated() {
            for method in ["GET", "POST"] {
                origin.resetLog()
                let gate = "\(number)\(method)"
                origin.route("/a") { exchange in
                    guard exchange.request.headers["Authorization"] == nil else {
                        return try exchange.respond(text: "welcome")
                    }
                    try exchange.wait(gate)
                    try exchange.respond(401, headers: ["WWW-Authenticate": challenge], text: "who?")
                }
                let id = try start(
                    origin.url("/a"), method: method, body: method == "POST" ? [1, 2, 3] : nil,
                    credential: Credential(user: "me", password: "secret"))
                runUntilRequested(1)
                transport.setPaused(id, true)
                origin.gate(gate).open()
                runUntilParked(id)
                XCTAssertEqual(origin.log.requests.count, 1, "nothing with a credential")
                transport.setPaused(id, false)
                XCTAssertEqual(record(of: id).text, "welcome")
                XCTAssertEqual(recorder[id].beginnings, 1)
                let authorizations = origin.log.requests.map { $0.headers["Authorization"] != nil }
                XCTAssertEqual(authorizations, [false, false, true], "from the beginning")
                if method == "POST" { XCTAssertEqual(origin.log.requests.last?.body, [1, 2, 3]) }
            }
        }
    }

    /// What is nobody's to answer is the answer.
    func testAChallengeThatIsTheAnswerIsReported() throws {
        origin.route("/a") { exchange in
            try exchange.wait("go")
            try exchange.respond(401, headers: ["WWW-Authenticate": "Basic realm=\"x\""])
        }
        let id = try start(origin.url("/a"))
        runUntilRequested(1)
        transport.setPaused(id, true)
        origin.gate("go").open()
        XCTAssertEqual(record(of: id).head?.status, 401)
    }

    // MARK: A kept connection

    /// It runs on one of so many kept connections, which is closed without an answer.
    private func startOnKeptConnection(_ count: Int, method: String = "GET") throws -> TransferID {
        origin.route("/kept") { exchange in
            try exchange.wait("kept")
            try exchange.respond(text: "hello")
        }
        origin.route("/b") { exchange in
            if exchange.request.connection <= count {
                try exchange.wait("close")
                return exchange.close()
            }
            try exchange.respond(text: "welcome")
        }
        let kept = try (0..<count).map { _ in try start(origin.url("/kept")) }
        runUntilRequested(count)
        origin.gate("kept").open()
        for id in kept { XCTAssertEqual(record(of: id).text, "hello") }
        XCTAssertEqual(origin.log.connections.count, count)
        let id = try start(origin.url("/b"), method: method)
        runUntilRequested(count + 1)
        transport.setPaused(id, true)
        origin.gate("close").open()
        return id
    }

    private func assertIsSentAnewAfterThePause(keptConnections count: Int) throws {
        let id = try startOnKeptConnection(count)
        runUntilParked(id)
        XCTAssertEqual(origin.log.requests.count, count + 1)
        transport.setPaused(id, false)
        XCTAssertEqual(record(of: id).text, "welcome")
        XCTAssertEqual(origin.log.requests.count, count + 2, "once more, on a new connection")
    }

    func testWhatAKeptConnectionDoesNotAnswerIsNotSentAnew() throws {
        try assertIsSentAnewAfterThePause(keptConnections: 1)
    }

    func testNorOnAnotherKeptConnection() throws { try assertIsSentAnewAfterThePause(keptConnections: 2) }

    /// What the server may have done is not asked for again, paused or not.
    func testAPostThatAKeptConnectionDoesNotAnswerEnds() throws {
        let id = try startOnKeptConnection(1, method: "POST")
        XCTAssertEqual(record(of: id).failure?.code, .connectionLost)
        XCTAssertEqual(origin.log.requests.count, 2)
    }

    /// Nor where the network has changed meanwhile.
    func testAPostIsNotSentTwiceForAChangeOfTheNetwork() throws {
        let id = try startOnKeptConnection(1, method: "POST")
        transport.setPaused(id, false)
        transport.leaveConnections()
        XCTAssertEqual(record(of: id).failure?.code, .connectionLost)
        XCTAssertEqual(origin.log.requests.count, 2)
    }

    // MARK: A connection under way

    func testWhatHasBegunIsNotSentWhenItsConnectionStands() throws {
        let tls = try Origin(tls: TLS())
        defer { tls.stop() }
        tls.route("/a") { try $0.respond(text: "hello") }
        origin.route("/a") { try $0.respond(text: "hello") }
        try makeTransport(TransportConfiguration(certificateAuthorities: tls.authority?.file, proxy: ""))
        for server in [origin!, tls] {
            let id = try start(server.url("/a"))
            transport.setPaused(id, true)
            runUntilParked(id)
            XCTAssertTrue(server.wait { $0.connections.count == 1 }, "it was under way")
            XCTAssertEqual(server.log.requests.count, 0)
            transport.setPaused(id, false)
            XCTAssertEqual(record(of: id).text, "hello")
            XCTAssertEqual(server.log.requests.count, 1)
        }
    }

    /// Those that wait for its handshake make no connection of their own.
    func testWhoWaitsForAnothersHandshakeWaitsOn() throws {
        try serve()
        let ids = try (0..<5).map { _ in try start(secure.url("/a")) }
        for id in ids { transport.setPaused(id, true) }
        for id in ids { runUntilParked(id) }
        XCTAssertEqual(secure.log.connections.count, 1)
        XCTAssertEqual(secure.log.requests.count, 0)
        for id in ids { transport.setPaused(id, false) }
        for id in ids { XCTAssertEqual(record(of: id).text, "hello") }
        XCTAssertEqual(secure.log.requests.count, 5)
    }

    /// One of them may go on: it has the handshake to itself.
    func testWhoIsNotPausedGoesOn() throws {
        try serve()
        let ids = try (0..<5).map { _ in try start(secure.url("/a")) }
        for id in ids where id != ids[3] { transport.setPaused(id, true) }
        XCTAssertEqual(record(of: ids[3]).text, "hello")
        XCTAssertEqual(secure.log.requests.count, 1)
        for id in ids where id != ids[3] {
            runUntilParked(id)
            transport.setPaused(id, false)
            XCTAssertEqual(record(of: id).text, "hello")
        }
    }

    func testStreamsOfASharedConnection() throws {
        try serve()
        let held = try start(secure.url("/held"))
        run(until: recorder[held].body.count == 2)
        let id = try start(secure.url("/a"))
        transport.setPaused(id, true)
        runUntilParked(id)
        XCTAssertEqual(secure.log.requests.count, 1)
        secure.gate("held").open()
        XCTAssertEqual(record(of: held).text, "begun", "what runs on it runs on")
        transport.setPaused(id, false)
        XCTAssertEqual(record(of: id).text, "hello")
        XCTAssertEqual(secure.log.connections.count, 1)
    }

    /// However many there are: each of them would have the next one's handshake begin.
    func testManyThatWaitForOneAnother() throws {
        try serve()
        let ids = try (0..<3_000).map { _ in try start(secure.url("/a")) }
        for id in ids.dropFirst() { transport.setPaused(id, true) }
        transport.cancel(ids[0])
        XCTAssertTrue(ids.dropFirst().allSatisfy { isParked($0) })
        for id in ids.dropLast() { transport.cancel(id) }
        transport.setPaused(ids.last!, false)
        XCTAssertEqual(record(of: ids.last!).text, "hello")
        XCTAssertEqual(secure.log.requests.count, 1)
    }

    // MARK: The end of the pause, and of the transfer

    /// A pause that is over before anything was to be sent changes nothing.
    func testAShortPause() throws {
        origin.route("/a") { try $0.respond(text: "hello") }
        let id = try start(origin.url("/a"))
        transport.setPaused(id, true)
        transport.setPaused(id, false)
        XCTAssertEqual(record(of: id).text, "hello")
        XCTAssertEqual(recorder[id].beginnings, 0)
        XCTAssertEqual(origin.log.connections.count, 1)
    }

    func testAgainAndAgain() throws {
        origin.route("/a") { try $0.respond(text: "hello") }
        let id = try start(origin.url("/a"))
        for number in 1...20 {
            transport.setPaused(id, true)
            runUntilParked(id)
            transport.setPaused(id, false)
            XCTAssertEqual(recorder[id].beginnings, number)
        }
        XCTAssertEqual(record(of: id).text, "hello")
        XCTAssertEqual(origin.log.requests.count, 1)
    }

    /// The host has said so, and nobody has been paused for it yet.
    func testAPauseThatIsStillToCome() throws {
        origin.route("/a") { try $0.respond(text: "hello") }
        recorder.unheardPauses = 3
        let id = try start(origin.url("/a"))
        run(until: recorder.unheardPauses == 1)
        XCTAssertEqual(origin.log.requests.count, 0)
        transport.setPaused(id, true)
        runUntilParked(id)
        transport.setPaused(id, false)
        XCTAssertEqual(record(of: id).text, "hello")
        XCTAssertEqual(origin.log.requests.count, 1)
        XCTAssertEqual(recorder.unheardPauses, 0)
    }

    func testTheNetworkMayChangeMeanwhile() throws {
        origin.route("/a") { try $0.respond(text: "hello") }
        let id = try start(origin.url("/a"))
        transport.setPaused(id, true)
        runUntilParked(id)
        transport.leaveConnections()
        transport.setPriority(id, .high)
        transport.setPaused(id, false)
        XCTAssertEqual(record(of: id).text, "hello")
    }

    func testWhatIsCancelledMeanwhileStaysSo() throws {
        origin.route("/a") { try $0.respond(text: "hello") }
        let id = try start(origin.url("/a"))
        transport.setPaused(id, true)
        runUntilParked(id)
        transport.cancel(id)
        transport.setPaused(id, false)
        for _ in 0..<10 { loop.turn(transport) }
        XCTAssertFalse(recorder[id].hasEnded)
        XCTAssertEqual(origin.log.requests.count, 0)
        let left = try start(origin.url("/a"))
        transport.setPaused(left, true)
        runUntilParked(left)
        transport.close()
        XCTAssertTrue(origin.wait { $0.openConnections == 0 })
        XCTAssertFalse(recorder[left].hasEnded)
    }
}
