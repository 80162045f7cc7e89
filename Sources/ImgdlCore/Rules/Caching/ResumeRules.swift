/// What came of the attempt to continue a body.
package enum ResumeAnswer: Sendable {
    /// The rest follows. The head is that of the whole: 200, with the whole length.
    case continues(ResponseHead)
    /// Another answer, to be taken as it is.
    case whole
    /// What is kept is of no use: drop it, and ask once more without it. Costs no retry.
    case refetch
}

/// Continuing bodies that broke off (RFC 9110 sections 13.1.5, 14 and 15.3.7; features B11, R01, R33, I33).
package enum ResumeRules {
    /// What to keep of a body that broke off after `received` bytes; nil: it is not worth it, or could not be verified.
    /// `head`: of a 200, or what `answer` made of a 206.
    package static func beginning(
        _ request: CacheRequest, _ head: ResponseHead, received: Int64, requestTime: Int64, responseTime: Int64
    ) -> StoredResponse? {
        guard head.status == 200, received > 0, received < head.contentLength ?? .max, isResumable(head),
            request.fields.first(named: "Range") == nil,
            var kept = CacheRules.stored(request, head, requestTime: requestTime, responseTime: responseTime)
        else { return nil }
        kept.bodyLength = received
        kept.extent = .beginning(total: head.contentLength)
        guard kept.isSound else { return nil }
        return fields(for: kept) == nil ? nil : kept
    }

    /// Bytes that are decoded on the way cannot be counted.
    private static func isResumable(_ head: ResponseHead) -> Bool {
        if head.isEncoded { return false }
        for field in head.fields {
            if isNamed(field, "Content-Encoding"), !equalIgnoringCase(field.value, "identity") { return false }
            let units = isNamed(field, "Accept-Ranges") ? listMembers(field.value) : []
            if units.contains(where: { equalIgnoringCase($0, "none") }) { return false }
        }
        return true
    }

    /// nil: without a strong validator there is no telling whether the rest belongs to it.
    static func fields(for stored: StoredResponse) -> [HeaderField]? {
        guard stored.bodyLength > 0, let validator = strongValidator(stored) else { return nil }
        return [HeaderField("Range", "bytes=\(stored.bodyLength)-"), HeaderField("If-Range", validator)]
    }

    /// The date only where there is no entity tag (RFC 9110 section 13.1.5).
    private static func strongValidator(_ stored: StoredResponse) -> String? {
        let freshness = Freshness(stored, wallTime: stored.responseTime)
        if let text = freshness.etag {
            guard let tag = EntityTag(text), !tag.isWeak, EntityTag.maySend(text) else { return nil }
            return tag.opaque
        }
        guard let modified = freshness.modified, isStrong(modified: modified, date: freshness.date) else { return nil }
        return freshness.lastModified
    }

    /// Two changes within one second have the same date. RFC 9110 section 8.8.2.2 asks for one second between change
    /// and answer; a minute, as its forerunner asked, forgives clocks that differ.
    static func isStrong(modified: Int64, date: Int64) -> Bool { Freshness.span(from: modified, to: date) >= 60 }

    /// `head`: the answer to a request with `fields(for:)`.
    package static func answer(to stored: StoredResponse, _ head: ResponseHead) -> ResumeAnswer {
        switch head.status {
        case 206: break
        case 304, 412, 416: return .refetch
        default: return .whole
        }
        let ranges = head.fields.filter { isNamed($0, "Content-Range") }
        guard isResumable(head), ranges.count == 1, let content = ContentRange(ranges[0].value),
            let range = content.range,
            range.lowerBound == stored.bodyLength, hasSameValidator(stored, head)
        else { return .refetch }
        guard case .beginning(let known) = stored.extent, let total = content.total ?? known, known ?? total == total,
            range.upperBound == total, head.contentLength ?? Int64(range.count) == Int64(range.count)
        else { return .refetch }
        return .continues(whole(stored, head, total: total))
    }

    private static func hasSameValidator(_ stored: StoredResponse, _ head: ResponseHead) -> Bool {
        if let tag = stored.fields.first(named: "ETag").flatMap(EntityTag.init) {
            return head.first(named: "ETag").flatMap(EntityTag.init)?.isStronglyEqual(to: tag) ?? false
        }
        // A tag that was not there before says nothing against the date.
        guard let date = stored.fields.first(named: "Last-Modified"), let new = head.first(named: "Last-Modified")
        else { return false }
        return haveSameBytes(new, date)
    }

    /// RFC 9111 section 3.4.
    private static func whole(_ stored: StoredResponse, _ head: ResponseHead, total: Int64) -> ResponseHead {
        var combined = CacheRules.updated(stored, with: head.fields, requestTime: 0, responseTime: 0)
        combined.fields.removeAll { isNamed($0, "Content-Length") }
        // That of the beginning is not that of the rest; who stores it, dates it.
        if head.first(named: "Date") == nil { combined.fields.removeAll { isNamed($0, "Date") } }
        combined.fields.append(HeaderField("Content-Length", String(total)))
        var whole = ResponseHead(
            status: 200, httpVersion: head.httpVersion, fields: combined.fields, contentLength: total, isEncoded: false)
        whole.outcome = .resumed
        return whole
    }

    /// What another try takes at least, in nanoseconds: an answer that was there at once was not waited for by anybody
    /// who could measure it.
    private static let leastFirstByte: Int64 = 1_000_000

    /// Whether the rest would come sooner than the first byte of another try (features R33). Times: of the body so far,
    /// and from the beginning to the first byte.
    package static func isNearlyDone(
        received: Int64, expected: Int64, bodyNanoseconds: Int64, firstByteNanoseconds: Int64
    ) -> Bool {
        guard received > 0, expected >= received else { return false }
        let remaining = Double(bodyNanoseconds) * Double(expected - received) / Double(received)
        return remaining < Double(max(firstByteNanoseconds, leastFirstByte))
    }

    /// What the rest of a body may take of which that was said, in milliseconds: four times as long as it was to take, and a
    /// second at least.
    package static func finishTimeout(firstByteNanoseconds: Int64) -> Int64 {
        max(1_000, 4 * (firstByteNanoseconds / 1_000_000))
    }
}
