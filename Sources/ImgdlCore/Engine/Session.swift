/// One transport of a downloader and the URLs that it has parsed. `reconfigure` replaces both: another transport may
/// know other schemes.
final class Session: @unchecked Sendable {
    let transport: any Transport
    private let urls = ParsedURLCache()
    private let lock = Lock()
    /// Of the last plain URL: the next often has the same.
    private var host = ""

    init(_ transport: any Transport) { self.transport = transport }

    /// Threads: any. Throws `invalidURL`, `unsupportedScheme`.
    func parse(_ url: String) throws(Failure) -> ParsedURL {
        let last = lock.withLock { host }
        if let plain = transport.parsePlain(url, host: last) {
            if plain.host != last { lock.withLock { host = plain.host } }
            return plain
        }
        return try urls.url(url) { (text) throws(Failure) in try transport.parse(text) }
    }

    /// Another scheme is known from now on.
    func forgetURLs() { urls.forgetAll() }
}
