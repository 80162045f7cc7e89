/// How a downloader is made.
package struct DownloaderConfiguration: Sendable {
    package var limits = Limits()
    /// Threads that decode; 0: one for each core.
    package var decodeThreads = 0
    package var userAgent: String
    package var transport = TransportConfiguration()
    /// These of requests that have none of their own.
    package var credential: Credential?
    package var tls = TLSOptions()
    package var hooks: (any Hooks)?
    package var retry = RetryPolicy()
    package var validation = Validation()

    package init(userAgent: String) { self.userAgent = userAgent }
}
