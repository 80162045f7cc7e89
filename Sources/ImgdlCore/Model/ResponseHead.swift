/// Status line and header fields of one response, as received (repeated fields too).
package struct ResponseHead: Equatable, Sendable {
    package var status: Int32
    /// 10, 11, 20 or 30.
    package var httpVersion: Int32
    package var fields: [HeaderField]
    /// From Content-Length, when it is there and valid; counts the encoded body (RFC 9110 section 8.6).
    package var contentLength: Int64?
    /// A Content-Encoding other than identity is being undone: decoded bytes cannot be compared with `contentLength`.
    package var isEncoded: Bool
    /// A Content-Encoding that nobody here can undo: the body comes as it was sent.
    package var remainingCoding: String?
    package var outcome = CacheOutcome.network

    package init(
        status: Int32, httpVersion: Int32, fields: [HeaderField], contentLength: Int64?, isEncoded: Bool
    ) {
        self.status = status
        self.httpVersion = httpVersion
        self.fields = fields
        self.contentLength = contentLength
        self.isEncoded = isEncoded
    }

    /// Of Content-Type, in lower case and without parameters (RFC 9110 section 8.3.1); empty where there is none.
    package var mediaType: String { Self.mediaType(of: fields.first(named: "Content-Type") ?? "") }

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
