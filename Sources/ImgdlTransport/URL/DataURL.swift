import ImgdlCore

/// data: URLs (RFC 2397): the body is in the URL.
struct DataURL {
    /// For Content-Type.
    let mediaType: String
    let bytes: [UInt8]

    static func parse(_ text: String) throws(Failure) -> ParsedURL {
        let scheme = "data:"
        var characters = text.utf8.dropFirst(scheme.utf8.count).prefix { $0 != UInt8(ascii: "#") }
        // At the end of a URL spaces are no part of it.
        while characters.last == UInt8(ascii: " ") { characters = characters.dropLast() }
        let rest = String(Substring(characters))
        _ = try DataURL(rest)
        return ParsedURL(
            canonical: scheme + rest, scheme: "data", host: "", port: 0, user: nil, password: nil,
            redacted: "\(scheme)\(String(Substring(rest.utf8.prefix { $0 != UInt8(ascii: ",") })).prefix(80)),…")
    }

    init(_ url: ParsedURL) throws(Failure) {
        try self.init(String(Substring(url.canonical.utf8.dropFirst("data:".utf8.count))))
    }

    /// `text`: all behind the scheme.
    private init(_ text: String) throws(Failure) {
        guard let comma = text.utf8.firstIndex(of: UInt8(ascii: ",")) else {
            throw Failure(.invalidURL, "a data: URL has a comma in front of its data")
        }
        guard var data = URLText.percentDecoded(text.utf8[text.utf8.index(after: comma)...]) else {
            throw Failure(.invalidURL, "the data of the data: URL has a broken percent-encoding in it")
        }
        var type = text[..<comma]
        if let semicolon = type.lastIndex(of: ";"),
            URLText.lowercased(type[semicolon...].filter { $0 != " " }) == ";base64"
        {
            type = type[..<semicolon]
            guard let decoded = Base64.decoded(data) else {
                throw Failure(.invalidURL, "the data of the data: URL is not base64")
            }
            data = decoded
        }
        bytes = data
        mediaType =
            type.isEmpty ? "text/plain;charset=US-ASCII" : type.hasPrefix(";") ? "text/plain\(type)" : String(type)
    }
}
