import CCurl
import ImgdlCore
import XCTest

@testable import ImgdlTransport

/// What configuration and environment mean, and what curl's verdicts mean.
final class ConfigurationTests: XCTestCase {
    private func proxies(_ environment: [String: String], configured: String? = nil) throws -> ProxyRules {
        try ProxyRules(configured: configured) { environment[$0] }
    }

    func testProxies() throws {
        let both = try proxies(["http_proxy": "a", "HTTPS_PROXY": "b", "ALL_PROXY": "c", "NO_PROXY": "x,y"])
        XCTAssertEqual(both.proxy(for: "http"), "a")
        XCTAssertEqual(both.proxy(for: "https"), "b")
        XCTAssertEqual(both.exceptions, "x,y")
        XCTAssertEqual(try proxies(["HTTP_PROXY": "a"]).proxy(for: "http"), "", "a request's field in a CGI program")
        XCTAssertEqual(try proxies(["all_proxy": "c"]).proxy(for: "https"), "c")
        XCTAssertEqual(try proxies(["all_proxy": "c", "no_proxy": "*"]).proxy(for: "https"), "")
        XCTAssertEqual(try proxies(["http_proxy": "a"], configured: "d").proxy(for: "http"), "d")
        XCTAssertEqual(try proxies(["http_proxy": "a"], configured: "").proxy(for: "http"), "")
    }

    func testTrustAnchors() {
        func anchors(
            _ environment: [String: String], configured: String? = nil, builtIn: String? = "/built-in",
            readable: Bool = true
        ) -> TrustAnchors {
            TrustAnchors(
                configured: configured, builtIn: builtIn, environment: { environment[$0] },
                isReadable: { _ in readable })
        }
        XCTAssertEqual(anchors([:]).file, "/built-in")
        XCTAssertNil(anchors([:]).directory)
        XCTAssertFalse(anchors([:]).usesBuiltIn)
        XCTAssertEqual(anchors(["SSL_CERT_FILE": "/f"]).file, "/f")
        XCTAssertEqual(anchors(["SSL_CERT_FILE": "/f", "CURL_CA_BUNDLE": "/b"]).file, "/b")
        XCTAssertEqual(anchors(["SSL_CERT_FILE": "/f", "SSL_CERT_DIR": "/d"]).directory, "/d")
        XCTAssertEqual(anchors(["SSL_CERT_FILE": "/f"], configured: "/c").file, "/c")
        XCTAssertTrue(anchors([:], readable: false).usesBuiltIn)
        XCTAssertTrue(anchors([:], builtIn: nil).usesBuiltIn)
        XCTAssertFalse(anchors(["SSL_CERT_DIR": "/d"], builtIn: nil).usesBuiltIn)
    }

    func testVerdicts() {
        let table: [(CURLcode, ErrorCode)] = [
            (CURLE_COULDNT_RESOLVE_HOST, .resolveFailed), (CURLE_COULDNT_RESOLVE_PROXY, .proxyFailed),
            (CURLE_COULDNT_CONNECT, .connectFailed), (CURLE_GOT_NOTHING, .connectionLost),
            (CURLE_SEND_ERROR, .connectionLost), (CURLE_RECV_ERROR, .connectionLost), (CURLE_PARTIAL_FILE, .truncated),
            (CURLE_HTTP2, .protocolError), (CURLE_HTTP2_STREAM, .connectionLost),
            (CURLE_WEIRD_SERVER_REPLY, .protocolError),
            (CURLE_BAD_CONTENT_ENCODING, .contentEncoding), (CURLE_PEER_FAILED_VERIFICATION, .tlsCertificate),
            (CURLE_SSL_CONNECT_ERROR, .tlsFailed), (CURLE_SSL_PINNEDPUBKEYNOTMATCH, .tlsPin),
            (CURLE_SSL_CACERT_BADFILE, .tlsFailed), (CURLE_PROXY, .proxyFailed),
            (CURLE_OUT_OF_MEMORY, .outOfMemory), (CURLE_OPERATION_TIMEDOUT, .connectTimeout),
            (CURLE_BAD_FUNCTION_ARGUMENT, .internal),
        ]
        for (code, expected) in table {
            let failure = CurlErrors.failure(CurlOutcome(code: code, message: ""))
            XCTAssertEqual(failure.code, expected)
            XCTAssertFalse(failure.message.isEmpty)
        }
        XCTAssertEqual(
            CurlErrors.failure(CurlOutcome(code: CURLE_RECV_ERROR, message: "x", proxyStatus: 407)).code, .proxyFailed)
        XCTAssertEqual(
            CurlErrors.failure(
                CurlOutcome(code: CURLE_SSL_CONNECT_ERROR, message: "OpenSSL SSL_connect: Connection reset by peer")
            ).code,
            .connectionLost)
        let secret = CurlErrors.failure(
            CurlOutcome(code: CURLE_RECV_ERROR, message: "http://h/?k=v: lost\n", secrets: ["k=v"]))
        XCTAssertEqual(secret.message, "http://h/?…: lost")
    }
}
