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

    /// With names in lower case, in an order of their own: that of fields of different names means nothing. Values stay as
    /// they are written: nobody knows what a server makes of a comma in a signature.
    static func named(_ fields: [HeaderField]) -> [HeaderField] {
        let named = fields.enumerated().map { (name: $1.name.lowercased(), index: $0, value: $1.value) }
        return named.sorted { ($0.name, $0.index) < ($1.name, $1.index) }.map { HeaderField($0.name, $0.value) }
    }

    /// Values of the caller's own Cookie fields.
    static func cookies(_ fields: [HeaderField]) -> [String] {
        fields.filter { isCookie($0.name.lowercased()) }.map(\.value)
    }
}
