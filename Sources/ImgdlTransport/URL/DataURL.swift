import ImgdlCore

/// data: URLs (RFC 2397): the body is in the URL.
struct DataURL {
    /// For Content-Type.
    let mediaType: String
    let bytes: [UInt8]

    static func parse(_ text: String) throws(Failure) -> ParsedURL {
        let scheme = "data:"
        let rest = String(Substring(text.utf8.dropFirst(scheme.utf8.count).prefix { $0 != UInt8(ascii: "#") }))
        _ = try DataURL(rest)
        return ParsedURL(
            canonical: scheme + rest, scheme: "data", host: "", port: 0, user: nil, password: nil,
            redacted: "\(scheme)\(String(Substring(rest.utf8.prefix { $0 != UInt8(ascii: ",") })).prefix(80)),…")
    }

    init(_ url: ParsedURL) throws(Failure) { try self.init(String(url.canonical.dropFirst("data:".count))) }

    /// `text`: all behind the scheme.
    private init(_ text: String) throws(Failure) {
        guard let comma = text.utf8.firstIndex(of: UInt8(ascii: ",")) else {
            throw Failure(.invalidURL, "a data: URL has a comma in front of its data")
        }
        guard var data = URLText.percentDecoded(text.utf8[text.utf8.index(after: comma)...]) else {
            throw Failure(.invalidURL, "the data of the data: URL has a broken percent-encoding in it")
        }
        var type = text[..<comma]
        if let semicolon = type.lastIndex(of: ";"), URLText.lowercased(type[semicolon...].filter { $0 != " " }) == ";base64" {
            type = type[..<semicolon]
            guard let decoded = Base64.decoded(data) else {
                throw Failure(.invalidURL, "the data of the data: URL is not base64")
            }
            data = decoded
        }
        bytes = data
        mediaType = type.isEmpty ? "text/plain;charset=US-ASCII" : type.hasPrefix(";") ? "text/plain\(type)" : String(type)
    }
}

/// RFC 4648 section 4; spaces between and missing padding are let pass.
enum Base64 {
    static func decoded(_ text: [UInt8]) -> [UInt8]? {
        var result: [UInt8] = []
        result.reserveCapacity(text.count / 4 * 3 + 3)
        var bits: UInt32 = 0
        var count = 0
        var padding = 0
        for byte in text {
            let value: UInt8
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = byte - UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): value = byte - UInt8(ascii: "a") + 26
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = byte - UInt8(ascii: "0") + 52
            case UInt8(ascii: "+"): value = 62
            case UInt8(ascii: "/"): value = 63
            case UInt8(ascii: "="):
                padding += 1
                continue
            case 0x20, 0x09, 0x0A, 0x0D: continue
            default: return nil
            }
            guard padding == 0 else { return nil }
            bits = bits << 6 | UInt32(value)
            count += 1
            if count % 4 == 0 {
                result.append(UInt8(truncatingIfNeeded: bits >> 16))
                result.append(UInt8(truncatingIfNeeded: bits >> 8))
                result.append(UInt8(truncatingIfNeeded: bits))
            }
        }
        let left = count % 4
        guard left != 1, padding == 0 || left + padding == 4 else { return nil }
        if left == 2 { result.append(UInt8(truncatingIfNeeded: bits >> 4)) }
        if left == 3 {
            result.append(UInt8(truncatingIfNeeded: bits >> 10))
            result.append(UInt8(truncatingIfNeeded: bits >> 2))
        }
        return result
    }
}
