import CCurl
import ImgdlCore
import Origin
import XCTest

@testable import ImgdlTransport

/// What is known of TLS connections goes when they are gone.
final class SecureConnectionsTests: TransportTestCase {
    func testForgetsConnectionsThatAreClosed() throws {
        let authority = try Authority(TLS(), protocols: ["http/1.1"])
        try makeTransport(TransportConfiguration(certificateAuthorities: authority.file, proxy: ""))
        let listener = try Listener(journal: Journal(), signals: Signals())
        defer { listener.stop() }
        try listener.start { connection in
            guard (try? connection.secure(by: authority)) != nil else { return }
            var request = [UInt8](repeating: 0, count: 16 << 10)
            _ = try? request.withUnsafeMutableBytes { try connection.receive(into: $0) }
            try? Array("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".utf8).withUnsafeBytes {
                try connection.send($0)
            }
            connection.close()
        }
        var most = 0
        for _ in 0..<150 {
            XCTAssertNil(record(of: try start("https://127.0.0.1:\(listener.port)/")).failure)
            most = max(most, transport.lanes.common.multi.secureConnections.count)
        }
        XCTAssertGreaterThan(most, 30, "they are noted")
        XCTAssertLessThanOrEqual(most, 65)
    }

    /// unrecognized_name, as servers of TLS 1.2 say it before their ServerHello, ends nothing: what is lost later is no refusal.
    func testAWarningEndsNothing() throws {
        let authority = try Authority(TLS(isAtMost12: true), protocols: ["http/1.1"])
        try makeTransport(TransportConfiguration(certificateAuthorities: authority.file, proxy: ""))
        let signals = Signals()
        let listener = try Listener(journal: Journal(), signals: signals)
        defer { listener.stop() }
        let isAsked = Monitor(false)
        let warning: [UInt8] = [21, 3, 1, 0, 2, 1, 112]
        try listener.start { connection in
            try? warning.withUnsafeBytes { try connection.send($0) }
            guard (try? connection.secure(by: authority)) != nil else { return }
            var request = [UInt8](repeating: 0, count: 16 << 10)
            _ = try? request.withUnsafeMutableBytes { try connection.receive(into: $0) }
            isAsked.change { $0 = true }
            _ = signals.wait(gate: "close", party: connection.party, until: .never)
            connection.close()
        }
        let id = try start("https://127.0.0.1:\(listener.port)/")
        run(until: recorder[id].connections == 1)
        XCTAssertNotNil(isAsked.wait(until: .patient) { $0 ? true : nil })
        let name = try XCTUnwrap(transport.transfers[id]?.connectionName)
        let connection = try XCTUnwrap(transport.lanes.common.multi.secureConnections[name])
        XCTAssertEqual(connection.end, CCURL_SECURE_OPEN)
        signals.gate("close").open()
        let failure = record(of: id).failure
        XCTAssertEqual(failure?.code, .connectionLost, failure?.message ?? "it has an answer")
    }

    /// curl cuts names off: what it takes for one server is one here.
    func testServersWithLongNames() {
        let long = String(repeating: "a", count: 110)
        let server = SecureConnections.Server(name: long + ".one.example", port: 443)
        XCTAssertEqual(server, SecureConnections.Server(name: long + ".two.example", port: 443))
        XCTAssertNotEqual(server, SecureConnections.Server(name: long + ".one.example", port: 444))
        XCTAssertNotEqual(server, SecureConnections.Server(name: "b.example", port: 443))
    }
}
