/// An ETag (RFC 9110 section 8.8.3).
struct EntityTag: Equatable {
    let isWeak: Bool
    /// With its quotes.
    @ExactText var opaque: String

    /// nil for what is no entity tag, or not for certain the one that came: it is equal to nothing.
    init?(_ text: String) {
        var bytes = text.utf8[...]
        while let first = bytes.first, first == 0x20 || first == 0x09 { bytes = bytes.dropFirst() }
        while let last = bytes.last, last == 0x20 || last == 0x09 { bytes = bytes.dropLast() }
        isWeak = bytes.starts(with: "W/".utf8)
        if isWeak { bytes = bytes.dropFirst(2) }
        let quote = UInt8(ascii: "\"")
        guard bytes.count >= 2, bytes.first == quote, bytes.last == quote else { return nil }
        let isValid = bytes.dropFirst().dropLast().allSatisfy { $0 == 0x21 || ($0 >= 0x23 && $0 != 0x7F) }
        guard isValid, Self.isSentAsItCame(text) else { return nil }
        _opaque = ExactText(wrappedValue: String(Substring(bytes)))
    }

    /// Bytes of one that is sent back: there is no room for more in a request, and servers refuse such fields.
    static let mostBytes = 8_190

    static func maySend(_ text: String) -> Bool { isSentAsItCame(text) && text.utf8.count <= mostBytes }

    /// Whether it is certain that the very bytes that came are sent back. Those that are not UTF-8 were read as ISO 8859-1, and
    /// would come back as other ones, which may be another version's tag.
    static func isSentAsItCame(_ text: String) -> Bool {
        !text.unicodeScalars.contains { (0x80...0xFF).contains($0.value) }
    }

    /// Both strong and the same (section 8.8.3.2).
    func isStronglyEqual(to other: EntityTag) -> Bool { !isWeak && !other.isWeak && isWeaklyEqual(to: other) }

    func isWeaklyEqual(to other: EntityTag) -> Bool { _opaque == other._opaque }
}
