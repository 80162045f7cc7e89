/// Text from servers, names and files, made fit to be printed: nothing of it moves a cursor, ends a line of a log, or turns
/// the direction of what stands beside it.
package enum PrintableText {
    /// Control characters become escapes such as \x1b and \u202e; everything else stays.
    package static func escaped(_ text: String) -> String {
        guard needsEscapes(text) else { return text }
        var result = ""
        for scalar in text.unicodeScalars {
            guard isControl(scalar.value) else {
                result.unicodeScalars.append(scalar)
                continue
            }
            let digits = String(scalar.value, radix: 16)
            let isShort = scalar.value < 0x80
            result += isShort ? "\\x" : "\\u"
            result += String(repeating: "0", count: max(0, (isShort ? 2 : 4) - digits.utf8.count)) + digits
        }
        return result
    }

    /// Its beginning, where it has more than so many bytes of UTF-8: a server may name a host of 70 KB.
    package static func shortened(_ text: String, to bytes: Int) -> String {
        guard text.utf8.count > bytes else { return text }
        var end = text.utf8.index(text.startIndex, offsetBy: bytes)
        // Not within a character.
        while end > text.startIndex, text.utf8[end] & 0xC0 == 0x80 { text.utf8.formIndex(before: &end) }
        return text[..<end] + "…"
    }

    /// Most text is ASCII without any, which is seen many bytes at a time.
    private static func needsEscapes(_ text: String) -> Bool {
        var text = text
        let mayNeed = text.withUTF8 { bytes in
            var found: UInt8 = 0
            for byte in bytes { found |= byte < 0x20 || byte >= 0x7F ? 1 : 0 }
            return found != 0
        }
        return mayNeed && text.unicodeScalars.contains { isControl($0.value) }
    }

    /// C0, DEL and C1; marks, embeddings and isolates of direction; separators of lines; the byte order mark.
    private static func isControl(_ value: UInt32) -> Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF: true
        default: false
        }
    }
}
