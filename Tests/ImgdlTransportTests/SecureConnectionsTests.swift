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

    /// curl cuts names off: what it takes for one server is one here.
    func testServersWithLongNames() {
        let long = String(repeating: "a", count: 110)
        let server = SecureConnections.Server(name: long + ".one.example", port: 443)
        XCTAssertEqual(server, SecureConnections.Server(name: long + ".two.example", port: 443))
        XCTAssertNotEqual(server, SecureConnections.Server(name: long + ".one.example", port: 444))
        XCTAssertNotEqual(server, SecureConnections.Server(name: "b.example", port: 443))
    }
}
