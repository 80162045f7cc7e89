/// A request, with what its fields ask of a cache taken out (RFC 9111 section 5.2.1, RFC 9110 sections 13 and 14). An
/// object, since it is taken out once for all requests that ask in the same way.
package final class CacheQuestion: Sendable {
    enum Use: Equatable { case none, plainly, whileRevalidating }

    let request: CacheRequest
    let control: CacheControl
    let range: String?
    let ifRange: String?
    let ifNoneMatch: [String]
    let ifModifiedSince: String?
    let isForOriginAlone: Bool

    package init(_ request: CacheRequest) {
        self.request = request
        var (range, ifRange, ifModifiedSince): (String?, String?, String?)
        var ifNoneMatch: [String] = []
        var isForOriginAlone = false
        var control = CacheControl()
        var isPragmaNoCache = false
        for field in request.fields {
            switch field.name.utf8.count {
            case 5 where isNamed(field, "Range"): range = range ?? field.value
            case 6 where isNamed(field, "Pragma"):
                isPragmaNoCache =
                    isPragmaNoCache || listMembers(field.value).contains { equalIgnoringCase($0, "no-cache") }
            case 8 where isNamed(field, "If-Range"): ifRange = ifRange ?? field.value
            case 8 where isNamed(field, "If-Match"): isForOriginAlone = true
            case 13 where isNamed(field, "If-None-Match"): ifNoneMatch += listMembers(field.value)
            case 13 where isNamed(field, "Cache-Control"): control.add(field.value)
            case 17 where isNamed(field, "If-Modified-Since"): ifModifiedSince = ifModifiedSince ?? field.value
            case 19 where isNamed(field, "If-Unmodified-Since"): isForOriginAlone = true
            default: break
            }
        }
        // Section 5.4.
        if !control.isPresent, isPragmaNoCache { control.noCache = true }
        self.control = control
        self.range = range
        self.ifRange = ifRange
        self.ifNoneMatch = ifNoneMatch
        self.ifModifiedSince = ifModifiedSince
        self.isForOriginAlone = isForOriginAlone
    }

    var isOnly: Bool { request.mode == .only || control.onlyIfCached }
    var isConditional: Bool { !ifNoneMatch.isEmpty || ifModifiedSince != nil }

    /// Caches on the way are to validate, too, or not to answer at all, unless the caller said what they are to do.
    var refreshing: [HeaderField] {
        request.mode == .refresh && !control.isPresent ? [HeaderField("Cache-Control", "max-age=0")] : []
    }
    var reloading: [HeaderField] { control.isPresent ? [] : [HeaderField("Cache-Control", "no-cache")] }

    /// The fields of a GET that validates what is stored, in place of the request's own. The whole is asked for, whatever part
    /// or condition the request was about, but where a part alone is stored: then that which the request wants.
    func revalidating(_ stored: StoredResponse) -> [HeaderField] {
        var own = ["If-None-Match", "If-Modified-Since", "If-Range"]
        if case .part = stored.extent {} else { own.append("Range") }
        return request.fields.filter { field in !own.contains { isNamed(field, $0) } }
    }

    /// Whether the stored response may be used as it is (section 4).
    func use(_ freshness: Freshness, _ wallTime: Int64) -> Use {
        let response = freshness.control
        if control.noCache || response.noCache { return .none }
        let remaining = freshness.remaining(wallTime)
        // RFC 8246: a fresh immutable response is not validated by a refresh either.
        if request.mode == .refresh, !(response.immutable && remaining > 0) { return .none }
        if control.maxAge == .invalid || control.minFresh == .invalid { return .none }
        if let maxAge = control.maxAge.value, freshness.age(wallTime) > maxAge { return .none }
        if let minFresh = control.minFresh.value { return remaining >= minFresh && remaining > 0 ? .plainly : .none }
        if remaining > 0 { return .plainly }
        if response.mustRevalidate || !request.staleLimit.allows(-remaining) { return .none }
        if let maxStale = control.maxStale.value, -remaining <= maxStale { return .plainly }
        // With max-age a stale response is wanted only as max-stale says (section 5.2.1.1).
        if control.maxAge != .absent { return .none }
        // Who has had the answer that came since is not given this one as if there was none.
        guard freshness.overtakenTime == nil else { return .none }
        if let window = response.staleWhileRevalidate.value, -remaining < window { return .whileRevalidating }
        return .none
    }

    /// RFC 5861 section 4, and RFC 9111 section 4.2.4.
    func staleUse(_ freshness: Freshness, _ wallTime: Int64) -> StaleUse {
        let response = freshness.control
        if control.noCache || response.noCache || response.mustRevalidate || request.mode == .refresh { return .never }
        if control.maxAge != .absent || control.minFresh != .absent { return .never }
        let staleness = max(0, -freshness.remaining(wallTime))
        guard request.staleLimit.allows(staleness) else { return .never }
        let end = request.staleLimit.end(staleness, wallTime)
        guard control.staleIfError != .absent || response.staleIfError != .absent else {
            return .whenUnreachable(until: end)
        }
        let window = max(control.staleIfError.value ?? -1, response.staleIfError.value ?? -1)
        guard window >= staleness else { return .never }
        return .onError(until: min(end, StaleLimit(seconds: window).end(staleness, wallTime)))
    }

    /// Whether a program that asks for what is stored alone gets it, "however old" as its limit says.
    func mayUseUnasked(_ freshness: Freshness, _ wallTime: Int64) -> Bool {
        guard let staleness = freshness.staleness(wallTime) else { return true }
        return request.staleLimit.allows(staleness)
    }
}
