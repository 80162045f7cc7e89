import ImgdlCore
import Origin
import OriginHTTP2
import XCTest

@testable import ImgdlTransport

/// TLS and HTTP/2.
final class SecureTests: TransportTestCase {
    private var secure: HTTP2Origin!

    private func serve(_ certificate: HTTP2Origin.Security = .tls, trusted: Bool = true) throws {
        secure?.stop()
        secure = try HTTP2Origin(security: certificate)
        secure.route("/a") { stream in
            try stream.respond(200, body: Array("hello".utf8))
        }
        try makeTransport(
            TransportConfiguration(certificateAuthorities: trusted ? secure.caFile : nil, proxy: ""))
    }

    override func tearDown() {
        super.tearDown()
        secure?.stop()
    }

    func testGet() throws {
        try serve()
        let record = try fetchSucceeding(secure.url("/a"))
        XCTAssertEqual(record.text, "hello")
        XCTAssertEqual(record.head?.httpVersion, 20)
    }

    /// Where curl is not safe with them in HTTP/2 they have a connection of their own, and what follows has HTTP/2 again.
    func testBodiesThatAreSent() throws {
        let secure = try HTTP2Origin(security: .tls, alsoHTTP1: true)
        defer { secure.stop() }
        secure.route("/a") { try $0.respond(200, body: Array("hello".utf8)) }
        try makeTransport(TransportConfiguration(certificateAuthorities: secure.caFile, proxy: ""))
        XCTAssertEqual(try fetchSucceeding(secure.url("/a")).head?.httpVersion, 20)
        for _ in 0..<2 {
            let record = record(of: try start(secure.url("/a"), method: "POST", body: [1, 2, 3]))
            XCTAssertEqual(record.text, "hello", record.failure?.message ?? "")
            XCTAssertEqual(record.head?.httpVersion, CurlVersion.canSendBodiesInHTTP2 ? 20 : 11)
            XCTAssertEqual(secure.log.requests.last?.body, [1, 2, 3])
            XCTAssertEqual(try fetchSucceeding(secure.url("/a")).head?.httpVersion, 20)
        }
    }

    func testCertificatesToRefuse() throws {
        let table: [(HTTP2Origin.Security, Bool, String)] = [
            (.tls(.expired), true, "expired"), (.tls(.wrongHost), true, "match"), (.tls, false, "certificate"),
        ]
        for (security, trusted, word) in table {
            try serve(security, trusted: trusted)
            let failure = try failure(of: secure.url("/a"))
            XCTAssertEqual(failure?.code, .tlsCertificate)
            XCTAssertTrue(failure?.message.contains(word) ?? false, failure?.message ?? "")
        }
        XCTAssertThrowsError(try FileCopy("/nonexistent/ca.pem", option: "ca_file")) { error in
            XCTAssertEqual((error as? Failure)?.code, .invalidOperation, "\(error)")
        }
    }

    func testNotTLSAtAll() throws {
        try serve(.cleartext)
        let failure = try failure(of: secure.url("/a").replacing("http:", with: "https:"))
        XCTAssertEqual(failure?.code, .tlsFailed, failure?.message ?? "")
    }

    /// What the server says in place of a handshake, and then closes: refused, or lost on the way.
    func testHandshakesThatEndEarly() throws {
        let serverHello = [UInt8]([0x16, 0x03, 0x03, 0x00, 0x7A, 0x02, 0x00, 0x00, 0x76, 0x03, 0x03, 1, 2, 3])
        let table: [(String, [UInt8], ErrorCode)] = [
            ("nothing", [], .connectionLost),
            ("half a record's header", [0x16, 0x03], .connectionLost),
            ("half a message", serverHello, .connectionLost),
            ("an alert: handshake_failure", [0x15, 0x03, 0x03, 0, 2, 2, 40], .tlsFailed),
            ("an alert: unrecognized_name", [0x15, 0x03, 0x03, 0, 2, 2, 112], .tlsFailed),
            ("no TLS", Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8), .tlsFailed),
        ]
        for (what, answer, code) in table {
            let listener = try Listener(journal: Journal(), signals: Signals())
            defer { listener.stop() }
            try listener.start { connection in
                var hello = [UInt8](repeating: 0, count: 16 << 10)
                _ = try? hello.withUnsafeMutableBytes { try connection.receive(into: $0) }
                try? answer.withUnsafeBytes { try connection.send($0) }
                connection.close()
            }
            // One after the other, and several at once.
            let ids = try (0..<3).map { _ in try start("https://127.0.0.1:\(listener.port)/") }
            for id in ids {
                let failure = record(of: id).failure
                XCTAssertEqual(failure?.code, code, "\(what): \(failure?.message ?? "")")
            }
        }
    }

    /// Without close_notify, as many servers end: the framing says what is missing, whatever the version of curl.
    func testAnswersThatBreakOffWithoutAGoodbye() throws {
        let authority = try Authority(TLS(), protocols: ["http/1.1"])
        try makeTransport(TransportConfiguration(certificateAuthorities: authority.file, proxy: ""))
        let field = "X: " + String(repeating: "y", count: 1000) + "\r\n"
        let table: [(String, String, ErrorCode?)] = [
            ("a length", "Content-Length: 10\r\n\r\n12345", .truncated),
            ("chunks", "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n", .truncated),
            ("within a chunk", "Transfer-Encoding: chunked\r\n\r\n9\r\n12345", .truncated),
            ("garbage in place of a chunk", "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\nno\r\n", .protocolError),
            ("within the header", "Content-Le", .connectionLost),
            ("within a long header", String(repeating: field, count: 205), .connectionLost),
            ("neither length nor chunks", "\r\n12345", nil),
        ]
        for (what, answer, code) in table {
            let listener = try Listener(journal: Journal(), signals: Signals())
            defer { listener.stop() }
            try listener.start { connection in
                guard (try? connection.secure(by: authority)) != nil else { return }
                var request = [UInt8](repeating: 0, count: 16 << 10)
                _ = try? request.withUnsafeMutableBytes { try connection.receive(into: $0) }
                try? Array("HTTP/1.1 200 OK\r\n\(answer)".utf8).withUnsafeBytes { try connection.send($0) }
                connection.hangUp()
            }
            let record = record(of: try start("https://127.0.0.1:\(listener.port)/", maximumHeaderBytes: 300 << 10))
            XCTAssertEqual(record.failure?.code, code, "\(what): \(record.failure?.message ?? "")")
        }
    }

    /// Whoever waits for it goes on by itself before long: only that one connection is bad.
    func testAHandshakeThatStallsHoldsNobodyUp() throws {
        let authority = try Authority(TLS(), protocols: ["http/1.1"])
        try makeTransport(TransportConfiguration(certificateAuthorities: authority.file, proxy: ""))
        let signals = Signals()
        let listener = try Listener(journal: Journal(), signals: signals)
        defer { listener.stop() }
        let accepted = Monitor(0)
        try listener.start { connection in
            let isFirst = accepted.change { count in
                count += 1
                return count == 1
            }
            if isFirst { _ = signals.wait(gate: "never", party: connection.party, until: .never) }
            guard (try? connection.secure(by: authority)) != nil else { return }
            var request = [UInt8](repeating: 0, count: 16 << 10)
            _ = try? request.withUnsafeMutableBytes { try connection.receive(into: $0) }
            try? Array("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na".utf8).withUnsafeBytes { try connection.send($0) }
            connection.close()
        }
        let url = "https://127.0.0.1:\(listener.port)/"
        let first = try start(url)
        let others = try (0..<5).map { _ in try start(url) }
        for id in others { XCTAssertEqual(record(of: id).text, "a") }
        XCTAssertEqual(record(of: try start(url)).text, "a", "whoever comes later does not wait at all")
        XCTAssertFalse(recorder[first].hasEnded)
        transport.cancel(first)
    }

    /// Though nothing has been answered yet: the handshake told that it can be shared.
    func testAConnectionIsSharedBeforeItsFirstAnswer() throws {
        try serve()
        secure.route("/held") { stream in
            try stream.wait("go")
            try stream.respond(200, body: Array("held".utf8))
        }
        let first = try start(secure.url("/held"))
        let waiting = try (0..<3).map { _ in try start(secure.url("/a")) }
        for id in waiting { XCTAssertEqual(record(of: id).text, "hello") }
        let later = try (0..<3).map { _ in try start(secure.url("/a")) }
        for id in later { XCTAssertEqual(record(of: id).text, "hello") }
        XCTAssertFalse(recorder[first].hasEnded)
        secure.gate("go").open()
        XCTAssertEqual(record(of: first).text, "held")
        XCTAssertEqual(secure.log.connections.count, 1)
    }

    /// Over HTTP/1.1 they have connections of their own as soon as that is known, and none waits for another's answer.
    func testTheFirstAnswerOfHTTP11HoldsNobodyUp() throws {
        let old = try Origin(tls: TLS())
        defer { old.stop() }
        old.route("/held") { exchange in
            try exchange.wait("go")
            try exchange.respond(text: "held")
        }
        old.route("/a") { try $0.respond(text: "hello") }
        try makeTransport(TransportConfiguration(certificateAuthorities: old.authority?.file, proxy: ""))
        let first = try start(old.url("/held"))
        let others = try (0..<11).map { _ in try start(old.url("/a")) }
        for id in others { XCTAssertEqual(record(of: id).text, "hello") }
        XCTAssertFalse(recorder[first].hasEnded)
        old.gate("go").open()
        XCTAssertEqual(record(of: first).text, "held")
    }

    /// Whoever cancels the first request leaves the handshake to the next one; nobody waits for what nobody does.
    func testTheFirstOfManyIsCancelled() throws {
        try serve()
        let ids = try (0..<5).map { _ in try start(secure.url("/a")) }
        transport.cancel(ids[0])
        transport.cancel(ids[3])
        for id in [ids[1], ids[2], ids[4]] { XCTAssertEqual(record(of: id).text, "hello") }
        XCTAssertLessThanOrEqual(secure.log.connections.count, 2)
        XCTAssertFalse(recorder[ids[0]].hasEnded)
        XCTAssertFalse(recorder[ids[3]].hasEnded)
    }

    func testManyStreamsOnOneConnection() throws {
        try serve()
        secure.route("/held") { stream in
            try stream.send(status: 200)
            try stream.wait("all")
            try stream.send(body: Array("held".utf8))
            try stream.end()
        }
        let ids = try (0..<20).map { _ in try start(secure.url("/held")) }
        run(until: ids.allSatisfy { recorder[$0].head != nil })
        secure.gate("all").open()
        for id in ids { XCTAssertEqual(record(of: id).text, "held") }
        XCTAssertEqual(secure.log.connections.count, 1)
    }

    func testACancelledStreamHurtsNoSibling() throws {
        try serve()
        secure.route("/held") { stream in
            try stream.send(status: 200)
            try stream.send(body: [1])
            try stream.wait("all")
            try stream.send(body: [2])
            try stream.end()
        }
        let ids = try (0..<6).map { _ in try start(secure.url("/held")) }
        run(until: ids.allSatisfy { recorder[$0].body.count == 1 })
        for id in ids.prefix(3) { transport.cancel(id) }
        loop.turn(transport)
        turn(until: secure, sees: { $0.streamsResetByClient.count == 3 })
        secure.gate("all").open()
        for id in ids.suffix(3) { XCTAssertEqual(record(of: id).body, [1, 2]) }
        for id in ids.prefix(3) { XCTAssertFalse(recorder[id].hasEnded) }
        XCTAssertEqual(try fetchSucceeding(secure.url("/a")).text, "hello")
        XCTAssertEqual(secure.log.connections.count, 1)
    }

    func testTheLastStreamTakesItsConnectionAlong() throws {
        try serve()
        secure.route("/held") { stream in
            try stream.send(status: 200)
            try stream.wait("never")
        }
        let id = try start(secure.url("/held"))
        run(until: recorder[id].head != nil)
        transport.cancel(id)
        XCTAssertTrue(secure.wait { $0.connectionsClosedByClient == 1 })
        XCTAssertEqual(try fetchSucceeding(secure.url("/a")).text, "hello")
    }

    func testALongUnwantedBodyEndsItsStreamOnly() throws {
        try serve()
        secure.route("/long") { stream in
            try stream.send(status: 302)
            try stream.send(body: [UInt8](repeating: 0, count: 200_000))
            try stream.wait("never")
        }
        recorder.onHead = { _, head in head.status == 302 ? .discard : .receive }
        secure.route("/held") { stream in
            try stream.send(status: 200)
            try stream.wait("held")
            try stream.end()
        }
        let sibling = try start(secure.url("/held"))
        run(until: recorder[sibling].head != nil)
        XCTAssertLessThanOrEqual(try fetchSucceeding(secure.url("/long")).body.count, BodyDisposition.previewBytes)
        turn(until: secure, sees: { $0.streamsResetByClient.count == 1 })
        secure.gate("held").open()
        XCTAssertTrue(record(of: sibling).isFinished)
        XCTAssertEqual(secure.log.connections.count, 1)
    }

    func testAStreamTheServerResets() throws {
        try serve()
        secure.route("/reset") { stream in
            try stream.send(status: 200)
            try stream.send(body: [1])
            try stream.reset(.internalError)
        }
        XCTAssertEqual(try failure(of: secure.url("/reset"))?.code, .connectionLost)
        XCTAssertEqual(try fetchSucceeding(secure.url("/a")).text, "hello")
    }

    func testAConnectionTheServerCloses() throws {
        try serve()
        secure.route("/close") { stream in
            try stream.send(status: 200)
            try stream.send(body: [1])
            stream.close()
        }
        let failure = try failure(of: secure.url("/close"))
        XCTAssertTrue([.connectionLost, .truncated].contains(failure?.code), "\(String(describing: failure))")
        XCTAssertEqual(try fetchSucceeding(secure.url("/a")).text, "hello")
    }
}
