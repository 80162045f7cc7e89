import ImgdlCore
import Origin
import XCTest

@testable import ImgdlTransport

/// Bytes that come on a connection while nothing comes of an answer are a flood's, unless they belong to somebody.
final class SilenceTests: FrameTestCase {
    private let signals = Signals()
    private let sent = Monitor(0)
    private var listener: Listener!

    override func tearDown() {
        super.tearDown()
        listener?.stop()
    }

    /// `answers`: how each request is answered, in the order in which they come, on whatever connection; the last one for
    /// all that follow.
    private func serve(_ answers: [@Sendable (Connection, UInt8) -> Void]) throws {
        let authority = try Authority(TLS(), protocols: ["h2"])
        addTeardownBlock { authority.removeFiles() }
        try makeTransport(TransportConfiguration(certificateAuthorities: authority.file, proxy: ""))
        let asked = Monitor(0)
        listener = try serve(authority, signals) { connection, stream in
            let number = asked.read { $0 }
            asked.change { $0 += 1 }
            answers[min(number, answers.count - 1)](connection, stream)
        }
    }

    private var url: String { "https://127.0.0.1:\(listener.port)/" }

    /// Libcurl's windows hold once its settings are acknowledged.
    private var acknowledgement: [UInt8] { frame(4, 1, 0) }

    private func stray(_ id: TransferID) -> UInt64 { transport.silence(id).strayBytes }

    /// Turns for longer than curl may keep something of an answer.
    private func turnBeyondAnswers() {
        let end = loop.now.advanced(byMilliseconds: SecureConnections.Connection.keptTime + 50)
        while loop.now < end { loop.turn(transport) }
    }

    /// Acknowledgements of pings that nobody sent want no answer, and nghttp2 takes any number of them.
    private func flood(_ count: Int) -> [UInt8] { repeated(frame(6, 1, 0, [UInt8](repeating: 0, count: 8)), count) }

    func testAFloodIsOfNoRequest() throws {
        let bytes = flood(30_000)
        try serve([{ connection, _ in Self.send(bytes, connection) }, { _, _ in }])
        let ids = try (1...2).map { _ in try start(url) }
        run(until: stray(ids[0]) >= bytes.count)
        XCTAssertLessThan(stray(ids[0]), UInt64(bytes.count) * 11 / 10, "with what TLS adds")
    }

    /// A request that a flood has ended takes the others of its connection along, and nobody else gets that.
    func testAFloodEndsWithItsConnection() throws {
        let bytes = flood(30_000)
        let waits: @Sendable (Connection, UInt8) -> Void = { _, _ in }
        try serve([
            waits, waits, { connection, _ in Self.send(bytes, connection) }, { [self] in Self.send(answer($1), $0) },
        ])
        let ids = try (1...3).map { _ in try start(url) }
        run(until: stray(ids[0]) >= bytes.count)
        transport.cancelFlooded(ids[0])
        for id in ids.dropFirst() { XCTAssertEqual(record(of: id).failure?.code, .flood) }
        XCTAssertTrue(record(of: try start(url)).isFinished, "on another connection")
        XCTAssertEqual(listener.journal.log.connections.count, 2)
    }

    /// A server that has answered others meanwhile is no better.
    func testAFloodBehindAnAnswerIsOfNoRequest() throws {
        let bytes = flood(30_000)
        try serve([
            { _, _ in },
            { [self] connection, stream in
                Self.send(answer(stream), connection)
                _ = signals.wait(gate: "answered", party: connection.party, until: .patient)
                Self.send(bytes, connection)
                sent.change { $0 += 1 }
            },
        ])
        let waiting = try start(url)
        XCTAssertTrue(record(of: try start(url)).isFinished)
        signals.gate("answered").open()
        XCTAssertNotNil(sent.wait(until: .patient) { $0 > 0 ? true : nil })
        turnBeyondAnswers()
        XCTAssertGreaterThanOrEqual(stray(waiting), UInt64(bytes.count))
    }

    /// Cancelling a request is no verdict on its connection.
    func testACancelledRequestLeavesTheOthersAlone() throws {
        let bytes = flood(30_000)
        try serve([
            { _, _ in }, { connection, _ in Self.send(bytes, connection) }, { [self] in Self.send(answer($1), $0) },
        ])
        let ids = try (1...2).map { _ in try start(url) }
        run(until: stray(ids[0]) >= bytes.count)
        transport.cancel(ids[1])
        XCTAssertTrue(record(of: try start(url)).isFinished)
        XCTAssertFalse(recorder[ids[0]].hasEnded)
    }

    /// A header that is nearly as large as it may be, and has not come to its end.
    func testAHeaderIsNoFlood() throws {
        // In HPACK, with a name of one letter and a value of 4,000.
        let field = [0, 1, 0x78, 0x7F, 0xA1, 0x1E] + [UInt8](repeating: 0x79, count: 4_000)
        let fields = repeated(field, 4)
        try serve([
            { [self] connection, stream in
                Self.send(acknowledgement + frame(1, 0, stream, [0x88] + fields), connection)
                for _ in 1..<7 { Self.send(frame(9, 0, stream, fields), connection) }
            }
        ])
        let waiting = try start(url)
        run(until: stray(waiting) > 100_000 || recorder[waiting].hasEnded)
        // Newer versions take less of a header.
        if VersionDifference.named("broken-frames").applies, let failure = recorder[waiting].failure {
            return XCTAssertTrue([.headerLimit, .protocolError].contains(failure.code), failure.message)
        }
        XCTAssertFalse(transport.silence(waiting).isFlood)
        turnBeyondAnswers()
        XCTAssertFalse(transport.silence(waiting).isFlood)
        XCTAssertFalse(recorder[waiting].hasEnded)
    }

    /// A few frames are what connections have.
    func testAPingIsNoFlood() throws {
        let bytes = flood(20)
        try serve([
            { _, _ in }, { connection, _ in Self.send(bytes, connection) }, { [self] in Self.send(answer($1), $0) },
        ])
        let ids = try (1...2).map { _ in try start(url) }
        run(until: stray(ids[1]) >= bytes.count)
        transport.cancel(ids[1])
        XCTAssertTrue(record(of: try start(url)).isFinished)
        XCTAssertFalse(recorder[ids[0]].hasEnded)
        XCTAssertEqual(listener.journal.log.connections.count, 1, "on the same connection")
    }

    /// The body of another request belongs to that one, also where its pieces are small.
    func testABodyOfAnotherIsNoFlood() throws {
        let piece = Array("some".utf8)
        try serve([
            { _, _ in },
            { [self] connection, stream in
                Self.send(frame(1, 4, stream, [0x88]), connection)
                for _ in 0..<50 { Self.send(repeated(frame(0, 0, stream, piece), 1_000), connection) }
                Self.send(frame(0, 1, stream), connection)
            },
        ])
        let waiting = try start(url)
        let other = record(of: try start(url))
        XCTAssertEqual(other.body.count, 200_000)
        turnBeyondAnswers()
        XCTAssertLessThan(stray(waiting), Silence.floodBytes)
    }

    /// Bodies that nobody wants any more go on until their server hears of that, and are no flood.
    func testABodyThatWasCancelledIsNoFlood() throws {
        let part = [UInt8](repeating: 7, count: 16_384)
        try serve([
            { _, _ in }, { _, _ in },
            { [self] connection, stream in
                Self.send(acknowledgement + frame(1, 4, stream, [0x88]), connection)
                Self.send(frame(0, 0, stream, part), connection)
                _ = signals.wait(gate: "cancelled", party: connection.party, until: .patient)
                // The window has room for these.
                for _ in 0..<6 { Self.send(frame(0, 0, stream, part), connection) }
                sent.change { $0 += 1 }
            },
            { [self] in Self.send(answer($1), $0) },
        ])
        let waiting = try start(url)
        let beside = try start(url)
        let cancelled = try start(url)
        run(until: recorder[cancelled].body.count >= part.count)
        transport.cancel(cancelled)
        signals.gate("cancelled").open()
        XCTAssertNotNil(sent.wait(until: .patient) { $0 > 0 ? true : nil })
        turnBeyondAnswers()
        XCTAssertEqual(stray(waiting), 0)
        transport.cancel(beside)
        XCTAssertTrue(record(of: try start(url)).isFinished)
        XCTAssertFalse(recorder[waiting].hasEnded)
        XCTAssertEqual(listener.journal.log.connections.count, 1, "on the same connection")
    }

    /// A stream that nghttp2 resets by itself has a server that has not heard of it, too; also where it is asked for once more.
    func testABodyThatIsBrokenIsNoFlood() throws {
        let part = [UInt8](repeating: 7, count: 16_384)
        try serve([
            { _, _ in },
            { [self] connection, stream in
                Self.send(acknowledgement + frame(1, 4, stream, [0x88, 0x0F, 0x0D, 1, 0x39]), connection)
                Self.send(frame(0, 0, stream, part), connection)
                _ = signals.wait(gate: "broken", party: connection.party, until: .patient)
                for _ in 0..<14 { Self.send(frame(0, 0, stream, part), connection) }
                sent.change { $0 += 1 }
            },
        ])
        let waiting = try start(url)
        let broken = record(of: try start(url))
        XCTAssertNotNil(broken.failure, "of nine bytes as announced")
        signals.gate("broken").open()
        XCTAssertNotNil(sent.wait(until: .patient) { $0 > 0 ? true : nil })
        turnBeyondAnswers()
        XCTAssertEqual(stray(waiting), 0)
        XCTAssertFalse(recorder[waiting].hasEnded)
    }

    /// A body that is held back belongs to whoever is paused.
    func testABodyThatIsHeldBackIsNoFlood() throws {
        let part = [UInt8](repeating: 7, count: 16_384)
        try serve([
            { _, _ in },
            { [self] connection, stream in
                Self.send(acknowledgement + frame(1, 4, stream, [0x88]), connection)
                _ = signals.wait(gate: "paused", party: connection.party, until: .patient)
                for _ in 0..<7 { Self.send(frame(0, 0, stream, part), connection) }
                Self.send(frame(0, 1, stream), connection)
                sent.change { $0 += 1 }
            },
        ])
        let waiting = try start(url)
        let paused = try start(url)
        run(until: recorder[paused].head != nil)
        transport.setPaused(paused, true)
        signals.gate("paused").open()
        XCTAssertNotNil(sent.wait(until: .patient) { $0 > 0 ? true : nil })
        turnBeyondAnswers()
        XCTAssertLessThan(stray(waiting), Silence.floodBytes)
        transport.setPaused(paused, false)
        let end = record(of: paused)
        XCTAssertEqual(end.body.count, 7 * part.count, end.failure?.message ?? "")
        XCTAssertLessThan(stray(waiting), Silence.floodBytes)
    }
}
