import ImgdlCore

/// From a string to the canonical form that requests are compared by. Threads: any.
///
/// No message repeats the URL: it may carry a password or a signature.
enum URLParser {
    static func parse(_ text: String, _ schemes: URLSchemes = .web) throws(Failure) -> ParsedURL {
        if let plain = PlainURL.parse(text) { return plain }
        return try parseAny(text, schemes)
    }

    /// Plain ones too.
    static func parseAny(_ text: String, _ schemes: URLSchemes = .web) throws(Failure) -> ParsedURL {
        guard let first = text.utf8.first, let last = text.utf8.last else {
            throw Failure(.invalidURL, "the URL is empty")
        }
        guard first != UInt8(ascii: " "), last != UInt8(ascii: " ") else {
            throw Failure(.invalidURL, "the URL begins or ends with a space")
        }
        let scheme = try checkCharactersAndScheme(text, schemes)
        switch scheme {
        case nil, "http", "https": break
        case let scheme? where schemes.isRegistered(scheme): return try HostSchemeURL.parse(text, scheme: scheme)
        case "file": return try FileURL.parse(text)
        default: return try DataURL.parse(text)
        }
        try AuthorityText.check(text, scheme: scheme)
        let url = try CurlURL()
        try url.set(URLText.encoded(text))
        return try settled(url.parsed())
    }

    /// A user and password in the base's URL hold for references to the same authority, as in any other part of it.
    /// Whatever schemes the host has loaders for, a reference may lead to http and https alone: a server must not choose
    /// what the host loads from itself.
    static func resolve(_ reference: String, against base: ParsedURL) throws(Failure) -> ParsedURL {
        let spaces = reference.utf8.prefix { $0 == UInt8(ascii: " ") }.count
        var trimmed = reference.utf8.dropFirst(spaces)
        while trimmed.last == UInt8(ascii: " ") { trimmed = trimmed.dropLast() }
        let text = String(trimmed)!
        let scheme = try checkCharactersAndScheme(text, .web, isReference: true)
        guard base.scheme == "http" || base.scheme == "https" else {
            guard scheme != nil else { throw CurlURL.unsupported(base.scheme) }
            return try parse(text)
        }
        try AuthorityText.check(text, scheme: scheme)
        let url = try CurlURL()
        try url.set(scheme == nil ? URLText.merged(URLText.encoded(text), with: base.canonical) : URLText.encoded(text))
        if scheme == nil, !text.hasPrefix("//") { try url.setUser(base.user, password: base.password) }
        return try settled(url.parsed())
    }

    /// curl makes an address of a number ("http://5/" leads to 0.0.0.5) before it undoes percent-encoding in a host, so of
    /// "%35" only when it reads its own text again. Compared and judged is what it will request.
    private static func settled(_ first: ParsedURL) throws(Failure) -> ParsedURL {
        guard let digit = first.host.utf8.first, (0x30...0x39).contains(digit), !URLText.isIPv4(first.host) else {
            return first
        }
        let url = try CurlURL()
        try url.set(first.canonical)
        let again = try url.parsed()
        return ParsedURL(
            canonical: again.canonical, scheme: again.scheme, host: again.host, port: again.port, user: first.user,
            password: first.password)
    }

    /// Only what a person has typed means a host and a port by "localhost:8080": in a reference what is before the first
    /// colon is a scheme (RFC 3986 section 4.2).
    private static func checkCharactersAndScheme(
        _ text: String, _ schemes: URLSchemes, isReference: Bool = false
    ) throws(Failure) -> String? {
        // Each byte may become three.
        guard text.utf8.count <= ParsedURL.maximumLength / 3 else {
            throw Failure(.invalidURL, "the URL is longer than a gigabyte")
        }
        guard !URLText.hasControlCharacter(text) else {
            throw Failure(.invalidURL, "the URL has a control character in it")
        }
        let scheme = URLText.scheme(of: text) { isReference || schemes.isRegistered($0) }
        guard let scheme, !schemes.allows(scheme) else { return scheme }
        let unsupported = CurlURL.unsupported(mayBeUser(text, scheme) ? nil : scheme)
        guard isReference, beginsWithPort(text.utf8.dropFirst(scheme.utf8.count + 1)) else { throw unsupported }
        let words = "\(unsupported.message); if it is a host, the server left out http:// before it"
        throw Failure(unsupported.code, words)
    }

    /// As in "user:password@host", which has no scheme.
    private static func mayBeUser(_ text: String, _ scheme: String) -> Bool {
        guard !["mailto", "sip", "sips", "xmpp"].contains(scheme) else { return false }
        let rest = text.utf8.drop { $0 != UInt8(ascii: ":") }.dropFirst()
        return !rest.starts(with: "//".utf8) && (rest.contains(UInt8(ascii: "@")) || Substring(rest).contains("%40"))
    }

    private static func beginsWithPort(_ text: Substring.UTF8View) -> Bool {
        let rest = text.drop { (0x30...0x39).contains($0) }
        return rest.startIndex > text.startIndex && (rest.first.map { [0x2F, 0x3F, 0x23].contains($0) } ?? true)
    }
}
