import Glibc
import ImgdlCore
import Origin
import Synchronization
import XCTest

@testable import ImgdlTransport

/// What TLS says to itself after the handshake is for no request, and libcurl sees nothing of it. However much there is, other
/// servers' requests are answered meanwhile, and nothing of it is kept. Where the server is faster than this side a turn has
/// no end by itself, and ends with FLOOD; where it is not, turns are short.
final class SecureFloodTests: TransportTestCase {
    /// Nanoseconds of the engine's thread that a request of another server waits for: a turn is ended after 50 ms, and
    /// somebody has to look. That it is a few times as long in one of a hundred fetches is the machine's.
    private static let longestWait: Int64 = 200_000_000
    private static let mostMemory = 32 << 20

    private final class Said: Sendable { let count = Atomic<Int>(0) }

    private func assertOthersAreServed(
        _ message: Exchange.Aside, at once: Int, least: Int, _ tls: TLS, line: UInt = #line
    ) throws {
        let server = try Origin(tls: tls)
        defer { server.stop() }
        try makeTransport(TransportConfiguration(certificateAuthorities: server.authority?.file, proxy: ""))
        // Whatever has run on this thread before: outside of the loop it is the host's.
        ImgdlCore.Thread.working {}
        let said = Said()
        server.route("/flood") { exchange in
            try exchange.send(raw: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
            while true {
                try exchange.say(message, count: once)
                said.count.add(once, ordering: .relaxed)
            }
        }
        server.route("/few") { exchange in
            try exchange.say(message, count: 3)
            try exchange.respond(text: "hello")
        }
        origin.route("/a") { try $0.respond(text: "hello") }
        let few = try fetch(server.url("/few"), line: line)
        // OpenSSL 3.6 takes no requests for a handshake from a server that has had one.
        let isRefused = message == .helloRequest && few.failure?.code == .tlsFailed
        XCTAssertTrue(isRefused || few.text == "hello", "a few are no flood: \(few.failure?.message ?? "")", line: line)

        let memory = try Self.residentBytes
        let flooded = try start(server.url("/flood"))
        run(until: recorder[flooded].head != nil)
        try assertOthersAreServed(line: line)
        run(until: said.count.load(ordering: .relaxed) >= least || recorder[flooded].hasEnded, line: line)
        try assertOthersAreServed(line: line)
        XCTAssertLessThan(try Self.residentBytes - memory, Self.mostMemory, "\(message)", line: line)
        if recorder[flooded].hasEnded {
            let failure = recorder[flooded].failure
            XCTAssertEqual(failure?.code, isRefused ? .tlsFailed : .flood, failure?.message ?? "", line: line)
        } else {
            transport.cancel(flooded)
        }
        guard !isRefused else { return }
        XCTAssertEqual(try fetchSucceeding(server.url("/few")).text, "hello", "the same server", line: line)
    }

    private func assertOthersAreServed(line: UInt) throws {
        for _ in 0..<20 {
            let begin = ThreadClock.now()
            XCTAssertEqual(try fetchSucceeding(origin.url("/a")).text, "hello", line: line)
            XCTAssertLessThan(ThreadClock.now() - begin, Self.longestWait, "of CPU time", line: line)
        }
    }

    private static var residentBytes: Int {
        get throws {
            let fields = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
            return try XCTUnwrap(Int(fields[1])) * sysconf(Int32(_SC_PAGESIZE))
        }
    }

    /// A server that leaves has flooded all the same, if no answer has begun: the half of a header and interim responses are none.
    func testServersThatLeave() throws {
        let server = try Origin(tls: TLS())
        defer { server.stop() }
        try makeTransport(TransportConfiguration(certificateAuthorities: server.authority?.file, proxy: ""))
        server.route("/half") { exchange in
            try exchange.send(raw: "HTTP/1.1 200 OK\r\nA: b\r\n")
            try exchange.say(.keyUpdate, count: 12_000)
            exchange.close()
        }
        server.route("/interim") { exchange in
            for _ in 0..<40 {
                try exchange.say(.keyUpdate, count: 300)
                try exchange.send(raw: "HTTP/1.1 103 Early Hints\r\nLink: </b.css>\r\n\r\n")
            }
            exchange.close()
        }
        server.route("/few") { exchange in
            try exchange.send(raw: "HTTP/1.1 200 OK\r\nA: b\r\n")
            try exchange.say(.keyUpdate, count: 1_000)
            exchange.close()
        }
        for (path, code) in [("/half", ErrorCode.flood), ("/interim", .flood), ("/few", .connectionLost)] {
            let failure = try fetch(server.url(path)).failure
            XCTAssertEqual(failure?.code, code, "\(path): \(failure?.message ?? "")")
        }
        XCTAssertEqual(server.log.requests.count, 3)
    }

    func testKeyUpdates() throws { try assertOthersAreServed(.keyUpdate, at: 2_000, least: 100_000, TLS()) }

    func testTickets() throws { try assertOthersAreServed(.ticket, at: 200, least: 10_000, TLS()) }

    func testHelloRequests() throws {
        try assertOthersAreServed(.helloRequest, at: 2_000, least: 50_000, TLS(isAtMost12: true))
    }

    func testRenegotiations() throws {
        try assertOthersAreServed(.renegotiation, at: 1, least: 200, TLS(isAtMost12: true))
    }
}
