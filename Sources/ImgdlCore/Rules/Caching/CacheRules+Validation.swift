/// A stored response after an answer that is about it.
package enum FreshenedResponse: Equatable {
    /// It answers, with these fields, and stays.
    case kept(StoredResponse)
    /// It answers who has asked, with these fields. They do not let it be stored.
    case dropped(StoredResponse)

    package var response: StoredResponse {
        switch self {
        case .kept(let response), .dropped(let response): response
        }
    }
}

extension CacheRules {
    /// A stored response after a 304 (section 4.3.4), or after a 200 to a HEAD request (section 4.3.5), whose fields
    /// take the place of its own. nil: the answer is about another response. `request`: as it was sent.
    package static func validated(
        _ stored: StoredResponse, by head: ResponseHead, for request: CacheRequest, requestTime: Int64,
        responseTime: Int64
    ) -> FreshenedResponse? {
        if head.status == 304 {
            guard isAbout(stored, head) else { return nil }
            var validated = updated(stored, with: head.fields, requestTime: requestTime, responseTime: responseTime)
            // The server has been asked, and stands by it.
            validated.isUndecodable = false
            return kept(validated, for: request)
        }
        guard head.status == 200, stored.status == 200, stored.extent == .whole else { return nil }
        guard hasSameBody(stored, head) else {
            return .kept(overtaken(stored, at: responseTime))
        }
        let updated = updated(stored, with: head.fields, requestTime: requestTime, responseTime: responseTime)
        // A HEAD may have been answered for another variant of the same length.
        guard case .kept(let kept) = kept(updated, for: request), kept.varying == stored.varying else {
            return .dropped(updated)
        }
        return .kept(kept)
    }

    /// The fields may be new ones: it is asked again for whom they let it be stored. It is what this request would have got.
    private static func kept(_ response: StoredResponse, for request: CacheRequest) -> FreshenedResponse {
        guard let context = request.context, mayStore(response.status, response.fields),
            let varying = VaryRules.varying(request, context, response.fields)
        else { return .dropped(response) }
        var kept = response
        kept.varying = varying + VaryRules.parts(response.varying)
        return .kept(kept)
    }

    /// Whether what a server says of a stored response to who asks in this context is for those to whom it belongs, too. One
    /// that `public` has opened to others may be opened by that alone: what is said to them is else their own.
    package static func mayUpdate(_ stored: StoredResponse, by head: ResponseHead, askedIn context: StoredContext?)
        -> Bool
    {
        guard let context else { return false }
        return stored.context.answers(context, isForAll: CacheControl(head.fields).isForAll)
    }

    /// The same, stale from that time on, or from when it was so already.
    package static func overtaken(_ stored: StoredResponse, at time: Int64) -> StoredResponse {
        var overtaken = stored
        overtaken.overtakenTime = min(time, stored.overtakenTime ?? time)
        return overtaken
    }

    /// A 304 names the response that it is about by its validators; without any it can only be the one that was asked
    /// about.
    private static func isAbout(_ stored: StoredResponse, _ head: ResponseHead) -> Bool {
        if let text = head.first(named: "ETag") {
            guard let own = stored.fields.first(named: "ETag") else { return false }
            guard let new = EntityTag(text), let old = EntityTag(own) else { return areTheSame(text, own) }
            // A strong one identifies its response alone, a weak one whatever is equivalent.
            return new.isWeak ? new.isWeaklyEqual(to: old) : new.isStronglyEqual(to: old)
        }
        guard let text = head.first(named: "Last-Modified"),
            let own = stored.fields.first(named: "Last-Modified")
        else { return true }
        return haveSameBytes(text, own)
    }

    /// Texts that came from a server are the same for certain: not where each may have come in other bytes.
    private static func areTheSame(_ one: String, _ other: String) -> Bool {
        haveSameBytes(one, other) && EntityTag.isSentAsItCame(one)
    }

    private static func hasSameBody(_ stored: StoredResponse, _ head: ResponseHead) -> Bool {
        for name in ["ETag", "Last-Modified"] {
            guard let text = head.first(named: name) else { continue }
            guard let own = stored.fields.first(named: name), areTheSame(text, own) else { return false }
        }
        guard let length = announcedLength(head.fields) else { return true }
        return length == announcedLength(stored.fields) ?? (stored.wasEncoded ? length : stored.bodyLength)
    }

    /// Section 3.2: every field of the new head in place of all of the same name, but those that tell how the body was
    /// made, which stays as it is.
    static func updated(
        _ stored: StoredResponse, with fields: [HeaderField], requestTime: Int64, responseTime: Int64
    ) -> StoredResponse {
        let new = storable(fields, responseTime: responseTime).filter { field in
            !bodyFields.contains { equalIgnoringCase($0, field.name) }
        }
        var result = stored
        let replaced = FieldNames(new.map(\.name))
        // An age counts from the answer that had it.
        result.fields.removeAll { old in isNamed(old, "Age") || replaced.contains(old) }
        result.fields = withinLimits(result.fields + new, before: stored.fields)
        result.fields = withoutCookies(result.fields, CacheControl(result.fields))
        result.requestTime = requestTime
        result.responseTime = responseTime
        result.fractions = nil
        result.overtakenTime = nil
        return result
    }

    /// Validations may bring other fields each time: all together have the limits of one answer's. What does not fit is left
    /// out, first of what the response has not had before, and last what tells whether it may be used.
    private static func withinLimits(_ fields: [HeaderField], before: [HeaderField]) -> [HeaderField] {
        guard fields.count > Limits.headerFields || fields.reduce(0, { $0 + bytes(of: $1) }) > Limits.headerBytes
        else { return fields }
        let needed = FieldNames(neededFields)
        let known = FieldNames(before.map(\.name))
        let ranks = fields.map { needed.contains($0) ? 0 : known.contains($0) ? 1 : 2 }
        var isKept = [Bool](repeating: false, count: fields.count)
        var (count, rest) = (Limits.headerFields, Limits.headerBytes)
        for rank in 0...2 {
            for index in fields.indices where ranks[index] == rank && count > 0 && bytes(of: fields[index]) <= rest {
                isKept[index] = true
                count -= 1
                rest -= bytes(of: fields[index])
            }
        }
        return fields.indices.filter { isKept[$0] }.map { fields[$0] }
    }

    /// As a line.
    private static func bytes(of field: HeaderField) -> Int { field.name.utf8.count + field.value.utf8.count + 4 }

    private static var neededFields: [String] {
        [
            "cache-control", "pragma", "date", "expires", "age", "etag", "last-modified", "vary", "location",
            "content-type",
        ]
    }

    private static var bodyFields: [String] { ["content-length", "content-encoding", "content-range"] }
}
