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
        func proxy(
            _ environment: [String: String], _ url: String = "http://h/", configured: String? = nil
        ) throws -> String? {
            try proxies(environment, configured: configured).proxy(for: URLParser.parse(url))?.text
        }
        let both = ["http_proxy": "a", "HTTPS_PROXY": "b", "ALL_PROXY": "c", "NO_PROXY": "x,y"]
        XCTAssertEqual(try proxy(both), "a")
        XCTAssertEqual(try proxy(both, "https://h/"), "b")
        XCTAssertNil(try proxy(both, "https://y/"))
        XCTAssertNil(try proxy(["HTTP_PROXY": "a"]), "a request's field in a CGI program")
        XCTAssertEqual(try proxy(["all_proxy": "c"], "https://h/"), "c")
        XCTAssertNil(try proxy(["all_proxy": "c", "no_proxy": "*"], "https://h/"))
        XCTAssertFalse(try proxies(["all_proxy": "c", "no_proxy": "*"]).isUsed)
        XCTAssertEqual(try proxy(["http_proxy": "a", "no_proxy": "h"], configured: "http://d"), "http://d")
        XCTAssertNil(try proxy(["http_proxy": "a"], configured: ""))
    }

    /// Who is refused because of one is told where it is from.
    func testVariablesOfProxies() throws {
        XCTAssertEqual(try proxies(["http_proxy": "a", "HTTPS_PROXY": "b"]).variables, ["http_proxy", "HTTPS_PROXY"])
        XCTAssertEqual(try proxies(["ALL_PROXY": "c"]).variables, ["ALL_PROXY"])
        XCTAssertEqual(try proxies(["https_proxy": "b", "all_proxy": "c"]).variables, ["all_proxy", "https_proxy"])
        XCTAssertEqual(try proxies(["ALL_PROXY": "c", "no_proxy": "*"]).variables, [])
        XCTAssertEqual(try proxies(["ALL_PROXY": "c"], configured: "http://d").variables, [])
    }

    func testExceptionsOfProxies() {
        let table: [(list: String, direct: [String], proxied: [String])] = [
            ("", [], ["a", "127.0.0.1"]), ("*", ["a", "1.2.3.4", "::1"], []), ("x, *", ["a"], []),
            ("example.com", ["example.com", "a.example.com", "a.b.example.com", "example.com."], ["badexample.com"]),
            (".example.com", ["example.com", "a.example.com"], ["badexample.com", "com"]),
            ("Example.COM. other", ["example.com", "other"], ["another"]), ("com", ["example.com"], ["com.example"]),
            ("127.0.0.1,::1", ["127.0.0.1", "::1"], ["127.0.0.2", "::2"]), ("[::1]", ["::1"], ["::2"]),
            ("10.0.0.0/8 192.168.1.128/25", ["10.200.0.1", "192.168.1.200"], ["11.0.0.1", "192.168.1.1", "a"]),
            ("fd00::/8,2001:db8::/33", ["fd12::1", "2001:db8:7fff::"], ["fe80::1", "2001:db8:8000::", "10.0.0.1"]),
            ("0.0.0.0/0", ["1.2.3.4"], ["::1", "a"]), ("1.2.3.4/32", ["1.2.3.4"], ["1.2.3.5"]),
            // What names nothing excepts nothing.
            ("10.0.0.0/33,10.0.0.0/-1,10.0.0.0/,/8,a/8,.,,\t.", [], ["10.0.0.1", "a", "", "."]),
            ("0.1", [], ["10.0.0.1", "1.2.0.1"]),
        ]
        for (list, direct, proxied) in table {
            let exceptions = ProxyExceptions(list)
            for host in direct { XCTAssertTrue(exceptions.contains(host), "\(list): \(host)") }
            for host in proxied { XCTAssertFalse(exceptions.contains(host), "\(list): \(host)") }
        }
    }

    func testServersOfProxies() {
        let table: [(String, NamedServer?)] = [
            ("http://me:secret@Proxy.test:3128", NamedServer(host: "proxy.test", port: 3128)),
            ("proxy.test", NamedServer(host: "proxy.test", port: 1080)),
            ("https://proxy.test", NamedServer(host: "proxy.test", port: 443)),
            ("socks5h://proxy.test:9", NamedServer(host: "proxy.test", port: 9)),
            ("socks4a://[::1]", NamedServer(host: "::1", port: 1080)),
            ("socks5://proxy.test", nil), ("socks4://proxy.test", nil), ("ftp://proxy.test", nil), ("http://", nil),
        ]
        for (text, server) in table {
            XCTAssertEqual(Proxy(text, namedBy: "x")?.server, server, text)
        }
        let needing = ["a": true, "localhost": false, "a.localhost": false, "127.0.0.1": false, "::1": false]
        for (host, needs) in needing {
            XCTAssertEqual(NamedServer(host: host, port: 1).needsAddresses, needs, host)
        }
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
        let length = CurlErrors.failure(
            CurlOutcome(code: CURLE_WEIRD_SERVER_REPLY, message: "Invalid Content-Length: value", isConnected: true))
        XCTAssertEqual(length.code, .protocolError)
        XCTAssertTrue(length.message.hasPrefix("the response's Content-Length is not one number"), length.message)
        let cut = CurlErrors.failure(CurlOutcome(code: CURLE_HTTP2, message: "", isConnected: true, hasHead: true))
        XCTAssertEqual(
            cut.message,
            "the response's body cannot be read: the server broke the rules of HTTP/2, or ended the connection (GOAWAY) within "
                + "the answer")
        let secret = CurlErrors.failure(
            CurlOutcome(
                code: CURLE_RECV_ERROR, message: "http://h/?k=v: lost\n",
                secrets: QueryRedaction.secrets("http://h/?k=v")))
        XCTAssertEqual(secret.message, "the connection was lost while it was being made: http://h/…: lost")
        XCTAssertEqual(QueryRedaction.secrets("http://h/"), [])
        XCTAssertEqual(QueryRedaction.secrets("http://h/?"), [])
    }

    /// A query of one digit leaves the other digits of a sentence alone.
    func testShortQueries() {
        let message = "Failed to connect to 127.0.0.1 port 8011 after 1 ms"
        let failure = CurlErrors.failure(
            CurlOutcome(
                code: CURLE_COULDNT_CONNECT, message: message,
                secrets: QueryRedaction.secrets("http://127.0.0.1:8011/?1")))
        XCTAssertEqual(failure.message, message)
    }

    /// What is too long, of what, and where: of a line that libcurl gives up nobody has seen the beginning.
    func testLimitsOfHeaders() {
        typealias Facts = (inout CurlOutcome) -> Void
        let tooLarge = CURLcode(rawValue: 100)
        let table: [(CURLcode, Facts, [String])] = [
            (tooLarge, { $0.lastFieldName = "Server" }, ["response's header", "line", "102399 bytes", "“Server”"]),
            (CURLE_OUT_OF_MEMORY, { $0.isConnected = true }, ["response's header", "102399", "the first of all"]),
            (tooLarge, { $0.headerBytes = 17 }, ["response's header", "that of its first field"]),
            (tooLarge, { ($0.headerPart, $0.hasHead) = (.trailers, true) }, ["response's trailers", "4095 bytes"]),
            (tooLarge, { $0.isTunnelled = true }, ["proxy's answer to CONNECT", "16383 bytes"]),
            (
                CURLE_RECV_ERROR,
                { ($0.isTunnelled, $0.message) = (true, "CONNECT response too large!") },
                ["proxy's answer to CONNECT", "16383 bytes"]
            ),
            (
                CURLE_RECV_ERROR,
                {
                    ($0.headerPart, $0.hasHead, $0.isChunked) = (.trailers, true, true)
                    $0.message = "Out of memory in chunked-encoding"
                }, ["response's trailers", "4095 bytes"]
            ),
            (CURLE_RECV_ERROR, { $0.headerBytes = 250 << 10 }, ["response's header", "262144 bytes", "together"]),
        ]
        for (index, (code, set, words)) in table.enumerated() {
            var outcome = CurlOutcome(code: code, message: "")
            set(&outcome)
            let failure = CurlErrors.failure(outcome)
            XCTAssertEqual(failure.code, .headerLimit, "row \(index)")
            for word in words { XCTAssertTrue(failure.message.contains(word), "\(failure.message): \(word)") }
        }
    }

    /// Facts decide, whatever a version of curl calls them.
    func testVerdictsByWhatHappened() {
        typealias Facts = (inout CurlOutcome) -> Void
        let table: [(CURLcode, Facts, ErrorCode)] = [
            (CURLE_SSL_CONNECT_ERROR, { $0.handshake = CCURL_HANDSHAKE_CUT_OFF }, .connectionLost),
            (CURLE_SSL_CONNECT_ERROR, { $0.handshake = CCURL_HANDSHAKE_REFUSED }, .tlsFailed),
            (CURLE_SSL_CONNECT_ERROR, { $0.handshake = CCURL_HANDSHAKE_COMPLETE }, .tlsFailed),
            (CURLE_SSL_CONNECT_ERROR, { $0.handshake = CCURL_HANDSHAKE_UNTRUSTED }, .tlsCertificate),
            (CURLE_UNSUPPORTED_PROTOCOL, { $0.isTunnelled = true }, .protocolError),
            (CURLE_BAD_FUNCTION_ARGUMENT, { $0.isTunnelled = true }, .proxyFailed),
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
            (CURLE_HTTP2, { $0.secureEnd = CCURL_SECURE_ENDED }, .connectionLost),
            (CURLE_HTTP2, { ($0.secureEnd, $0.hasHead) = (CCURL_SECURE_ENDED, true) }, .protocolError),
        ]
        for (index, (code, set, expected)) in table.enumerated() {
            var outcome = CurlOutcome(
                code: code, message: "Connection reset by peer alert chunked-encoded SSL routines")
            set(&outcome)
            XCTAssertEqual(CurlErrors.failure(outcome).code, expected, "row \(index)")
        }
    }

    /// Also where curl has no words of its own.
    func testMessagesSayWhatOfAnAnswerIsMissingOrWrong() {
        let head: (inout CurlOutcome) -> Void = { ($0.isConnected, $0.hasHead, $0.bodyBytes) = (true, true, 30) }
        let table: [(CURLcode, String, (inout CurlOutcome) -> Void, String)] = [
            (CURLE_PARTIAL_FILE, "", head, "the answer's body ends after 30 bytes"),
            (CURLE_PARTIAL_FILE, "9 bytes missing\n", head, "the answer's body ends after 30 bytes: 9 bytes missing"),
            (CURLE_RECV_ERROR, "m", head, "the connection was lost after 30 bytes of the body: m"),
            (CURLE_HTTP2_STREAM, "m", head, "the stream was lost after 30 bytes of the body: m"),
            (
                CURLE_RECV_ERROR, "m", { ($0.isConnected, $0.headerBytes) = (true, 20) },
                "the connection was lost after 20 bytes of the response's header: m"
            ),
            (CURLE_PARTIAL_FILE, "m", { $0.isConnected = true }, "the connection was lost before the answer: m"),
            (CURLE_RECV_ERROR, "m", { _ in }, "the connection was lost while it was being made: m"),
            (CURLE_RECV_ERROR, "", { _ in }, "the connection was lost while it was being made"),
            (
                CURLE_BAD_FUNCTION_ARGUMENT, "", { $0.isTunnelled = true },
                "the proxy's answer to CONNECT cannot be read: it is not HTTP, or its first field begins with a space"
            ),
            (
                CURLE_SSL_CONNECT_ERROR, "m", { $0.handshake = CCURL_HANDSHAKE_CUT_OFF },
                "the connection was lost while it was being made: m"
            ),
            (CURLE_WEIRD_SERVER_REPLY, "m", { _ in }, "the response's header cannot be read: m"),
            (
                CURLE_RECV_ERROR, "m", { ($0.hasHead, $0.isChunked) = (true, true) },
                "the response's body cannot be read: m"
            ),
            (
                CURLE_BAD_FUNCTION_ARGUMENT, "", { ($0.isTunnelled, $0.proxyStatus) = (true, 502) },
                "the proxy answered 502"
            ),
            (
                CURLE_RECV_ERROR, "CONNECT tunnel failed, response 0", { $0.isTunnelled = true },
                "the proxy's answer to CONNECT cannot be read: CONNECT tunnel failed, response 0"
            ),
            (
                CURLE_RECV_ERROR, "Recv failure: Connection reset by peer", { $0.isTunnelled = true },
                "the connection was lost while it was being made: Recv failure: Connection reset by peer"
            ),
            (
                CURLE_WEIRD_SERVER_REPLY, "m", { $0.proxyStatus = 502 },
                "the proxy answered 502: m"
            ),
            (
                CURLE_BAD_CONTENT_ENCODING, "m", { _ in },
                "the response's header cannot be read: m"
            ),
        ]
        for (code, message, set, expected) in table {
            var outcome = CurlOutcome(code: code, message: message)
            set(&outcome)
            XCTAssertEqual(CurlErrors.failure(outcome).message, expected)
        }
        for (code, expected) in [
            (CURLE_PARTIAL_FILE, "the answer's body ends after 30 of 39 bytes"),
            (CURLE_SEND_ERROR, "the connection was lost after 30 of 39 bytes of the body: m"),
        ] {
            let outcome = CurlOutcome(
                code: code, message: code == CURLE_SEND_ERROR ? "m" : "", isConnected: true, hasHead: true,
                bodyBytes: 30,
                announcedBytes: 39)
            XCTAssertEqual(CurlErrors.failure(outcome).message, expected)
        }
    }

    /// A server that sends much which gives nothing of an answer, and ends the connection.
    func testFloodsWhoseServerEndsTheConnection() {
        func outcome(_ code: CURLcode, _ bytes: UInt64, status: Int = 0) -> CurlOutcome {
            var outcome = CurlOutcome(code: code, message: "", isConnected: true, proxyStatus: status)
            outcome.strayBytes = bytes
            return outcome
        }
        for (bytes, isFlood) in [(0, false), (196_607, false), (196_608, true), (.max, true)] as [(UInt64, Bool)] {
            let lost = outcome(CURLE_GOT_NOTHING, bytes)
            XCTAssertEqual(CurlErrors.isFlood(lost), isFlood, "\(bytes)")
            XCTAssertEqual(CurlErrors.failure(lost).code, isFlood ? .flood : .connectionLost, "\(bytes)")
            XCTAssertEqual(CurlErrors.failure(lost).message.contains("\(bytes) bytes"), isFlood)
            // curl takes it for the end of an answer.
            let cut = outcome(CURLE_OK, bytes)
            XCTAssertEqual(CurlErrors.isFlood(cut), isFlood, "\(bytes)")
            XCTAssertEqual(CurlErrors.cutHeader(cut).code, isFlood ? .flood : .connectionLost, "\(bytes)")
            // Whatever has come, these have causes of their own.
            for (code, status, told) in [
                (CURLE_COULDNT_CONNECT, 0, .connectFailed), (CURLE_RECV_ERROR, 407, .proxyFailed),
                (CURLE_PEER_FAILED_VERIFICATION, 0, .tlsCertificate),
            ] as [(CURLcode, Int, ErrorCode)] {
                let other = outcome(code, bytes, status: status)
                XCTAssertFalse(CurlErrors.isFlood(other), "\(code)")
                XCTAssertEqual(CurlErrors.failure(other).code, told, "\(code)")
            }
        }
    }

    /// By who has ended the connection: this side does, where frames break the rules of HTTP/2.
    func testBreachesOfHTTP2() {
        let ends = [CCURL_SECURE_UNKNOWN, CCURL_SECURE_OPEN, CCURL_SECURE_LEFT, CCURL_SECURE_ENDED]
        let table: [(CURLcode, isBreach: [Bool])] = [
            (CURLE_GOT_NOTHING, [false, false, true, false]), (CURLE_PARTIAL_FILE, [false, false, true, false]),
            (CURLE_RECV_ERROR, [false, true, false, false]), (CURLE_HTTP2, [false, true, true, false]),
            (CURLE_HTTP2_STREAM, [false, false, false, false]), (CURLE_SEND_ERROR, [false, false, false, false]),
        ]
        for (code, expected) in table {
            for (end, isBreach) in zip(ends, expected) {
                var outcome = CurlOutcome(code: code, message: "m", isHTTP2: true, secureEnd: end)
                outcome.tellsGoawayApart = true
                XCTAssertEqual(CurlErrors.isBreachOfHTTP2(outcome), isBreach, "\(code) \(end)")
                let failure = CurlErrors.failure(outcome)
                XCTAssertEqual(failure.message.hasPrefix("the server broke the rules of HTTP/2"), isBreach)
                if isBreach { XCTAssertEqual(failure.code, .protocolError) }
                outcome.hasHead = true
                XCTAssertEqual(CurlErrors.failure(outcome).code == .protocolError, isBreach || code == CURLE_HTTP2)
                // A connection that the system says is lost, and one of HTTP/1.1.
                for change in [{ $0.systemError = ECONNRESET }, { $0.isHTTP2 = false }] as [(inout CurlOutcome) -> Void]
                {
                    var other = outcome
                    change(&other)
                    XCTAssertFalse(CurlErrors.isBreachOfHTTP2(other), "\(code) \(end)")
                }
                // Among several streams nobody knows who was reading when the connection was reset.
                outcome.isShared = true
                let isTold = [CURLE_RECV_ERROR, CURLE_HTTP2].contains(code)
                XCTAssertEqual(CurlErrors.isBreachOfHTTP2(outcome), isBreach && isTold, "\(code) \(end)")
            }
        }
        let unseen = CurlOutcome(
            code: CURLE_RECV_ERROR, message: "Connection died, tried 5 times before giving up", isHTTP2: true,
            secureEnd: CCURL_SECURE_OPEN)
        XCTAssertEqual(CurlErrors.failure(unseen).code, .connectionLost)
        let flooded = CurlOutcome(
            code: CURLE_RECV_ERROR,
            message: "nghttp2_session_mem_recv() returned -904:Flooding was detected in this HTTP/2 session, and it "
                + "must be closed",
            isHTTP2: true, secureEnd: CCURL_SECURE_LEFT)
        XCTAssertEqual(CurlErrors.failure(flooded).code, .flood)
        // These words are about another connection where its own has brought too little for a flood.
        for (bytes, isFlood) in [(nil, true), (0, false), (4095, false), (4096, true)] as [(UInt64?, Bool)] {
            var outcome = flooded
            outcome.readBytes = bytes
            XCTAssertEqual(CurlErrors.excess(outcome), isFlood ? .flood : nil)
            outcome.isHTTP2 = false
            outcome.code = CURLE_COULDNT_CONNECT
            XCTAssertEqual(CurlErrors.failure(outcome).message.contains("Flood"), isFlood)
        }
        // One whose server takes no answers: then libcurl cannot send them, and has no words for that.
        var unanswered = CurlOutcome(
            code: CURLE_SEND_ERROR, message: "", isHTTP2: true, secureEnd: CCURL_SECURE_OPEN)
        XCTAssertEqual(CurlErrors.failure(unanswered).code, .flood)
        XCTAssertTrue(CurlErrors.failure(unanswered).message.contains("reads no answers"))
        unanswered.secureEnd = CCURL_SECURE_LEFT
        XCTAssertEqual(CurlErrors.failure(unanswered).code, .flood)
        for change in [
            { $0.secureEnd = CCURL_SECURE_ENDED }, { $0.isHTTP2 = false }, { $0.systemError = EPIPE },
            { $0.isFirst = false },
            { $0.message = "Send failure: Broken pipe" },
        ] as [(inout CurlOutcome) -> Void] {
            var other = unanswered
            change(&other)
            XCTAssertEqual(CurlErrors.failure(other).code, .connectionLost, other.message)
        }
        // Others on its connection end as it does, whatever curl says of them.
        for code in [CURLE_HTTP2, CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_PARTIAL_FILE] {
            var other = CurlOutcome(code: code, message: "m", isHTTP2: true, isShared: true, isFlooded: true)
            other.systemError = EPIPE
            XCTAssertEqual(CurlErrors.failure(other).code, .flood, "\(code)")
            XCTAssertTrue(CurlErrors.failure(other).message.contains("a flood on this connection that gave"), "\(code)")
        }
        unanswered.hasHead = true
        XCTAssertEqual(CurlErrors.failure(unanswered).code, .flood)
        // One that was reset, which leaves nothing of a connection that takes no more, and which older versions have no words for.
        for hasHead in [false, true] {
            var reset = CurlOutcome(
                code: CURLE_PARTIAL_FILE, method: "POST", message: "", isHTTP2: true, secureEnd: CCURL_SECURE_LEFT,
                tellsGoawayApart: false)
            reset.hasHead = hasHead
            XCTAssertFalse(CurlErrors.isBreachOfHTTP2(reset))
            let failure = CurlErrors.failure(reset)
            XCTAssertEqual(failure.code, .connectionLost)
            XCTAssertEqual(failure.message.contains("POST is not sent again"), !hasHead, failure.message)
            reset.isHTTP2 = false
            XCTAssertEqual(CurlErrors.failure(reset).code, hasHead ? .truncated : .connectionLost)
            // Newer ones have none where the server has ended the connection.
            var ended = CurlOutcome(
                code: CURLE_PARTIAL_FILE, message: "", isHTTP2: true, secureEnd: CCURL_SECURE_ENDED,
                tellsGoawayApart: true)
            ended.hasHead = hasHead
            XCTAssertEqual(CurlErrors.failure(ended).code, hasHead ? .truncated : .connectionLost)
        }
        let goaway = CurlOutcome(
            code: CURLE_HTTP2, message: "", isHTTP2: true, secureEnd: CCURL_SECURE_LEFT, tellsGoawayApart: false)
        XCTAssertFalse(CurlErrors.isBreachOfHTTP2(goaway))
        for (method, isSaid) in [("GET", false), ("POST", true), ("PATCH", true)] {
            var outcome = goaway
            outcome.method = method
            let failure = CurlErrors.failure(outcome)
            XCTAssertEqual(failure.code, .connectionLost, method)
            XCTAssertEqual(failure.message.contains("\(method) is not sent again"), isSaid, failure.message)
        }
    }

    /// libcurl and nghttp2 have bounds of their own over HTTP/2, and end the connection.
    func testHeadersThatALibraryRefuses() {
        let words = "h2_process_pending_input: nghttp2_session_mem_recv() returned"
        let table = [
            ("\(words) -902:The user callback function failed", "more than 128 KiB at once"),
            ("\(words) -905:Too many CONTINUATION frames following a HEADER frame", "more frames of HTTP/2"),
        ]
        for (message, cause) in table {
            for (part, isShared) in [(HeaderBudget.Part.header, false), (.trailers, false), (.header, true)] {
                var outcome = CurlOutcome(
                    code: CURLE_RECV_ERROR, message: message, headerPart: part, isHTTP2: true, isShared: isShared,
                    secureEnd: CCURL_SECURE_OPEN)
                let failure = CurlErrors.failure(outcome)
                XCTAssertEqual(failure.code, .headerLimit)
                XCTAssertTrue(failure.message.contains(cause), failure.message)
                XCTAssertTrue(
                    failure.message.hasPrefix(isShared ? "a response's header on this connection" : part.rawValue),
                    failure.message)
                outcome.isHTTP2 = false
                XCTAssertNotEqual(CurlErrors.failure(outcome).code, .headerLimit)
            }
        }
    }

    /// In the words of several versions.
    func testRequestsThatNobodyHasLookedAt() {
        let table: [(CURLcode, String, Bool)] = [
            (CURLE_RECV_ERROR, "Connection died, tried 5 times before giving up", true),
            (CURLE_SEND_ERROR, "Connection died, tried 5 times before giving up", true),
            (CURLE_RECV_ERROR, "Recv failure: Connection reset by peer", false),
            (CURLE_HTTP2_STREAM, "HTTP/2 stream 1 reset by curl (error 0xb ENHANCE_YOUR_CALM)", true),
            (CURLE_HTTP2_STREAM, "HTTP/2 stream 1 reset by server (error 0xb ENHANCE_YOUR_CALM)", false),
            (CURLE_HTTP2_STREAM, "HTTP/2 stream 1 reset by curl (error 0x1 PROTOCOL_ERROR)", false),
            (CURLE_HTTP2_STREAM, "HTTP/2 stream 1 was not closed cleanly: ENHANCE_YOUR_CALM (err 11)", false),
            (CURLE_HTTP2, "", false),
            (CURLE_FAILED_INIT, "[CONN-1-0] send: no filter connected", true),
            (CURLE_FAILED_INIT, "", false),
        ]
        for (code, message, isUnseen) in table {
            XCTAssertEqual(CurlErrors.isUnseenRequest(code, message), isUnseen, message)
        }
    }
}
