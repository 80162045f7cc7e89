/// How a downloader is made.
package struct DownloaderConfiguration: Sendable {
    package var limits = Limits()
    /// Threads that decode; 0: one for each core.
    package var decodeThreads = 0
    package var userAgent: String
    package var transport = TransportConfiguration()
    package var defaults = RequestDefaults()
    /// The HTTP cache; nil: none. Several downloaders may share one.
    package var store: (any Store)?
    /// A transfer whose last subscriber cancels goes on into the cache when the rest would take less time than the server
    /// took to answer (features R33, I31).
    package var finishesNearlyDone = false

    package init(userAgent: String) { self.userAgent = userAgent }
}

/// What of it is about the cache.
struct CacheSettings {
    let store: (any Store)?
    let finishesNearlyDone: Bool

    init(_ configuration: DownloaderConfiguration) {
        store = configuration.store
        finishesNearlyDone = configuration.finishesNearlyDone
    }
}
