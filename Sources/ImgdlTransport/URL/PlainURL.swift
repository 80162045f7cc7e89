import Glibc
import ImgdlCore

/// A URL that is canonical as it stands, as most are: an http or https URL with a host name in lower case or an IPv4
/// address and a path, without user, fragment, dot segments, or anything that has to be encoded. It needs no parser.
enum PlainURL {
    static func parse(_ text: String, lastOrigin: ParsedURL.Origin? = nil) -> ParsedURL? {
        // A string that is not in one piece is not worth another way.
        text.utf8.withContiguousStorageIfAvailable { parse($0, lastOrigin: lastOrigin) } ?? nil
    }

    /// nil for every other, and for what is no URL. `lastOrigin`: of the URL before, used again where it is the same.
    static func parse(_ bytes: UnsafeBufferPointer<UInt8>, lastOrigin: ParsedURL.Origin?) -> ParsedURL? {
        guard bytes.count <= 4096, bytes.count > 8 else { return nil }
        let origin: ParsedURL.Origin
        let pathStart: Int
        if let lastOrigin, let end = end(of: lastOrigin, in: bytes) {
            (origin, pathStart) = (lastOrigin, end)
        } else {
            guard let new = newOrigin(bytes) else { return nil }
            (origin, pathStart) = new
        }
        return isPlain(bytes, from: pathStart) ? ParsedURL(canonical: bytes, origin: origin) : nil
    }

    /// Where the path begins, if the URL has this origin.
    private static func end(of origin: ParsedURL.Origin, in bytes: UnsafeBufferPointer<UInt8>) -> Int? {
        origin.text.utf8.withContiguousStorageIfAvailable { known -> Int? in
            guard let start = known.baseAddress, known.count > 0, known.count < bytes.count,
                bytes[known.count] == UInt8(ascii: "/"), memcmp(start, bytes.baseAddress!, known.count) == 0
            else { return nil }
            return known.count
        } ?? nil
    }

    private static func newOrigin(
        _ bytes: UnsafeBufferPointer<UInt8>
    ) -> (origin: ParsedURL.Origin, pathStart: Int)? {
        guard let start = bytes.baseAddress, memcmp(start, "http", 4) == 0 else { return nil }
        let isSecure = start[4] == UInt8(ascii: "s")
        let hostStart = isSecure ? 8 : 7
        guard isSecure ? memcmp(start + 4, "s://", 4) == 0 : memcmp(start + 4, "://", 3) == 0,
            let hostEnd = endOfHost(bytes, from: hostStart),
            let (port, end) = port(bytes, from: hostEnd, usual: isSecure ? 443 : 80)
        else { return nil }
        let origin = ParsedURL.Origin(
            scheme: isSecure ? "https" : "http", host: String(decoding: bytes[hostStart..<hostEnd], as: UTF8.self),
            port: port, text: String(decoding: bytes[..<end], as: UTF8.self))
        return (origin, end)
    }

    /// Behind a name of labels in lower case that begins with a letter, or four numbers: curl makes addresses of others.
    private static func endOfHost(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int? {
        let isName = (0x61...0x7A).contains(bytes[start])
        var index = start
        while index < bytes.count, bytes[index] != UInt8(ascii: "/"), bytes[index] != UInt8(ascii: ":") {
            switch bytes[index] {
            case 0x30...0x39: break
            case 0x61...0x7A, UInt8(ascii: "-"): if !isName { return nil }
            case UInt8(ascii: "."): if index == start || bytes[index - 1] == UInt8(ascii: ".") { return nil }
            default: return nil
            }
            index += 1
        }
        guard index > start, index - start <= URLText.maximumHostName, bytes[index - 1] != UInt8(ascii: ".") else {
            return nil
        }
        return isName || URLText.isIPv4(UnsafeBufferPointer(rebasing: bytes[start..<index])) ? index : nil
    }

    /// The number behind a colon, where it is not the scheme's own, and where the slash behind it is.
    private static func port(
        _ bytes: UnsafeBufferPointer<UInt8>, from start: Int, usual: UInt16
    ) -> (port: UInt16, end: Int)? {
        guard start < bytes.count else { return nil }
        guard bytes[start] == UInt8(ascii: ":") else { return (usual, start) }
        var port = 0
        var index = start + 1
        while index < bytes.count, (0x30...0x39).contains(bytes[index]) {
            port = 10 * port + Int(bytes[index] - 0x30)
            guard (1...Int(UInt16.max)).contains(port) else { return nil }
            index += 1
        }
        guard port > 0, port != usual, index < bytes.count, bytes[index] == UInt8(ascii: "/") else { return nil }
        return (UInt16(port), index)
    }

    /// Of path and query.
    private static func isPlain(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Bool {
        var query: Int?
        var index = start
        while index < bytes.count {
            if index + 8 <= bytes.count, areLettersAndDigits(bytes, index) {
                index += 8
                continue
            }
            let byte = bytes[index]
            if !isOrdinary(byte) {
                switch byte {
                // The beginning of what may be a dot segment.
                case UInt8(ascii: "."): if query == nil, bytes[index - 1] == UInt8(ascii: "/") { return false }
                // So may %2e be.
                case UInt8(ascii: "%"):
                    if query == nil, index + 2 < bytes.count, bytes[index + 1] == UInt8(ascii: "2"),
                        bytes[index + 2] | 0x20 == UInt8(ascii: "e")
                    {
                        return false
                    }
                case UInt8(ascii: "?"): if query == nil { query = index + 1 }
                default: return false
                }
            }
            index += 1
        }
        // An empty query is left out.
        return query != bytes.count
    }

    /// Whether the next eight are letters, digits or slashes, as most are: bit 7 of a byte says so of it. Sums do not
    /// carry over to the next byte where no byte is above ASCII.
    private static func areLettersAndDigits(_ bytes: UnsafeBufferPointer<UInt8>, _ index: Int) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let some = UnsafeRawBufferPointer(bytes).loadUnaligned(fromByteOffset: index, as: UInt64.self)
        let lower = some | 0x20 &* ones
        let areLetters = (lower &+ (0x80 - 0x61) &* ones) & ~(lower &+ (0x80 - 0x7B) &* ones)
        // From the slash to the nine.
        let areDigits = (some &+ (0x80 - 0x2F) &* ones) & ~(some &+ (0x80 - 0x3A) &* ones)
        let highBits = 0x80 &* ones
        return (areLetters | areDigits) & ~some & highBits == highBits
    }

    /// Stands for itself wherever it is in path or query.
    ///
    /// A bit for each character of ASCII, since a look at each byte is most of what a URL costs: letters, digits, and
    /// / - ~ ! $ & ' ( ) * + , ; = : @ _
    private static func isOrdinary(_ byte: UInt8) -> Bool {
        let bits: UInt64 = byte < 0x40 ? 0x2FFFBFD200000000 : 0x47FFFFFE87FFFFFF
        return byte < 0x80 && bits &>> UInt64(byte & 0x3F) & 1 != 0
    }
}
