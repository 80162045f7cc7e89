/// Status line and header fields of one response, as received (repeated fields too).
/// Handed on often, so it is small; its parts are in one place.
package struct ResponseHead: Equatable, Sendable {
    @Boxed private var parts: Parts

    private struct Parts: Sendable {
        var status: Int32
        var httpVersion: Int32
        var content: Content
        var mediaType: String
        var contentLength: Int64?
        var isEncoded: Bool
        var remainingCoding: String?
        var outcome = CacheOutcome.network
    }

    private enum Content: Sendable {
        case received(HeaderSection)
        case made([HeaderField])
    }

    package init(
        status: Int32, httpVersion: Int32, fields: [HeaderField], contentLength: Int64?, isEncoded: Bool
    ) {
        _parts = Boxed(
            wrappedValue: Parts(
                status: status, httpVersion: httpVersion, content: .made(fields), mediaType: Self.mediaType(fields),
                contentLength: contentLength, isEncoded: isEncoded))
    }

    /// As it came. Nobody adds to the section any more.
    package init(
        status: Int32, httpVersion: Int32, section: __owned HeaderSection, contentLength: Int64?, isEncoded: Bool
    ) {
        _parts = Boxed(
            wrappedValue: Parts(
                status: status, httpVersion: httpVersion, content: .received(section), mediaType: section.mediaType,
                contentLength: contentLength, isEncoded: isEncoded))
    }

    package var status: Int32 {
        get { parts.status }
        set { parts.status = newValue }
    }

    /// 10, 11, 20 or 30.
    package var httpVersion: Int32 { parts.httpVersion }

    /// From Content-Length, when it is there and valid; counts the encoded body (RFC 9110 section 8.6).
    package var contentLength: Int64? {
        get { parts.contentLength }
        set { parts.contentLength = newValue }
    }

    /// A Content-Encoding other than identity is being undone: decoded bytes cannot be compared with `contentLength`.
    package var isEncoded: Bool {
        get { parts.isEncoded }
        set { parts.isEncoded = newValue }
    }

    /// A Content-Encoding that nobody here can undo: the body comes as it was sent.
    package var remainingCoding: String? {
        get { parts.remainingCoding }
        set { parts.remainingCoding = newValue }
    }

    package var outcome: CacheOutcome {
        get { parts.outcome }
        set { parts.outcome = newValue }
    }

    /// Of Content-Type, in lower case and without parameters (RFC 9110 section 8.3.1); empty where there is none.
    package var mediaType: String { parts.mediaType }

    /// Of a head that was received they are made each time; `first(named:)` makes one value.
    package var fields: [HeaderField] {
        get {
            switch parts.content {
            case .received(let section): section.fields
            case .made(let fields): fields
            }
        }
        set {
            parts.content = .made(newValue)
            parts.mediaType = Self.mediaType(newValue)
        }
    }

    /// The value of the first field of this name.
    package func first(named name: String) -> String? {
        switch parts.content {
        case .received(let section): section.first(named: name)
        case .made(let fields): fields.first(named: name)
        }
    }

    package static func == (left: ResponseHead, right: ResponseHead) -> Bool {
        left.status == right.status && left.httpVersion == right.httpVersion
            && left.contentLength == right.contentLength && left.isEncoded == right.isEncoded
            && left.remainingCoding == right.remainingCoding && left.outcome == right.outcome
            && left.fields == right.fields
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
        let length = replacement.fields.first(named: "Content-Length").flatMap { text in
            text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int64(text) : nil
        }
        var replaced = ResponseHead(
            status: replacement.status, httpVersion: httpVersion, fields: replacement.fields, contentLength: length,
            isEncoded: isEncoded)
        replaced.outcome = outcome
        return replaced
    }
}
