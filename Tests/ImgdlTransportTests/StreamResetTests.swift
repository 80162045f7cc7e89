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

    private func server(of id: TransferID) throws -> ServerConnections {
        try XCTUnwrap(transport.transfers[id]?.server)
    }

    /// Uses so many, and gives where the server's pace stands: each further reset moves that by its interval.
    private func use(_ count: Int, of server: ServerConnections) -> Int64 {
        for _ in 0..<count { XCTAssertTrue(server.resets.take(loop.now)) }
        return place(server)
    }

    private func place(_ server: ServerConnections) -> Int64 { server.resets.next(Instant(nanoseconds: 0)).nanoseconds }

    /// Turns of curl alone: what has ended is not told.
    private func driveWithoutEnds(until isDone: () -> Bool) {
        let end = loop.now.advanced(byMilliseconds: 20_000)
        while !isDone(), loop.now < end {
            var sockets = loop.watched.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            poll(&sockets, nfds_t(sockets.count), 100)
            for socket in sockets where socket.revents != 0 {
                transport.descriptorReady(socket.fd, readable: true, writable: false)
            }
            if let deadline = transport.deadline, deadline <= loop.now { transport.deadlineReached(loop.now) }
        }
        XCTAssertTrue(isDone(), "did not come about")
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
        pauseWhenSent(second)
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
        turn(until: secure, sees: { $0.streamsResetByClient.count == 1 })
        XCTAssertEqual(secure.log.connections.count, 1)
        XCTAssertEqual(secure.log.openConnections, 1)
    }

    // MARK: Resets

    /// A callback has stopped it already, and curl has not told its end yet.
    func testAStreamThatWasStoppedBeforeItsCancelIsResetOnce() throws {
        recorder.onHead = { _, _ in .discard }
        secure.route("/long") { stream in
            try stream.wait("go")
            try stream.send(status: 302, headers: ["Location": "/other", "Content-Length": "1000000"])
            try stream.wait("never")
        }
        let id = try start(secure.url("/long"))
        run(until: recorder[id].connections == 1)
        for _ in 0..<3 { loop.turn(transport) }
        let server = try server(of: id)
        // Two are left.
        let place = use(ResetPace.burst - 2, of: server)
        secure.gate("go").open()
        driveWithoutEnds { recorder[id].head != nil }
        XCTAssertEqual(transport.transfers[id]?.isAbandoned, true)
        transport.cancel(id)
        XCTAssertEqual(self.place(server), place + ResetPace.interval)
        XCTAssertEqual(server.lingering, 0)
    }

    /// Its stream has ended, while the rest of its body is still to be decoded.
    func testAStreamThatHasEndedNeedsNoReset() throws {
        let bomb = Deflate.gzipOfZeros(3_000_000)
        secure.route("/bomb") { stream in
            try stream.send(status: 200, headers: ["Content-Encoding": "gzip"])
            try stream.send(body: bomb)
            try stream.end()
        }
        let transport = transport!
        recorder.onBody = { id, _ in transport.setPaused(id, true) }
        let id = try start(secure.url("/bomb"))
        run(until: transport.transfers[id]?.end != nil)
        let server = try server(of: id)
        let place = use(ResetPace.burst - 1, of: server)
        transport.cancel(id)
        XCTAssertEqual(server.lingering, 0)
        XCTAssertEqual(self.place(server), place)
    }

    /// Bytes that curl had kept may be the ones that are too many: wherever they are given out, that is one reset, and the
    /// stream waits for no other.
    func testAPausedStreamThatIsStoppedByWhatCurlHadKeptIsResetOnce() throws {
        try XCTSkipUnless(CurlVersion.needsRoomInStreams, "this machine cannot: its libcurl holds what comes otherwise")
        route("/page", bytes: 90_000)
        secure.route("/silent") { try $0.wait("never") }
        let page = try start(secure.url("/page"))
        recorder.onHead = { [unowned self] id, _ in
            transport.setPaused(id, true)
            return .receive
        }
        // Curl reads for this one, and keeps what comes for the other.
        _ = try start(secure.url("/silent"))
        run(until: recorder[page].head != nil)
        let transfer = try XCTUnwrap(transport.transfers[page])
        let connection = try XCTUnwrap(transport.lanes.common.multi.secureConnections[transfer.connectionName])
        run(until: connection.readBytes.map { $0 > 90_000 } == true)
        let server = try server(of: page)
        while server.resets.take(loop.now) {}
        let place = place(server)
        transport.cancel(page)
        XCTAssertEqual(server.lingering, 1)
        run(until: server.lingering == 0)
        XCTAssertEqual(self.place(server), place + ResetPace.interval)
    }

    func testAStreamThatIsStoppedByWhatCurlHadKeptIsResetOnce() throws {
        try XCTSkipIf(CurlVersion.needsRoomInStreams, "this machine cannot: its libcurl keeps all that a turn brings")
        let page = [UInt8](repeating: 7, count: 90_000)
        secure.route("/page") { stream in
            try stream.wait("go")
            try stream.send(status: 404)
            try stream.send(body: page)
            try stream.wait("sent")
        }
        var tried = 0
        for pieces in 1...16 {
            secure.gate("go").close()
            try makeTransport(TransportConfiguration(certificateAuthorities: secure.caFile, proxy: ""))
            let transport = transport!
            recorder.onHead = { id, _ in
                // As if other bodies had come in this turn of curl: it keeps what is more than so many pieces.
                if let transfer = transport.transfers[id] {
                    for _ in 0..<BodyLine.piecesInTurnOfCurl - pieces { _ = transport.takesPiece(of: transfer) }
                }
                return .discard
            }
            var server: ServerConnections?
            var place: Int64 = 0
            recorder.onWaits = { [unowned self] id, _ in
                guard let found = transport.transfers[id]?.server else { return }
                while found.resets.take(loop.now) {}
                place = self.place(found)
                server = found
                transport.cancel(id)
            }
            let id = try start(secure.url("/page"))
            let end = loop.now.advanced(byMilliseconds: 20_000)
            while secure.gate("go").waiting == 0, loop.now < end { loop.turn(transport) }
            // All of it comes in one turn of curl, or nearly all.
            secure.gate("go").open()
            XCTAssertTrue(secure.gate("sent").waitUntilReached(pieces))
            run(until: server != nil || recorder[id].hasEnded)
            // Where its bytes come in fewer pieces it is stopped without any that were kept.
            guard let server else { continue }
            run(until: server.lingering == 0)
            XCTAssertEqual(self.place(server), place + ResetPace.interval, "after \(pieces) pieces")
            tried += 1
        }
        XCTAssertGreaterThan(tried, 0)
    }
}
