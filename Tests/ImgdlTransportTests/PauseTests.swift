import ImgdlCore
import Origin
import OriginHTTP2
import XCTest

@testable import ImgdlTransport

/// Features B20, B12: back-pressure, and what a stream is worth to its siblings.
final class PauseTests: TransportTestCase {
    private static let size = 20_000_000
    private var taken = 0
    private var everything = 0

    private var huge: String { origin.url("/huge?bytes=\(Self.size)&type=x") }

    func testAPausedTransferIsNotRead() throws {
        let transport = transport!
        recorder.onBody = { id, _ in transport.setPaused(id, true) }
        let id = try start(huge)
        run(until: recorder[id].body.count > 0)
        let taken = recorder[id].body.count
        XCTAssertTrue(waitHeldBack())
        origin.route("/a") { try $0.respond(text: "a") }
        XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "a", "siblings go on")
        XCTAssertEqual(recorder[id].body.count, taken)
        XCTAssertFalse(recorder[id].hasEnded)
        recorder.onBody = { _, _ in }
        transport.setPaused(id, false)
        XCTAssertEqual(recorder[id].body.count, taken, "nothing from inside the call")
        XCTAssertEqual(record(of: id).body.count, Self.size)
        XCTAssertEqual(origin.log.connections.filter { $0.closedByClient != nil }.count, 0)
    }

    /// The loop goes round while the kernel fills.
    private func waitHeldBack() -> Bool {
        for _ in 0..<100 { loop.turn(transport) }
        return origin.wait { $0.connections.contains { $0.isHeldBack } }
    }

    func testPausedAgainAndAgain() throws {
        let transport = transport!
        recorder.onBody = { id, _ in
            transport.setPaused(id, true)
            transport.setPaused(id, false)
            transport.setPaused(id, true)
        }
        let id = try start(origin.url("/huge?bytes=2000000&type=x"))
        var rounds = 0
        while !recorder[id].hasEnded, rounds < 1000 {
            let taken = recorder[id].body.count
            run(until: recorder[id].body.count > taken || recorder[id].hasEnded)
            transport.setPaused(id, false)
            rounds += 1
        }
        XCTAssertEqual(recorder[id].body.count, 2_000_000)
        XCTAssertTrue(recorder[id].isFinished)
    }

    func testBeforeTheFirstByte() throws {
        let id = try start(huge)
        pauseWhenSent(id)
        run(until: recorder[id].head != nil)
        XCTAssertTrue(waitHeldBack())
        XCTAssertEqual(recorder[id].body.count, 0)
        transport.setPaused(id, false)
        XCTAssertEqual(record(of: id).body.count, Self.size)
    }

    /// curl, which is asked to go on and hears that what it kept is not taken, does nothing more for it: no byte would come,
    /// and no end. On a connection that is used again no timer of its own helps.
    func testABodyThatIsRefusedAfterThePause() throws {
        origin.route("/a") { try $0.respond(text: "a") }
        origin.route("/not") { try $0.respond(headers: ["Content-Encoding": "gzip"], text: "this is not gzip") }
        XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "a")
        let id = try start(origin.url("/not"))
        pauseWhenSent(id)
        run(until: recorder[id].head != nil)
        for _ in 0..<10 { loop.turn(transport) }
        XCTAssertFalse(recorder[id].hasEnded)
        transport.setPaused(id, false)
        XCTAssertEqual(record(of: id).failure?.code, .contentEncoding)
        XCTAssertEqual(origin.log.requests.map(\.connection), [1, 1])
        XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "a", "others go on")
        XCTAssertTrue(origin.wait { $0.connectionsClosedByClient == 1 })
    }

    func testCancelWhilePaused() throws {
        let id = try start(huge)
        pauseWhenSent(id)
        run(until: recorder[id].head != nil)
        transport.setPaused(id, false)
        transport.cancel(id)
        for _ in 0..<3 { loop.turn(transport) }
        XCTAssertTrue(origin.wait { $0.connectionsClosedByClient == 1 })
        XCTAssertFalse(recorder[id].hasEnded)
        transport.setPaused(id, true)
        transport.setPriority(id, .high)
    }

    func testEncodedBodies() throws {
        origin.content["p"] = Picture(Array(repeating: 7, count: 3_000_000), type: "image/x")
        let transport = transport!
        recorder.onBody = { id, _ in transport.setPaused(id, true) }
        let id = try start(origin.url("/pictures/p?gzip=1"))
        run(until: recorder[id].body.count > 0)
        let taken = recorder[id].body.count
        for _ in 0..<10 { loop.turn(transport) }
        XCTAssertEqual(recorder[id].body.count, taken)
        recorder.onBody = { _, _ in }
        transport.setPaused(id, false)
        XCTAssertEqual(record(of: id).body.count, 3_000_000)
    }

    /// A few bytes that mean a gigabyte: what nobody takes is neither decoded nor kept.
    func testABombIsDecodedAsFarAsItIsTaken() throws {
        let size = 150_000_000
        let id = try startBomb(size)
        XCTAssertTrue(origin.wait { $0.arrivals.first?.finished != nil }, "all of it is on its way")
        for _ in 0..<10 { loop.turn(transport) }
        XCTAssertEqual(taken, 0)
        // Said while it is paused, or paused again at once, it stays so.
        transport.setPriority(id, .high)
        transport.setPaused(id, false)
        transport.setPaused(id, true)
        for _ in 0..<10 { loop.turn(transport) }
        XCTAssertEqual(taken, 0)
        let transport = transport!
        recorder.onBody = { [unowned self] id, count in
            take(id, count)
            transport.setPaused(id, true)
        }
        for piece in 1...20 {
            transport.setPaused(id, false)
            run(until: taken > 0)
            XCTAssertLessThanOrEqual(taken, CodingLayer.outputBytes, "piece \(piece)")
            let arrived = taken
            for _ in 0..<10 { loop.turn(transport) }
            XCTAssertEqual(taken, arrived, "nothing more is decoded")
            taken = 0
        }
        XCTAssertFalse(recorder[id].hasEnded)
        recorder.onBody = { [unowned self] id, count in take(id, count) }
        transport.setPaused(id, false)
        XCTAssertTrue(record(of: id).isFinished)
        XCTAssertEqual(everything, size)
    }

    /// However often it is asked for more meanwhile, a turn has its bound, and others are served between them.
    func testABombIsDecodedInTurns() throws {
        let id = try startBomb(150_000_000)
        recorder.onBody = { [unowned self] one, count in if one == id { take(id, count) } }
        transport.setPaused(id, false)
        origin.route("/a") { try $0.respond(text: "a") }
        let other = try start(origin.url("/a"))
        let most = ContentDecoder.bytesInTurn
        var turns = 0
        var otherEnded: Int?
        let end = loop.now.advanced(byMilliseconds: 20_000)
        while !recorder[id].hasEnded, loop.now < end {
            taken = 0
            for _ in 0..<5 {
                transport.setPaused(id, true)
                transport.setPaused(id, false)
                transport.setPriority(id, turns % 2 == 0 ? .high : .low)
            }
            loop.turn(transport)
            transport.reportEnds()
            if recorder[other].hasEnded { otherEnded = otherEnded ?? turns }
            // One piece from curl, one in line, one because it was asked.
            XCTAssertLessThanOrEqual(taken, 3 * most)
            if taken > 0 { turns += 1 }
        }
        XCTAssertTrue(recorder[id].isFinished)
        XCTAssertGreaterThan(turns, 150_000_000 / (3 * most))
        XCTAssertLessThan(try XCTUnwrap(otherEnded), turns)
        XCTAssertEqual(everything, 150_000_000)
    }

    /// However many there are, they have a turn of the thread together.
    func testManyBombsAreDecodedInLine() throws {
        let bomb = Deflate.gzipOfZeros(20_000_000)
        origin.route("/bomb") { exchange in
            try exchange.respond(headers: ["Content-Encoding": "gzip"], body: bomb)
        }
        recorder.onBody = { [unowned self] id, count in take(id, count) }
        let ids = try (0..<20).map { _ in try start(origin.url("/bomb")) }
        // A turn of the line, and what each callback of curl may decode while nobody is in line.
        let most = (4 + 4) * ContentDecoder.bytesInTurn
        let end = loop.now.advanced(byMilliseconds: 20_000)
        while !ids.allSatisfy({ recorder[$0].hasEnded }), loop.now < end {
            taken = 0
            loop.turn(transport)
            transport.reportEnds()
            XCTAssertLessThanOrEqual(taken, most)
        }
        XCTAssertTrue(ids.allSatisfy { recorder[$0].isFinished })
        XCTAssertEqual(everything, 400_000_000)
    }

    /// Chunks that mean much each and end in themselves, so that nobody has to go in line for the rest of one: what they mean
    /// together is bounded, too.
    func testAReadOfManyChunksIsDecodedInTurns() throws {
        let size = 400_000
        let chunk = Deflate.gzipOfZeros(size)
        origin.route("/chunks") { exchange in
            try exchange.send(
                status: 200, headers: ["Content-Encoding": "gzip", "Transfer-Encoding": "chunked"])
            try exchange.wait("go")
            for _ in 0..<100 { try exchange.sendChunk(chunk) }
            try exchange.end()
        }
        recorder.onBody = { [unowned self] id, count in take(id, count) }
        let id = try start(origin.url("/chunks"))
        run(until: recorder[id].head != nil)
        origin.gate("go").open()
        XCTAssertTrue(origin.wait { $0.arrivals.first?.finished != nil }, "all of it is on its way")
        // What is decoded at once and the last chunk of that, and the same in line.
        let most = 2 * (ContentDecoder.bytesInTurn + size)
        let end = loop.now.advanced(byMilliseconds: 20_000)
        while !recorder[id].hasEnded, loop.now < end {
            taken = 0
            loop.turn(transport)
            transport.reportEnds()
            XCTAssertLessThanOrEqual(taken, most)
        }
        XCTAssertTrue(recorder[id].isFinished)
        XCTAssertEqual(everything, 100 * size)
    }

    /// While its bytes wait for their turn it is not the server that is silent: that they do is told, and that they do no more.
    func testWhoWaitsForATurnIsKnown() throws {
        let bomb = Deflate.gzipOfZeros(20_000_000)
        origin.route("/bomb") { exchange in
            try exchange.send(status: 200, headers: ["Content-Encoding": "gzip"])
            try exchange.send(body: bomb)
            try exchange.wait("go")
            try exchange.end()
        }
        let ids = try (0..<3).map { _ in try start(origin.url("/bomb")) }
        run(until: ids.allSatisfy { recorder[$0].body.count == 20_000_000 && recorder[$0].waits.last == false })
        for id in ids { XCTAssertEqual(recorder[id].waits.first, true) }
        origin.route("/a") { try $0.respond(text: "a") }
        XCTAssertEqual(try fetchSucceeding(origin.url("/a")).waits, [], "who does not wait")
        origin.gate("go").open()
        for id in ids { XCTAssertTrue(record(of: id).isFinished) }
    }

    /// Bytes come, of which nothing can be decoded yet: the server is not idle, unless it goes on like that.
    func testBytesThatMeanNothingYet() throws {
        // Blocks without anything in them, for ever.
        origin.route("/nothing") { exchange in
            try exchange.send(status: 200, headers: ["Content-Encoding": "zstd"])
            try exchange.send(body: [0x28, 0xB5, 0x2F, 0xFD, 0, 0x58])
            for _ in 0..<20 { try exchange.send(body: [UInt8](repeating: 0, count: 30_000)) }
            try exchange.wait("more")
            for _ in 0..<5 { try exchange.send(body: [UInt8](repeating: 0, count: 30_000)) }
            try exchange.wait("never")
        }
        let nothing = try start(origin.url("/nothing"))
        run(until: recorder[nothing].advanced > 0)
        let end = loop.now.advanced(byMilliseconds: 500)
        while loop.now < end { loop.turn(transport) }
        let heard = recorder[nothing].advanced
        origin.gate("more").open()
        let later = loop.now.advanced(byMilliseconds: 500)
        while loop.now < later { loop.turn(transport) }
        XCTAssertEqual(recorder[nothing].advanced, heard, "600,000 bytes of nothing were enough")
        XCTAssertEqual(recorder[nothing].body.count, 0)
        transport.cancel(nothing)
    }

    func testCancelOfAnEncodedBodyWhilePaused() throws {
        let id = try startBomb(150_000_000)
        let transport = transport!
        recorder.onBody = { [unowned self] id, count in
            take(id, count)
            transport.setPaused(id, true)
        }
        transport.setPaused(id, false)
        run(until: taken > 0)
        let arrived = taken
        transport.setPaused(id, false)
        transport.cancel(id)
        for _ in 0..<10 { loop.turn(transport) }
        XCTAssertEqual(taken, arrived)
        XCTAssertFalse(recorder[id].hasEnded)
    }

    /// Its failure is told behind what could be decoded before.
    func testThatBreaksOffWhilePaused() throws {
        let bomb = Deflate.gzipOfZeros(3_000_000)
        origin.route("/cut") { exchange in
            try exchange.send(
                status: 200, headers: ["Content-Encoding": "gzip", "Content-Length": "\(bomb.count + 100)"])
            try exchange.send(body: bomb)
            exchange.close()
        }
        let transport = transport!
        recorder.onBody = { [unowned self] id, count in
            take(id, count)
            transport.setPaused(id, true)
        }
        let id = try start(origin.url("/cut"))
        run(until: taken > 0)
        XCTAssertTrue(origin.wait { $0.openConnections == 0 })
        for _ in 0..<10 {
            loop.turn(transport)
            transport.reportEnds()
        }
        XCTAssertFalse(recorder[id].hasEnded)
        recorder.onBody = { [unowned self] id, count in take(id, count) }
        transport.setPaused(id, false)
        XCTAssertEqual(record(of: id).failure?.code, .truncated)
        XCTAssertEqual(everything, 3_000_000)
    }

    private func take(_ id: TransferID, _ count: Int) {
        taken += count
        everything += count
        recorder.records[id]!.body = []
    }

    /// Paused from the beginning; its head has arrived, and soon as much of its body as is read.
    private func startBomb(_ size: Int) throws -> TransferID {
        let bomb = Deflate.gzipOfZeros(size)
        origin.route("/bomb") { exchange in
            try exchange.send(status: 200, headers: ["Content-Encoding": "gzip", "Content-Length": "\(bomb.count)"])
            try exchange.send(body: bomb)
        }
        recorder.onBody = { [unowned self] id, count in take(id, count) }
        let id = try start(origin.url("/bomb"))
        pauseWhenSent(id)
        run(until: recorder[id].head != nil)
        return id
    }

    func testAnUnwantedBodyIsReadAllTheSame() throws {
        recorder.onHead = { _, _ in .discard }
        origin.route("/a") { try $0.respond(text: "moved") }
        let id = try start(origin.url("/a"))
        pauseWhenSent(id)
        XCTAssertTrue(record(of: id).isFinished)
    }

    func testStreamsOfOneConnection() throws {
        let secure = try HTTP2Origin(security: .tls)
        defer { secure.stop() }
        let body = [UInt8](repeating: 3, count: 5_000_000)
        for path in ["/a", "/b", "/c"] { secure.route(path) { try $0.respond(body: body) } }
        try makeTransport(TransportConfiguration(certificateAuthorities: secure.caFile, proxy: ""))
        let ids = try zip(["/a", "/b", "/c"], [Priority.low, .normal, .high]).map {
            try start(secure.url($0), priority: $1)
        }
        pauseWhenSent(ids[0])
        run(until: ids.allSatisfy { recorder[$0].head != nil })
        for id in ids { transport.setPriority(id, .high) }
        XCTAssertEqual(record(of: ids[1]).body.count, body.count)
        XCTAssertEqual(record(of: ids[2]).body.count, body.count)
        transport.setPriority(ids[0], .low)
        transport.setPaused(ids[0], false)
        XCTAssertEqual(record(of: ids[0]).body.count, body.count)
        XCTAssertEqual(secure.log.connections.count, 1)
    }

    /// Features B12.
    func testPrioritiesReachTheServer() throws {
        let secure = try HTTP2Origin(security: .tls)
        defer { secure.stop() }
        secure.route(prefix: "/") { stream in
            try stream.send(status: 200)
            try stream.wait("all")
            try stream.end()
        }
        try makeTransport(TransportConfiguration(certificateAuthorities: secure.caFile, proxy: ""))
        let low = try start(secure.url("/low"), priority: .low)
        run(until: recorder[low].head != nil)
        let normal = try start(secure.url("/normal"))
        run(until: recorder[normal].head != nil)
        let high = try start(secure.url("/high"), priority: .high)
        run(until: recorder[high].head != nil)
        let isSaid = !VersionDifference.named("http2-priorities").applies
        XCTAssertEqual(secure.log.streams.map { $0.weights.last ?? 16 }, isSaid ? [1, 16, 256] : [16, 16, 16])
        transport.setPriority(low, .high)
        // Said with the next frames of the connection.
        _ = try start(secure.url("/more"))
        if isSaid { run(until: secure.log.streams.first?.weights.last == 256) }
        secure.gate("all").open()
        for id in [low, normal, high] { XCTAssertTrue(record(of: id).isFinished) }
    }
}
