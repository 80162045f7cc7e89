/// Status line and header fields of one response, as received (repeated fields too).
/// Handed on often, so it is small; all of it is in one place.
package struct ResponseHead: Equatable, Sendable {
    private var section: HeaderSection

    package init(
        status: Int32, httpVersion: Int32, fields: [HeaderField], contentLength: Int64?, isEncoded: Bool
    ) {
        section = HeaderSection(capacity: 0)
        section.begin(
            with: ResponseFacts(
                status: status, httpVersion: httpVersion, made: fields, mediaType: Self.mediaType(fields),
                contentLength: contentLength, isEncoded: isEncoded))
    }

    /// As it came. Nobody adds to the section any more.
    package init(
        status: Int32, httpVersion: Int32, section: __owned HeaderSection, contentLength: Int64?, isEncoded: Bool
    ) {
        section.begin(
            with: ResponseFacts(
                status: status, httpVersion: httpVersion, mediaType: section.mediaType, contentLength: contentLength,
                isEncoded: isEncoded))
        self.section = section
    }

    package var status: Int32 {
        get { section.facts.status }
        set { section.facts.status = newValue }
    }

    /// 10, 11 or 20; 0 where no server has answered, but a loader, `file:` or `data:`.
    package var httpVersion: Int32 { section.facts.httpVersion }
    package var isOfServer: Bool { httpVersion != 0 }

    /// From Content-Length, when it is there and valid; counts the encoded body (RFC 9110 section 8.6).
    package var contentLength: Int64? {
        get { section.facts.contentLength }
        set { section.facts.contentLength = newValue }
    }

    /// A Content-Encoding other than identity is being undone: decoded bytes cannot be compared with `contentLength`.
    package var isEncoded: Bool {
        get { section.facts.isEncoded }
        set { section.facts.isEncoded = newValue }
    }

    /// A Content-Encoding that nobody here can undo: the body comes as it was sent.
    package var remainingCoding: String? {
        get { section.facts.remainingCoding }
        set { section.facts.remainingCoding = newValue }
    }

    /// The Cookie field that was made of a jar for the request; nil: none.
    package var sentCookies: [UInt8]? {
        get { section.facts.sentCookies }
        set { section.facts.sentCookies = newValue }
    }

    package var outcome: CacheOutcome {
        get { section.facts.outcome }
        set { section.facts.outcome = newValue }
    }

    /// The end of a body that was announced to come without its length, and is not coded: whoever makes the head says so.
    package var bodyEnd: BodyEnd {
        get { section.facts.bodyEnd }
        set { section.facts.bodyEnd = newValue }
    }

    /// Of Content-Type, in lower case and without parameters (RFC 9110 section 8.3.1); empty where there is none.
    package var mediaType: String { section.facts.mediaType }

    /// Of a head that was received they are made each time; `first(named:)` makes one value.
    package var fields: [HeaderField] {
        get { section.facts.made ?? section.fields }
        set {
            section.facts.made = newValue
            section.facts.mediaType = Self.mediaType(newValue)
        }
    }

    /// The value of the first field of this name.
    package func first(named name: String) -> String? {
        if let made = section.facts.made { return made.first(named: name) }
        return section.first(named: name)
    }

    /// As they were received, whatever takes their place: bytes that are no text stay what they are.
    package func values(named name: StaticString, maximum: Int) -> [[UInt8]] {
        section.values(named: name, maximum: maximum)
    }

    package static func == (left: ResponseHead, right: ResponseHead) -> Bool {
        left.status == right.status && left.httpVersion == right.httpVersion
            && left.contentLength == right.contentLength && left.isEncoded == right.isEncoded
            && left.remainingCoding == right.remainingCoding && left.outcome == right.outcome
            && left.bodyEnd == right.bodyEnd && left.fields == right.fields
    }

    private static func mediaType(_ fields: [HeaderField]) -> String {
        fields.first(named: "Content-Type").map { mediaType(of: $0) } ?? ""
    }

    package static func mediaType(of value: String) -> String {
        var value = value
        return value.withUTF8 { mediaType(of: UnsafeRawBufferPointer($0)) }
    }

    static func mediaType(of value: UnsafeRawBufferPointer) -> String {
        let isPlain = value.allSatisfy { byte in
            (0x21...0x7E).contains(byte) && byte != UInt8(ascii: ";") && !(0x41...0x5A).contains(byte)
        }
        // As most are sent.
        if isPlain { return String(decoding: value, as: UTF8.self) }
        let type = value.prefix { $0 != UInt8(ascii: ";") }.filter { $0 != 0x20 && $0 != 0x09 }
        return type.withUnsafeBytes { HeaderSection.text($0) }.lowercased()
    }

    /// With the status and the fields that a hook wants it to have. What was done about Content-Encoding stays done; the
    /// length is the new fields' (features R2, T24).
    package func replaced(by replacement: ModifiedResponse) -> ResponseHead {
        let length = replacement.fields.first(named: "Content-Length").flatMap { CheckedNumber(digits: $0)?.length }
        var replaced = ResponseHead(
            status: replacement.status, httpVersion: httpVersion, fields: replacement.fields, contentLength: length,
            isEncoded: isEncoded)
        replaced.outcome = outcome
        replaced.bodyEnd = bodyEnd
        return replaced
    }
}

/// What is known of a response besides its fields.
struct ResponseFacts: Sendable {
    var status: Int32 = 0
    var httpVersion: Int32 = 0
    /// Fields in place of those that were received.
    var made: [HeaderField]?
    var mediaType = ""
    var contentLength: Int64?
    var isEncoded = false
    var bodyEnd = BodyEnd.whole
    var remainingCoding: String?
    var outcome = CacheOutcome.network
    var sentCookies: [UInt8]?
}
