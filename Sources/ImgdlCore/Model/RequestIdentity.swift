/// As whom a request asks, and whom it trusts. An option that can change who is answered, by whom, or how far the answer is
/// trusted belongs here: requests that differ in it share nothing.
package struct RequestIdentity: Hashable, Sendable {
    package var trust: RequestTrust
    /// For the first origin alone.
    package var credential: Credential?
    /// A password may be readable to everybody on the way.
    package var allowsBasicOverHTTP: Bool
    package var usesCookies: Bool
    /// The Cookie field that the jar had for it when it was asked for: who asks later with another one gets another answer.
    package var cookies: [UInt8]?

    package init(
        trust: RequestTrust = RequestTrust(), credential: Credential? = nil, allowsBasicOverHTTP: Bool = false,
        usesCookies: Bool = false
    ) {
        self.trust = trust
        self.credential = credential
        self.allowsBasicOverHTTP = allowsBasicOverHTTP
        self.usesCookies = usesCookies
        cookies = nil
    }
}

/// What decides alone which connections and TLS sessions a request may use, as it is asked for (`SecurityContext.Trust`).
package struct RequestTrust: Hashable, Sendable {
    package var tls: TLSOptions
    /// Of a program with several accounts, the one that asks: the caller's own word.
    @ExactText package var partition: String

    package init(tls: TLSOptions = TLSOptions(), partition: String = "") {
        self.tls = tls
        self.partition = partition
    }
}
