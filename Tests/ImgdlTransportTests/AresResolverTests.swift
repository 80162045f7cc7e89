import CAres
import Glibc
import ImgdlCore
import Origin
import XCTest

@testable import ImgdlTransport

/// c-ares on a transport's loop, and a name server on loopback: of `dead-…` it drops every query.
final class AresResolverTests: TransportTestCase {
    private final class Answers: @unchecked Sendable {
        var list: [Result<[String], Failure>] = []
    }

    private var server: NameServer!
    private var resolver: AresResolver!
    private let answers = Answers()
    /// Milliseconds of CPU, of the resolver in the last wait.
    private var longestTurn = 0.0

    override func setUpWithError() throws {
        try super.setUpWithError()
        try use(try NameServer { Self.answer($0) })
        origin.route("/a") { try $0.respond(text: "a") }
    }

    override func tearDown() {
        super.tearDown()
        XCTAssertEqual(resolver?.queryCount, 0)
        XCTAssertEqual(resolver?.nameCount, 0)
        resolver = nil
        server?.stop()
        server = nil
    }

    private func use(_ server: NameServer) throws {
        self.server?.stop()
        self.server = server
        try makeTransport(resolver: { loop in
            resolver = try AresResolver(
                loop: loop, environment: NameEnvironment { loop.now }, servers: try NameServers(server.address))
            return resolver
        })
    }

    private static func answer(_ name: String) -> NameServer.Answer {
        switch name.split(separator: ".").first.map(String.init) ?? "" {
        case let label where label.hasPrefix("dead-"): .silence
        case let label where label.hasPrefix("live"): .addresses(["127.0.0.1"], seconds: 60)
        case "brief": .addresses(["127.0.0.1"], seconds: 2)
        case "alias": .alias("elsewhere.test", seconds: 3, ["127.0.0.1"], addressSeconds: 600)
        case "both": .addresses(["127.0.0.1", "::1"], seconds: 60)
        case "failing": .code(2)
        case "large": .addresses((1...60).map { "127.0.0.\($0)" }, seconds: 60)
        case "truncated": .truncated(["127.0.0.1"], all: (0..<4_000).map { "127.0.\($0 / 250).\($0 % 250 + 2)" })
        case "empty": .addresses([], seconds: 60)
        case "nothing": .packets([[], []])
        case "junk": .packets(Array(repeating: [0, 0] + Array(repeating: 0xFF, count: 500), count: 1_000))
        default: .code(3)
        }
    }

    private func named(_ host: String) -> String { "http://\(host):\(origin.port)/a" }

    @discardableResult
    private func ask(_ host: String) -> LookUpID? { resolver.resolve(host) { [answers] in answers.list.append($0) } }

    /// The transport has no part in it, and so does not ask the resolver: this does.
    private func wait(forAnswers count: Int, file: StaticString = #filePath, line: UInt = #line) {
        let resolverLoop = ResolverLoop(resolver)
        loop.run(resolverLoop, until: { answers.list.count >= count }, file: file, line: line)
        longestTurn = resolverLoop.longestTurn
    }

    /// Sockets for datagrams: those of look-ups, and the name server's own. The origin opens and closes others.
    private var openDescriptors: Int {
        (0..<1_024).count { descriptor in
            var type: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            return getsockopt(Int32(descriptor), SOL_SOCKET, SO_TYPE, &type, &size) == 0
                && type == SocketType.datagram
        }
    }

    func testATransferGetsItsAddresses() throws {
        for host in ["live.test", "LIVE.test", "live.test.", "alias.test", "both.test"] {
            XCTAssertEqual(try fetchSucceeding(named(host)).text, "a", host)
        }
        XCTAssertGreaterThan(server.count("live.test"), 0)
    }

    func testDeadNamesHoldUpNoOther() throws {
        let dead = try (0..<100).map { try start(named("dead-\($0).test")) }
        let began = loop.now
        XCTAssertEqual(try fetchSucceeding(named("live.test")).text, "a")
        XCTAssertLessThan(loop.now.milliseconds(since: began), 5_000, "less than a second, where nothing else runs")
        XCTAssertEqual(dead.filter { recorder.records[$0]?.hasEnded == true }.count, 0)
        for id in dead { transport.cancel(id) }
        XCTAssertEqual(resolver.nameCount, 0)
    }

    func testAbandonedNamesLeaveAtOnce() throws {
        _ = try fetchSucceeding(named("live-1.test"))
        let before = openDescriptors
        let ids = try (0..<200).map { try start(named("dead-\($0 % 150).test")) }
        XCTAssertEqual(resolver.nameCount, 150)
        XCTAssertEqual(resolver.queryCount, LookUpLine.Bounds.queries.prompt)
        XCTAssertGreaterThan(openDescriptors, before)
        for id in ids { transport.cancel(id) }
        XCTAssertEqual(resolver.nameCount, 0)
        XCTAssertEqual(resolver.queryCount, 0)
        XCTAssertEqual(openDescriptors, before)
        XCTAssertNil(resolver.deadline)
        XCTAssertEqual(try fetchSucceeding(named("live-2.test")).text, "a")
    }

    func testOneThatStaysKeepsItsLookUp() throws {
        let cancelled = try start(named("live.test"))
        let kept = try start(named("live.test"))
        transport.cancel(cancelled)
        XCTAssertEqual(record(of: kept).text, "a")
        XCTAssertNil(recorder.records[cancelled])
    }

    func testCloseWaitsForNoName() throws {
        let before = openDescriptors
        for number in 0..<100 { try start(named("dead-\(number).test")) }
        XCTAssertGreaterThan(openDescriptors, before)
        let began = loop.now
        transport.close()
        XCTAssertLessThan(loop.now.milliseconds(since: began), 1_000)
        XCTAssertEqual(openDescriptors, before)
        XCTAssertEqual(loop.watched, [])
        XCTAssertNil(ask("live.test"))
        XCTAssertEqual(answers.list, [.failure(ThreadedResolver.closed)])
    }

    /// Another network may have other addresses; what was asked on the old one is asked anew, since its answer may be lost.
    func testAnotherNetworkIsAskedAnew() throws {
        for _ in 0..<2 { ask("live.test") }
        wait(forAnswers: 2)
        let asked = server.count("live.test")
        XCTAssertNil(ask("live.test"), "known")
        let dead = try XCTUnwrap(ask("dead-1.test"))
        waitForQueries("dead-1.test", asked)
        resolver.networkChanged()
        // At once: nobody runs the loop.
        waitForQueries("dead-1.test", 2 * asked)
        XCTAssertEqual(resolver.queryCount, 1)
        resolver.abandon(dead)
        ask("live.test")
        wait(forAnswers: 4)
        XCTAssertGreaterThan(server.count("live.test"), asked)
    }

    private func waitForQueries(_ name: String, _ count: Int, line: UInt = #line) {
        let end = loop.now.advanced(byMilliseconds: 20_000)
        while server.count(name) < count, loop.now < end { sched_yield() }
        XCTAssertEqual(server.count(name), count, line: line)
    }

    func testDescriptorsCloseOnExec() throws {
        ask("dead-1.test")
        XCTAssertFalse(loop.watched.isEmpty)
        for descriptor in loop.watched {
            XCTAssertEqual(fcntl(descriptor, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC)
            XCTAssertEqual(fcntl(descriptor, F_GETFL) & O_NONBLOCK, O_NONBLOCK)
        }
    }

    func testAnswersAreKeptForTheirTime() throws {
        for (host, seconds) in [("brief.test", Int64(2)), ("alias.test", 3)] {
            answers.list = []
            ask(host)
            wait(forAnswers: 1)
            XCTAssertEqual(answers.list, [.success(["127.0.0.1"])])
            let asked = server.count(host)
            loop.advance(milliseconds: seconds * 1_000 - 900)
            XCTAssertNil(ask(host), "known")
            XCTAssertEqual(answers.list.count, 2)
            loop.advance(milliseconds: 900)
            XCTAssertNotNil(ask(host))
            wait(forAnswers: 3)
            XCTAssertEqual(server.count(host), 2 * asked)
        }
    }

    func testNamesThatAreNot() throws {
        for (host, isKept) in [("absent.test", true), ("empty.test", true), ("failing.test", false)] {
            answers.list = []
            ask(host)
            wait(forAnswers: 1)
            guard case .failure(let failure)? = answers.list.first else { return XCTFail("found") }
            XCTAssertEqual(failure.code, .resolveFailed)
            XCTAssertTrue(failure.message.hasPrefix("could not resolve host “\(host)”: "), failure.message)
            XCTAssertEqual(ask(host) == nil, isKept, host)
            wait(forAnswers: 2)
            loop.advance(milliseconds: 1_000)
            XCTAssertNotNil(ask(host), "a retry asks again")
            wait(forAnswers: 3)
        }
        XCTAssertEqual(try failure(of: named("absent-2.test"))?.code, .resolveFailed)
    }

    func testTheHostsFileIsAskedFirst() throws {
        ask("localhost")
        wait(forAnswers: 1)
        guard case .success(let addresses)? = answers.list.first else { return XCTFail("\(answers.list)") }
        XCTAssertTrue(addresses.allSatisfy { ["127.0.0.1", "::1"].contains($0) }, "\(addresses)")
        XCTAssertEqual(server.names, [])
    }

    func testAServerOfTheOtherFamily() throws {
        guard let server = try? NameServer(isIPv6: true, answer: { Self.answer($0) }) else {
            throw XCTSkip("this machine cannot reach ::1")
        }
        try use(server)
        XCTAssertEqual(try fetchSucceeding(named("live.test")).text, "a")
    }

    func testTheNextServerIsAsked() throws {
        let dead = try NameServer { _ in .code(2) }
        defer { dead.stop() }
        let server = server!
        try makeTransport(resolver: { loop in
            resolver = try AresResolver(
                loop: loop, environment: NameEnvironment { loop.now },
                servers: try NameServers("\(dead.address),\(server.address)"))
            return resolver
        })
        XCTAssertEqual(try fetchSucceeding(named("live.test")).text, "a")
        XCTAssertGreaterThan(dead.count("live.test"), 0)
    }

    // MARK: A hostile server

    func testOfManyAddressesThirtyTwoAreTaken() throws {
        ask("large.test")
        wait(forAnswers: 1)
        guard case .success(let addresses)? = answers.list.first else { return XCTFail("\(answers.list)") }
        XCTAssertEqual(addresses.count, AddressCache.maximumAddresses)
        XCTAssertLessThan(longestTurn, 50, "milliseconds of CPU")
    }

    /// By the version of c-ares: see `AresQuery.flags`.
    func testAnAnswerThatIsCutOff() throws {
        var version: Int32 = 0
        _ = ares_version(&version)
        ask("truncated.test")
        wait(forAnswers: 1)
        guard case .success(let addresses)? = answers.list.first else { return XCTFail("\(answers.list)") }
        XCTAssertLessThan(longestTurn, 50, "milliseconds of CPU")
        if version < 0x01_22_07 {
            XCTAssertEqual(addresses, ["127.0.0.1"], "never over TCP")
        } else {
            XCTAssertEqual(addresses.count, AddressCache.maximumAddresses)
        }
    }

    func testWhatIsAskedOfEachVersion() {
        let table: [(Int32, Int32?)] = [
            (0x01_12_01, ARES_FLAG_IGNTC | ARES_FLAG_EDNS), (0x01_1F_09, ARES_FLAG_IGNTC | ARES_FLAG_EDNS),
            (0x01_20_00, ARES_FLAG_IGNTC), (0x01_22_06, ARES_FLAG_IGNTC), (0x01_22_07, nil), (0x02_00_00, nil),
        ]
        for (version, flags) in table { XCTAssertEqual(AresQuery.flags(ofVersion: version), flags) }
    }

    func testEmptyDatagramsArePassedOver() throws {
        ask("nothing.test")
        ask("live.test")
        wait(forAnswers: 1)
        XCTAssertEqual(answers.list, [.success(["127.0.0.1"])])
    }

    func testAServerThatSendsWithoutEndEndsItsLookUpAlone() throws {
        ask("junk.test")
        ask("live.test")
        wait(forAnswers: 2)
        XCTAssertTrue(answers.list.contains(.success(["127.0.0.1"])), "\(answers.list)")
        let failures = answers.list.compactMap { result -> Failure? in
            guard case .failure(let failure) = result else { return nil }
            return failure
        }
        XCTAssertEqual(failures.map(\.code), [.resolveFailed])
        let message = failures.first?.message ?? ""
        // Newer versions of c-ares have had enough before, and say so (docs/versions.md, `words`).
        var version: Int32 = 0
        _ = ares_version(&version)
        let isOurs = version < 0x01_22_00
        XCTAssertTrue(
            message.contains(isOurs ? "a name server sent more than 256 packets" : "Misformatted DNS reply"), message)
    }

    func testNamesThatCannotBeAskedForFail() throws {
        let long = Array(repeating: String(repeating: "a", count: 63), count: 5).joined(separator: ".")
        for host in [long, String(repeating: "b", count: 64) + ".test", "a..test"] {
            answers.list = []
            ask(host)
            wait(forAnswers: 1)
            guard case .failure(let failure)? = answers.list.first else { return XCTFail(host) }
            XCTAssertEqual(failure.code, .resolveFailed)
        }
    }
}

/// A transport that is nothing but its resolver.
private final class ResolverLoop: Transport {
    private let resolver: any Resolver
    private(set) var longestTurn = 0.0

    init(_ resolver: any Resolver) { self.resolver = resolver }

    var deadline: Instant? { resolver.deadline }
    func deadlineReached(_ now: Instant) { resolver.deadlineReached(now) }
    func descriptorReady(_ descriptor: Int32, readable: Bool, writable: Bool) {
        let began = Self.cpuMilliseconds
        _ = resolver.descriptorReady(descriptor, readable: readable, writable: writable)
        longestTurn = max(longestTurn, Self.cpuMilliseconds - began)
    }

    private static var cpuMilliseconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1_000 + Double(time.tv_nsec) / 1_000_000
    }

    func parse(_ url: String) throws(Failure) -> ParsedURL { throw Failure(.internal, "there is none") }
    func resolveReference(_ reference: String, against base: ParsedURL) throws(Failure) -> ParsedURL {
        throw Failure(.internal, "there is none")
    }
    func start(_ id: TransferID, _ request: __owned TransportRequest) {}
    func cancel(_ id: TransferID) {}
    func setPaused(_ id: TransferID, _ isPaused: Bool) {}
    func setPriority(_ id: TransferID, _ priority: Priority) {}
    func close() {}
}
