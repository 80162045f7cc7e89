import ImgdlCore
import Origin
import Synchronization
import XCTest

@testable import ImgdlTransport

/// Servers that speak HTTP/2 in raw frames. Whoever ends the connection says what it was: who breaks the rules has it ended by
/// this side, and is not asked again.
final class FrameTests: FrameTestCase {
    private enum End { case silence, goodbye, hangUp, goodbyeAndSilence }

    private static let rules = "the server broke the rules of HTTP/2"
    /// What a server comes to that breaks the rules and leaves, where the frames are not judged first.
    private static let codesOfLeaving: [ErrorCode?] = [.protocolError, .connectionLost, .truncated, .tlsFailed]

    /// With a Content-Length of 55, of which four bytes come.
    private var half: [UInt8] {
        frame(1, 4, 1, [0x88, 0x0F, 0x0D, 2] + Array("55".utf8)) + frame(0, 0, 1, Array("half".utf8))
    }

    /// What becomes of a request to a server that answers it so, and how often it was asked.
    private func ask(
        _ answer: [UInt8], _ end: End, protocols: [String] = ["h2"]
    ) throws -> (failure: Failure?, connections: Int) {
        let authority = try Authority(TLS(), protocols: protocols)
        try makeTransport(TransportConfiguration(certificateAuthorities: authority.file, proxy: ""))
        let journal = Journal()
        let listener = try Listener(journal: journal, signals: Signals())
        defer { listener.stop() }
        let settings = frame(4, 0, 0)
        try listener.start { connection in
            guard (try? connection.secure(by: authority)) != nil else { return }
            try? settings.withUnsafeBytes { try connection.send($0) }
            guard Self.readsRequest(connection) else { return }
            try? answer.withUnsafeBytes { try connection.send($0) }
            switch end {
            case .silence: Self.drain(connection)
            case .goodbye: connection.closeAfterReading()
            case .hangUp: connection.hangUp()
            case .goodbyeAndSilence:
                connection.sayGoodbye()
                Self.drain(connection)
            }
        }
        let failure = record(of: try start("https://127.0.0.1:\(listener.port)/")).failure
        return (failure, journal.log.connections.count)
    }

    /// Reads until HEADERS of so many requests have come.
    private static func readsRequest(_ connection: Connection, _ count: Int = 1) -> Bool {
        var bytes: [UInt8] = []
        var left = count
        var at = 24  // behind the preface
        while true {
            while at + 9 <= bytes.count {
                if bytes[at + 3] == 1 { left -= 1 }
                if left == 0 { return true }
                at += 9 + Int(bytes[at]) << 16 + Int(bytes[at + 1]) << 8 + Int(bytes[at + 2])
            }
            guard let more = receive(connection) else { return false }
            bytes += more
        }
    }

    private static func drain(_ connection: Connection) { while receive(connection) != nil {} }

    /// The server says no more, and does not close.
    func testServersThatBreakTheRules() throws {
        let (rules, flood) = (ErrorCode.protocolError, ErrorCode.flood)
        let table: [(String, [UInt8], ErrorCode)] = [
            ("an ACK that nobody asked for", repeated(frame(4, 1, 0), 2), rules),
            ("DATA on stream 0", frame(0, 0, 0, [1]), rules),
            ("a flood of SETTINGS", repeated(frame(4, 0, 0), 3000), flood),
            ("3,000 ACKs that nobody asked for", repeated(frame(4, 1, 0), 3000), rules),
            ("an oversized frame", frame(0, 0, 1, [UInt8](repeating: 1, count: 40_000)), rules),
            ("text", Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8), rules),
            ("WINDOW_UPDATE of 0", frame(8, 0, 0, [0, 0, 0, 0]), rules),
            ("RST_STREAM on stream 0", frame(3, 0, 0, [0, 0, 0, 1]), rules),
            ("a block of HPACK that is none", frame(1, 4, 1, [0x80]), rules),
        ]
        // Newer versions wait for what follows, now behind one of these and now behind another, until the idle timeout, which
        // Tests/Hostile has: here their servers leave.
        let areWaitedFor = VersionDifference.named("broken-frames").applies
        for (what, answer, code) in table {
            let (failure, connections) = try ask(answer, areWaitedFor ? .goodbye : .silence)
            if areWaitedFor {
                let codes = Self.codesOfLeaving + [code]
                XCTAssertTrue(codes.contains(failure?.code), "\(what): \(failure?.message ?? "")")
                continue
            }
            XCTAssertEqual(failure?.code, code, "\(what): \(failure?.message ?? "")")
            let beginning = code == flood ? "the server sent a flood on this connection" : Self.rules
            XCTAssertEqual(failure?.message.hasPrefix(beginning), true, "\(what): \(failure?.message ?? "")")
            XCTAssertEqual(connections, 1, what)
        }
    }

    /// The goodbye comes with the frames, and versions of libcurl that read it before they judge say that the server has left.
    func testServersThatBreakTheRulesAndLeave() throws {
        // Before the head it may have been a field that is too long, too.
        for (answer, besides) in [
            (frame(0, 0, 0, [1]), ", or sent a field of more than 64 KiB"), (half + frame(0, 0, 0, [1]), ""),
        ] {
            let (failure, _) = try ask(answer, .goodbye)
            if VersionDifference.named("broken-frames").applies {
                XCTAssertTrue(Self.codesOfLeaving.contains(failure?.code), failure?.message ?? "")
            } else {
                XCTAssertEqual(failure?.code, .protocolError)
                XCTAssertEqual(failure?.message, "\(Self.rules)\(besides), and its connection was closed")
            }
        }
    }

    /// With close_notify, without, and where TCP goes on behind it.
    func testConnectionsThatTheServerEnds() throws {
        for end in [End.goodbye, .hangUp, .goodbyeAndSilence] {
            let code = try ask([], end).failure?.code
            // Asked again over HTTP/1.1, a server that has HTTP/2 alone refuses the handshake.
            if code != .tlsFailed || !VersionDifference.named("broken-frames").applies {
                XCTAssertEqual(code, .connectionLost, "\(end)")
            }
            // Who hangs up while this side still writes may reset the connection.
            guard end != .hangUp else { continue }
            XCTAssertEqual(try ask(half, end).failure?.code, .truncated, "\(end)")
        }
    }

    /// What is no answer in all that came before the connection ended is a flood, and is not asked for again. Where an answer has
    /// begun, some of it may be a body.
    func testServersThatFloodAndLeave() throws {
        let flood = repeated(frame(8, 0, 0, [0, 0, 0, 1]), 24_000)
        // Newer versions of nghttp2 end it before.
        let codes: [ErrorCode?] =
            VersionDifference.named("broken-frames").applies ? [.flood, .protocolError] : [.flood]
        for end in [End.goodbye, .goodbyeAndSilence] {
            let (failure, connections) = try ask(flood, end)
            XCTAssertTrue(codes.contains(failure?.code), "\(end): \(failure?.message ?? "")")
            XCTAssertEqual(connections, 1, "\(end)")
        }
        // The half of a header, and interim responses, are none.
        let interim = repeated(frame(1, 4, 1, [0x08, 0x03] + Array("103".utf8)), 2)
        let (failure, connections) = try ask(interim + flood, .goodbye)
        XCTAssertTrue(codes.contains(failure?.code), failure?.message ?? "")
        XCTAssertEqual(connections, 1)
        let few = repeated(frame(8, 0, 0, [0, 0, 0, 1]), 2_400)
        XCTAssertEqual(try ask(few, .goodbye).failure?.code, .connectionLost)
        XCTAssertEqual(try ask(half + flood, .goodbye).failure?.code, .truncated)
    }

    /// One that does not leave: the time of the turn in which all that is read tells. Where curl is made to read a little in
    /// each turn, it reads more again once that cannot be bodies. Newer versions read a little by themselves, and such a flood
    /// lasts until an idle timeout ("floods" in docs/versions.md).
    func testServersThatFloodOnAndOn() throws {
        try XCTSkipUnless(CurlVersion.needsRoomInStreams, "this machine cannot: its libcurl reads a little at a time")
        for (name, begun, flood) in [
            ("WINDOW_UPDATE", [], frame(8, 0, 0, [0, 0, 0, 1])), ("PRIORITY", [], frame(2, 0, 1, [0, 0, 0, 0, 1])),
            ("an unknown frame", half, frame(0xBE, 0, 1)), ("an empty body's", half, frame(0, 0, 1)),
        ] as [(String, [UInt8], [UInt8])] {
            let authority = try Authority(TLS(), protocols: ["h2"])
            try makeTransport(TransportConfiguration(certificateAuthorities: authority.file, proxy: ""))
            let all = repeated(flood, 10_000)
            let listener = try serve(authority, Signals()) { connection, _ in
                Self.send(begun, connection)
                while (try? all.withUnsafeBytes { try connection.send($0) }) != nil {}
            }
            defer { listener.stop() }
            let begin = loop.now
            let failure = record(of: try start("https://127.0.0.1:\(listener.port)/")).failure
            XCTAssertEqual(failure?.code, .flood, "\(name): \(failure?.message ?? "")")
            XCTAssertLessThan(loop.now, begin.advanced(byMilliseconds: 5_000), name)
        }
    }

    /// One that sends a little of an answer between its frames, which keeps each turn short.
    func testServersThatFloodBetweenPiecesOfAnAnswer() throws {
        for flood in [frame(8, 0, 0, [0, 0, 0, 1]), frame(0xBE, 0, 1)] {
            let authority = try Authority(TLS(), protocols: ["h2"])
            try makeTransport(TransportConfiguration(certificateAuthorities: authority.file, proxy: ""))
            let head = frame(1, 4, 1, [0x88])
            let all = repeated(repeated(flood, 2_400) + frame(0, 0, 1, [7]), 10)
            let listener = try serve(authority, Signals()) { connection, _ in
                Self.send(head, connection)
                while (try? all.withUnsafeBytes { try connection.send($0) }) != nil {}
            }
            defer { listener.stop() }
            let failure = record(of: try start("https://127.0.0.1:\(listener.port)/")).failure
            XCTAssertTrue([.flood, .protocolError].contains(failure?.code), failure?.message ?? "")
        }
    }

    /// What may come for a body that curl keeps is a window, and no more than that.
    func testServersThatFloodWhileABodyIsPaused() throws {
        let authority = try Authority(TLS(), protocols: ["h2"])
        try makeTransport(TransportConfiguration(certificateAuthorities: authority.file, proxy: ""))
        let paused = DispatchSemaphore(value: 0)
        // Windows are what libcurl has said once that is acknowledged.
        let heads = frame(4, 1, 0) + frame(1, 4, 1, [0x88]) + frame(1, 4, 3, [0x88])
        let body = repeated(frame(0, 0, 1, [UInt8](repeating: 7, count: 16_384)), 128)
        let flood = repeated(frame(0xBE, 0, 1), 2_400) + frame(0, 0, 3, [7])
        let listener = try serve(authority, Signals()) { connection, stream in
            guard stream == 3 else { return }
            Self.send(heads, connection)
            paused.wait()
            Self.send(body, connection)
            while (try? flood.withUnsafeBytes { try connection.send($0) }) != nil {}
        }
        defer { listener.stop() }
        let ids = try (0..<2).map { _ in try start("https://127.0.0.1:\(listener.port)/") }
        run(until: ids.allSatisfy { recorder[$0].head != nil })
        transport.setPaused(ids[0], true)
        paused.signal()
        run(until: recorder[ids[1]].hasEnded)
        let failure = recorder[ids[1]].failure
        XCTAssertTrue([.flood, .protocolError].contains(failure?.code), failure?.message ?? "")
    }

    /// One that refuses all streams, and frames are what it says over HTTP/1.1, too.
    func testAServerThatSpeaksNothingElse() throws {
        let (failure, connections) = try ask(frame(3, 0, 1, [0, 0, 0, 7]), .silence, protocols: ["h2", "http/1.1"])
        XCTAssertEqual(failure?.code, .connectionLost)
        XCTAssertEqual(failure?.message.contains("does not speak HTTP/1.1"), true, failure?.message ?? "")
        // Four are used at most. Where curl repeats a request by itself, what it has connected meanwhile is left.
        XCTAssertTrue((2...6).contains(connections), "\(connections)")
    }

    /// A server that floods a connection of several streams with what must be answered, and reads nothing: none of them is sent
    /// again.
    func testAFloodEndsAllStreams() throws {
        let authority = try Authority(TLS(), protocols: ["h2"])
        try makeTransport(TransportConfiguration(certificateAuthorities: authority.file, proxy: ""))
        let journal = Journal()
        let listener = try Listener(journal: journal, signals: Signals())
        defer { listener.stop() }
        let flood = repeated(frame(6, 0, 0, [UInt8](repeating: 0, count: 8)), 1000)
        let settings = frame(4, 0, 0)
        let connections = Mutex(0)
        let requests = Mutex(0)
        try listener.start { connection in
            guard (try? connection.secure(by: authority)) != nil else { return }
            try? settings.withUnsafeBytes { try connection.send($0) }
            let isFirst = connections.withLock { count in
                count += 1
                return count == 1
            }
            guard Self.readsRequest(connection, isFirst ? 3 : 1) else { return }
            requests.withLock { $0 += isFirst ? 3 : 1 }
            while (try? flood.withUnsafeBytes { try connection.send($0) }) != nil {}
        }
        let ids = try (1...3).map { try start("https://127.0.0.1:\(listener.port)/\($0)") }
        for id in ids {
            let failure = record(of: id).failure
            XCTAssertEqual(failure?.code, .flood, "\(String(describing: failure))")
        }
        // Some versions say of the others no more than of streams that a broken frame ends, which may have been another's.
        let areSentOnce = !VersionDifference.named("broken-frames").applies
        XCTAssertTrue((3...(areSentOnce ? 3 : 6)).contains(requests.withLock { $0 }))
    }

    /// It may be asked again: nobody has broken a rule.
    func testStreamsThatTheServerEnds() throws {
        for reason: UInt8 in [2, 8, 11] {
            XCTAssertEqual(
                try ask(frame(3, 0, 1, [0, 0, 0, reason]), .silence).failure?.code, .connectionLost, "\(reason)")
        }
    }
}
