import CCurl
import Glibc
import ImgdlCore

/// What is known of a transfer that curl gave up.
struct CurlOutcome {
    var code: CURLcode
    var method = "GET"
    /// From the transfer's error buffer; empty when curl had nothing to say.
    var message: String
    /// The transfer's own view: prerequests came, the head was complete.
    var isConnected = false
    var hasHead = false
    /// The body comes in chunks.
    var isChunked = false
    /// Bytes of the header that have come, with those of interim responses, and how many may.
    var headerBytes = 0
    var maximumHeaderBytes = 256 << 10
    /// Bytes of the body that have come, as they were sent, and how many its header announces; nil for none of these.
    var bodyBytes: Int64 = 0
    var announcedBytes: Int64?
    /// What the line belongs to that would have come next, and the name of the field before it.
    var headerPart = HeaderBudget.Part.header
    var lastFieldName: String?
    /// The number of the system's last error; 0 for none.
    var systemError: Int32 = 0
    var handshake = CCURL_HANDSHAKE_UNKNOWN
    /// Its connection speaks HTTP/2, and who has ended it.
    var isHTTP2 = false
    /// Other streams were on it.
    var isShared = false
    /// Another of its streams has ended for a flood.
    var isFlooded = false
    /// None of its streams has failed before.
    var isFirst = true
    /// Bytes that its connection has brought since the request was sent on it; nil: not known.
    var readBytes: UInt64?
    /// Of those, since something came of an answer on it: where no body may be among them.
    var strayBytes: UInt64 = 0
    var secureEnd = CCURL_SECURE_UNKNOWN
    /// CURLE_HTTP2 is not for a GOAWAY.
    var tellsGoawayApart = CurlVersion.tellsGoawayApart
    var usesClientCertificate = false
    /// The proxy's answer to CONNECT; 0 without one.
    var proxyStatus = 0
    /// The server is reached through a tunnel of a proxy's.
    var isTunnelled = false
    /// Connections lead to it, not to the server.
    var proxy: Proxy?
    /// What must not show in a message: the URL's query, the proxy's password.
    var secrets: [String] = []

    /// It got no further than to the proxy.
    var isInTunnel: Bool { isTunnelled && !isConnected && handshake == CCURL_HANDSHAKE_UNKNOWN }
}

/// From curl's codes to ours, with curl's own words. Codes depend on what they say where no number tells, in `excess`,
/// `isUnseenRequest`, `isReset`, `isEndOfTCP` and `isOverlongLine` alone: it differs from version to version
/// (docs/versions.md).
enum CurlErrors {
    /// All of a response's header that curl takes, less the longest line that it takes.
    private static let headerBytesNearLimit = 200 << 10
    /// CURLE_TOO_LARGE, which older versions do not have.
    private static let tooLarge = CURLcode(rawValue: 100)

    static func failure(_ outcome: CurlOutcome) -> Failure {
        told(cause(outcome), outcome)
    }

    /// Curl takes the end of the connection for that of the answer.
    static func cutHeader(_ outcome: CurlOutcome) -> Failure { told(lostHeader, outcome) }

    private static var lostHeader: Failure {
        Failure(.connectionLost, "the connection ended before the response's header was complete")
    }

    private static func told(_ failure: Failure, _ outcome: CurlOutcome) -> Failure {
        guard isCutFlood(failure, outcome) else { return failure }
        return Failure(
            .flood,
            "the server sent \(outcome.strayBytes) bytes that gave nothing of an answer, and then: \(failure.message)")
    }

    private static func cause(_ outcome: CurlOutcome) -> Failure {
        if outcome.proxyStatus >= 300 || (100...199).contains(outcome.proxyStatus) {
            return Failure(.proxyFailed, "the proxy answered \(outcome.proxyStatus)\(reason(outcome))")
        }
        if case .header(let cause) = excess(outcome) {
            return HeaderBudget.unseenHeader(outcome.headerPart, cause, isShared: outcome.isShared)
        }
        switch outcome.code {
        case CURLE_COULDNT_RESOLVE_HOST: return make(.resolveFailed, outcome)
        case CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_PROXY:
            // What curl says of it tells the proxy from the server in some versions alone.
            if let proxy = outcome.proxy { return proxy.unreachable(systemWords(outcome) ?? words(outcome)) }
            return make(outcome.code == CURLE_COULDNT_CONNECT ? .connectFailed : .proxyFailed, outcome)
        case CURLE_PROXY: return make(.proxyFailed, outcome)
        case CURLE_RECV_ERROR
        where !outcome.hasHead && outcome.systemError == 0 && outcome.headerBytes > headerBytesNearLimit:
            return headerLimit(outcome)
        case _ where isOverlongLine(outcome): return headerLimit(outcome)
        case _ where excess(outcome) == .flood: return flood(outcome)
        case _ where isBreachOfHTTP2(outcome): return breach(outcome)
        case CURLE_GOT_NOTHING:
            return Failure(.connectionLost, "the server closed the connection without an answer")
        // With TLS 1.3 a server refuses a client's certificate after the handshake.
        case CURLE_SEND_ERROR where isRefused(outcome), CURLE_RECV_ERROR where isRefused(outcome):
            return make(.tlsFailed, outcome)
        // Nothing was wrong with the connection.
        case CURLE_RECV_ERROR where outcome.isChunked && outcome.systemError == 0: return unreadable(outcome)
        case CURLE_RECV_ERROR where outcome.isInTunnel && outcome.message.contains("CONNECT tunnel failed"):
            return unreadableTunnel(outcome)
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_AGAIN, CURLE_SEND_FAIL_REWIND: return lost(outcome)
        case tooLarge: return headerLimit(outcome)
        case CURLE_PARTIAL_FILE where isReset(outcome):
            return unanswered(outcome, "the server reset the stream, and ended the connection (GOAWAY)")
        case CURLE_PARTIAL_FILE: return outcome.hasHead ? truncated(outcome) : lost(outcome)
        // A stream the server reset: asking again may help. A broken frame is the server's mistake.
        case CURLE_HTTP2_STREAM: return lost(outcome)
        // Newer versions call it that, too, where the server closes a connection without an answer.
        case CURLE_HTTP2 where outcome.secureEnd == CCURL_SECURE_ENDED && !outcome.hasHead:
            return Failure(.connectionLost, "the server closed the connection without an answer")
        case CURLE_HTTP2 where isGoaway(outcome):
            return unanswered(outcome, "the server ended the connection (GOAWAY) without an answer")
        // Versions differ in which of them they refuse before anybody has seen the field.
        case CURLE_WEIRD_SERVER_REPLY where !outcome.hasHead && outcome.message.contains("Content-Length"):
            return Failure(.protocolError, "the response's Content-Length is not one number: \(words(outcome))")
        case CURLE_HTTP2, CURLE_HTTP3, CURLE_WEIRD_SERVER_REPLY, CURLE_TOO_MANY_REDIRECTS:
            return unreadable(outcome)
        // The URL was checked before: this is HTTP/0.9 or what looks like it, the answer of something that is no server.
        case CURLE_UNSUPPORTED_PROTOCOL: return unreadable(outcome)
        case CURLE_URL_MALFORMAT: return make(.invalidURL, outcome)
        // Content-Encoding is none of curl's business: this is a Transfer-Encoding that was not asked for.
        case CURLE_BAD_CONTENT_ENCODING: return unreadable(outcome)
        case CURLE_OPERATION_TIMEDOUT: return make(outcome.isConnected ? .idleTimeout : .connectTimeout, outcome)
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_ISSUER_ERROR:
            return make(.tlsCertificate, outcome)
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH: return make(.tlsPin, outcome)
        case CURLE_SSL_CONNECT_ERROR:
            switch outcome.handshake {
            case CCURL_HANDSHAKE_CUT_OFF: return lost(outcome)
            case CCURL_HANDSHAKE_UNTRUSTED: return make(.tlsCertificate, outcome)
            default: break
            }
            var failure = make(.tlsFailed, outcome)
            // OpenSSL's words, where the two sides have no version in common: without them a sentence is missing, no more.
            if ["protocol version", "unsupported protocol"].contains(where: failure.message.contains) {
                failure.message += " (spoken are TLS 1.2 and 1.3, with REQUIRE_TLS_1_3 the latter alone)"
            }
            return failure
        case CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CIPHER, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CLIENTCERT,
            CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_ENGINE_INITFAILED,
            CURLE_SSL_CRL_BADFILE, CURLE_SSL_SHUTDOWN_FAILED, CURLE_USE_SSL_FAILED:
            return make(.tlsFailed, outcome)
        case CURLE_OUT_OF_MEMORY:
            // What curl 7.88 says when one line outgrows its own buffer of 100 KiB.
            if outcome.isConnected, !outcome.hasHead { return headerLimit(outcome) }
            // And of one of 16 KiB in a proxy's answer to CONNECT.
            if outcome.isInTunnel { return headerLimit(outcome) }
            return make(.outOfMemory, outcome)
        // What curl says of a header that begins with a folded line; our own arguments it has taken by then.
        case CURLE_BAD_FUNCTION_ARGUMENT where outcome.isConnected && !outcome.hasHead:
            return Failure(
                .protocolError, "the response's header cannot be read: its first field may begin with a space")
        case CURLE_BAD_FUNCTION_ARGUMENT where outcome.isInTunnel:
            return Failure(
                .proxyFailed,
                "\(HeaderBudget.Part.tunnel.rawValue) cannot be read: it is not HTTP, or its first field begins with a space"
            )
        // An answer of a proxy's that is not HTTP.
        case _ where outcome.isInTunnel: return unreadableTunnel(outcome)
        // A key that cannot be read.
        case _ where outcome.usesClientCertificate && !outcome.isConnected: return make(.tlsFailed, outcome)
        // Garbage in place of a trailer.
        case _ where outcome.isChunked: return unreadable(outcome)
        default: return make(.internal, outcome)
        }
    }

    /// Bytes of one line that curl takes, where that is less than a field may have: a zero is stored behind them.
    private static let maximumTunnelLine = (16 << 10) - 1
    private static let maximumTrailer = (4 << 10) - 1

    /// A line that went over one of curl's own limits.
    private static func headerLimit(_ outcome: CurlOutcome) -> Failure {
        if outcome.isInTunnel {
            return HeaderBudget.unseenLine(.tunnel, maximumBytes: maximumTunnelLine)
        }
        // The longest line would go over the limit of all together, too.
        if outcome.headerBytes > headerBytesNearLimit {
            return HeaderBudget.tooMuch(outcome.headerPart, outcome.maximumHeaderBytes)
        }
        return HeaderBudget.unseenLine(
            outcome.headerPart,
            maximumBytes: outcome.headerPart == .trailers ? maximumTrailer : HeaderBudget.maximumFieldBytes,
            behind: outcome.lastFieldName, isFirst: outcome.headerBytes == 0)
    }

    /// A line of a proxy's answer to CONNECT or, before 8.6, of trailers, that outgrew curl's own buffer: the code is that of
    /// many things. For want of memory alone curl would say the second, too, of these few bytes.
    private static func isOverlongLine(_ outcome: CurlOutcome) -> Bool {
        guard outcome.code == CURLE_RECV_ERROR, outcome.systemError == 0 else { return false }
        if outcome.isInTunnel { return outcome.message.contains("CONNECT response too large") }
        return outcome.isChunked && outcome.hasHead && outcome.message.contains("Out of memory in chunked")
    }

    /// What libcurl, or nghttp2 in it, takes no more of over HTTP/2: it ends the connection then.
    enum Excess: Equatable {
        /// A flood of what gives nothing of an answer.
        case flood
        /// Of a response's header, before anybody has seen its fields: what it has too much of.
        case header(String)
    }

    /// As was noted of its connection, or by nghttp2's words, which libcurl passes on (docs/versions.md, `floods`).
    static func excess(_ outcome: CurlOutcome) -> Excess? {
        let message = outcome.message
        guard outcome.isHTTP2 else { return nil }
        if outcome.isFlooded { return .flood }
        guard outcome.systemError == 0 else { return nil }
        // Where the server reads no answers, libcurl cannot send them, and has no words for that. For the first stream that fails
        // of it libcurl may have closed the connection by now; what the others meet is that.
        if outcome.code == CURLE_SEND_ERROR, message.isEmpty,
            outcome.secureEnd == CCURL_SECURE_OPEN || outcome.secureEnd == CCURL_SECURE_LEFT && outcome.isFirst
        {
            return .flood
        }
        // From 8.14.0 on the first stream that hears of it may have the other code.
        guard [CURLE_RECV_ERROR, CURLE_HTTP2].contains(outcome.code) else { return nil }
        if isFlood(message) { return isOfAnother(outcome) ? nil : .flood }
        guard outcome.code == CURLE_RECV_ERROR else { return nil }
        // libcurl's own callback, which fails for want of room alone.
        if message.contains("user callback function failed") {
            return .header("more than 128 KiB at once over HTTP/2, which is libcurl's limit")
        }
        guard message.contains("Too many CONTINUATION frames") else { return nil }
        return .header("more frames of HTTP/2 than nghttp2 takes")
    }

    /// Whether it ended for a flood: nobody asks again then.
    static func isFlood(_ outcome: CurlOutcome) -> Bool {
        if excess(outcome) == .flood { return true }
        return isCutFlood(outcome.code == CURLE_OK ? lostHeader : cause(outcome), outcome)
    }

    /// Whether a flood's own server has ended it, with the connection.
    private static func isCutFlood(_ failure: Failure, _ outcome: CurlOutcome) -> Bool {
        failure.code == .connectionLost && outcome.strayBytes >= Silence.floodBytes
    }

    private static func isFlood(_ message: String) -> Bool { message.contains("Flooding was detected") }

    /// Whether the message is about another connection, which flooded while nobody used it: older versions of curl close that in
    /// the name of a transfer that looks for one. A flood is a thousand frames of nine bytes at least.
    private static func isOfAnother(_ outcome: CurlOutcome) -> Bool {
        isFlood(outcome.message) && outcome.readBytes.map { $0 < 4096 } ?? false
    }

    /// Whether frames broke the rules of HTTP/2. nghttp2 gives the connection up then, and libcurl closes it, though the server
    /// has not; older versions say no more than that nothing came.
    static func isBreachOfHTTP2(_ outcome: CurlOutcome) -> Bool {
        if excess(outcome) == .flood { return true }
        guard outcome.isHTTP2, outcome.systemError == 0 else { return false }
        switch outcome.code {
        case CURLE_HTTP2:
            return outcome.tellsGoawayApart && [CCURL_SECURE_OPEN, CCURL_SECURE_LEFT].contains(outcome.secureEnd)
        // What nghttp2 does not read. A stream that was refused ends so, too, but curl has closed its connection by then.
        case CURLE_RECV_ERROR:
            return outcome.secureEnd == CCURL_SECURE_OPEN && !isUnseenRequest(outcome.code, outcome.message)
        // On a connection that stays, these are the end of one stream. Where it was reset, the system says so to the stream
        // that curl was reading for, and to no other.
        case CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE:
            return outcome.secureEnd == CCURL_SECURE_LEFT && !outcome.isShared && !isEndOfTCP(outcome.message)
                && !isReset(outcome)
        default: return false
        }
    }

    /// Whether the server has reset a stream of HTTP/2 that was the last one of its connection, which takes no more: curl 7.88
    /// has no words for that alone, and does not say why it was reset. It may have been refused. Newer versions have words for it,
    /// and none where a connection ended within an answer.
    static func isReset(_ outcome: CurlOutcome) -> Bool {
        outcome.isHTTP2 && !outcome.tellsGoawayApart && outcome.code == CURLE_PARTIAL_FILE && outcome.message.isEmpty
    }

    /// Whether the server has ended TCP without the goodbye of TLS, which OpenSSL does not note where curl reads for it.
    private static func isEndOfTCP(_ message: String) -> Bool {
        message.contains("before end of the underlying stream")
    }

    /// Whether the server has ended the connection before its answer: older versions of curl have no more to say of a GOAWAY.
    private static func isGoaway(_ outcome: CurlOutcome) -> Bool {
        outcome.isHTTP2 && !outcome.hasHead && !outcome.tellsGoawayApart
    }

    /// What of the answer is no HTTP; trailers are part of a body that comes in chunks.
    private static func unreadable(_ outcome: CurlOutcome) -> Failure {
        // curl 7.88 has no words for a GOAWAY that does not count the stream of an answer which has begun.
        let cause =
            ownWords(outcome) == nil && outcome.code == CURLE_HTTP2
            ? "the server broke the rules of HTTP/2, or ended the connection (GOAWAY) within the answer"
            : words(outcome)
        return Failure(.protocolError, "the response's \(outcome.hasHead ? "body" : "header") cannot be read: \(cause)")
    }

    private static func unreadableTunnel(_ outcome: CurlOutcome) -> Failure {
        Failure(.proxyFailed, "\(HeaderBudget.Part.tunnel.rawValue) cannot be read: \(words(outcome))")
    }

    /// How far the answer had come is ours to say: curl has no words where a stream ends too early, or general ones.
    private static func truncated(_ outcome: CurlOutcome) -> Failure {
        Failure(.truncated, "the answer's body ends after \(received(outcome))\(reason(outcome))")
    }

    private static func lost(_ outcome: CurlOutcome) -> Failure {
        let what = outcome.code == CURLE_HTTP2_STREAM ? "the stream" : "the connection"
        let place =
            switch outcome {
            case _ where outcome.hasHead: "after \(received(outcome)) of the body"
            case _ where outcome.headerBytes > 0: "after \(outcome.headerBytes) bytes of the response's header"
            case _ where outcome.isConnected: "before the answer"
            default: "while it was being made"
            }
        return Failure(.connectionLost, "\(what) was lost \(place)\(reason(outcome))")
    }

    private static func received(_ outcome: CurlOutcome) -> String {
        outcome.announcedBytes.map { "\(outcome.bodyBytes) of \($0) bytes" } ?? "\(outcome.bodyBytes) bytes"
    }

    private static func unanswered(_ outcome: CurlOutcome, _ sentence: String) -> Failure {
        guard !outcome.hasHead, !RetryRules.isIdempotent(outcome.method) else {
            return Failure(.connectionLost, sentence)
        }
        return Failure(
            .connectionLost,
            "\(sentence); \(outcome.method) is not sent again, since the server may have done what it asks")
    }

    private static func breach(_ outcome: CurlOutcome) -> Failure {
        let closed = "and its connection was closed"
        let broken = "the server broke the rules of HTTP/2"
        // For the others curl has words of a connection that was lost.
        let sentence =
            switch outcome.code {
            case CURLE_RECV_ERROR: "\(broken), \(closed): \(words(outcome))"
            // nghttp2 does not tell them apart.
            case _ where !outcome.hasHead: "\(broken), or sent a field of more than 64 KiB, \(closed)"
            default: "\(broken), \(closed)"
            }
        return Failure(.protocolError, sentence)
    }

    /// Floods need break no rule.
    private static func flood(_ outcome: CurlOutcome) -> Failure {
        let flood = "the server sent a flood on this connection"
        let closed = "and it was closed"
        let sentence =
            switch outcome.code {
            case _ where outcome.isFlooded: "\(flood) that gave nothing of an answer, \(closed)"
            case CURLE_SEND_ERROR: "\(flood) of frames that must be answered, and reads no answers, \(closed)"
            default: "\(flood), \(closed): \(words(outcome))"
            }
        return Failure(.flood, sentence)
    }

    /// Whether the server has not looked at the request, as often as curl has sent it. For sending and receiving curl says
    /// what it met last, and no number tells. Behind a proxy it sends streams on a connection that is still being made: that sends
    /// nothing, and is no loss. From 8.23.0 on a GOAWAY that does not count a stream ends it with the GOAWAY's own
    /// code and by curl's hand: with this one only then.
    static func isUnseenRequest(_ code: CURLcode, _ message: String) -> Bool {
        if code == CURLE_FAILED_INIT { return message.contains("send: no filter connected") }
        if code == CURLE_HTTP2_STREAM { return message.contains("reset by curl (error 0xb ") }
        return [CURLE_SEND_ERROR, CURLE_RECV_ERROR].contains(code) && message.contains("before giving up")
    }

    private static func isRefused(_ outcome: CurlOutcome) -> Bool {
        !outcome.hasHead && outcome.handshake == CCURL_HANDSHAKE_REFUSED
    }

    private static func make(_ code: ErrorCode, _ outcome: CurlOutcome) -> Failure { Failure(code, words(outcome)) }

    /// nil: it was no call of the system's that failed.
    private static func systemWords(_ outcome: CurlOutcome) -> String? {
        outcome.systemError == 0 ? nil : String(cString: strerror(outcome.systemError))
    }

    private static func words(_ outcome: CurlOutcome) -> String {
        ownWords(outcome) ?? String(cString: curl_easy_strerror(outcome.code))
    }

    /// For the end of a sentence that says something without it.
    private static func reason(_ outcome: CurlOutcome) -> String { ownWords(outcome).map { ": \($0)" } ?? "" }

    /// nil: curl has none for this transfer.
    private static func ownWords(_ outcome: CurlOutcome) -> String? {
        var text = outcome.message
        while text.last?.isWhitespace == true { text.removeLast() }
        guard !text.isEmpty, text != String(cString: curl_easy_strerror(outcome.code)), !isOfAnother(outcome) else {
            return nil
        }
        for secret in outcome.secrets where !secret.isEmpty {
            text = text.replacing(secret, with: QueryRedaction.mark)
        }
        return text
    }
}
