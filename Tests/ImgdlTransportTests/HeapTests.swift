import ImgdlCore
import Origin
import XCTest

@testable import ImgdlTransport

/// What libcurl does with its memory where a server misbehaves.
final class HeapTests: TransportTestCase {
    /// curl's pull request 11103: the line is taken for the rest of a field of the response before.
    func testAHeaderThatBeginsWithAFoldedLine() throws {
        let secure = try Origin(tls: TLS())
        defer { secure.stop() }
        try makeTransport(TransportConfiguration(certificateAuthorities: secure.authority?.file, proxy: ""))
        for origin in [origin!, secure] {
            for (path, line) in [("/folded", " X: "), ("/no-name", " ")] {
                origin.route(path) { exchange in
                    let rest = line + String(repeating: "y", count: 3_000)
                    try exchange.send(raw: "HTTP/1.1 200 OK\r\n\(rest)\r\nContent-Length: 1\r\n\r\na")
                }
            }
            origin.route("/good") { try $0.respond(headers: ["X-Last": "x"], text: "a") }
            for _ in 0..<50 {
                XCTAssertEqual(try fetchSucceeding(origin.url("/good")).text, "a")
                for path in ["/folded", "/no-name"] {
                    let failure = try failure(of: origin.url(path))
                    XCTAssertEqual(failure?.code, .protocolError, failure?.message ?? "")
                }
            }
        }
    }
}
