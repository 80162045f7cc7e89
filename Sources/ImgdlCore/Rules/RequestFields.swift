/// The header fields that every request of a downloader carries (features M6), and how a request's own go over them. Nothing
/// of it changes: threads read it that took it under a lock and have let go of that. Another one comes in its place.
package struct RequestFields: Sendable {
    package let fields: [HeaderField]
    private let defaultUserAgent: String

    /// SDWebImage's Accept since 5.1: servers answered 406 to narrower ones (features T02).
    package init(userAgent: String) {
        let fields = [HeaderField("Accept", "image/*,*/*;q=0.8"), HeaderField("User-Agent", userAgent)]
        self.init(fields, defaultUserAgent: userAgent)
    }

    private init(_ fields: [HeaderField], defaultUserAgent: String) {
        self.fields = fields
        self.defaultUserAgent = defaultUserAgent
    }

    /// Where none has been set in its place.
    package func with(defaultUserAgent: String) -> RequestFields {
        let isSet = fields.first(named: "User-Agent") != self.defaultUserAgent
        return RequestFields(
            (isSet ? self : with("User-Agent", defaultUserAgent)).fields, defaultUserAgent: defaultUserAgent)
    }

    /// nil takes the field out. Names are compared without regard to case.
    package func with(_ name: String, _ value: String?) -> RequestFields {
        let place = fields.firstIndex { equalIgnoringCase($0.name, name) } ?? fields.count
        var changed = fields.filter { !equalIgnoringCase($0.name, name) }
        if let value { changed.insert(HeaderField(name, value), at: place) }
        return RequestFields(changed, defaultUserAgent: defaultUserAgent)
    }

    /// The downloader's, with each of the request's in place of all of the same name; nil: not sent. A field that the
    /// request repeats is sent repeatedly.
    package func merged(with own: [(name: String, value: String?)]) -> [HeaderField] {
        guard !own.isEmpty else { return fields }
        let kept = fields.filter { field in !own.contains { equalIgnoringCase($0.name, field.name) } }
        return kept + own.compactMap { field in field.value.map { HeaderField(field.name, $0) } }
    }
}
