extension CacheRules {
    /// What to keep of a response; nil: it must not be stored (section 3). A redirect that is followed is kept without
    /// its body, a part of a body beside the whole.
    package static func stored(
        _ request: CacheRequest, _ head: ResponseHead, requestTime: Int64, responseTime: Int64
    ) -> StoredResponse? {
        guard let context = request.context, request.mode != .off, request.method == "GET",
            !StatusRules.isNeverStored(head.status),
            !CacheControl(request.fields).noStore
        else { return nil }
        let fields = head.fields
        let control = CacheControl(fields)
        guard mayStore(head.status, fields), var varying = VaryRules.varying(request, context, fields)
        else { return nil }
        var extent = StoredResponse.Extent.whole
        if head.status == 206 {
            guard let part = part(request, head) else { return nil }
            extent = .part(part.range, total: part.total)
            varying.append(VaryRules.part(part.range))
        }
        let isFollowed =
            request.followsRedirects && RedirectRules.isRedirect(head.status)
            && fields.first(named: "Location") != nil
        var stored = StoredResponse(
            status: head.status, httpVersion: head.httpVersion,
            fields: withoutCookies(storable(fields, responseTime: responseTime), control),
            requestTime: requestTime, responseTime: responseTime, varying: varying, context: context,
            wasEncoded: head.isEncoded,
            extent: isFollowed ? .headAlone : extent)
        stored.bodyEnd = head.bodyEnd
        return stored
    }

    /// One range that was asked for, of bytes that can be counted (section 3.3), and not of a coded body, whose bytes others
    /// could not make anything of. A body in several parts has none.
    private static func part(_ request: CacheRequest, _ head: ResponseHead) -> (range: Range<Int64>, total: Int64?)? {
        let ranges = head.fields.filter { isNamed($0, "Content-Range") }
        guard let asked = request.fields.first(named: "Range"), ByteRange(asked) != nil, !head.isEncoded,
            head.remainingCoding == nil, ranges.count == 1, let content = ContentRange(ranges[0].value),
            let range = content.range
        else { return nil }
        return (range, content.total)
    }

    static func mayStore(_ status: Int32, _ fields: [HeaderField]) -> Bool {
        let control = CacheControl(fields)
        if control.mustUnderstand {
            // Section 5.2.2.3: it overrules no-store.
            guard StatusRules.isUnderstood(status) else { return false }
        } else if control.noStore {
            return false
        }
        return control.isPublic || control.isPrivate || control.maxAge != .absent
            || fields.first(named: "Expires") != nil || StatusRules.isHeuristicallyCacheable(status)
    }

    /// Without the fields of section 3.1, and with a Date (RFC 9110 section 6.6.1).
    static func storable(_ fields: [HeaderField], responseTime: Int64) -> [HeaderField] {
        var dropped = FieldNames(hopFields)
        for field in fields where isNamed(field, "Connection") {
            for name in listMembers(field.value) { dropped.insert(name) }
        }
        var kept = fields.filter { !dropped.contains($0) }
        if kept.first(named: "Date") == nil { kept.append(HeaderField("Date", HTTPDate.text(responseTime))) }
        return kept
    }

    /// What anybody may have is not to hand one's cookies to others.
    static func withoutCookies(_ fields: [HeaderField], _ control: CacheControl) -> [HeaderField] {
        guard control.isForAll else { return fields }
        return fields.filter { !isNamed($0, "Set-Cookie") && !isNamed($0, "Set-Cookie2") }
    }

    private static var hopFields: [String] {
        [
            "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
            "proxy-connection", "te", "transfer-encoding", "upgrade",
        ]
    }
}
