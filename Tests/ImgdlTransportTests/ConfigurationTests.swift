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
            (CURLE_SEND_ERROR, .connectionLost), (CURLE_RECV_ERROR, .connectionLost),
            (CURLE_HTTP2, .protocolError), (CURLE_HTTP2_STREAM, .connectionLost),
            (CURLE_WEIRD_SERVER_REPLY, .protocolError),
            (CURLE_BAD_CONTENT_ENCODING, .protocolError), (CURLE_PEER_FAILED_VERIFICATION, .tlsCertificate),
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
        let secret = CurlErrors.failure(
            CurlOutcome(code: CURLE_RECV_ERROR, message: "http://h/?k=v: lost\n", secrets: ["k=v"]))
        XCTAssertEqual(secret.message, "http://h/?…: lost")
    }

    /// Facts decide, whatever a version of curl calls them.
    func testVerdictsByWhatHappened() {
        typealias Facts = (inout CurlOutcome) -> Void
        let table: [(CURLcode, Facts, ErrorCode)] = [
            (CURLE_SSL_CONNECT_ERROR, { $0.handshake = CCURL_HANDSHAKE_CUT_OFF }, .connectionLost),
            (CURLE_SSL_CONNECT_ERROR, { $0.handshake = CCURL_HANDSHAKE_REFUSED }, .tlsFailed),
            (CURLE_SSL_CONNECT_ERROR, { $0.handshake = CCURL_HANDSHAKE_COMPLETE }, .tlsFailed),
            (CURLE_RECV_ERROR, { $0.handshake = CCURL_HANDSHAKE_REFUSED }, .tlsFailed),
            (CURLE_SEND_ERROR, { $0.handshake = CCURL_HANDSHAKE_REFUSED }, .tlsFailed),
            (CURLE_SEND_ERROR, { $0.handshake = CCURL_HANDSHAKE_COMPLETE }, .connectionLost),
            (CURLE_RECV_ERROR, { ($0.handshake, $0.hasHead) = (CCURL_HANDSHAKE_REFUSED, true) }, .connectionLost),
            (CURLE_RECV_ERROR, { ($0.isChunked, $0.hasHead) = (true, true) }, .protocolError),
            (
                CURLE_RECV_ERROR,
                { ($0.isChunked, $0.hasHead, $0.systemError) = (true, true, ECONNRESET) }, .connectionLost
            ),
            (CURLE_BAD_FUNCTION_ARGUMENT, { ($0.isChunked, $0.hasHead) = (true, true) }, .protocolError),
            (CURLE_BAD_FUNCTION_ARGUMENT, { $0.usesClientCertificate = true }, .tlsFailed),
            (
                CURLE_BAD_FUNCTION_ARGUMENT, { ($0.usesClientCertificate, $0.isConnected) = (true, true) },
                .protocolError
            ),
            (CURLE_BAD_FUNCTION_ARGUMENT, { ($0.isConnected, $0.hasHead) = (true, true) }, .internal),
            (CURLcode(rawValue: 100), { $0.isConnected = true }, .headerLimit),
            (CURLE_RECV_ERROR, { $0.headerBytes = 250 << 10 }, .headerLimit),
            (CURLE_RECV_ERROR, { ($0.headerBytes, $0.systemError) = (250 << 10, ECONNRESET) }, .connectionLost),
            (CURLE_RECV_ERROR, { ($0.headerBytes, $0.hasHead) = (250 << 10, true) }, .connectionLost),
            (CURLE_OUT_OF_MEMORY, { $0.isConnected = true }, .headerLimit),
            (CURLE_OUT_OF_MEMORY, { ($0.isConnected, $0.hasHead) = (true, true) }, .outOfMemory),
            (CURLE_OPERATION_TIMEDOUT, { $0.isConnected = true }, .idleTimeout),
            (CURLE_PARTIAL_FILE, { $0.isConnected = true }, .connectionLost),
            (CURLE_PARTIAL_FILE, { ($0.isConnected, $0.hasHead) = (true, true) }, .truncated),
        ]
        for (index, (code, set, expected)) in table.enumerated() {
            var outcome = CurlOutcome(
                code: code, message: "Connection reset by peer alert chunked-encoded SSL routines")
            set(&outcome)
            XCTAssertEqual(CurlErrors.failure(outcome).code, expected, "row \(index)")
        }
    }
}
