/// scheme = ALPHA *( ALPHA / DIGIT / "+" / "-" / "." ) (RFC 3986 section 3.1)
package enum SchemeName {
    /// In lower case, as it is compared; nil for what is no scheme.
    package static func canonical(_ text: String) -> String? {
        guard let first = text.utf8.first, isLetter(first), text.utf8.count <= 40, text.utf8.allSatisfy(isCharacter)
        else { return nil }
        return String(decoding: text.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }

    static func isCharacter(_ byte: UInt8) -> Bool {
        isLetter(byte) || (0x30...0x39).contains(byte) || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-")
            || byte == UInt8(ascii: ".")
    }
}
