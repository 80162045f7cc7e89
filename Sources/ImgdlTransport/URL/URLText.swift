/// Judges and prepares the text of a URL before curl parses it, byte by byte.
enum URLText {
    /// Bytes of a host name in DNS (RFC 1035 section 2.3.4), without the dot that may end it.
    static let maximumHostName = 253

    static func isShortEnough(_ host: String) -> Bool {
        host.utf8.count - (host.hasSuffix(".") ? 1 : 0) <= maximumHostName
    }

    /// The scheme in front, in lower case; nil where the text does not begin with one. "localhost:8080" has none:
    /// a digit after the colon makes it a port, unless `isKnown` as a scheme.
    static func scheme(of text: String, isKnown: (String) -> Bool = { _ in false }) -> String? {
        let bytes = text.utf8
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon != bytes.startIndex else { return nil }
        let name = bytes[..<colon]
        guard isLetter(name.first!), name.allSatisfy(isSchemeCharacter) else { return nil }
        let next = bytes.index(after: colon)
        let scheme = lowercased(text[..<colon])
        if next != bytes.endIndex, isDigit(bytes[next]), !isKnown(scheme) { return nil }
        return scheme
    }

    /// ASCII letters only: schemes and hosts are compared by bytes.
    static func lowercased(_ text: some StringProtocol) -> String {
        String(decoding: text.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    static func hasControlCharacter(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { hasControlCharacter($0) }
    }

    static func hasControlCharacter(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        // To the end and without a branch, which takes many bytes at a time.
        var found: UInt8 = 0
        for byte in text { found |= (byte < 0x20 ? 1 : 0) | (byte == 0x7F ? 1 : 0) }
        return found != 0
    }

    /// Four decimal numbers as curl writes an address: no leading zeros, none above 255.
    static func isIPv4(_ host: String) -> Bool {
        var host = host
        return host.withUTF8 { isIPv4($0) }
    }

    static func isIPv4(_ host: UnsafeBufferPointer<UInt8>) -> Bool {
        var dots = 0
        var digits = 0
        var value = 0
        for byte in host {
            if byte == UInt8(ascii: ".") {
                guard digits > 0 else { return false }
                dots += 1
                digits = 0
                value = 0
            } else {
                guard isDigit(byte), digits == 0 || value > 0 else { return false }
                digits += 1
                value = 10 * value + Int(byte - 0x30)
                guard value <= 255 else { return false }
            }
        }
        return dots == 3 && digits > 0
    }

    /// Cuts the fragment off and percent-encodes, in path and query, what may not stand there: spaces, bytes above
    /// ASCII, and the few characters that browsers encode too. What is encoded already stays as it is, but for dot segments,
    /// since signatures are made over it. (curl's own encoder writes a space in a query as "+", which only forms understand.)
    static func encoded(_ text: String) -> String {
        let bytes = Array(text.utf8)
        let end = bytes.firstIndex(of: UInt8(ascii: "#")) ?? bytes.count
        let start = authorityEnd(bytes, before: end)
        return String(decoding: bytes[..<start], as: UTF8.self) + withPlainDots(percentEncoded(bytes[start..<end]))
    }

    /// A segment of dots alone leads up or nowhere, also where they are encoded: newer versions of curl read "%2e" so, as
    /// browsers do, and older ones do not.
    private static func withPlainDots(_ text: String) -> String {
        let query = text.firstIndex(of: "?") ?? text.endIndex
        guard text[..<query].contains("%") else { return text }
        let segments = text[..<query].split(separator: "/", omittingEmptySubsequences: false).map { segment in
            let dots = segment.replacing("%2e", with: ".").replacing("%2E", with: ".")[...]
            return dots == "." || dots == ".." ? dots : segment
        }
        return segments.joined(separator: "/") + text[query...]
    }

    /// A relative reference and its base, in its canonical form, before dot segments are removed (RFC 3986 section 5.2.2).
    /// curl does the same, but for escapes, whose case it changes from version 8.20 on.
    static func merged(_ reference: String, with base: String) -> String {
        guard let colon = base.firstIndex(of: ":") else { return reference }
        let authority = base.index(colon, offsetBy: 3)
        let path = base[authority...].firstIndex(of: "/") ?? base.endIndex
        let query = base[path...].firstIndex(of: "?") ?? base.endIndex
        switch reference.first {
        case nil: return base
        case "/" where reference.hasPrefix("//"): return base[..<authority].dropLast(2) + reference
        case "/": return base[..<path] + reference
        case "?": return base[..<query] + reference
        default:
            let directory = base[path..<query].lastIndex(of: "/").map { base[...$0] } ?? base[..<path] + "/"
            return directory + reference
        }
    }

    /// A part of a URL as `encoded` has it.
    static func percentEncoded(_ bytes: some Sequence<UInt8>) -> String {
        var result: [UInt8] = []
        for byte in bytes {
            if mustBeEncoded(byte) {
                result.append(UInt8(ascii: "%"))
                result.append(hexadecimal(byte >> 4))
                result.append(hexadecimal(byte & 15))
            } else {
                result.append(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Nil where a % is not followed by two digits.
    static func percentDecoded(_ bytes: some Sequence<UInt8>) -> [UInt8]? {
        var result: [UInt8] = []
        var bytes = bytes.makeIterator()
        while let byte = bytes.next() {
            guard byte == UInt8(ascii: "%") else {
                result.append(byte)
                continue
            }
            guard let high = bytes.next().flatMap(value), let low = bytes.next().flatMap(value) else { return nil }
            result.append(high << 4 | low)
        }
        return result
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x41...0x46: digit - 0x41 + 10
        case 0x61...0x66: digit - 0x61 + 10
        default: nil
        }
    }

    /// Where path or query begin: after "scheme://authority" or "//authority"; 0 for a relative reference.
    private static func authorityEnd(_ bytes: [UInt8], before end: Int) -> Int {
        let slash = UInt8(ascii: "/")
        var start = 0
        while start < end, isSchemeCharacter(bytes[start]) { start += 1 }
        // A scheme begins with a letter: "://x" and "0://x" are paths.
        if start > 0, isLetter(bytes[0]), start < end, bytes[start] == UInt8(ascii: ":") {
            start += 1
        } else if start != 0 {
            return 0
        }
        guard start + 1 < end, bytes[start] == slash, bytes[start + 1] == slash else { return 0 }
        while start < end, bytes[start] == slash { start += 1 }
        return bytes[start..<end].firstIndex { $0 == slash || $0 == UInt8(ascii: "?") } ?? end
    }

    private static func mustBeEncoded(_ byte: UInt8) -> Bool {
        switch byte {
        case 0...0x20, 0x7F...0xFF: return true
        case UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "`"), UInt8(ascii: "{"),
            UInt8(ascii: "}"):
            return true
        default: return false
        }
    }

    private static func hexadecimal(_ nibble: UInt8) -> UInt8 {
        nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "A") + nibble - 10
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    private static func isSchemeCharacter(_ byte: UInt8) -> Bool {
        isLetter(byte) || isDigit(byte) || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-")
            || byte == UInt8(ascii: ".")
    }
}
