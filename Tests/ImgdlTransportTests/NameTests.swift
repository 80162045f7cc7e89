import ImgdlCore
import Origin
import OriginHTTP2
import XCTest

@testable import ImgdlTransport

/// Names reach curl as addresses that our resolver found.
final class NameTests: TransportTestCase {
    /// Answers when told; remembers who asked.
    private final class ScriptedResolver: Resolver, @unchecked Sendable {
        private let lock = Lock()
        private var waiting: [(String, Completion)] = []
        private(set) var abandoned: [LookUpID] = []
        var immediate: Result<[String], Failure>?
        private(set) var isClosed = false

        var hosts: [String] { lock.withLock { waiting.map(\.0) } }

        func resolve(_ host: String, completion: @escaping Completion) -> LookUpID? {
            if let immediate {
                completion(immediate)
                return nil
            }
            return lock.withLock {
                waiting.append((host, completion))
                return LookUpID(rawValue: UInt64(waiting.count))
            }
        }

        func abandon(_ id: LookUpID) { abandoned.append(id) }

        func answerAll(_ result: Result<[String], Failure>) {
            let completions = lock.withLock {
                defer { waiting = [] }
                return waiting
            }
            for (_, completion) in completions { completion(result) }
        }

        func close() { isClosed = true }
    }

    private let resolver = ScriptedResolver()

    override func setUpWithError() throws {
        try super.setUpWithError()
        try makeTransport(resolver: resolver)
        origin.route("/a") { try $0.respond(text: "a") }
    }

    private func named(_ host: String) -> String { "http://\(host):\(origin.port)/a" }

    func testTheAddressComesFromTheResolver() throws {
        let id = try start(named("pictures.example"))
        XCTAssertEqual(resolver.hosts, ["pictures.example"])
        let answering = try ImgdlCore.Thread.start(name: "answer") { [resolver] in
            resolver.answerAll(.success(["127.0.0.1"]))
        }
        XCTAssertEqual(record(of: id).text, "a")
        answering.join()
        XCTAssertEqual(origin.log.requests.first?.headers["Host"], "pictures.example:\(origin.port)")
    }

    func testAnAnswerInsideTheCall() throws {
        resolver.immediate = .success(["127.0.0.1"])
        for host in ["Pictures.Example", "dotted.example."] {
            XCTAssertEqual(try fetchSucceeding(named(host)).text, "a")
        }
        resolver.immediate = .failure(Failure(.resolveFailed, "could not"))
        let id = try start(named("other.example"))
        XCTAssertFalse(recorder[id].hasEnded, "not from inside the call")
        XCTAssertEqual(record(of: id).failure?.code, .resolveFailed)
    }

    func testTheNextAddressIsTried() throws {
        resolver.immediate = .success(["::1", "127.0.0.1"])
        XCTAssertEqual(try fetchSucceeding(named("both.example")).text, "a")
    }

    /// One after the other, also where each refuses at once and its socket's number comes back: libcurl 7.88 does not tell of
    /// a socket whose number it has told of before in the same turn.
    func testEachAddressIsTried() throws {
        for count in 2...5 {
            let dead = (2...count).map { "127.0.0.\($0)" }
            resolver.immediate = .success(dead + ["127.0.0.1"])
            let start = loop.now
            XCTAssertEqual(try fetchSucceeding(named("many\(count).example")).text, "a", "behind \(dead)")
            XCTAssertLessThan(loop.now.nanoseconds - start.nanoseconds, 3_000_000_000, "behind \(dead)")
        }
    }

    func testNobodyListensAtAnyOfManyAddresses() throws {
        resolver.immediate = .success((2...5).map { "127.0.0.\($0)" })
        let start = loop.now
        let id = try self.start(named("dead.example"))
        XCTAssertEqual(record(of: id).failure?.code, .connectFailed)
        XCTAssertLessThan(loop.now.nanoseconds - start.nanoseconds, 3_000_000_000)
    }

    /// A connection that is made is nobody's to go on from when it closes: whoever it was opened for may be gone by then, and
    /// curl's handle of another's.
    func testWhoHasAConnectionNeedsNoOtherAddress() throws {
        let secure = try HTTP2Origin(security: .tls)
        defer { secure.stop() }
        secure.route("/a") { try $0.respond(200, body: Array("b".utf8)) }
        try makeTransport(
            TransportConfiguration(certificateAuthorities: secure.caFile, proxy: ""), resolver: ScriptedResolver())
        let multi = transport.lanes.common.multi
        var most = 0
        for url in [secure.url("/a"), origin.url("/a")] {
            let id = try start(url)
            run(until: recorder[id].hasEnded || !multi.openings.isEmpty)
            most += multi.openings.count
            XCTAssertNil(record(of: id).failure)
            XCTAssertEqual(multi.openings.count, 0, url)
            XCTAssertFalse(multi.openSockets.isEmpty, "it is kept")
        }
        XCTAssertEqual(most, 2, "each was noted while it was made")
        let cancelled = try start("http://127.0.0.1:1/")
        transport.cancel(cancelled)
        XCTAssertEqual(multi.openings.count, 0, "cancelled")
    }

    /// The proxy's name is looked up as any other, so that one that is never answered holds up nobody; the server's is the
    /// proxy's to look up.
    func testTheProxysNameComesFromTheResolver() throws {
        let proxy = try ProxyOrigin()
        defer { proxy.stop() }
        try makeTransport(TransportConfiguration(proxy: "http://proxy.example:\(proxy.port)"), resolver: resolver)
        let id = try start(named("pictures.example"))
        XCTAssertEqual(resolver.hosts, ["proxy.example"])
        resolver.answerAll(.success(["127.0.0.1"]))
        XCTAssertEqual(record(of: id).text, "a")
        XCTAssertEqual(proxy.log.requests.count, 1)
        resolver.immediate = .failure(Failure(.resolveFailed, "could not resolve “proxy.example”"))
        for url in [named("other.example"), "https://other.example/"] {
            let failure = try failure(of: url)
            XCTAssertEqual(failure?.code, .proxyFailed)
            XCTAssertTrue(failure?.message.contains("proxy.example") ?? false, failure?.message ?? "")
        }
    }

    func testLiteralsAndLocalhostAskNobody() throws {
        XCTAssertEqual(try fetchSucceeding(named("127.0.0.1")).text, "a")
        XCTAssertEqual(try fetchSucceeding(named("localhost")).text, "a")
        XCTAssertEqual(try failure(of: "http://[::1]:1/")?.code, .connectFailed)
        XCTAssertEqual(resolver.hosts, [])
    }

    func testAHundredCancelsOfAStuckNameBlockNothing() throws {
        let ids = try (0..<100).map { _ in try start(named("stuck.example")) }
        for id in ids { transport.cancel(id) }
        XCTAssertEqual(resolver.abandoned.map(\.rawValue), Array(1...100), "nobody waits for them")
        XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "a")
        resolver.answerAll(.success(["127.0.0.1"]))
        for _ in 0..<3 { loop.turn(transport) }
        XCTAssertEqual(ids.filter { recorder.records[$0] != nil }.count, 0)
        XCTAssertEqual(origin.log.requests.count, 1)
    }

    func testAnAnswerAfterCloseIsDropped() throws {
        let id = try start(named("late.example"))
        transport.close()
        XCTAssertTrue(resolver.isClosed)
        resolver.answerAll(.success(["127.0.0.1"]))
        for _ in 0..<3 { loop.turn(transport) }
        XCTAssertNil(recorder.records[id])
    }

    func testAProxyGetsTheNameUnresolved() throws {
        try makeTransport(TransportConfiguration(proxy: origin.base), resolver: resolver)
        origin.route("/a") { try $0.respond(text: "by proxy") }
        XCTAssertEqual(try fetchSucceeding("http://pictures.example/a").text, "by proxy")
        XCTAssertEqual(origin.log.requests.first?.target, "http://pictures.example/a")
        XCTAssertEqual(resolver.hosts, [])
        let refused = try failure(of: "https://pictures.example/a")
        XCTAssertEqual(refused?.code, .proxyFailed, refused?.message ?? "")
    }
}
