/// What the rules of caching need to know of a request.
package struct CacheRequest: Sendable {
    package var method: String
    /// Everything that will be sent, besides what the transport makes itself.
    package var fields: [HeaderField]
    package var mode: CacheMode
    /// Follows a redirect, and so has no use for its body.
    package var followsRedirects: Bool
    package var staleLimit: StaleLimit
    /// Who asks, and whom it trusts. nil: nothing that is stored answers it, and its answer is not stored.
    package var context: StoredContext?

    package init(
        method: String, fields: [HeaderField], mode: CacheMode, followsRedirects: Bool = true,
        staleLimit: StaleLimit = .none, context: StoredContext?
    ) {
        self.method = method
        self.fields = fields
        self.mode = mode
        self.followsRedirects = followsRedirects
        self.staleLimit = staleLimit
        self.context = context
    }
}

/// Whether a stored response that is stale may take the place of an answer that did not come. Times are seconds since 1970.
package enum StaleUse: Equatable, Sendable {
    case never
    /// In place of no answer at all, up to this time: "disconnected" (RFC 9111 section 4.2.4).
    case whenUnreachable(until: Int64)
    /// In place of an error, too, up to this time (RFC 5861 section 4).
    case onError(until: Int64)
}

/// What becomes of a request, given what is stored. `index`: in the list of what is stored.
package enum CacheDecision: Equatable, Sendable {
    /// Ask the server as if there were no cache, with these fields added. `stores`: the answer may be stored.
    case forward(adding: [HeaderField], stores: Bool)
    /// Answer with it. `head` has Age. `revalidates`: and validate it in the background (RFC 5861 section 3): ask
    /// with these fields, and have this decided again.
    case answer(index: Int, head: ResponseHead, outcome: CacheOutcome, revalidates: [HeaderField]?)
    /// Answer the caller's own condition or range without the body, or with this part of it: 304, 206, 416.
    /// `revalidates`: as of `answer`.
    case answerPart(
        index: Int, head: ResponseHead, outcome: CacheOutcome, range: Range<Int64>?, revalidates: [HeaderField]?)
    /// Ask with these fields added, which may be none; 304: answer with it (RFC 9111 section 4.3). `stale`: whether it
    /// may stand in for an answer, as `CacheRules.mayUse` says.
    case validate(index: Int, adding: [HeaderField], stale: StaleUse)
    /// Ask for the rest, with these fields added; 206: answer with both together (RFC 9111 section 3.4, features B11).
    case resume(index: Int, adding: [HeaderField])
    /// only-if-cached, and nothing fits: 504 in RFC 9111 section 5.2.1.7, `notCached` here.
    case unavailable

    /// An answer that is validated in the background.
    func revalidating(_ fields: [HeaderField]) -> CacheDecision {
        switch self {
        case .answer(let index, let head, let outcome, _):
            .answer(index: index, head: head, outcome: outcome, revalidates: fields)
        case .answerPart(let index, let head, let outcome, let range, _):
            .answerPart(index: index, head: head, outcome: outcome, range: range, revalidates: fields)
        case .forward, .validate, .resume, .unavailable: self
        }
    }

    /// What is stored answers it, and nobody is asked.
    var isAnswer: Bool {
        switch self {
        case .answer, .answerPart: true
        case .forward, .validate, .resume, .unavailable: false
        }
    }
}
