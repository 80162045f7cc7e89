import ImgdlCore
import Origin
import XCTest

@testable import ImgdlTransport

/// No request takes what a server has sent while nobody asked: it is not its answer, and may be another's.
final class UnaskedAnswerTests: TransportTestCase {
    private var listener: Listener!
    private var signals: Signals!
    /// How many unasked answers have been sent.
    private let unasked = Monitor(0)

    override func tearDown() {
        super.tearDown()
        listener?.stop()
    }

    private static func answer(_ path: String, padding: Int) -> [UInt8] {
        let body = path + String(repeating: ".", count: padding)
        return Array("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8)
    }

    /// Each answer is its request's path, and behind that of “/first” comes one more: in the same write, in a TLS record of its own,
    /// or when the gate opens.
    private func serve(
        _ authority: Authority? = nil, padding: Int = 0, isLater: Bool, isApart: Bool = false
    ) throws {
        let signals = Signals()
        self.signals = signals
        let unasked = unasked
        unasked.change { $0 = 0 }
        listener = try Listener(journal: Journal(), signals: signals)
        try listener.start { connection in
            if let authority { guard (try? connection.secure(by: authority)) != nil else { return } }
            while let path = Self.receivePath(connection) {
                var bytes = Self.answer(path, padding: padding)
                let extra = Self.answer("/stolen", padding: 0)
                let hasMore = path == "/first"
                if hasMore, !isLater, !isApart { bytes += extra }
                guard Self.send(bytes, connection) else { break }
                guard hasMore else { continue }
                if isLater, signals.wait(gate: "unasked", party: connection.party, until: .never) != .opened { break }
                if isLater || isApart, !Self.send(extra, connection) { break }
                unasked.change { $0 += 1 }
            }
            connection.close()
        }
    }

    private static func send(_ bytes: [UInt8], _ connection: Connection) -> Bool {
        (try? bytes.withUnsafeBytes { try connection.send($0) }) != nil
    }

    private static func receivePath(_ connection: Connection) -> String? {
        var part = [UInt8](repeating: 0, count: 4096)
        guard let count = try? part.withUnsafeMutableBytes({ try connection.receive(into: $0) }), count > 0 else {
            return nil
        }
        let target = String(decoding: part[..<count], as: UTF8.self).split(separator: " ").dropFirst().first
        // A proxy is asked for the whole URL.
        return target.map { "/" + ($0.split(separator: "/").last ?? "") }
    }

    private func assertEachGetsItsOwn(
        scheme: String, host: String? = nil, padding: Int = 0, isLater: Bool, line: UInt = #line
    ) throws {
        let url = "\(scheme)://\(host ?? "127.0.0.1:\(listener.port)")"
        let end = String(repeating: ".", count: padding)
        XCTAssertEqual(record(of: try start(url + "/first")).text, "/first" + end, line: line)
        if isLater { signals.gate("unasked").open() }
        XCTAssertNotNil(unasked.wait(until: .patient) { $0 > 0 ? true : nil }, line: line)
        for path in ["/second", "/third", "/fourth"] {
            XCTAssertEqual(record(of: try start(url + path)).text, path + end, line: line)
        }
    }

    func testOneThatComesLater() throws {
        try serve(isLater: true)
        try assertEachGetsItsOwn(scheme: "http", isLater: true)
    }

    func testOneThatComesLaterOverTLS() throws {
        for isAtMost12 in [false, true] {
            let authority = try Authority(TLS(isAtMost12: isAtMost12), protocols: ["http/1.1"])
            try makeTransport(TransportConfiguration(certificateAuthorities: authority.file, proxy: ""))
            try serve(authority, isLater: true)
            try assertEachGetsItsOwn(scheme: "https", isLater: true)
            listener.stop()
        }
    }

    /// Where curl has stopped reading before it: in the socket.
    func testOneBehindALargeAnswer() throws {
        try serve(padding: 200_000, isLater: false)
        try assertEachGetsItsOwn(scheme: "http", padding: 200_000, isLater: false)
    }

    /// In the middle of a TLS record: in OpenSSL.
    func testOneBehindALargeAnswerOverTLS() throws {
        let authority = try Authority(TLS(), protocols: ["http/1.1"])
        try makeTransport(TransportConfiguration(certificateAuthorities: authority.file, proxy: ""))
        for padding in [16_300, 16_384, 20_000, 70_000] {
            try serve(authority, padding: padding, isLater: false)
            try assertEachGetsItsOwn(scheme: "https", padding: padding, isLater: false)
            listener.stop()
        }
    }

    /// In the TLS of the proxy that is asked.
    func testOneThatAProxySends() throws {
        let authority = try Authority(TLS(), protocols: ["http/1.1"])
        for (padding, isLater) in [(0, true), (16_376, false), (16_384, false), (20_000, false), (200_000, false)] {
            try serve(authority, padding: padding, isLater: isLater)
            let proxy = "https://127.0.0.1:\(listener.port)"
            try makeTransport(TransportConfiguration(certificateAuthorities: authority.file, proxy: proxy))
            try assertEachGetsItsOwn(scheme: "http", host: "a.example", padding: padding, isLater: isLater)
            listener.stop()
        }
    }

    /// In the proxy's TLS, around the server's.
    func testOneThatComesThroughATunnel() throws {
        let authority = try Authority(TLS(), protocols: ["http/1.1"])
        let proxy = try ProxyOrigin(tls: TLS())
        defer { proxy.stop() }
        let authorities = try file(of: [authority, proxy.authority])
        try makeTransport(TransportConfiguration(certificateAuthorities: authorities, proxy: proxy.base))
        try serve(authority, isLater: false, isApart: true)
        XCTAssertEqual(record(of: try start("https://127.0.0.1:\(listener.port)/before")).text, "/before")
        proxy.gather(2)
        try assertEachGetsItsOwn(scheme: "https", isLater: false)
    }

    /// Each connection has a challenge with one behind it: the answer to the challenge is never sent.
    func testOneBehindEachChallenge() throws {
        let connections = Monitor(0)
        signals = Signals()
        listener = try Listener(journal: Journal(), signals: signals)
        try listener.start { connection in
            connections.change { $0 += 1 }
            let body = String(repeating: ".", count: 200_000)
            let challenge =
                "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"a\"\r\nContent-Length: 200000\r\n\r\n"
            while Self.receivePath(connection) != nil {
                let bytes = Array((challenge + body).utf8) + Self.answer("/stolen", padding: 0)
                guard Self.send(bytes, connection) else { break }
            }
            connection.close()
        }
        let id = try start("http://127.0.0.1:\(listener.port)/", credential: Credential(user: "a", password: "b"))
        let failure = record(of: id).failure
        // Debian 13's answers a challenge on a new connection, where it is challenged again.
        guard failure != nil || CurlVersion.number >> 8 != 0x080E else {
            XCTAssertEqual(record(of: id).head?.status, 401)
            XCTAssertEqual(record(of: id).body, Array(String(repeating: ".", count: 200_000).utf8))
            return XCTAssertEqual(connections.read { $0 }, 2)
        }
        XCTAssertEqual(failure?.code, .protocolError)
        XCTAssertEqual(failure?.message, "the server sends more than it is asked for, again and again")
        XCTAssertLessThanOrEqual(connections.read { $0 }, 5)
    }

    /// Session tickets and new keys are no answers; what is behind them is one.
    func testWhatTLSSaysByItselfKeepsAConnection() throws {
        let differs = VersionDifference.named("kept-connections").applies && CurlVersion.number < 0x081700
        for message in [Exchange.Aside.ticket, .keyUpdate] {
            let server = try Origin(tls: TLS())
            defer { server.stop() }
            try makeTransport(TransportConfiguration(certificateAuthorities: server.authority?.file, proxy: ""))
            let said = Monitor(0)
            server.route(prefix: "/") { exchange in
                try exchange.respond(text: exchange.request.path)
                try exchange.say(message, count: 3)
                if exchange.request.path == "/19" {
                    try exchange.send(raw: Self.answer("/stolen", padding: 0))
                    try exchange.end()
                }
                said.change { $0 += 1 }
            }
            for number in 0..<22 {
                XCTAssertEqual(record(of: try start(server.url("/\(number)"))).text, "/\(number)")
                XCTAssertNotNil(said.wait(until: .patient) { $0 > number ? true : nil })
            }
            XCTAssertTrue((2...(differs ? 22 : 2)).contains(server.log.connections.count), "\(message)")
        }
    }

    /// One without is used again.
    func testAConnectionWithoutOneIsKept() throws {
        let authority = try Authority(TLS(), protocols: ["http/1.1"])
        let proxy = try ProxyOrigin(tls: TLS())
        defer { proxy.stop() }
        let authorities = try file(of: [authority, proxy.authority])
        for (scheme, isOverTLS, way) in [
            ("http", false, ""), ("https", true, ""), ("https", true, proxy.base), ("http", true, "itself"),
        ] {
            let connections = Monitor(0)
            let own = try Listener(journal: Journal(), signals: Signals())
            defer { own.stop() }
            try own.start { connection in
                connections.change { $0 += 1 }
                if isOverTLS { guard (try? connection.secure(by: authority)) != nil else { return } }
                while let path = Self.receivePath(connection) {
                    guard Self.send(Self.answer(path, padding: 0), connection) else { break }
                }
                connection.close()
            }
            let address = way == "itself" ? "https://127.0.0.1:\(own.port)" : way
            try makeTransport(TransportConfiguration(certificateAuthorities: authorities, proxy: address))
            let host = way == "itself" ? "a.example" : "127.0.0.1:\(own.port)"
            for number in 0..<20 {
                XCTAssertEqual(record(of: try start("\(scheme)://\(host)/\(number)")).text, "/\(number)", way)
            }
            let differs = way == "itself" && CurlVersion.number >= 0x081700
            XCTAssertTrue((1...(differs ? 20 : 1)).contains(connections.read { $0 }), "\(scheme) \(way)")
        }
    }
}
