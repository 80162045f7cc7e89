extension CacheQuestion {
    /// Answers with a stored response that may be used: whole, or what the caller's own condition or range makes of it.
    /// nil: it cannot be answered from here.
    func answer(
        _ index: Int, _ stored: StoredResponse, _ freshness: Freshness, _ outcome: CacheOutcome, _ wallTime: Int64
    ) -> CacheDecision? {
        let head = CacheRules.head(of: stored, freshness, outcome, wallTime)
        let isSuccess = ResponseRules.isSuccess(stored.status)
        // Preconditions are passed over where the answer would not be a success anyway (RFC 9110 section 13.2.1).
        if isConditional, isSuccess, isNotModified(stored, freshness, wallTime) {
            return .answerPart(index: index, head: notModified(head), outcome: outcome, range: nil, revalidates: nil)
        }
        guard request.method == "GET" else {
            return .answerPart(index: index, head: head, outcome: outcome, range: nil, revalidates: nil)
        }
        if case .part(let held, let total) = stored.extent {
            guard ifRange.map({ isUnchanged($0, freshness, wallTime) }) ?? true,
                let wanted = part(of: held, total)
            else { return nil }
            return part(index, head, outcome, wanted, from: held.lowerBound, of: total)
        }
        guard let range, stored.status == 200 else {
            return .answer(index: index, head: head, outcome: outcome, revalidates: nil)
        }
        if let ifRange, !isUnchanged(ifRange, freshness, wallTime) {
            return .answer(index: index, head: head, outcome: outcome, revalidates: nil)
        }
        // Ranges count encoded bytes, which are not kept; several at once are left to the server.
        guard !stored.wasEncoded, stored.extent == .whole, let wanted = ByteRange(range) else { return nil }
        return part(index, head, outcome, wanted.resolved(stored.bodyLength), of: stored.bodyLength)
    }

    /// Where the range that is asked for stands in a part of a body; nil: it is not wholly within (section 3.3).
    func part(of held: Range<Int64>, _ total: Int64?) -> Range<Int64>? {
        guard let range, let wanted = ByteRange(range) else { return nil }
        return wanted.resolved(within: held, reachesEnd: held.upperBound == total)
    }

    /// RFC 9110 sections 15.3.7 and 15.5.17. `range`: of what is stored, which begins at `start`.
    private func part(
        _ index: Int, _ whole: ResponseHead, _ outcome: CacheOutcome, _ range: Range<Int64>?, from start: Int64 = 0,
        of total: Int64?
    ) -> CacheDecision {
        var head = whole
        head.fields.removeAll { isNamed($0, "Content-Length") || isNamed($0, "Content-Range") }
        head.status = range == nil ? 416 : 206
        head.contentLength = range.map { Int64($0.count) } ?? 0
        let content = range.map { "\(start + $0.lowerBound)-\(start + $0.upperBound - 1)" } ?? "*"
        head.fields.append(HeaderField("Content-Range", "bytes \(content)/\(total.map(String.init) ?? "*")"))
        head.fields.append(HeaderField("Content-Length", String(head.contentLength ?? 0)))
        return .answerPart(index: index, head: head, outcome: outcome, range: range, revalidates: nil)
    }

    /// If-None-Match, and If-Modified-Since only where there is none (section 4.3.2 of RFC 9111, 13.1.3 of RFC 9110).
    private func isNotModified(_ stored: StoredResponse, _ freshness: Freshness, _ wallTime: Int64) -> Bool {
        if !ifNoneMatch.isEmpty {
            if ifNoneMatch == ["*"] { return true }
            guard let tag = freshness.etag.flatMap(EntityTag.init) else { return false }
            return ifNoneMatch.contains { EntityTag($0)?.isWeaklyEqual(to: tag) ?? false }
        }
        guard let since = ifModifiedSince.flatMap({ Freshness.seconds($0, wallTime) }) else { return false }
        return (freshness.modified ?? freshness.date) <= since
    }

    /// If-Range (RFC 9110 section 13.1.5).
    private func isUnchanged(_ validator: String, _ freshness: Freshness, _ wallTime: Int64) -> Bool {
        if let tag = EntityTag(validator) {
            return freshness.etag.flatMap(EntityTag.init)?.isStronglyEqual(to: tag) ?? false
        }
        guard let date = Freshness.seconds(validator, wallTime), let modified = freshness.modified else { return false }
        return date == modified && ResumeRules.isStrong(modified: modified, date: freshness.date)
    }

    /// Without what describes a body (RFC 9110 section 15.4.5).
    private func notModified(_ head: ResponseHead) -> ResponseHead {
        var head = head
        let dropped = ["content-length", "content-encoding", "content-type", "content-language", "content-range"]
        head.fields.removeAll { field in dropped.contains { equalIgnoringCase($0, field.name) } }
        head.status = 304
        head.contentLength = nil
        return head
    }
}
