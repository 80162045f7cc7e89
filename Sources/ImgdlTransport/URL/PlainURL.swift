import Glibc
import ImgdlCore

/// A URL that is canonical as it stands, as most are: an http or https URL with a host name in lower case or an IPv4
/// address and a path, without user, fragment, dot segments, or anything that has to be encoded. It needs no parser, and
/// no text of its own.
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
        guard isSecure ? memcmp(start + 4, "s://", 4) == 0 : memcmp(start + 4, "://", 3) == 0,
            let hostEnd = endOfHost(bytes, from: hostStart),
            let (port, authorityEnd) = port(bytes, from: hostEnd, usual: isSecure ? 443 : 80),
            let query = queryStart(bytes, from: authorityEnd)
        else { return nil }
        let host = UnsafeBufferPointer(start: start + hostStart, count: hostEnd - hostStart)
        return ParsedURL(
            canonical: text, scheme: isSecure ? "https" : "http", host: name(host, known), port: port,
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
        guard index > start, index - start <= 253, bytes[index - 1] != UInt8(ascii: ".") else { return nil }
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
