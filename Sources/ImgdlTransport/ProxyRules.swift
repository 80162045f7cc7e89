import Glibc
import ImgdlCore

/// Which proxy curl is told to use for a scheme. The environment is read once, when the transport is made, with the
/// names and the order that curl documents: curl itself would read it again for each transfer, on a thread that cannot
/// know whether the host program is changing it just then.
struct ProxyRules {
    /// Empty for none.
    private let http: String
    private let https: String
    /// Hosts that are reached directly, in curl's syntax; empty for no exceptions.
    let exceptions: String

    /// Throws `invalidURL` for a configured proxy that is none.
    init(configured: String?, environment: (String) -> String? = ProxyRules.variable) throws(Failure) {
        if let configured {
            try Self.check(configured)
            http = configured
            https = configured
            exceptions = ""
            return
        }
        let exceptions = environment("no_proxy") ?? environment("NO_PROXY") ?? ""
        let all = environment("all_proxy") ?? environment("ALL_PROXY") ?? ""
        let direct = exceptions == "*"
        // HTTP_PROXY in capitals is what a CGI program gets from a request's "Proxy:" field.
        http = direct ? "" : environment("http_proxy") ?? all
        https = direct ? "" : environment("https_proxy") ?? environment("HTTPS_PROXY") ?? all
        self.exceptions = exceptions
    }

    /// Whether some transfer might go through a proxy.
    var isUsed: Bool { !http.isEmpty || !https.isEmpty }

    /// What must not show in a message: curl repeats a proxy that it does not understand, with its password.
    var secrets: [String] { [http, https] }

    /// curl percent-decodes the user's name and password; with a line break in them it would write header fields of
    /// their author's.
    private static func check(_ proxy: String) throws(Failure) {
        guard !proxy.isEmpty else { return }
        guard !URLText.hasControlCharacter(proxy), CurlURL.isProxy(proxy) else {
            throw Failure(.invalidURL, "the proxy is not a URL that can be used")
        }
    }

    func proxy(for scheme: String) -> String { scheme == "https" ? https : http }

    /// A variable that is set but empty counts as not set, as it does for curl.
    static func variable(_ name: String) -> String? {
        guard let value = getenv(name), value.pointee != 0 else { return nil }
        return String(cString: value)
    }
}
