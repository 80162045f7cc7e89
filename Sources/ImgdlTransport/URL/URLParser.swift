import ImgdlCore

/// From a string to the canonical form that requests are compared by. Threads: any.
///
/// No message repeats the URL: it may carry a password or a signature.
enum URLParser {
    static func parse(_ text: String) throws(Failure) -> ParsedURL {
        guard let first = text.utf8.first, let last = text.utf8.last else {
            throw Failure(.invalidURL, "the URL is empty")
        }
        guard first != UInt8(ascii: " "), last != UInt8(ascii: " ") else {
            throw Failure(.invalidURL, "the URL begins or ends with a space")
        }
        try checkCharactersAndScheme(text)
        let url = try CurlURL()
        try url.set(URLText.encoded(text))
        return try url.parsed()
    }

    /// A user and password in the base's URL hold for references to the same authority, as in any other part of it.
    static func resolve(_ reference: String, against base: ParsedURL) throws(Failure) -> ParsedURL {
        let spaces = reference.utf8.prefix { $0 == UInt8(ascii: " ") }.count
        var trimmed = reference.utf8.dropFirst(spaces)
        while trimmed.last == UInt8(ascii: " ") { trimmed = trimmed.dropLast() }
        let text = String(trimmed)!
        try checkCharactersAndScheme(text)
        let url = try CurlURL()
        try url.set(base.canonical)
        try url.setUser(base.user, password: base.password)
        let encoded = URLText.encoded(text)
        if !encoded.isEmpty { try url.set(encoded) }
        return try url.parsed()
    }

    private static func checkCharactersAndScheme(_ text: String) throws(Failure) {
        guard !URLText.hasControlCharacter(text) else {
            throw Failure(.invalidURL, "the URL has a control character in it")
        }
        if let scheme = URLText.scheme(of: text), scheme != "http", scheme != "https" {
            throw CurlURL.unsupported(scheme)
        }
    }
}
