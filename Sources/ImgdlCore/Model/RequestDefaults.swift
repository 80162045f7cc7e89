/// What requests of a downloader have that say nothing of their own.
package struct RequestDefaults: Sendable {
    package var credential: Credential?
    package var allowsBasicOverHTTP = false
    package var tls = TLSOptions()
    package var hooks: (any Hooks)?
    package var retry = RetryPolicy()
    package var validation = Validation()
    package var cacheMode = CacheMode.off

    package init() {}
}
