import Glibc
import ImgdlCore

/// Which proxy curl is told to use for a URL. The environment is read once, when the transport is made, with the names and
/// the order that curl documents: curl itself would read it again for each transfer, on a thread that cannot know whether
/// the host program is changing it just then.
struct ProxyRules {
    /// nil: none.
    private let http: Proxy?
    private let https: Proxy?
    private let exceptions: ProxyExceptions
    /// Some transfer might go through a proxy.
    let isUsed: Bool
    /// The variables of the environment that say so; none for a proxy of the configuration.
    let variables: [String]

    /// Throws `invalidURL` for a configured proxy that is none.
    init(configured: String?, environment: (String) -> String? = ProxyRules.variable) throws(Failure) {
        if let configured {
            try Self.check(configured)
            http = Proxy(configured, namedBy: "the option proxy")
            https = http
            isUsed = http != nil
            exceptions = ProxyExceptions("")
            variables = []
            return
        }
        let exceptions = ProxyExceptions(environment("no_proxy") ?? environment("NO_PROXY") ?? "")
        self.exceptions = exceptions
        func first(_ names: [String]) -> (name: String, value: String)? {
            for name in exceptions.hasAll ? [] : names {
                if let value = environment(name) { return (name, value) }
            }
            return nil
        }
        // HTTP_PROXY in capitals is what a CGI program gets from a request's "Proxy:" field.
        let forHTTP = first(["http_proxy", "all_proxy", "ALL_PROXY"])
        let forHTTPS = first(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
        http = forHTTP.flatMap { Proxy($0.value, namedBy: "\($0.name) of the environment") }
        https = forHTTPS.flatMap { Proxy($0.value, namedBy: "\($0.name) of the environment") }
        isUsed = http != nil || https != nil
        let names = [forHTTP, forHTTPS].compactMap { $0?.name }
        variables = Set(names).count == 1 ? [names[0]] : names
    }

    /// What must not show in a message: curl repeats a proxy that it does not understand, with its password.
    var secrets: [String] { [http, https].compactMap { $0?.text } }

    /// Which way requests go, for `SecurityContext`.
    func describe(to message: inout ContextMessage) {
        message.add(http?.text)
        message.add(https?.text)
        // Exceptions to nothing say nothing.
        message.add(isUsed ? exceptions.text : nil)
    }

    /// nil: the host is reached directly.
    func proxy(for url: ParsedURL) -> Proxy? {
        guard isUsed, let proxy = url.isSecure ? https : http, !exceptions.contains(url.host) else { return nil }
        return proxy
    }

    /// curl percent-decodes the user's name and password; with a line break in them it would write header fields of
    /// their author's.
    private static func check(_ proxy: String) throws(Failure) {
        guard !proxy.isEmpty else { return }
        guard !URLText.hasControlCharacter(proxy), CurlURL.isProxy(proxy) else {
            throw Failure(
                .invalidURL,
                "the proxy\(shown(proxy)) is not a URL that can be used: http, https, socks4, socks4a, socks5 or socks5h, "
                    + "and a host")
        }
    }

    /// As it was given, without what may be a name and a password: where they end is not certain in what is no URL.
    private static func shown(_ proxy: String) -> String {
        guard !URLText.hasControlCharacter(proxy) else { return "" }
        var rest = proxy[...]
        if let slashes = proxy.firstRange(of: "://"),
            SchemeName.canonical(String(proxy[..<slashes.lowerBound])) != nil
        {
            rest = proxy[slashes.upperBound...]
        }
        let prefix = proxy[..<rest.startIndex]
        if let at = lastSign(rest) { rest = "…" + rest[at...] }
        // In place of a port; an address of IPv6 has colons of its own.
        let address = rest.lastIndex(of: "]") ?? rest.startIndex
        if let colon = rest[address...].firstIndex(of: ":"), !rest[colon...].dropFirst().allSatisfy(\.isNumber) {
            rest = rest[...colon] + "…"
        }
        return " “\((prefix + rest).prefix(100))”"
    }

    /// Where the last @ is, whole or encoded.
    private static func lastSign(_ text: Substring) -> Substring.Index? {
        text.indices.last { text[$0] == "@" || text[$0...].hasPrefix("%40") }
    }

    /// A variable that is set but empty counts as not set, as it does for curl.
    static func variable(_ name: String) -> String? {
        guard let value = getenv(name), value.pointee != 0 else { return nil }
        return String(cString: value)
    }
}

/// A proxy, as curl is told of it.
struct Proxy: Equatable {
    let text: String
    /// The server whose name leads to it; nil: a SOCKS proxy that wants addresses from curl (socks4, socks5), or
    /// what is no proxy, which curl refuses.
    let server: NamedServer?
    /// It is spoken to over TLS.
    let isSecure: Bool
    /// For messages: the option or the variable.
    let source: String

    /// nil for an empty text.
    init?(_ text: String, namedBy source: String) {
        guard !text.isEmpty else { return nil }
        self.text = text
        self.source = source
        server = CurlURL.serverOfProxy(text)
        isSecure = equalIgnoringCase(String(text.prefix(8)), "https://")
    }

    /// Why nothing comes from the server: there is no way to the proxy. Never with its password.
    func unreachable(_ reason: String) -> Failure {
        let place = CurlURL.addressOfProxy(text).map { " \($0.host) port \($0.port)" } ?? ""
        return Failure(.proxyFailed, "the proxy\(place), named by \(source), cannot be reached: \(reason)")
    }
}

/// A host, bare, and its port.
struct NamedServer: Equatable {
    let host: String
    let port: UInt16

    /// Whether curl needs to be told its addresses. A literal is one; "localhost" curl knows by itself (RFC 6761 section
    /// 6.3).
    var needsAddresses: Bool {
        if host == "localhost" || host.hasSuffix(".localhost") { return false }
        return !host.utf8.contains(UInt8(ascii: ":")) && !URLText.isIPv4(host)
    }
}
