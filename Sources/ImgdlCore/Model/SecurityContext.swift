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
    /// False: anybody may have answered it.
    let isVerified: Bool

    /// `request`: as it is sent, whatever changed it on the way. `cookies`: the Cookie field that is made of a jar; nil: none.
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
        trust.add(tls.authoritiesDigest)
        trust.add(tls.clientDigest)
        trust.add(tls.allowsInvalidCertificates)
        var credentials = ContextMessage()
        credentials.add(identity.credential?.user)
        credentials.add(identity.credential?.password)
        credentials.add(identity.allowsBasicOverHTTP)
        credentials.add(cookies)
        var own = ContextMessage()
        own.add(request.body)
        // In an order of their own: that of fields of different names means nothing.
        for (name, values) in Self.named(request.fields) {
            if ContextFields.areCredentials(name) {
                credentials.add(name)
                credentials.add(values)
            } else if !ContextFields.areForAll(name) {
                own.add(name)
                own.add(values)
            }
        }
        self.trust = trust
        self.request = own
        self.credentials = credentials
        isVerified = !tls.allowsInvalidCertificates || !request.url.isSecure
    }

    private static func named(_ fields: [HeaderField]) -> [(name: String, values: String)] {
        var named: [(name: String, values: String)] = []
        for field in fields {
            let name = field.name.lowercased()
            // As one field, as far as that changes nothing in its meaning.
            let value = listMembers(field.value).joined(separator: ",")
            if let index = named.firstIndex(where: { $0.name == name }) {
                named[index].values += "," + value
            } else {
                named.append((name, value))
            }
        }
        return named.sorted { $0.name < $1.name }
    }
}

/// Which header fields of a request say something about who asks. All do that are not named here: nobody knows what a
/// server makes of them.
enum ContextFields {
    /// Fields that Vary and the rules of caching are for, and those that say nothing of who asks.
    private static let forAll: Set<String> = [
        "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "pragma", "range",
        "if-match",
        "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "user-agent", "referer", "priority",
        "dnt",
        "upgrade-insecure-requests", "save-data", "sec-gpc", "traceparent", "tracestate", "baggage", "b3",
        "x-b3-traceid",
        "x-b3-spanid", "x-b3-parentspanid", "x-b3-sampled", "x-b3-flags", "x-request-id", "x-correlation-id",
        "x-cloud-trace-context", "x-amzn-trace-id", "sentry-trace", "uber-trace-id",
    ]

    /// In lower case.
    static func areForAll(_ name: String) -> Bool { forAll.contains(name) }

    static func areCredentials(_ name: String) -> Bool {
        name == "authorization" || name == "cookie" || name == "proxy-authorization"
    }
}

/// Parts one behind the other, so that no two lists of parts have the same bytes.
package struct ContextMessage: Equatable, Sendable {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    package mutating func add(_ part: some Collection<UInt8>) {
        bytes.append(1)
        withUnsafeBytes(of: UInt64(part.count).littleEndian) { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: part)
    }

    package mutating func add(_ part: [UInt8]?) { if let part { add(part) } else { bytes.append(0) } }

    package mutating func add(_ text: String?) { if let text { add(text.utf8) } else { bytes.append(0) } }

    package mutating func add(_ fact: Bool) { bytes.append(fact ? 3 : 2) }
}
