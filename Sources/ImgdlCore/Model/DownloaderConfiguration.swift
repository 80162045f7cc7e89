/// How a downloader is made.
package struct DownloaderConfiguration: Sendable {
    package var limits = Limits()
    /// Threads that decode; 0: one for each core.
    package var decodeThreads = 0
    package var userAgent: String
    package var transport = TransportConfiguration()
    package var defaults = RequestDefaults()

    package init(userAgent: String) { self.userAgent = userAgent }
}
