import Glibc
import ImgdlCore

/// A URL that is canonical as it stands, as most are: an http or https URL with a host name in lower case and a path,
/// without port, user, fragment, dot segments, or anything that has to be encoded. It needs no parser, and no text of its
/// own.
enum PlainURL {
    /// nil for every other, and for what is no URL. `host`: of the URL before, used again where it is the same.
    static func parse(_ text: String, host known: String = "") -> ParsedURL? {
        // A string that is not in one piece is not worth another way.
        text.utf8.withContiguousStorageIfAvailable { parse(text, $0, known) } ?? nil
    }

    private static func parse(_ text: String, _ bytes: UnsafeBufferPointer<UInt8>, _ known: String) -> ParsedURL? {
        guard bytes.count <= 4096, let start = bytes.baseAddress, bytes.count > 8, memcmp(start, "http", 4) == 0 else {
            return nil
        }
        let isSecure = start[4] == UInt8(ascii: "s")
        let hostStart = isSecure ? 8 : 7
        guard memcmp(start + 4, isSecure ? "s://" : "://", hostStart - 4) == 0,
            let hostEnd = endOfHost(bytes, from: hostStart), let query = queryStart(bytes, from: hostEnd)
        else { return nil }
        let host = UnsafeBufferPointer(start: start + hostStart, count: hostEnd - hostStart)
        return ParsedURL(
            canonical: text, scheme: isSecure ? "https" : "http", host: name(host, known), port: isSecure ? 443 : 80,
            user: nil, password: nil,
            redacted: query == bytes.count ? text : redacted(bytes, query))
    }

    private static func name(_ bytes: UnsafeBufferPointer<UInt8>, _ known: String) -> String {
        let isKnown =
            known.utf8.withContiguousStorageIfAvailable {
                $0.count == bytes.count && memcmp($0.baseAddress!, bytes.baseAddress!, bytes.count) == 0
            } ?? false
        return isKnown ? known : String(decoding: bytes, as: UTF8.self)
    }

    private static func redacted(_ bytes: UnsafeBufferPointer<UInt8>, _ query: Int) -> String {
        String(decoding: bytes[..<query], as: UTF8.self)
            + QueryRedaction.redacted(String(decoding: bytes[query...], as: UTF8.self))
    }

    /// The slash behind a name of labels in lower case that begins with a letter: curl makes addresses of numbers.
    private static func endOfHost(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int? {
        guard (0x61...0x7A).contains(bytes[start]) else { return nil }
        var index = start + 1
        while index < bytes.count {
            switch bytes[index] {
            case 0x61...0x7A, 0x30...0x39, UInt8(ascii: "-"): break
            case UInt8(ascii: "."): if bytes[index - 1] == UInt8(ascii: ".") { return nil }
            case UInt8(ascii: "/"):
                return bytes[index - 1] != UInt8(ascii: ".") && index - start <= 253 ? index : nil
            default: return nil
            }
            index += 1
        }
        return nil
    }

    /// Where the query begins, behind its question mark, or the end; nil where something is not plain.
    private static func queryStart(_ bytes: UnsafeBufferPointer<UInt8>, from start: Int) -> Int? {
        var query: Int?
        for index in start..<bytes.count {
            switch bytes[index] {
            case 0x61...0x7A, 0x41...0x5A, 0x30...0x39: break
            case UInt8(ascii: "/"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "!"),
                UInt8(ascii: "$"), UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "("), UInt8(ascii: ")"),
                UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: "="),
                UInt8(ascii: ":"), UInt8(ascii: "@"):
                break
            // The beginning of what may be a dot segment.
            case UInt8(ascii: "."): if query == nil, bytes[index - 1] == UInt8(ascii: "/") { return nil }
            // So may %2e be.
            case UInt8(ascii: "%"):
                if query == nil, index + 2 < bytes.count, bytes[index + 1] == UInt8(ascii: "2"),
                    bytes[index + 2] | 0x20 == UInt8(ascii: "e")
                {
                    return nil
                }
            case UInt8(ascii: "?"): if query == nil { query = index + 1 }
            default: return nil
            }
        }
        // An empty query is left out.
        return query == bytes.count ? nil : query ?? bytes.count
    }
}
