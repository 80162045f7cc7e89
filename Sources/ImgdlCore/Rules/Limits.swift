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
    /// Of that rest, at most.
    package var drainBytes: Int64 = 64 << 10
    /// Milliseconds that a transfer may take that nobody waits for, in all.
    package var unattendedTimeout: Int64 = 30_000
    package var maximumRedirects = 10
    /// Of all header fields of one response.
    package var maximumHeaderBytes = Self.headerBytes
    package static let headerBytes = 256 << 10
    package static let headerFields = 1_000
    /// A body of this size is decoded while it comes, whoever asks, once a thread has nothing else to decode.
    package var earlyDecodeBytes: Int64 = 64 << 10

    /// Running transfers to one host and port; 0: none but the total (features B13).
    package var maximumPerHost = 0
    /// Milliseconds after which a transfer that waits gets its turn, whoever is before it (features B12).
    package var agingInterval: Int64 = 10_000
    /// Bytes of bodies and canvases that are in work (features B20).
    package var memoryBudget: Int64 = 512 << 20
    /// How often others get room to be decoded before the one that has waited for it for longest.
    package var maximumPasses = 16
    /// Less of a body than that in a second is slow, while others wait for memory.
    package var slowBytes: Int64 = 16 << 10
    /// Milliseconds for which a URL that failed for good fails at once; 0: not at all (features E4, E10, I29).
    package var failureLifetime: Int64 = 0
    /// The part of the whole that must come between two PROGRESS events, 0 to 1 (features C3).
    package var progressInterval = 0.0

    /// Transfers without a place that the cache is asked about at a time: so many bodies are on their way from it.
    package var maximumConsulting = 64

    package init() {}

    /// Whether so many bytes are enough for another PROGRESS; always where the whole is unknown.
    func hasPassed(_ bytes: Int64, of whole: Int64) -> Bool {
        progressInterval <= 0 || whole <= 0 || Double(bytes) >= progressInterval * Double(whole)
    }
}
