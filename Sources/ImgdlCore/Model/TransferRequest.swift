/// What of a request is about the bytes. Requests that are equal in it share one transfer (features B4, K12, I21).
package final class TransferRequest: Hashable, Sendable {
    package let url: ParsedURL
    package let method: String
    /// Everything that will be sent, the downloader's header fields included.
    package let fields: [HeaderField]
    package let body: [UInt8]?
    package let followsRedirects: Bool
    /// Follow from https to http.
    package let allowsDowngrade: Bool
    /// For the first origin alone.
    package let credential: Credential?
    package let usesCookies: Bool
    package let tls: TLSOptions
    package let cacheMode: CacheMode
    /// Compared by identity.
    package let hooks: (any Hooks)?
    private let hash: Int

    package init(
        url: ParsedURL, method: String = "GET", fields: [HeaderField] = [], body: [UInt8]? = nil,
        followsRedirects: Bool = true, allowsDowngrade: Bool = false, credential: Credential? = nil,
        usesCookies: Bool = false, tls: TLSOptions = TLSOptions(), cacheMode: CacheMode = .off,
        hooks: (any Hooks)? = nil
    ) {
        self.url = url
        self.method = method
        self.fields = fields
        self.body = body
        self.followsRedirects = followsRedirects
        self.allowsDowngrade = allowsDowngrade
        self.credential = credential
        self.usesCookies = usesCookies
        self.tls = tls
        self.cacheMode = cacheMode
        self.hooks = hooks
        // The rest seldom differs: equality decides.
        self.hash = url.canonical.hashValue
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(hash) }

    package static func == (left: TransferRequest, right: TransferRequest) -> Bool {
        if left === right { return true }
        return left.hash == right.hash && left.url == right.url && left.method == right.method
            && left.fields == right.fields && left.body == right.body
            && left.followsRedirects == right.followsRedirects && left.allowsDowngrade == right.allowsDowngrade
            && left.credential == right.credential && left.usesCookies == right.usesCookies && left.tls == right.tls
            && left.cacheMode == right.cacheMode && left.hooks === right.hooks
    }
}
