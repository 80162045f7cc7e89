import ImgdlCore

/// A URL of a scheme that the host has a loader for (features T06, T32), by the generic syntax of RFC 3986 section 3.
///
/// Not with curl's parser: it takes every scheme for one of the web's, so that app://1/ becomes app://0.0.0.1/ and
/// app:///x becomes app://x/. Host names keep their case, and dots in paths stay: what they mean, the loader knows.
enum HostSchemeURL {
    static func parse(_ text: String, scheme: String) throws(Failure) -> ParsedURL {
        var rest = text.utf8.dropFirst(scheme.utf8.count + 1).prefix { $0 != UInt8(ascii: "#") }
        var authority = Authority()
        var prefix = "\(scheme):"
        if rest.starts(with: "//".utf8) {
            rest = rest.dropFirst(2)
            let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
            let text = Array(rest[..<end])
            try AuthorityText.checkAuthority(text[...])
            authority = try Authority(text)
            rest = rest[end...]
            prefix += "//\(authority.literal)"
        }
        let query = rest.firstIndex(of: UInt8(ascii: "?"))
        prefix += URLText.percentEncoded(rest[..<(query ?? rest.endIndex)])
        let values = query.map { URLText.percentEncoded(rest[rest.index(after: $0)...]) } ?? ""
        return ParsedURL(
            canonical: values.isEmpty ? prefix : "\(prefix)?\(values)", scheme: scheme, host: authority.host,
            port: authority.port, user: authority.user, password: authority.password)
    }

    /// [user[:password]@]host[:port]
    private struct Authority {
        var user: String?
        var password: String?
        var host = ""
        /// 0 for none.
        var port: UInt16 = 0

        var literal: String {
            let name = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
            return port == 0 ? name : "\(name):\(port)"
        }

        init() {}

        init(_ bytes: [UInt8]) throws(Failure) {
            var bytes = bytes[...]
            if let at = bytes.lastIndex(of: UInt8(ascii: "@")) {
                let parts = bytes[..<at].split(
                    separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
                user = try Self.text(parts[0])
                if parts.count == 2 { password = try Self.text(parts[1]) }
                bytes = bytes[(at + 1)...]
            }
            if bytes.first == UInt8(ascii: "[") {
                guard let end = bytes.firstIndex(of: UInt8(ascii: "]")) else { throw Self.invalid }
                host = URLText.percentEncoded(bytes[(bytes.startIndex + 1)..<end])
                bytes = bytes[(end + 1)...]
            } else {
                let end = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
                host = URLText.percentEncoded(bytes[..<end])
                bytes = bytes[end...]
            }
            // Brackets stand around an address alone (RFC 3986 section 3.2.2).
            guard !host.utf8.contains(where: { $0 == UInt8(ascii: "[") || $0 == UInt8(ascii: "]") }) else {
                throw Self.invalid
            }
            guard !bytes.isEmpty else { return }
            let digits = bytes.dropFirst()
            guard bytes.first == UInt8(ascii: ":"), digits.allSatisfy({ (0x30...0x39).contains($0) }) else {
                throw Self.invalid
            }
            guard !digits.isEmpty else { return }
            guard let port = UInt16(String(decoding: digits, as: UTF8.self)) else { throw Self.invalid }
            guard port != 0 else { throw Failure(.invalidURL, "the port of the URL is 0") }
            self.port = port
        }

        private static var invalid: Failure { Failure(.invalidURL, "the host or the port of the URL is malformed") }

        private static func text(_ bytes: ArraySlice<UInt8>) throws(Failure) -> String {
            guard let decoded = URLText.percentDecoded(bytes), let text = String(validating: decoded, as: UTF8.self),
                !URLText.hasControlCharacter(text)
            else { throw Failure(.invalidURL, "user name or password of the URL is malformed") }
            return text
        }
    }
}
