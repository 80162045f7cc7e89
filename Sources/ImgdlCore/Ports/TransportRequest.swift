/// One exchange with one server. Redirects and retries are the engine's: each hop is a request of its own.
package struct TransportRequest: Sendable {
    package var url: ParsedURL
    /// Of all header fields of one response together.
    package var maximumHeaderBytes: Int
    package var priority: Priority
    /// Requests with the same one differ in nothing else.
    package private(set) var manner: RequestManner

    package init(url: ParsedURL, _ manner: RequestManner, maximumHeaderBytes: Int, priority: Priority = .normal) {
        self.url = url
        self.manner = manner
        self.maximumHeaderBytes = maximumHeaderBytes
        self.priority = priority
    }

    package init(
        url: ParsedURL, method: String, fields: [HeaderField], body: [UInt8]?, maximumHeaderBytes: Int,
        identity: RequestIdentity = RequestIdentity(), priority: Priority = .normal
    ) {
        self.init(
            url: url, RequestManner(method: method, fields: fields, body: body, identity: identity),
            maximumHeaderBytes: maximumHeaderBytes, priority: priority)
    }

    /// Any token (RFC 9110 section 9); "HEAD" has no body to receive.
    package var method: String {
        get { manner.method }
        set { manner = manner.with { $0.method = newValue } }
    }
    /// Header fields of the request. The transport adds Host and Accept-Encoding unless they are given here, the
    /// cookies of its jar, the credential's Authorization, and what frames the request.
    package var fields: [HeaderField] {
        get { manner.fields }
        set { manner = manner.with { $0.fields = newValue } }
    }
    package var body: [UInt8]? {
        get { manner.body }
        set { manner = manner.with { $0.body = newValue } }
    }
    package var identity: RequestIdentity {
        get { manner.identity }
        set { manner = manner.with { $0.identity = newValue } }
    }
    /// Sent as the server asks, Basic or Digest, over http Digest alone unless `allowsBasicOverHTTP`; the 401 before is
    /// not reported then, a second one is.
    package var credential: Credential? {
        get { manner.identity.credential }
        set { manner = manner.with { $0.identity.credential = newValue } }
    }
    /// It says by a password or in its Authorization who asks.
    package var namesSomebody: Bool { credential != nil || fields.first(named: "Authorization") != nil }
    package var allowsBasicOverHTTP: Bool { manner.identity.allowsBasicOverHTTP }
    package var usesCookies: Bool { manner.identity.usesCookies }
    package var tls: TLSOptions { manner.identity.trust.tls }
    package var partition: String { manner.partition }

    /// As whom it appears is for one origin alone.
    package mutating func forgetClient() {
        if tls.clientCertificate != nil { manner = manner.with { $0.identity.trust.tls.forgetClient() } }
    }
}

/// What is sent besides the URL, and as whom. An object, since most requests of a program have one in common: what has
/// been found out about it once holds for all of them, and nothing is copied.
package final class RequestManner: Equatable, Sendable {
    package struct Values: Equatable, Sendable {
        package var method: String
        package var fields: [HeaderField]
        package var body: [UInt8]?
        package var identity: RequestIdentity
    }

    private let values: Values
    /// Made when it is first asked for: most requests are compared with none but such of the same manner.
    private let knownMeaning = OnceReference<KnownMeaning>()

    private final class KnownMeaning: Sendable {
        let meaning: RequestMeaning

        init(_ meaning: RequestMeaning) { self.meaning = meaning }
    }

    package convenience init(method: String, fields: [HeaderField], body: [UInt8]?, identity: RequestIdentity) {
        self.init(Values(method: method, fields: fields, body: body, identity: identity))
    }

    private init(_ values: Values) { self.values = values }

    package var method: String { values.method }
    package var fields: [HeaderField] { values.fields }
    package var body: [UInt8]? { values.body }
    package var hasBody: Bool { values.body != nil }
    package var identity: RequestIdentity { values.identity }
    package var credential: Credential? { values.identity.credential }
    package var partition: String { values.identity.trust.partition }
    /// Refusal of any request that is made so: `tlsFailed`, for files that cannot be used.
    package var refusal: Failure? { values.identity.trust.tls.unusable.map { Failure(.tlsFailed, $0) } }
    /// With the cookies that the jar had when it was asked for.
    package var meaning: RequestMeaning { known.meaning }
    package var context: SecurityContext { known.meaning.context }
    /// Compared where it is: a copy counts each of its parts.
    package func trusts(_ trust: SecurityContext.Trust) -> Bool {
        knownMeaning.look { $0.meaning.context.trust == trust } ?? (known.meaning.context.trust == trust)
    }

    /// Its security context where the jar makes this line of the Cookie field; nil: none.
    package func context(cookies: [UInt8]?) -> SecurityContext {
        cookies == identity.cookies ? context : SecurityContext(self, cookies: cookies)
    }

    private var known: KnownMeaning {
        knownMeaning.object(orSet: { KnownMeaning(RequestMeaning(self, cookies: identity.cookies)) })
    }

    /// Whether it means the same, and will when it is sent once more or elsewhere. `false` also where the jar has a say in one
    /// alone, though they ask with the same cookies now: the jar learns from the answers to that one, and is asked anew
    /// before each attempt and each redirect.
    package func asksAlike(_ other: RequestManner) -> Bool {
        self == other || meaning == other.meaning && cookiesBesidesJar == other.cookiesBesidesJar
    }

    /// The caller's own, to which the jar adds its; nil: it has no say.
    var cookiesBesidesJar: [String]? { identity.usesCookies ? ContextFields.cookies(fields) : nil }

    package func with(_ change: (inout Values) -> Void) -> RequestManner {
        var changed = values
        change(&changed)
        return RequestManner(changed)
    }

    package static func == (left: RequestManner, right: RequestManner) -> Bool {
        left === right || left.values == right.values
    }
}
