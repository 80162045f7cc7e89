/// Status line and header fields of one response, as received (repeated fields too).
package struct ResponseHead: Equatable, Sendable {
    package var status: Int32
    /// 10, 11, 20 or 30.
    package var httpVersion: Int32
    private var content: Content
    /// From Content-Length, when it is there and valid; counts the encoded body (RFC 9110 section 8.6).
    package var contentLength: Int64?
    /// A Content-Encoding other than identity is being undone: decoded bytes cannot be compared with `contentLength`.
    package var isEncoded: Bool
    /// A Content-Encoding that nobody here can undo: the body comes as it was sent.
    package var remainingCoding: String?
    package var outcome = CacheOutcome.network

    private enum Content: Sendable {
        case received(HeaderSection)
        case made([HeaderField])
    }

    package init(
        status: Int32, httpVersion: Int32, fields: [HeaderField], contentLength: Int64?, isEncoded: Bool
    ) {
        self.status = status
        self.httpVersion = httpVersion
        content = .made(fields)
        self.contentLength = contentLength
        self.isEncoded = isEncoded
    }

    /// As it came. Nobody adds to the section any more.
    package init(
        status: Int32, httpVersion: Int32, section: HeaderSection, contentLength: Int64?, isEncoded: Bool
    ) {
        self.status = status
        self.httpVersion = httpVersion
        content = .received(section)
        self.contentLength = contentLength
        self.isEncoded = isEncoded
    }

    /// Of one that was received they are made each time; `first(named:)` makes one value.
    package var fields: [HeaderField] {
        get {
            switch content {
            case .received(let section): section.fields
            case .made(let fields): fields
            }
        }
        set { content = .made(newValue) }
    }

    /// The value of the first field of this name.
    package func first(named name: String) -> String? {
        switch content {
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

    /// Of Content-Type, in lower case and without parameters (RFC 9110 section 8.3.1); empty where there is none.
    package var mediaType: String { Self.mediaType(of: first(named: "Content-Type") ?? "") }

    package static func mediaType(of value: String) -> String {
        var value = value
        let isPlain = value.withUTF8 { bytes in
            bytes.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ";") && !(0x41...0x5A).contains($0) }
        }
        // As most are sent.
        if isPlain { return value }
        let type = value.utf8.prefix { $0 != UInt8(ascii: ";") }.filter { $0 != 0x20 && $0 != 0x09 }
        return String(decoding: type, as: UTF8.self).lowercased()
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
