/// What the Cache-Control fields of one message say (RFC 9111 section 5.2; RFC 5861; RFC 8246). Directives for shared
/// caches alone and unknown ones are passed over (section 5.2.3).
package struct CacheControl: Equatable, Sendable {
    /// The argument of a directive that takes seconds. Invalid: none, no number, or two that differ.
    package enum Seconds: Equatable, Sendable {
        case absent
        case invalid
        case of(Int64)

        /// nil where it is absent or invalid.
        package var value: Int64? {
            if case .of(let seconds) = self { return seconds }
            return nil
        }
    }

    package var maxAge = Seconds.absent
    package var maxStale = Seconds.absent
    package var minFresh = Seconds.absent
    package var staleWhileRevalidate = Seconds.absent
    package var staleIfError = Seconds.absent
    package var noStore = false
    package var noCache = false
    /// Of no-cache="…" (section 5.2.2.4), in lower case.
    package var noCacheFields: [String] = []
    package var mustRevalidate = false
    package var mustUnderstand = false
    package var isPublic = false
    package var isPrivate = false
    package var immutable = false
    package var onlyIfCached = false
    /// There was a field of that name.
    package var isPresent = false
    /// A quoted string that its field does not end was met: other fields may be a part of it.
    private var hasOpenQuote = false

    /// The server says that whoever trusts it alike may have the response, whoever asked for it.
    var isForAll: Bool { isPublic && !isPrivate }

    /// "the greatest positive integer": what a number that is too large counts as (section 1.2.2).
    package static let greatestSeconds: Int64 = 1 << 31

    package init() {}

    package init(_ fields: [HeaderField]) {
        for field in fields where isNamed(field, "Cache-Control") { add(field.value) }
    }

    /// One more field of that name: as if they were one, joined by a comma (RFC 9110 section 5.2).
    package mutating func add(_ value: String) {
        isPresent = true
        var members = DirectiveReader(value)
        while let member = members.next() { add(member) }
        if members.hasOpenQuote { hasOpenQuote = true }
        // It may stand within that string, whichever field it is in: what opens a response to others must be beyond doubt.
        if hasOpenQuote { isPublic = false }
    }

    private mutating func add(_ directive: Directive) {
        switch directive.name {
        case "max-age": Self.set(&maxAge, directive)
        case "max-stale":
            // Without argument: however stale (section 5.2.1.2).
            if directive.argument == .none {
                maxStale = .of(Self.greatestSeconds)
            } else {
                Self.set(&maxStale, directive)
            }
        case "min-fresh": Self.set(&minFresh, directive)
        case "stale-while-revalidate": Self.set(&staleWhileRevalidate, directive)
        case "stale-if-error": Self.set(&staleIfError, directive)
        case "no-store": noStore = true
        case "no-cache":
            // What cannot be read as names means the whole response: the safe side.
            let names = directive.fieldNames
            if names.isEmpty { noCache = true } else { noCacheFields += names }
        case "must-revalidate": mustRevalidate = true
        case "must-understand": mustUnderstand = true
        case "public": if directive.argument == .none { isPublic = true }
        case "private": isPrivate = true
        case "immutable": immutable = true
        case "only-if-cached": onlyIfCached = true
        default: break
        }
    }

    private static func set(_ seconds: inout Seconds, _ directive: Directive) {
        let new: Seconds
        if case .text(let text) = directive.argument, let number = deltaSeconds(text) {
            new = .of(number)
        } else {
            new = .invalid
        }
        seconds = seconds == .absent || seconds == new ? new : .invalid
    }

    /// 1*DIGIT (section 1.2.2); nil for anything else.
    package static func deltaSeconds(_ text: some StringProtocol) -> Int64? {
        guard !text.isEmpty else { return nil }
        var number: Int64 = 0
        for byte in text.utf8 {
            guard (0x30...0x39).contains(byte) else { return nil }
            number = min(greatestSeconds, number * 10 + Int64(byte - 0x30))
        }
        return number
    }
}
