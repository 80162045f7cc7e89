/// What the cache is asked of one exchange of a transfer.
package struct Consultation: Equatable, Sendable {
    package enum Kind: Equatable, Sendable {
        /// What the first hop's request would bring.
        case first
        /// What the redirect leads to.
        indirect case redirect(Redirect)
        /// What the same would bring with this credential.
        case challenge(Credential)
        /// The same as the last time: its turn has come.
        case again
        /// The stored response that the server's answer points to: a validation went well, or the server is in trouble.
        case answer
        /// The stored response that may be used since the server cannot be reached (RFC 5861 section 4).
        case standIn
    }

    package let kind: Kind
    /// Counted within its transfer: tells late answers from good ones.
    package let number: UInt64

    package init(_ kind: Kind, number: UInt64) {
        self.kind = kind
        self.number = number
    }
}

/// What came of a consultation, in the terms of the rules; the engine keeps entries and bodies itself.
package enum CacheAnswer: Equatable, Sendable {
    /// The server has to be asked. `fallbackUntil`: so long a stored response may stand in for it; nil: never.
    case forward(fallbackUntil: Instant?)
    /// Ask again when its turn has come: what is stored is too much to be held by what waits.
    case later
    /// A stored response follows: its head, its body and its end are reported at once, as if they were received.
    case play
    case unavailable(Failure)
}

/// What one attempt of a transfer has to do with the cache.
struct CacheUse {
    /// Of consultations.
    var number: UInt64 = 0
    /// The exchange was consulted about in this attempt, and hooks asked about the request.
    var hasBegun = false
    /// Its answer may be stored.
    var isExchanging = false
    /// Its answer is being stored.
    var isStoring = false
    /// What is reported is stored: it needs no place, and the transport knows nothing of it.
    var isPlaying = false
    /// The rest of the server's answer is drained: what is stored takes its place.
    var takesOver = false
    /// The rest of the server's answer is drained: it is asked again, otherwise.
    var asksAgain = false
    var fallbackUntil: Instant?
    /// Among those that are consulted about without a place; and the question is out.
    var isCounted = false
    var isAsked = false
    /// It is asked about, and has waited for hosts before.
    var isRecalled = false
    /// The body is what was stored when the transfer began.
    var isUnchanged = false

    /// As before an attempt.
    mutating func reset() {
        let number = number
        self = CacheUse()
        self.number = number
    }
}

extension CacheOutcome {
    /// The body comes from the store and not from the network (features O3).
    var isCached: Bool { self == .hit || self == .validated || self == .stale }
}
