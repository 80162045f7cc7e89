import ImgdlCore

/// file: URLs (RFC 8089) of this machine.
enum FileURL {
    static func parse(_ text: String) throws(Failure) -> ParsedURL {
        var rest = text.utf8.dropFirst("file:".utf8.count).prefix {
            $0 != UInt8(ascii: "#") && $0 != UInt8(ascii: "?")
        }
        if rest.starts(with: "//".utf8) {
            rest = rest.dropFirst(2)
            let host = rest.prefix { $0 != UInt8(ascii: "/") }
            guard host.isEmpty || URLText.lowercased(Substring(host)) == "localhost" else {
                throw Failure(.invalidURL, "a file: URL may name no other machine")
            }
            rest = rest.dropFirst(host.count)
        }
        guard rest.first == UInt8(ascii: "/") else {
            throw Failure(.invalidURL, "the path of a file: URL begins with /")
        }
        let canonical = "file://" + URLText.percentEncoded(rest)
        let url = ParsedURL(
            canonical: canonical, scheme: "file", host: "", port: 0, user: nil, password: nil)
        guard path(of: url) != nil else {
            throw Failure(.invalidURL, "the path of the file: URL has a broken percent-encoding or a NUL in it")
        }
        return url
    }

    /// What the kernel is asked for, with its NUL; nil for what `parse` refuses. Paths need not be UTF-8.
    static func path(of url: ParsedURL) -> [CChar]? {
        guard let path = URLText.percentDecoded(url.canonical.utf8.dropFirst("file://".utf8.count)), !path.contains(0)
        else { return nil }
        return path.map { CChar(bitPattern: $0) } + [0]
    }
}
