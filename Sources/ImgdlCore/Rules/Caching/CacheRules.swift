/// What RFC 9111 says to a private cache. Pure: times are arguments, in seconds since 1970.
package enum CacheRules {
    /// What becomes of a request, given what is stored under its URL. `wantsChange`: somebody wants to hear only of a change,
    /// which an answer that is validated later would keep from him.
    package static func decide(
        _ question: CacheQuestion, _ stored: [StoredEntry], wallTime: Int64, wantsChange: Bool = false
    ) -> CacheDecision {
        let mode = question.request.mode
        guard mode != .off, question.request.method == "GET" || question.request.method == "HEAD" else {
            // Nothing that is stored answers such a request, and in mode only nothing is sent.
            return mode == .only ? .unavailable : .forward(adding: [], stores: false)
        }
        if question.control.noStore { return question.isOnly ? .unavailable : .forward(adding: [], stores: false) }
        if mode == .reload { return .forward(adding: question.reloading, stores: true) }
        // If-Match and If-Unmodified-Since are for the origin alone (section 4.3.2).
        if question.isForOriginAlone { return question.isOnly ? .unavailable : .forward(adding: [], stores: true) }
        guard let (index, freshness) = selected(question, stored, wallTime) else {
            if question.isOnly { return .unavailable }
            return resumed(question, stored) ?? .forward(adding: question.refreshing, stores: true)
        }
        return decide(question, index, stored[index], freshness, wallTime, wantsChange: wantsChange)
    }

    private static func decide(
        _ question: CacheQuestion, _ index: Int, _ stored: StoredEntry, _ freshness: Freshness, _ wallTime: Int64,
        wantsChange: Bool
    ) -> CacheDecision {
        var use = question.use(freshness, wallTime)
        if use == .whileRevalidating, wantsChange, !question.isOnly { use = .none }
        if use != .none || question.request.mode == .only && question.mayUseUnasked(freshness, wallTime) {
            let outcome: CacheOutcome = freshness.staleness(wallTime) == nil ? .hit : .stale
            let answer = question.answer(index, stored.response, freshness, outcome, wallTime)
            guard let answer else { return question.isOnly ? .unavailable : .forward(adding: [], stores: false) }
            guard use == .whileRevalidating, !question.isOnly else { return answer }
            return answer.revalidating(question.revalidating(stored.response))
        }
        if question.isOnly { return .unavailable }
        // The caller's own condition goes to the server as it is: its 304 is the caller's.
        if question.isConditional || question.range != nil || question.request.method != "GET" {
            return .forward(adding: question.refreshing, stores: true)
        }
        let fields = validators(freshness) + question.refreshing
        let stale = question.staleUse(freshness, wallTime)
        if fields.isEmpty, stale == .never { return .forward(adding: [], stores: true) }
        return .validate(index: index, adding: fields, stale: stale)
    }

    /// The newest response that matches, by Date. One that has no Vary while others do may be a resource's default, sent
    /// without it by mistake: it comes after all that have one (section 4.1), but for those that are older, and stale.
    private static func selected(
        _ question: CacheQuestion, _ stored: [StoredEntry], _ wallTime: Int64
    ) -> (Int, Freshness)? {
        var (varying, plain): ((index: Int, freshness: Freshness)?, (index: Int, freshness: Freshness)?)
        for index in stored.indices {
            let entry = stored[index]
            guard isAnswer(entry.response, to: question) else { continue }
            let freshness = entry.freshness(wallTime)
            guard VaryRules.matches(question.request, entry, freshness) else { continue }
            if VaryRules.hasNames(entry.response.varying) {
                if varying.map({ freshness.date > $0.freshness.date }) ?? true { varying = (index, freshness) }
            } else if plain.map({ freshness.date > $0.freshness.date }) ?? true {
                plain = (index, freshness)
            }
        }
        guard let varying, let plain else { return varying ?? plain }
        let isOvertaken =
            plain.freshness.date > varying.freshness.date && varying.freshness.staleness(wallTime) != nil
            && plain.freshness.staleness(wallTime) == nil
        return isOvertaken ? plain : varying
    }

    private static func isAnswer(_ stored: StoredResponse, to question: CacheQuestion) -> Bool {
        switch stored.extent {
        case .whole: true
        case .headAlone: question.request.followsRedirects
        case .part(let held, let total):
            question.request.method == "GET" && question.part(of: held, total) != nil
        case .beginning: false
        }
    }

    private static func resumed(_ question: CacheQuestion, _ stored: [StoredEntry]) -> CacheDecision? {
        let request = question.request
        guard request.method == "GET", !question.isConditional, question.range == nil else { return nil }
        for (index, response) in stored.lazy.map(\.response).enumerated() {
            guard case .beginning = response.extent, VaryRules.matches(request, response, isForAll: false),
                let fields = ResumeRules.fields(for: response)
            else { continue }
            return .resume(index: index, adding: fields + question.refreshing)
        }
        return nil
    }

    /// Section 4.3.1: both, where both are known.
    private static func validators(_ freshness: Freshness) -> [HeaderField] {
        var fields: [HeaderField] = []
        if let etag = freshness.etag, EntityTag.maySend(etag) {
            fields.append(HeaderField("If-None-Match", etag))
        }
        if let lastModified = freshness.lastModified, freshness.modified != nil {
            fields.append(HeaderField("If-Modified-Since", lastModified))
        }
        return fields
    }

    /// The head as a caller sees it. Without validation it has an Age, in place of what the server sent (section 4),
    /// and none of the fields that no-cache names (section 5.2.2.4).
    package static func head(of stored: StoredEntry, outcome: CacheOutcome, wallTime: Int64) -> ResponseHead {
        head(of: stored.response, stored.freshness(wallTime), outcome, wallTime)
    }

    static func head(
        of stored: StoredResponse, _ freshness: Freshness, _ outcome: CacheOutcome, _ wallTime: Int64
    ) -> ResponseHead {
        let fields: [HeaderField]
        if outcome == .hit || outcome == .stale {
            let age = min(CacheControl.greatestSeconds, freshness.age(wallTime))
            fields = freshness.shownFields + CollectionOfOne(HeaderField("Age", String(age)))
        } else {
            fields = stored.fields
        }
        let isCounted = stored.extent == .whole && !stored.wasEncoded
        var head = ResponseHead(
            status: stored.status, httpVersion: stored.httpVersion, fields: fields,
            contentLength: isCounted ? stored.bodyLength : freshness.announcedLength, isEncoded: stored.wasEncoded)
        head.outcome = outcome
        head.bodyEnd = stored.bodyEnd
        head.remainingCoding = freshness.remainingCoding
        return head
    }

    static func announcedLength(_ fields: [HeaderField]) -> Int64? {
        fields.first(named: "Content-Length").flatMap { CheckedNumber(digits: $0)?.length }
    }

    /// Whether a stale response may stand in for an answer. `insteadOf`: the status that came; nil when the server
    /// could not be reached.
    package static func mayUse(
        _ stored: StoredResponse, stale: StaleUse, insteadOf status: Int32?, wallTime: Int64
    ) -> Bool {
        switch (stale, status) {
        case (.never, _), (.whenUnreachable, _?): return false
        case (.whenUnreachable(let until), nil), (.onError(let until), nil): return wallTime <= until
        // RFC 5861 section 4 counts these as errors.
        case (.onError(let until), let status?): return wallTime <= until && [500, 502, 503, 504].contains(status)
        }
    }

    /// What an answer to a method that is not safe makes invalid besides the URL that was asked (section 4.4): Location
    /// and Content-Location as received, to be resolved, and used only within the same origin. nil: nothing, not even
    /// the URL. A method that is not known is not safe.
    package static func invalidates(method: String, _ head: ResponseHead) -> [String]? {
        // Asked for each answer: no array of them.
        switch method {
        case "GET", "HEAD", "OPTIONS", "TRACE": return nil
        default: break
        }
        guard (200...399).contains(head.status) else { return nil }
        return head.fields.filter { isNamed($0, "Location") || isNamed($0, "Content-Location") }.map(\.value)
    }
}
