/// The numbers of one downloader that its rules go by.
package struct Limits: Equatable, Sendable {
    package var maximumConcurrent = 6
    package var order = ExecutionOrder.fifo
    /// Milliseconds for name, connection and TLS of one hop.
    package var connectTimeout: Int64 = 15_000
    /// Milliseconds without a byte (features C2, B16).
    package var idleTimeout: Int64 = 15_000
    /// Milliseconds for what is left of the body of a redirect or an error page.
    package var drainTimeout: Int64 = 1_000
    package var maximumRedirects = 10
    /// Of all header fields of one response.
    package var maximumHeaderBytes = 256 << 10
    /// A body of this size is decoded while it comes, whoever asks.
    package var earlyDecodeBytes: Int64 = 64 << 10

    package init() {}
}
