import ImgdlCore
import OriginHTTP2

@testable import ImgdlTransport

/// A server of HTTP/2 beside the one of HTTP/1.
class HeldStreamTestCase: TransportTestCase {
    private(set) var secure: HTTP2Origin!

    override func tearDown() {
        super.tearDown()
        secure?.stop()
    }

    /// HTTP/2, with a stream that is held until the gate opens.
    func serve() throws {
        secure = try HTTP2Origin(security: .tls)
        secure.route("/a") { try $0.respond(200, body: Array("hello".utf8)) }
        secure.route("/held") { stream in
            try stream.send(status: 200)
            try stream.send(body: Array("be".utf8))
            try stream.wait("held")
            try stream.send(body: Array("gun".utf8))
            try stream.end()
        }
        try makeTransport(TransportConfiguration(certificateAuthorities: secure.caFile, proxy: ""))
    }
}
