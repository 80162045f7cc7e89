/// What a transport is told when it is made; it holds for all its transfers.
package struct TransportConfiguration: Equatable, Sendable {
    /// A file of certificate authorities in PEM; nil: CURL_CA_BUNDLE, SSL_CERT_FILE, else what curl was built with.
    package var certificateAuthorities: String?
    /// A file of revocation lists in PEM; nil: revocation is not looked at.
    package var revocationLists: String?
    /// TLS 1.2 otherwise, never below.
    package var requiresTLS13 = false
    /// Proxy for every transfer; empty for none; nil: as the environment variables that curl reads say.
    package var proxy: String?
    /// Who is asked for names, as `dns_servers` has it; nil: as the system has it.
    package var nameServers: String?
    /// Where the cookie jar is kept, in Netscape's format; nil: in memory.
    package var cookieFile: String?
    /// Whose cookies are in that file.
    package var cookiePartition = ""
    /// No loopback, private, link-local … addresses, on any hop; not together with a proxy.
    package var deniesPrivateAddresses = false
    /// Prefixes of the network's NAT64, so that the addresses behind them can be judged.
    package var translators: [LocalNetworks.Prefix] = []
    package var allowsFileURLs = false
    package var allowsDataURLs = false
    /// Connections kept open for later requests, of all hosts together.
    package var maximumIdleConnections: Int32 = 64

    package init(certificateAuthorities: String? = nil, proxy: String? = nil) {
        self.certificateAuthorities = certificateAuthorities
        self.proxy = proxy
    }
}
