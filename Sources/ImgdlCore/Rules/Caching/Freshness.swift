/// How long a stored response may be used, how old it is (RFC 9111 section 4.2), and what of its fields an answer shows,
/// read out of them in one pass. Times are seconds since 1970.
final class Freshness: Sendable {
    let control: CacheControl
    /// Date; the time of receiving where there is none that can be read.
    let date: Int64
    /// Seconds from `date` on.
    let lifetime: Int64
    let etag: String?
    let lastModified: String?
    /// Last-Modified in seconds, where it is a date.
    let modified: Int64?
    /// Without Age, and without what no-cache names (section 5.2.2.4): the rest of an answer that was not validated.
    let shownFields: [HeaderField]
    /// Content-Length, where it is a number.
    let announcedLength: Int64?
    /// A Content-Encoding that was not undone.
    let remainingCoding: String?
    private let initialAge: Int64
    private let responseTime: Int64
    /// As of `StoredResponse`: it is stale, whatever its lifetime says.
    let overtakenTime: Int64?

    init(_ stored: StoredResponse, wallTime: Int64) {
        var control = CacheControl()
        var dateText: String?
        var ageText: String?
        var expires = Expires.absent
        var etag: String?
        var lastModified: String?
        var lengthText: String?
        var codings: [String] = []
        for field in stored.fields {
            switch field.name.utf8.count {
            case 3 where ageText == nil && isNamed(field, "Age"): ageText = field.value
            case 4 where dateText == nil && isNamed(field, "Date"): dateText = field.value
            case 4 where etag == nil && isNamed(field, "ETag"): etag = field.value
            case 7 where isNamed(field, "Expires"): expires.add(field.value, wallTime)
            case 13 where isNamed(field, "Cache-Control"): control.add(field.value)
            case 13 where lastModified == nil && isNamed(field, "Last-Modified"): lastModified = field.value
            case 14 where lengthText == nil && isNamed(field, "Content-Length"): lengthText = field.value
            case 16 where isNamed(field, "Content-Encoding"): codings += listMembers(field.value)
            default: break
            }
        }
        let date = dateText.flatMap { Self.seconds($0, wallTime) } ?? stored.responseTime
        // As if the server had said so.
        if stored.isUndecodable { control.noCache = true }
        self.control = control
        self.date = date
        self.etag = etag
        self.lastModified = lastModified
        let modified = lastModified.flatMap { Self.seconds($0, wallTime) }
        self.modified = modified
        lifetime = Self.lifetime(stored.status, control, expires, date: date, modified: modified)
        responseTime = stored.responseTime
        overtakenTime = stored.overtakenTime
        initialAge = Self.initialAge(stored, date: date, age: ageText)
        let hidden = FieldNames(control.noCacheFields)
        shownFields = stored.fields.filter { !isNamed($0, "Age") && !hidden.contains($0) }
        announcedLength = lengthText.flatMap { CheckedNumber(digits: $0)?.length }
        remainingCoding = stored.wasEncoded ? nil : codings.first { !equalIgnoringCase($0, "identity") }
    }

    /// Section 4.2.3. The greatest where nobody knows it.
    func age(_ wallTime: Int64) -> Int64 {
        hasAge(wallTime) ? initialAge + Self.span(from: responseTime, to: wallTime) : Self.greatestSpan
    }

    /// What came later than now was stored while the clock ran ahead: nobody knows how old it is.
    func hasAge(_ wallTime: Int64) -> Bool {
        Self.span(from: wallTime, to: responseTime) <= Self.toleratedAdvance
    }

    /// Seconds: clocks are put right by less every day.
    private static let toleratedAdvance: Int64 = 86_400

    /// Seconds it will still be fresh; past its freshness, negative or 0.
    func remaining(_ wallTime: Int64) -> Int64 {
        let remaining = lifetime - age(wallTime)
        return overtakenTime.map { min(remaining, -Self.span(from: $0, to: wallTime)) } ?? remaining
    }

    /// For how many seconds it has been stale; nil: it is fresh. What is to be validated before each use is stale at once.
    func staleness(_ wallTime: Int64) -> Int64? {
        if control.noCache { return age(wallTime) }
        let remaining = remaining(wallTime)
        return remaining > 0 ? nil : -remaining
    }

    /// Seconds from one time to another; 0 where that is the earlier. Bounded, so that sums of spans have room, whatever the
    /// times are.
    static func span(from earlier: Int64, to later: Int64) -> Int64 {
        guard earlier < later else { return 0 }
        return (CheckedNumber(later) - CheckedNumber(earlier))?.clamped(to: 0...greatestSpan) ?? greatestSpan
    }

    private static let greatestSpan: Int64 = 1 << 42

    /// As a cache reads dates: case is passed over (section 4.2).
    static func seconds(_ text: String, _ wallTime: Int64) -> Int64? {
        HTTPDate.seconds(text, wallTime: wallTime, ignoringCase: true)
    }

    private enum Expires: Equatable {
        case absent
        case invalid
        case at(Int64)

        mutating func add(_ value: String, _ wallTime: Int64) {
            let new = Freshness.seconds(value, wallTime).map(Self.at) ?? .invalid
            self = self == .absent || self == new ? new : .invalid
        }
    }

    /// Section 4.2.1, for a private cache: max-age, else Expires, else a guess. What is invalid or contradicts itself
    /// counts as stale.
    private static func lifetime(
        _ status: Int32, _ control: CacheControl, _ expires: Expires, date: Int64, modified: Int64?
    ) -> Int64 {
        switch control.maxAge {
        case .of(let seconds): return seconds
        case .invalid: return 0
        case .absent: break
        }
        switch expires {
        case .at(let time): return span(from: date, to: time)
        case .invalid: return 0
        case .absent: break
        }
        guard StatusRules.isHeuristicallyCacheable(status) || control.isPublic, let modified else { return 0 }
        return min(span(from: modified, to: date) / 10, greatestGuess)
    }

    /// Section 4.2.2 names a tenth of the time since the last change as typical. Of a file that is ten years old that
    /// would be a year, in which nobody could withdraw it; a week costs one validation of a few hundred bytes.
    private static let greatestGuess: Int64 = 7 * 86_400

    private static func initialAge(_ stored: StoredResponse, date: Int64, age: String?) -> Int64 {
        let apparent = span(from: date, to: stored.responseTime)
        // The first member counts, and where it is no number the field is passed over (section 5.1).
        let first = age.flatMap { text in
            text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).first
        }
        let value = first.flatMap { CacheControl.deltaSeconds(trimmed(Substring($0))) } ?? 0
        return max(apparent, value + span(from: stored.requestTime, to: stored.responseTime))
    }

    private static func trimmed(_ text: Substring) -> Substring {
        var text = text
        while let first = text.utf8.first, first == 0x20 || first == 0x09 { text = text.dropFirst() }
        while let last = text.utf8.last, last == 0x20 || last == 0x09 { text = text.dropLast() }
        return text
    }
}

/// What status codes say about caching (RFC 9110 section 15.1, RFC 6585).
enum StatusRules {
    static func isHeuristicallyCacheable(_ status: Int32) -> Bool {
        switch status {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// Codes whose meaning for caches this one implements (RFC 9111 section 3): those of RFC 9110.
    static func isUnderstood(_ status: Int32) -> Bool {
        switch status {
        case 200...205, 300...303, 305, 307, 308, 400...411, 413...415, 417, 421, 422, 426, 500...505: true
        default: false
        }
    }

    /// Codes that answer something else than the question for the resource: a condition, a range, a demand for credentials,
    /// which who asks next may have; and those that RFC 6585 forbids to store.
    static func isNeverStored(_ status: Int32) -> Bool {
        switch status {
        case ..<200, 304, 401, 407, 412, 416, 428, 429, 431, 511: true
        default: false
        }
    }
}
