/// What a hook of the host is asked of one transfer.
package struct Question: Equatable, Sendable {
    package enum Kind: Equatable, Sendable {
        /// The request that is about to be sent.
        case request
        /// The head of the final response.
        case response
        /// The whole body.
        case body
        /// A redirect to here that the rules allow.
        case redirect(ParsedURL)
        /// A 401.
        case challenge
    }

    package let kind: Kind
    /// Counted within its transfer: tells late answers from good ones.
    package let number: UInt64

    package init(_ kind: Kind, number: UInt64) {
        self.kind = kind
        self.number = number
    }
}

/// What the hook said, in the terms of the rules; the engine keeps bytes and fields itself.
package enum Answer: Sendable {
    case unchanged
    case request(OutgoingRequest)
    /// retryAfter: as in `Downloads.headReceived`.
    case response(ResponseHead, retryAfter: Int64?)
    /// The engine has new bytes in place of those that came, so many.
    case body(bytes: Int64)
    /// The new target resolved against the hop, or why it could not be.
    case redirect(Result<ParsedURL, Failure>)
    case credential(Credential)
    case refused(Failure)
}

/// A head while a hook is asked about it.
package struct AskedHead: Sendable {
    var head: ResponseHead
    var retryAfter: Int64?
}
