/// What the rules of caching need to know of a request.
package struct CacheRequest: Sendable {
    package var method: String
    /// Everything that will be sent, besides what the transport makes itself.
    package var fields: [HeaderField]
    package var mode: CacheMode
    /// Follows a redirect, and so has no use for its body.
    package var followsRedirects: Bool
    /// Fields that the transport makes itself, in lower case ("cookie", "authorization"): a response that varies over them
    /// is never used (features B4).
    package var unknownFields: [String]

    package init(
        method: String, fields: [HeaderField], mode: CacheMode, followsRedirects: Bool = true, unknownFields: [String] = []
    ) {
        self.method = method
        self.fields = fields
        self.mode = mode
        self.followsRedirects = followsRedirects
        self.unknownFields = unknownFields
    }
}

/// What becomes of a request, given what is stored. `index`: in the list of what is stored.
package enum CacheDecision: Equatable, Sendable {
    /// Ask the server as if there were no cache. `stores`: the answer may be stored.
    case forward(stores: Bool)
    /// Answer with it. `head` has Age. `revalidates`: and validate it in the background (RFC 5861 section 3), with these
    /// fields added.
    case answer(index: Int, head: ResponseHead, outcome: CacheOutcome, revalidates: [HeaderField]?)
    /// Answer the caller's own condition or range without the body, or with this part of it: 304, 206, 416.
    case answerPart(index: Int, head: ResponseHead, outcome: CacheOutcome, range: Range<Int64>?)
    /// Ask with these fields added; 304: answer with it (RFC 9111 section 4.3). `staleOnError`: seconds it may be used past
    /// its freshness when the server cannot be reached or answers with an error (RFC 5861 section 4); nil: never.
    case validate(index: Int, adding: [HeaderField], staleUntil: Int64?)
    /// Ask for the rest, with these fields added; 206: answer with both together (RFC 9111 section 3.4, features B11).
    case resume(index: Int, adding: [HeaderField])
    /// only-if-cached, and nothing fits: 504 in RFC 9111 section 5.2.1.7, `notCached` here.
    case unavailable
}
