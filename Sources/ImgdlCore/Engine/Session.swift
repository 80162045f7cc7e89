/// One transport of a downloader and the URLs that it has parsed. `reconfigure` replaces both: another transport may
/// know other schemes.
final class Session: @unchecked Sendable {
    let transport: any Transport
    private let urls = ParsedURLCache()

    init(_ transport: any Transport) { self.transport = transport }

    /// `lastOrigin`: used again where the URL has the same. Threads: any. Throws `invalidURL`, `unsupportedScheme`.
    func parse(_ url: String, lastOrigin: ParsedURL.Origin?) throws(Failure) -> ParsedURL {
        if let plain = transport.parsePlain(url, lastOrigin: lastOrigin) { return plain }
        return try urls.url(url) { (text) throws(Failure) in try transport.parse(text) }
    }

    /// Another scheme is known from now on.
    func forgetURLs() { urls.forgetAll() }
}
