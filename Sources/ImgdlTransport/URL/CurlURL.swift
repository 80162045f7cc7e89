import CCurl
import Glibc
import ImgdlCore

/// A URL in curl's own parser (curl_url), so that what is compared is what curl will request. Used by one thread.
final class CurlURL {
    private let handle: OpaquePointer

    init() throws(Failure) {
        guard let handle = curl_url() else { throw Failure(.outOfMemory, "no memory for a URL") }
        self.handle = handle
    }

    deinit { curl_url_cleanup(handle) }

    /// Sets a whole URL or, when there is one already, resolves a reference against it (RFC 3986 section 5).
    func set(_ text: String) throws(Failure) {
        try check(curl_url_set(handle, CURLUPART_URL, text, 0))
    }

    func setUser(_ user: String?, password: String?) throws(Failure) {
        try check(curl_url_set(handle, CURLUPART_USER, user, UInt32(CURLU_URLENCODE)))
        try check(curl_url_set(handle, CURLUPART_PASSWORD, password, UInt32(CURLU_URLENCODE)))
    }

    /// Whether curl will take it as a proxy; a scheme may be missing. Messages never repeat it.
    static func isProxy(_ text: String) -> Bool {
        guard let url = try? CurlURL(), url.setProxy(text) else { return false }
        do {
            let scheme = try url.part(CURLUPART_SCHEME) ?? ""
            guard ["http", "https", "socks4", "socks4a", "socks5", "socks5h"].contains(scheme) else { return false }
            // Decoding refuses control characters.
            _ = try url.part(CURLUPART_USER, CURLU_URLDECODE)
            _ = try url.part(CURLUPART_PASSWORD, CURLU_URLDECODE)
            return try url.part(CURLUPART_HOST) ?? "" != ""
        } catch {
            return false
        }
    }

    /// Where a proxy is that looks up the names of servers itself; nil for others.
    static func serverOfProxy(_ text: String) -> NamedServer? {
        guard let url = try? CurlURL(), url.setProxy(text), let scheme = try? url.part(CURLUPART_SCHEME),
            !["socks4", "socks5"].contains(scheme)
        else { return nil }
        return addressOfProxy(text)
    }

    /// nil: it is none.
    static func addressOfProxy(_ text: String) -> NamedServer? {
        guard isProxy(text), let url = try? CurlURL(), url.setProxy(text),
            let scheme = try? url.part(CURLUPART_SCHEME), let host = try? url.host().bare
        else { return nil }
        // As CURLOPT_PROXYPORT says of a proxy without a port.
        let usual: UInt16 = scheme == "https" ? 443 : 1080
        return NamedServer(host: host, port: (try? url.part(CURLUPART_PORT)).flatMap { UInt16($0) } ?? usual)
    }

    private func setProxy(_ text: String) -> Bool {
        let flags = UInt32(CURLU_NON_SUPPORT_SCHEME | CURLU_GUESS_SCHEME)
        return curl_url_set(handle, CURLUPART_URL, text, flags) == CURLUE_OK
    }

    /// The canonical parts; throws when one breaks our rules.
    func parsed() throws(Failure) -> ParsedURL {
        let scheme = URLText.lowercased(try part(CURLUPART_SCHEME) ?? "")
        guard scheme == "http" || scheme == "https" else { throw Self.unsupported(scheme) }
        let (host, literal) = try self.host()
        let port = try self.port()
        let user = try part(CURLUPART_USER, CURLU_URLDECODE)
        let password = try part(CURLUPART_PASSWORD, CURLU_URLDECODE)
        let path = try part(CURLUPART_PATH) ?? "/"
        let query = try part(CURLUPART_QUERY)

        let authority = port == (scheme == "http" ? 80 : 443) ? literal : "\(literal):\(port)"
        let prefix = "\(scheme)://\(authority)\(path)"
        let text = query.map { $0.isEmpty ? prefix : "\(prefix)?\($0)" } ?? prefix
        return ParsedURL(
            canonical: text, scheme: scheme, host: host, port: port, user: user, password: password)
    }

    /// nil: one that is not to be named.
    static func unsupported(_ scheme: String?) -> Failure {
        let name = scheme.map { "“\($0.prefix(40))” " } ?? ""
        return Failure(.unsupportedScheme, "the scheme \(name)is not supported here")
    }

    /// The host, bare and as it stands in a URL (an IPv6 literal in brackets, with its zone).
    private func host() throws(Failure) -> (bare: String, literal: String) {
        var host = try part(CURLUPART_HOST) ?? ""
        if !host.utf8.allSatisfy({ $0 < 0x80 }) { host = try punycode() }
        host = URLText.lowercased(host)
        guard !host.isEmpty else { throw Self.invalid(CURLUE_NO_HOST) }
        guard !host.utf8.allSatisfy({ $0 == UInt8(ascii: ".") }) else { throw Self.invalid(CURLUE_BAD_HOSTNAME) }
        guard host.hasPrefix("[") else {
            // What was encoded twice would be decoded once more on its way to the server; an encoded backslash is one.
            guard !host.utf8.contains(where: { $0 == UInt8(ascii: "%") || $0 == UInt8(ascii: "\\") }) else {
                throw Self.invalid(CURLUE_BAD_HOSTNAME)
            }
            guard URLText.isShortEnough(host) else {
                throw Failure(
                    .invalidURL, "the host name is longer than the \(URLText.maximumHostName) bytes that names may have"
                )
            }
            return (host, host)
        }
        let bare = String(host.dropFirst().dropLast())
        guard let zone = try part(CURLUPART_ZONEID) else { return (bare, host) }
        return (bare, "[\(bare)%25\(zone)]")
    }

    /// libidn2 behind curl reads the name in the locale's encoding. The host program's locale is not ours to rely on or
    /// to change, so this thread alone gets a UTF-8 one meanwhile.
    private func punycode() throws(Failure) -> String {
        let utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nil)
        let before = utf8.map { uselocale($0) }
        defer {
            if let before { uselocale(before) }
            if let utf8 { freelocale(utf8) }
        }
        return try part(CURLUPART_HOST, CURLU_PUNYCODE) ?? ""
    }

    private func port() throws(Failure) -> UInt16 {
        guard let text = try part(CURLUPART_PORT, CURLU_DEFAULT_PORT), let port = UInt16(text) else {
            throw Self.invalid(CURLUE_BAD_PORT_NUMBER)
        }
        guard port != 0 else { throw Failure(.invalidURL, "not a URL that can be requested: the port is 0") }
        return port
    }

    /// Nil when the URL has no such part.
    private func part(_ part: CURLUPart, _ flags: Int32 = 0) throws(Failure) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        let code = curl_url_get(handle, part, &text, UInt32(flags))
        defer { curl_free(text) }
        switch code {
        case CURLUE_NO_SCHEME, CURLUE_NO_USER, CURLUE_NO_PASSWORD, CURLUE_NO_HOST, CURLUE_NO_PORT, CURLUE_NO_QUERY:
            return nil
        // A name that becomes too long is, in curl's words, one for which there is no memory.
        case CURLUE_BAD_HOSTNAME where flags == CURLU_PUNYCODE, CURLUE_OUT_OF_MEMORY where flags == CURLU_PUNYCODE:
            throw Failure(.invalidURL, "the host name is not a valid international name")
        default:
            // NO_ZONEID has no name that all of curl's versions share.
            if part == CURLUPART_ZONEID && code != CURLUE_OK { return nil }
        }
        try check(code)
        guard let text else { return nil }
        guard let string = String(validatingCString: text) else {
            throw Failure(.invalidURL, "percent-encoded bytes in user name, password or host are not UTF-8")
        }
        return string
    }

    private func check(_ code: CURLUcode) throws(Failure) {
        guard code != CURLUE_OK else { return }
        if code == CURLUE_OUT_OF_MEMORY { throw Failure(.outOfMemory, "no memory for a URL") }
        throw Self.invalid(code)
    }

    static func invalid(_ code: CURLUcode) -> Failure {
        Failure(.invalidURL, "not a URL that can be requested: \(cause(code))")
    }

    /// In words that say what to look at; curl's are for who knows its source.
    private static func cause(_ code: CURLUcode) -> String {
        switch code {
        case CURLUE_BAD_SCHEME: "it does not begin with a scheme, such as https://"
        case CURLUE_BAD_SLASHES: "two slashes belong behind its scheme, as in https://"
        case CURLUE_NO_HOST: "it has no host"
        case CURLUE_BAD_HOSTNAME: "its host is not one that a server can have"
        case CURLUE_BAD_IPV6: "what stands in brackets is no IPv6 address"
        case CURLUE_BAD_PORT_NUMBER: "its port is not a number from 1 to 65535"
        case CURLUE_BAD_LOGIN, CURLUE_BAD_USER, CURLUE_BAD_PASSWORD: "its user name or password is malformed"
        case CURLUE_URLDECODE: "it has a percent-encoding that may not be there"
        case CURLUE_MALFORMED_INPUT: "it is malformed, or far too long"
        default: String(cString: curl_url_strerror(code))
        }
    }
}
