/// Everything that can change who is answered, by whom, and how far the answer is trusted, of one exchange. It decides who
/// may have what is stored: nothing that was answered in one context answers another, but for responses that say `public`,
/// which other credentials of the same trust may have, too. So it does who shares a transfer that runs, and for whom a
/// failure is remembered; its trust alone decides which connections and TLS sessions a request may use.
///
/// What all requests of a downloader have in common (`Transport.trust`) is no part of the value: wherever two of them are
/// compared, they are of one downloader. It is added to what is kept for others (`StoredContext`).
package struct SecurityContext: Hashable, Sendable {
    package let trust: Trust
    /// What it asks besides the URL and what Vary is for: Host, fields of the caller's, a body.
    let request: ContextMessage
    /// As whom it asks: user and password, Authorization, cookies.
    let credentials: ContextMessage

    /// Whom a request trusts, and for which account. A connection made in one trust never serves a request of another
    /// over https (features B17).
    package struct Trust: Hashable, Sendable {
        fileprivate let message: ContextMessage
        /// False: it may trust anybody. Its answers are not stored, not even over http.
        let isVerified: Bool

        /// Contents of files by their digests: what holds it holds no private key.
        package init(_ trust: RequestTrust) {
            let tls = trust.tls
            var message = ContextMessage()
            message.add(trust.partition)
            message.add(tls.certificateAuthorities)
            message.add(tls.clientCertificate)
            message.add(tls.clientKey)
            message.add(tls.clientKeyPassword)
            message.add(tls.pinnedPublicKey)
            message.add(tls.authorities?.digest)
            message.add(tls.certificate?.digest)
            message.add(tls.key?.digest)
            message.add(tls.allowsInvalidCertificates)
            self.message = message
            isVerified = !tls.allowsInvalidCertificates
        }

        /// `downloader`: what all its requests have in common (`Transport.trust`).
        fileprivate func message(of downloader: [UInt8]) -> ContextMessage {
            var whole = ContextMessage()
            whole.add(downloader)
            whole.add(parts: message)
            return whole
        }
    }

    /// `manner`: as it is sent, whatever changed it on the way. `cookies`: the line of the Cookie field that is made of a
    /// jar; nil: none.
    package init(_ manner: RequestManner, cookies: [UInt8]?) {
        var credentials = ContextMessage()
        credentials.add(manner.credential?.user)
        credentials.add(manner.credential?.password)
        credentials.add(manner.identity.allowsBasicOverHTTP)
        for line in Self.cookieLines(manner.fields, cookies) { credentials.add(line) }
        credentials.add(nil as [UInt8]?)
        var own = ContextMessage()
        own.add(manner.body)
        for field in ContextFields.named(manner.fields) where !ContextFields.areForAll(field.name) {
            if ContextFields.isCookie(field.name) { continue }
            if ContextFields.areCredentials(field.name) { credentials.add(field) } else { own.add(field) }
        }
        trust = Trust(manner.identity.trust)
        request = own
        self.credentials = credentials
    }

    /// The lines that are sent: what a jar has makes one, and the caller's own are in it.
    private static func cookieLines(_ fields: [HeaderField], _ cookies: [UInt8]?) -> [[UInt8]] {
        if let cookies { return [cookies] }
        return ContextFields.cookies(fields).map { Array("Cookie: \($0)".utf8) }
    }

    /// Of memory.
    var byteCount: Int { trust.message.bytes.count + request.bytes.count + credentials.bytes.count }
}

extension ContextMessage {
    fileprivate mutating func add(_ field: HeaderField) {
        add(field.name)
        add(field.value)
    }
}

extension StoredContext {
    /// nil: what is answered in it is not stored, and nothing that is stored answers it. `downloader`: what all its
    /// requests have in common (`Transport.trust`).
    package init?(
        _ context: SecurityContext, downloader: [UInt8], _ digest: (ContextMessage) -> ContextDigest
    ) {
        guard context.trust.isVerified else { return nil }
        self.init(
            trust: digest(context.trust.message(of: downloader)), request: digest(context.request),
            credentials: digest(context.credentials))
    }

    /// Whether what was answered in this context may answer another. `isForAll`: the response says so itself (public,
    /// RFC 9111 section 5.2.2.9).
    func answers(_ asked: StoredContext, isForAll: Bool) -> Bool {
        trust == asked.trust && request == asked.request && (isForAll || credentials == asked.credentials)
    }
}
