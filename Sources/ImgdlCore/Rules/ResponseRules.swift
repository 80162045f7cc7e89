/// Which responses are an answer to the question for a picture.
package enum ResponseRules {
    package static func isSuccess(_ status: Int32) -> Bool { (200...299).contains(status) }

    /// Why a subscriber does not take this response for an answer, by its status first, then by its coding and its type; nil
    /// when it does (features B19, C9, C10). `mediaType`: as of `ResponseHead`; `coding`: what is left of them on the body,
    /// which is no matter to those who want the body alone. `withholdsBasic`: as `withholdsBasic(_:asked:)` says.
    /// `isConditional`: nil: as the request is.
    package static func refusal(
        status: Int32, mediaType: String, coding: String? = nil, withholdsBasic: Bool = false,
        isConditional: Bool? = nil, _ options: SubscriberOptions, request: TransferRequest
    ) -> Failure? {
        if options.takesRedirects, RedirectRules.isRedirect(status) { return nil }
        if !accepts(status, options, request: request) {
            let isConditional = isConditional ?? Self.isConditional(request.fields)
            return failure(status: status, isConditional: isConditional, withholdsBasic: withholdsBasic)
        }
        if let coding, options.decode != nil || options.isForPicture {
            let shown = String(coding.prefix(40))
            return Failure(
                .contentEncoding, "the body has the coding “\(shown)”, which cannot be undone", status: status)
        }
        guard let types = options.validation.contentTypes, !ContentTypeRules.accepts(mediaType, types) else {
            return nil
        }
        let shown = String(mediaType.prefix(80))
        return Failure(
            .invalidContentType, "the server sent \(shown), accepted is \(types.joined(separator: ", "))",
            status: status)
    }

    /// A 304 to a request that carried a validator is `notModified` (features B18, D8).
    private static func failure(status: Int32, isConditional: Bool, withholdsBasic: Bool) -> Failure {
        if status == 304, isConditional {
            return Failure(.notModified, "not modified since the caller's copy (304)", status: status)
        }
        var message = "the server answered \(status)\(reason(status))"
        if withholdsBasic {
            message += ": it asks for Basic, and over http the password is sent so with BASIC_OVER_HTTP alone"
        }
        return Failure(.invalidStatus, message, status: status)
    }

    /// Whether a challenge is left unanswered because the answer could be read on the way. `asked`: where the challenge is
    /// from. Digest is answered wherever it is offered.
    package static func withholdsBasic(_ challenge: ResponseHead, asked: ParsedURL, request: TransferRequest) -> Bool {
        guard challenge.status == 401, !asked.isSecure, !request.identity.allowsBasicOverHTTP,
            request.fields.first(named: "Authorization") == nil
        else { return false }
        let schemes = challenge.fields.filter { isNamed($0, "WWW-Authenticate") }.flatMap { field in
            listMembers(field.value).map { $0.prefix { $0 != " " } }
        }
        func offers(_ name: String) -> Bool { schemes.contains { equalIgnoringCase(String($0), name) } }
        return offers("Basic") && !offers("Digest")
    }

    /// Any status, those of its ranges (200 to 299 where it has none), or a redirect that it wants to see and not to
    /// decode, nor to have stored for who decodes.
    package static func accepts(_ status: Int32, _ options: SubscriberOptions, request: TransferRequest) -> Bool {
        if options.acceptsAnyStatus { return true }
        if let ranges = options.validation.statuses, ranges.contains(where: { $0.contains(status) }) { return true }
        if options.validation.statuses == nil, isSuccess(status) { return true }
        let decodes = options.decode != nil || options.isForPicture
        return !request.followsRedirects && !decodes && RedirectRules.isRedirect(status)
    }

    /// Whether the first bytes of the body that was refused go with the failure (features B19).
    package static func showsBody(_ code: ErrorCode) -> Bool {
        switch code {
        case .invalidStatus, .invalidContentType, .invalidResponse, .badImageData: true
        default: false
        }
    }

    /// Body bytes to expect, -1 when unknown: the length of an encoded body says nothing about the decoded one
    /// (features I17).
    package static func expectedBytes(_ head: ResponseHead) -> Int64 {
        head.isEncoded ? -1 : head.contentLength ?? -1
    }

    /// `isStored`: it comes from the cache, and no server announces anything.
    package static func bodyLimit(_ limit: Int64, announced: Int64?, isStored: Bool = false) -> Failure {
        let what =
            announced.map { isStored ? "what is stored has \($0) bytes" : "the server announces \($0) bytes" }
            ?? "the body is larger"
        return Failure(.bodyLimit, "\(what), the limit is \(limit) bytes")
    }

    package static func bodyLimit(_ limit: Int64, encoded bytes: Int64) -> Failure {
        Failure(
            .bodyLimit,
            "the encoded body is larger (\(bytes) bytes have come), the limit is \(limit) bytes, "
                + "\(encodedAllowance(limit)) as it is encoded")
    }

    /// Bytes that may come of an encoded body whose limit is this: no coding makes more of a body but by a little.
    package static func encodedAllowance(_ limit: Int64) -> Int64 {
        let (sum, overflow) = limit.addingReportingOverflow(limit / 8 + 64 << 10)
        return overflow ? .max : sum
    }

    static func isConditional(_ fields: [HeaderField]) -> Bool {
        fields.contains {
            equalIgnoringCase($0.name, "If-None-Match") || equalIgnoringCase($0.name, "If-Modified-Since")
        }
    }

    private static func reason(_ status: Int32) -> String {
        switch status {
        case 400: " (bad request)"
        case 401: " (authentication required)"
        case 403: " (forbidden)"
        case 404: " (not found)"
        case 406: " (no acceptable variant)"
        case 410: " (gone)"
        case 429: " (too many requests)"
        case 500: " (internal server error)"
        case 502: " (bad gateway)"
        case 503: " (service unavailable)"
        case 504: " (gateway timeout)"
        default: ""
        }
    }
}
