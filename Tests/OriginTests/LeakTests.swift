import Glibc
import Origin
import OriginHTTP2
import XCTest

/// Nothing of an origin outlives it.
final class LeakTests: XCTestCase {
    private func entries(of directory: String) -> Int {
        guard let listing = opendir(directory) else { return -1 }
        defer { closedir(listing) }
        var count = 0
        while readdir(listing) != nil { count += 1 }
        return count
    }

    private func useOne() throws {
        let origin = try Origin()
        origin.route("/stall") { try $0.stall() }
        // A script may hold its origin: stopping lets it go.
        origin.route("/self") { [origin] in try $0.respond(text: origin.base) }
        let clients = try ["/stall", "/self", "/pictures/x"].map { path in
            let client = try RawClient(port: origin.port)
            client.get(path)
            return client
        }
        XCTAssertTrue(origin.wait { $0.arrivals.count == clients.count })
        clients[0].reset()
        XCTAssertTrue(origin.wait { $0.connectionsClosedByClient == 1 })
        origin.stop()

        for security in [HTTP2Origin.Security.cleartext, .tls] {
            let http2 = try HTTP2Origin(security: security)
            http2.route("/stall") { try $0.stall() }
            if security == .cleartext {
                let client = try RawHTTP2Client(port: http2.port)
                client.get("/stall", stream: 1)
                XCTAssertTrue(http2.wait { $0.inFlight == 1 })
            } else {
                let client = try RawClient(port: http2.port)
                client.send("no TLS")
                _ = client.readToEnd()
                XCTAssertNotEqual(client.ending, .deadline)
            }
            http2.stop()
        }
        let secure = try Origin(tls: TLS(client: .required))
        let proxy = try ProxyOrigin()
        let silent = try RawClient(port: secure.port)
        let tunnel = try RawClient(port: proxy.port)
        tunnel.get("127.0.0.1:\(secure.port)", method: "CONNECT")
        XCTAssertTrue(tunnel.readHead().hasPrefix("HTTP/1.1 200"))
        XCTAssertTrue(secure.wait { $0.openConnections == 2 })
        proxy.stop()
        secure.stop()
        _ = (silent, tunnel)
        _ = try Origin()
    }

    func testThreadsAndDescriptors() throws {
        try useOne()
        let (descriptors, threads) = (entries(of: "/proc/self/fd"), entries(of: "/proc/self/task"))
        for _ in 0..<10 { try useOne() }
        XCTAssertEqual(entries(of: "/proc/self/fd"), descriptors)
        // A joined thread may stay listed for a moment; one leaked each time would be ten.
        XCTAssertLessThan(entries(of: "/proc/self/task"), threads + 10)
    }
}
