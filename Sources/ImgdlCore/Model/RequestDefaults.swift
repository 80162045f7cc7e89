/// What requests of a downloader have that say nothing of their own.
package struct RequestDefaults: Sendable {
    package var identity = RequestIdentity()
    package var hooks: (any Hooks)?
    package var retry = RetryPolicy()
    package var validation = Validation()
    package var cacheMode = CacheMode.off
    package var staleLimit = StaleLimit.none

    package init() {}
}
