/// The header fields that every request of a downloader carries (features M6), and how a request's own go over them.
package struct RequestFields: Sendable {
    package private(set) var fields: [HeaderField]
    private var defaultUserAgent: String

    /// SDWebImage's Accept since 5.1: servers answered 406 to narrower ones (features T02).
    package init(userAgent: String) {
        defaultUserAgent = userAgent
        fields = [HeaderField("Accept", "image/*,*/*;q=0.8"), HeaderField("User-Agent", userAgent)]
    }

    /// Where none has been set in its place.
    package mutating func setDefaultUserAgent(_ userAgent: String) {
        if fields.first(named: "User-Agent") == defaultUserAgent { set("User-Agent", userAgent) }
        defaultUserAgent = userAgent
    }

    /// nil takes the field out. Names are compared without regard to case.
    package mutating func set(_ name: String, _ value: String?) {
        let place = fields.firstIndex { equalIgnoringCase($0.name, name) } ?? fields.count
        fields.removeAll { equalIgnoringCase($0.name, name) }
        if let value { fields.insert(HeaderField(name, value), at: place) }
    }

    /// The downloader's, with each of the request's in place of all of the same name; nil: not sent. A field that the
    /// request repeats is sent repeatedly.
    package func merged(with own: [(name: String, value: String?)]) -> [HeaderField] {
        guard !own.isEmpty else { return fields }
        let kept = fields.filter { field in !own.contains { equalIgnoringCase($0.name, field.name) } }
        return kept + own.compactMap { field in field.value.map { HeaderField(field.name, $0) } }
    }
}
