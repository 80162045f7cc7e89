/// One transport of a downloader and the URLs that it has parsed. `reconfigure` replaces both: another transport may
/// know other schemes.
final class Session: @unchecked Sendable {
    let transport: any Transport
    private let urls = ParsedURLCache()

    init(_ transport: any Transport) { self.transport = transport }

    /// `lastOrigin`: used again where the URL has the same. Threads: any. nil where it has to be parsed.
    func parsePlain(_ url: UnsafeBufferPointer<UInt8>, lastOrigin: ParsedURL.Origin?) -> ParsedURL? {
        transport.parsePlain(url, lastOrigin: lastOrigin)
    }

    /// Threads: any. Throws `invalidURL`, `unsupportedScheme`.
    func parse(_ url: UnsafeBufferPointer<UInt8>, lastOrigin: ParsedURL.Origin?) throws(Failure) -> ParsedURL {
        if let plain = parsePlain(url, lastOrigin: lastOrigin) { return plain }
        if let last = urls.lastURL(url) { return last }
        guard let text = String(validating: url, as: UTF8.self) else {
            throw Failure(.invalidURL, "the URL is not UTF-8")
        }
        return try urls.url(text) { (text) throws(Failure) in try transport.parse(text) }
    }

    /// Another scheme is known from now on.
    func forgetURLs() { urls.forgetAll() }
}
