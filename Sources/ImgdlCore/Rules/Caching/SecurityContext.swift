/// Everything that can change who is answered, by whom, and how far the answer is trusted, of one exchange. It decides who
/// may have what is stored: nothing that was answered in one context answers another, but for responses that say `public`,
/// which other credentials of the same trust may have, too.
package struct SecurityContext: Equatable, Sendable {
    /// Whom the request trusts, on which way it goes, and for which account: TLS, proxy, denied addresses, partition.
    let trust: ContextMessage
    /// What it asks besides the URL and what Vary is for: Host, fields of the caller's, a body.
    let request: ContextMessage
    /// As whom it asks: user and password, Authorization, cookies.
    let credentials: ContextMessage
    /// False: it may trust anybody. Its answers are not stored, not even over http.
    let isVerified: Bool

    /// `request`: as it is sent, whatever changed it on the way. `cookies`: the line of the Cookie field that is made of a jar; nil: none.
    /// `downloader`: what all its requests have in common (`Transport.trust`).
    package init(_ request: TransportRequest, cookies: [UInt8]?, downloader: [UInt8]) {
        let identity = request.manner.identity
        let tls = identity.trust.tls
        var trust = ContextMessage()
        trust.add(downloader)
        trust.add(identity.trust.partition)
        trust.add(tls.certificateAuthorities)
        trust.add(tls.clientCertificate)
        trust.add(tls.clientKey)
        trust.add(tls.clientKeyPassword)
        trust.add(tls.pinnedPublicKey)
        trust.add(tls.authorities?.digest)
        trust.add(tls.certificate?.digest)
        trust.add(tls.key?.digest)
        trust.add(tls.allowsInvalidCertificates)
        var credentials = ContextMessage()
        credentials.add(identity.credential?.user)
        credentials.add(identity.credential?.password)
        credentials.add(identity.allowsBasicOverHTTP)
        for line in Self.cookieLines(request.fields, cookies) { credentials.add(line) }
        credentials.add(nil as [UInt8]?)
        var own = ContextMessage()
        own.add(request.body)
        for field in Self.named(request.fields) where !ContextFields.areForAll(field.name) {
            if ContextFields.isCookie(field.name) { continue }
            if ContextFields.areCredentials(field.name) { credentials.add(field) } else { own.add(field) }
        }
        self.trust = trust
        self.request = own
        self.credentials = credentials
        isVerified = !tls.allowsInvalidCertificates
    }

    /// The lines that are sent: what a jar has makes one, and the caller's own are in it.
    private static func cookieLines(_ fields: [HeaderField], _ cookies: [UInt8]?) -> [[UInt8]] {
        if let cookies { return [cookies] }
        return fields.filter { ContextFields.isCookie($0.name.lowercased()) }.map { Array("Cookie: \($0.value)".utf8) }
    }

    /// With names in lower case, in an order of their own: that of fields of different names means nothing. Values stay as
    /// they are written: nobody knows what a server makes of a comma in a signature.
    private static func named(_ fields: [HeaderField]) -> [HeaderField] {
        let named = fields.enumerated().map { (name: $1.name.lowercased(), index: $0, value: $1.value) }
        return named.sorted { ($0.name, $0.index) < ($1.name, $1.index) }.map { HeaderField($0.name, $0.value) }
    }
}

extension ContextMessage {
    fileprivate mutating func add(_ field: HeaderField) {
        add(field.name)
        add(field.value)
    }
}

extension StoredContext {
    /// nil: what is answered in it is not stored, and nothing that is stored answers it.
    package init?(_ context: SecurityContext, _ digest: (ContextMessage) -> ContextDigest) {
        guard context.isVerified else { return nil }
        self.init(
            trust: digest(context.trust), request: digest(context.request), credentials: digest(context.credentials))
    }

    /// Whether what was answered in this context may answer another. `isForAll`: the response says so itself (public,
    /// RFC 9111 section 5.2.2.9).
    func answers(_ asked: StoredContext, isForAll: Bool) -> Bool {
        trust == asked.trust && request == asked.request && (isForAll || credentials == asked.credentials)
    }
}

/// Header fields of a request, by what they say about who asks. All say something that are not named here: nobody knows what
/// a server makes of them.
enum ContextFields {
    /// Vary and the rules of caching are for the first of them; the others say nothing of who asks. In lower case.
    static func areForAll(_ name: String) -> Bool { forAll.contains(name) }

    /// docs/caching.md has them, as a table.
    static let forAll: Set<String> = [
        "accept", "accept-charset", "accept-encoding", "accept-language",
        "cache-control", "pragma", "range",
        "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since",
        "user-agent", "referer", "priority", "dnt", "save-data", "sec-gpc", "upgrade-insecure-requests",
        "traceparent", "tracestate", "baggage", "b3", "x-b3-traceid", "x-b3-spanid", "x-b3-parentspanid",
        "x-b3-sampled", "x-b3-flags", "x-request-id", "x-correlation-id", "x-cloud-trace-context", "x-amzn-trace-id",
        "sentry-trace", "uber-trace-id",
    ]

    static let credentials = ["authorization", "cookie", "proxy-authorization"]

    static func isCookie(_ name: String) -> Bool { name == "cookie" }

    static func areCredentials(_ name: String) -> Bool { credentials.contains(name) }
}
