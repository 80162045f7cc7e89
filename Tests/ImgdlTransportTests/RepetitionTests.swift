import Foundation
import ImgdlCore
import Origin
import OriginHTTP2
import XCTest

@testable import ImgdlTransport

/// What has no answer is sent once more on another connection, by libcurl or after it, but for what the server would do twice.
final class RepetitionTests: FrameTestCase {
    /// The connection on which it was sent first counts: that was HTTP/1.1, though the next one speaks HTTP/2.
    func testWhatAConnectionOfHTTP1HasTakenIsNotSentOverHTTP2() throws {
        let authorities = try [Authority(TLS(), protocols: ["http/1.1"]), Authority(TLS(), protocols: ["h2"])]
        defer { for authority in authorities { authority.removeFiles() } }
        let trust = NSTemporaryDirectory() + "repetition-\(getpid()).pem"
        try authorities.map { try String(contentsOfFile: $0.file, encoding: .utf8) }.joined()
            .write(toFile: trust, atomically: true, encoding: .utf8)
        defer { unlink(trust) }
        try makeTransport(TransportConfiguration(certificateAuthorities: trust, proxy: ""))

        let signals = Signals()
        let listener = try Listener(journal: Journal(), signals: signals)
        defer { listener.stop() }
        let sent = Monitor<[String]>([])
        let answer = frame(1, 5, 1, [0x88])
        let settings = frame(4, 0, 0)
        try listener.start { connection in
            let isFirst = connection.number == 1
            guard (try? connection.secure(by: authorities[isFirst ? 0 : 1])) != nil else { return }
            if isFirst {
                guard Self.receive(connection) != nil else { return }
                Self.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".utf8), connection)
                guard let second = Self.receive(connection) else { return }
                sent.change { $0.append(String(decoding: second.prefix(4), as: UTF8.self)) }
                _ = signals.wait(gate: "close", party: connection.party, until: .never)
                return connection.close()
            }
            Self.send(settings, connection)
            Self.readFrames(connection) { type, stream in
                guard type == 1 else { return }
                sent.change { $0.append("HTTP/2") }
                var answer = answer
                answer[8] = stream
                Self.send(answer, connection)
            }
        }
        let url = "https://127.0.0.1:\(listener.port)/"
        XCTAssertTrue(record(of: try start(url)).isFinished)
        let post = try start(url, method: "POST")
        run(until: recorder[post].connections == 1)
        let end = loop.now.advanced(byMilliseconds: 20_000)
        while sent.read({ $0.isEmpty }), loop.now < end { loop.turn(transport) }
        XCTAssertTrue(record(of: try start(url)).isFinished)
        XCTAssertEqual(sent.read { $0 }, ["POST", "HTTP/2"])
        signals.gate("close").open()
        let failure = record(of: post).failure
        XCTAssertEqual(failure?.code, .connectionLost)
        XCTAssertEqual(failure?.message.contains("is not sent again"), true, failure?.message ?? "")
        XCTAssertEqual(sent.read { $0 }, ["POST", "HTTP/2"], "nothing twice")
    }

    /// Whatever it asks: the server has not looked at it (RFC 9113 section 6.8).
    func testWhatAGoAwayTurnsAwayIsSentAgain() throws {
        for code in [HTTP2Error.noError, .enhanceYourCalm] {
            for method in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "POST", "PATCH", "LOOK"] {
                let secure = try HTTP2Origin(security: .tls)
                defer { secure.stop() }
                try makeTransport(TransportConfiguration(certificateAuthorities: secure.caFile, proxy: ""))
                secure.route("/a") { stream in
                    if secure.log.requests.count == 1 { return try stream.goAway(lastStream: 0, code: code) }
                    try stream.respond(200, body: [])
                }
                let record = record(of: try start(secure.url("/a"), method: method))
                XCTAssertTrue(record.isFinished, "\(method), \(code): \(record.failure?.message ?? "")")
                XCTAssertEqual(secure.log.requests.map(\.method), [method, method])
            }
        }
    }

    /// One that has answered before, and counts no stream but that answer's.
    func testWhatAKeptConnectionTurnsAwayIsSentAgain() throws {
        for method in ["GET", "POST", "PATCH"] {
            let secure = try HTTP2Origin(security: .tls)
            defer { secure.stop() }
            try makeTransport(TransportConfiguration(certificateAuthorities: secure.caFile, proxy: ""))
            secure.route("/first") { try $0.respond(200, body: []) }
            secure.route("/a") { stream in
                if secure.log.requests.count == 2 { return try stream.goAway(lastStream: 1) }
                try stream.respond(200, body: [])
            }
            XCTAssertTrue(record(of: try start(secure.url("/first"))).isFinished)
            let record = record(of: try start(secure.url("/a"), method: method))
            XCTAssertTrue(record.isFinished, "\(method): \(record.failure?.message ?? "")")
            XCTAssertEqual(secure.log.requests.map(\.method), ["GET", method, method])
        }
    }

    /// A GOAWAY that counts the stream says nothing of whether the server has done what it asks.
    func testAPostThatAGoAwayCountsIsNotSentAgain() throws {
        let secure = try HTTP2Origin(security: .tls)
        defer { secure.stop() }
        try makeTransport(TransportConfiguration(certificateAuthorities: secure.caFile, proxy: ""))
        secure.route("/a") { stream in
            try stream.goAway()
            stream.close()
        }
        let record = record(of: try start(secure.url("/a"), method: "POST"))
        XCTAssertEqual(record.failure?.code, .connectionLost, record.failure?.message ?? "")
        XCTAssertEqual(secure.log.requests.count, 1)
    }

    /// Each time, and nothing else is spoken: it has an end, and is no breach of the server's.
    func testWhatIsRefusedAgainAndAgain() throws {
        for isGoAway in [true, false] {
            for method in ["GET", "POST"] {
                let secure = try HTTP2Origin(security: .tls)
                defer { secure.stop() }
                try makeTransport(TransportConfiguration(certificateAuthorities: secure.caFile, proxy: ""))
                secure.route("/a") { stream in
                    if isGoAway { try stream.goAway(lastStream: 0) } else { try stream.reset(.refusedStream) }
                }
                let record = record(of: try start(secure.url("/a"), method: method))
                let words = "\(method), \(isGoAway): \(record.failure?.message ?? "")"
                XCTAssertNotNil(record.failure, words)
                XCTAssertNotEqual(record.failure?.code, .protocolError, words)
                XCTAssertTrue((2...4).contains(secure.log.requests.count), "\(secure.log.requests.count), \(words)")
            }
        }
    }

    /// curl may find out that a server has flooded a connection at rest when it looks for one for another server, in the name of
    /// that request: it is no fact about its own server, however the first answer to it is lost.
    func testAFloodOfAConnectionAtRestIsNoOtherServers() throws {
        let refusal = frame(3, 0, 1, [0, 0, 0, 7])
        let farewell = frame(7, 0, 0, [UInt8](repeating: 0, count: 8))
        for (name, loss) in [("refused", refusal), ("late", refusal), ("turned away", farewell)] {
            let end = try endBesideAFlood(loss, isUnderWay: name == "late", hangsUp: loss != refusal)
            XCTAssertTrue(end.record.isFinished, "\(name): \(end.record.failure?.message ?? "")")
            XCTAssertEqual(end.asked, 2, name)
        }

        // As where nobody floods: a new connection that is closed without an answer is lost. Newer versions of curl ask once more,
        // unless they were just sending (about 1 of 140, with the flood and without).
        let closed = try endBesideAFlood([], hangsUp: true)
        if CurlVersion.tellsGoawayApart, closed.record.isFinished {
            XCTAssertEqual(closed.asked, 2)
        } else {
            XCTAssertEqual(closed.record.failure?.code, .connectionLost, closed.record.failure?.message ?? "")
            XCTAssertEqual(closed.asked, 1)
        }

        let nowhere = try endBesideAFlood([], hangsUp: true, isThere: false)
        XCTAssertEqual(nowhere.record.failure?.code, .connectFailed)
        XCTAssertEqual(nowhere.record.failure?.message.contains("Flood"), false, nowhere.record.failure?.message ?? "")
    }

    /// How a request ends, and how often its server was asked, which first sends `loss`, once another server has flooded a
    /// connection at rest. `isUnderWay`: when the flood comes.
    private func endBesideAFlood(
        _ loss: [UInt8], isUnderWay: Bool = false, hangsUp: Bool, isThere: Bool = true
    ) throws -> (record: TransferRecord, asked: Int) {
        let authority = try Authority(TLS(), protocols: ["h2"])
        defer { authority.removeFiles() }
        try makeTransport(TransportConfiguration(certificateAuthorities: authority.file, proxy: ""))
        let signals = Signals()
        let flooded = Monitor(false)
        let flooding = try serve(authority, signals) { [self] connection, stream in
            Self.send(answer(stream), connection)
            _ = signals.wait(gate: "flood", party: connection.party, until: .never)
            Self.send((0..<1800).flatMap { _ in frame(4, 0, 0) }, connection)
            flooded.change { $0 = true }
        }
        defer { flooding.stop() }
        let asked = Monitor(0)
        let honest = try serve(authority, signals) { [self] connection, stream in
            asked.change { $0 += 1 }
            guard asked.read({ $0 }) == 1 else { return Self.send(answer(stream), connection) }
            _ = signals.wait(gate: "loss", party: connection.party, until: .never)
            Self.send(loss, connection)
            if hangsUp { connection.hangUp() }
        }
        defer { honest.stop() }
        XCTAssertTrue(record(of: try start("https://127.0.0.1:\(flooding.port)/")).isFinished)
        let url = "https://127.0.0.1:\(isThere ? honest.port : 1)/"
        let early = isUnderWay ? try start(url) : nil
        let end = loop.now.advanced(byMilliseconds: 20_000)
        while early != nil, asked.read({ $0 }) == 0, loop.now < end { loop.turn(transport) }
        signals.gate("flood").open()
        XCTAssertNotNil(flooded.wait(until: .patient) { $0 ? true : nil })
        // curl looks once in a second.
        let second = loop.now.advanced(byMilliseconds: 1_100)
        while loop.now < second { loop.turn(transport) }
        signals.gate("loss").open()
        return (record(of: try early ?? start(url)), asked.read { $0 })
    }
}
