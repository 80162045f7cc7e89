import CCurl
import ImgdlCore

/// How a request is said to curl.
final class RequestOptions {
    let trust: TrustAnchors
    let proxies: ProxyRules
    let cookies: CookieJar
    /// nil: private addresses are not denied.
    let addressGuard: AddressGuard?
    /// Whom all requests trust, and on which way they go.
    let trustOfAll: [UInt8]
    /// nil: revocation is not looked at.
    let revocationLists: FileCopy?
    /// nil: those of `trust`.
    private let authorities: FileCopy?
    private let leastTLSVersion: Int
    /// What was found out about the request before holds for most of those that follow.
    private var checked: RequestManner?
    private var lastSetup: HandleSetup?
    private var lastFields: (manner: RequestManner, list: TextList)?
    /// Of the last URL that was looked at, and what was found.
    private var lastOrigin: ParsedURL.Origin?
    private var lastServer: NamedServer?

    /// Throws `invalidOperation` for a file of the configuration's that cannot be read.
    init(
        trust: TrustAnchors, proxies: ProxyRules, cookies: CookieJar, addressGuard: AddressGuard?,
        _ configuration: TransportConfiguration
    ) throws(Failure) {
        self.trust = trust
        self.proxies = proxies
        self.cookies = cookies
        self.addressGuard = addressGuard
        authorities = try Self.copy(configuration.certificateAuthorities, "ca_file")
        revocationLists = try Self.copy(configuration.revocationLists, "crl_file")
        trustOfAll = Self.trust(of: trust, authorities, revocationLists, proxies, configuration)
        leastTLSVersion = Int(configuration.requiresTLS13 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2)
    }

    private static func copy(_ file: String?, _ option: String) throws(Failure) -> FileCopy? {
        guard let file else { return nil }
        return try FileCopy(file, option: option)
    }

    private static func trust(
        of anchors: TrustAnchors, _ authorities: FileCopy?, _ lists: FileCopy?, _ proxies: ProxyRules,
        _ configuration: TransportConfiguration
    ) -> [UInt8] {
        var message = ContextMessage()
        message.add(anchors.file)
        message.add(authorities?.digest ?? anchors.file.flatMap(FileDigest.of))
        message.add(anchors.directory)
        message.add(lists?.name)
        message.add(lists?.digest)
        message.add(configuration.requiresTLS13)
        message.add(configuration.nameServers)
        message.add(configuration.deniesPrivateAddresses)
        for prefix in configuration.translators {
            message.add(prefix.bytes)
            message.add(String(prefix.length))
        }
        proxies.describe(to: &message)
        return message.bytes
    }

    /// Throws before anything is sent if the request could be read in two ways.
    func check(_ request: TransportRequest) throws(Failure) {
        if checked !== request.manner {
            try Self.check(request.manner)
            // Passwords and large bodies are let go with their request.
            if request.credential == nil, request.body == nil { checked = request.manner }
        }
        guard !request.url.withUTF8(URLText.hasControlCharacter) else {
            throw Failure(.invalidURL, "the URL has a control character in it")
        }
        if let refusal = request.manner.refusal { throw refusal }
    }

    /// What is remembered of the last ones holds what was in their files.
    func forgetRequests() {
        checked = nil
        lastSetup = nil
        lastFields = nil
    }

    private static func check(_ manner: RequestManner) throws(Failure) {
        try HeaderRules.checkMethod(manner.method)
        try HeaderRules.checkRequest(manner.fields)
        if let credential = manner.credential,
            URLText.hasControlCharacter(credential.user) || URLText.hasControlCharacter(credential.password)
        {
            throw Failure(.invalidHeader, "the user name or password has a control character in it")
        }
    }

    /// Whose addresses curl is to be told: the server's or its proxy's, which knows the server's; nil where it needs
    /// none.
    func serverToLookUp(_ url: ParsedURL) -> NamedServer? {
        if url.hasOrigin(lastOrigin) { return lastServer }
        lastOrigin = url.origin
        lastServer = serverLookedUpHere(url)
        return lastServer
    }

    private func serverLookedUpHere(_ url: ParsedURL) -> NamedServer? {
        let proxy = proxies.proxy(for: url)
        guard let server = proxy == nil ? NamedServer(host: url.host, port: url.port) : proxy?.server else {
            return nil
        }
        return server.needsAddresses ? server : nil
    }

    /// Not where curl makes more of the path than the request line: the whole URL for a proxy, and the signature of
    /// Digest.
    func keepsEscapes(_ request: TransportRequest) -> Bool {
        request.credential == nil && (request.url.isSecure || proxies.proxy(for: request.url) == nil)
    }

    /// nil for a request with something of its own, such as credentials: its options are set anew, and not kept.
    func setup(for request: TransportRequest, _ priority: Priority, addresses: [String]) -> HandleSetup? {
        if priority == .normal, let last = lastSetup, last.isFor(request, addresses) { return last }
        guard request.method == "GET", request.body == nil, request.credential == nil, !request.usesCookies,
            priority == .normal, addressGuard == nil
        else { return nil }
        let setup = HandleSetup(request.url, request.manner, addresses: addresses)
        lastSetup = setup
        return setup
    }

    func apply(_ request: TransportRequest, _ priority: Priority, addresses: [String], to handle: EasyHandle) {
        handle.setErrorBuffer()
        handle.set(CURLOPT_NOSIGNAL, 1)
        handle.set(CURLOPT_PROTOCOLS_STR, "http,https")
        handle.setURL(request.url, keepsEscapes: keepsEscapes(request))
        handle.set(CURLOPT_PATH_AS_IS, 1)
        handle.set(CURLOPT_FOLLOWLOCATION, 0)
        // HTTP/2 is not asked for over http: curl knows by host and port alone which servers share connections, and would send
        // requests on one of HTTP/1.1 before those ahead of them are answered.
        handle.set(
            CURLOPT_HTTP_VERSION, request.url.isSecure ? CURL_HTTP_VERSION_2TLS : Int(CURL_HTTP_VERSION_1_1))
        handle.set(CURLOPT_TCP_KEEPALIVE, 1)
        // Time limits are the engine's. Zero would mean curl's own five minutes.
        handle.set(CURLOPT_CONNECTTIMEOUT_MS, Int(Int32.max))
        // A proxy's, too.
        if request.url.isSecure || proxies.proxy(for: request.url) != nil { handle.watchHandshakes() }
        if request.url.isSecure {
            setTrust(request.tls, on: handle)
            // The others are sent again whether the server has looked at them or not.
            if !RetryRules.isIdempotent(request.method) { handle.watchStream() }
        }
        if priority != .normal { handle.setPriority(priority) }
        setProxy(request.url, on: handle)
        setMethod(request, on: handle)
        if let credential = request.credential, request.fields.first(named: "Authorization") == nil {
            let isReadable = !request.url.isSecure && !request.allowsBasicOverHTTP
            handle.set(CURLOPT_HTTPAUTH, isReadable ? CCURL_AUTH_DIGEST : CCURL_AUTH_PASSWORD)
            handle.set(CURLOPT_USERNAME, credential.user)
            handle.set(CURLOPT_PASSWORD, credential.password)
        }
        setFields(request, on: handle)
        if !addresses.isEmpty, let server = serverToLookUp(request.url) { handle.setAddresses(addresses, of: server) }
    }

    /// Of TLS 1.2. Without Diffie-Hellman over numbers that the server makes up: 10,000 bits of them take a second of
    /// the engine's thread, and nothing can stop it. Servers that have it have elliptic curves, too.
    private static let ciphers = "DEFAULT:!kDHE"

    private func setTrust(_ tls: TLSOptions, on handle: EasyHandle) {
        // Said each time: the system's configuration of OpenSSL may allow less.
        handle.set(CURLOPT_SSLVERSION, leastTLSVersion)
        handle.set(CURLOPT_SSL_CIPHER_LIST, Self.ciphers)
        if let revocationLists { handle.set(CURLOPT_CRLFILE, revocationLists.path) }
        handle.set(CURLOPT_SSL_VERIFYPEER, tls.allowsInvalidCertificates ? 0 : 1)
        handle.set(CURLOPT_SSL_VERIFYHOST, tls.allowsInvalidCertificates ? 0 : 2)
        if let key = tls.pinnedPublicKey { handle.set(CURLOPT_PINNEDPUBLICKEY, key) }
        if let certificate = tls.certificate {
            handle.set(CURLOPT_SSLCERT_BLOB, certificate)
            if let key = tls.key { handle.set(CURLOPT_SSLKEY_BLOB, key) }
            // Without any, OpenSSL would ask at the terminal.
            handle.set(CURLOPT_KEYPASSWD, tls.clientKeyPassword ?? "")
        }
        if let own = tls.authorities {
            handle.set(CURLOPT_CAINFO_BLOB, own)
            handle.set(CURLOPT_CAINFO, nil)
            handle.set(CURLOPT_CAPATH, nil)
            return
        }
        guard !trust.usesBuiltIn else { return }
        if let file = authorities?.path ?? trust.file { handle.set(CURLOPT_CAINFO, file) }
        handle.set(CURLOPT_CAPATH, trust.directory)
    }

    /// A message of libcurl's, with the names of files as the configuration has them.
    func namingFiles(in message: String) -> String {
        let copies = [authorities, revocationLists].compactMap { $0 }
        // One path may begin as another is.
        return copies.sorted { $0.path.utf8.count > $1.path.utf8.count }.reduce(message) { $1.named(in: $0) }
    }

    private func setProxy(_ url: ParsedURL, on handle: EasyHandle) {
        // Set even when empty, which keeps curl from reading the environment.
        let proxy = proxies.proxy(for: url)
        handle.set(CURLOPT_PROXY, proxy?.text ?? "")
        handle.set(CURLOPT_NOPROXY, "")
        guard let proxy else { return }
        handle.set(CURLOPT_PROXYAUTH, CCURL_AUTH_PASSWORD)
        handle.set(CURLOPT_PROXY_SSLVERSION, leastTLSVersion)
        handle.set(CURLOPT_PROXY_SSL_CIPHER_LIST, Self.ciphers)
        // Proxies are the configuration's, and so is whom they are trusted by.
        if !trust.usesBuiltIn {
            if let file = authorities?.path ?? trust.file { handle.set(CURLOPT_PROXY_CAINFO, file) }
            handle.set(CURLOPT_PROXY_CAPATH, trust.directory)
        }
        // Names that such a SOCKS proxy wants looked up are looked up on a thread of curl's: the engine's does not wait
        // for it when a transfer is taken off.
        if proxy.server == nil { handle.set(CURLOPT_QUICK_EXIT, 1) }
    }

    private func setMethod(_ request: TransportRequest, on handle: EasyHandle) {
        switch request.method {
        case "HEAD":
            handle.set(CURLOPT_NOBODY, 1)
        case "GET" where request.body == nil:
            handle.set(CURLOPT_HTTPGET, 1)
        case let method:
            if let body = Self.body(request) { handle.setBody(body) }
            handle.set(CURLOPT_CUSTOMREQUEST, method)
        }
    }

    /// POST, PUT and PATCH announce an empty body, too (RFC 9110 section 8.6).
    private static func body(_ request: TransportRequest) -> [UInt8]? {
        request.body ?? (["POST", "PUT", "PATCH"].contains(request.method) ? [] : nil)
    }

    /// Also while the transfer runs: curl sends them when it asks again with a credential.
    func setFields(_ request: TransportRequest, on handle: EasyHandle) {
        guard request.usesCookies,
            let line = cookies.line(for: request.url, request.partition, besides: request.fields)
        else {
            handle.cookies = nil
            return handle.setFields(fields(request))
        }
        var others = request
        others.fields.removeAll(where: CookieJar.isCookie)
        handle.cookies = line
        handle.setFields(TextList(Self.lines(others), line))
    }

    /// One list for all handles that are set up alike; nil: no memory.
    private func fields(_ request: TransportRequest) -> TextList? {
        if let lastFields, lastFields.manner === request.manner { return lastFields.list }
        guard let list = TextList(Self.lines(request)) else { return nil }
        // As of what was checked.
        if checked === request.manner { lastFields = (request.manner, list) }
        return list
    }

    /// The given fields, and none of those that curl would add on its own account.
    static func lines(_ request: TransportRequest) -> [String] {
        var lines = request.fields.map { field in
            let isEmpty = field.value.utf8.allSatisfy { $0 == 0x20 || $0 == 0x09 }
            return isEmpty ? "\(field.name);" : "\(field.name): \(field.value)"
        }
        if request.fields.first(named: "Accept-Encoding") == nil {
            // A part of a coded body cannot be decoded.
            let isPart = request.fields.first(named: "Range") != nil
            lines.append("Accept-Encoding: \(isPart ? "identity" : ContentCoding.accepted())")
        }
        // Each line costs with each request: the others curl adds to a body alone.
        let unwanted = body(request) == nil ? ["Accept"] : ["Accept", "Content-Type", "Expect"]
        for name in unwanted where request.fields.first(named: name) == nil {
            lines.append("\(name):")
        }
        return lines
    }
}

/// What decides how a request of the usual kind is said to curl, but for its URL's path and query, and what its lane
/// knows.
final class HandleSetup: Equatable {
    /// With any path.
    private let url: ParsedURL
    private let manner: RequestManner
    private let addresses: [String]

    init(_ url: ParsedURL, _ manner: RequestManner, addresses: [String]) {
        self.url = url
        self.manner = manner
        self.addresses = addresses
    }

    func isFor(_ request: TransportRequest, _ addresses: [String]) -> Bool {
        manner === request.manner && url.isSameOrigin(as: request.url) && self.addresses == addresses
    }

    static func == (left: HandleSetup, right: HandleSetup) -> Bool {
        left === right
            || left.url.isSameOrigin(as: right.url) && left.manner == right.manner && left.addresses == right.addresses
    }
}
