/// Adds up what happens to one transfer. An event goes in with its time; what a subscriber is told comes out.
package struct TransferMeter {
    private var started: Instant?
    private var ended: Instant?
    /// From the cache, before anything went to the network.
    private var answered: Instant?
    /// Parts of the last attempt, sums over its hops.
    private var attempt = Metrics()
    private var bytesReceived: Int64 = 0
    private var bytesSent: Int64 = 0
    private var redirects: UInt32
    private var decodes: [(options: DecodeOptions, duration: Int64)] = []
    package private(set) var retries: UInt32

    package init() { self.init(redirects: 0, retries: 0) }

    /// For the test of the last numbers.
    init(redirects: UInt32, retries: UInt32) { (self.redirects, self.retries) = (redirects, retries) }

    package var hasStarted: Bool { started != nil }

    /// An attempt begins; each after the first is a retry.
    package mutating func start(_ now: Instant) {
        ended = nil
        if started == nil {
            started = now
            attempt.httpVersion = 0
        } else {
            Self.count(&retries)
            attempt = Metrics()
        }
    }

    /// The cache has answered.
    package mutating func answerFromCache(_ now: Instant, _ httpVersion: Int32) {
        attempt.httpVersion = httpVersion
        if answered == nil { answered = now }
    }

    package mutating func follow() { Self.count(&redirects) }

    /// As far as the number goes: retries without end may follow redirects each time.
    private static func count(_ number: inout UInt32) { if number < .max { number += 1 } }

    package mutating func answer(_ httpVersion: Int32) { attempt.httpVersion = httpVersion }

    /// The transport has ended a hop.
    package mutating func exchange(_ times: TransferTimes) {
        attempt.resolve += times.resolve
        attempt.connect += times.connect
        attempt.tls += times.tls
        attempt.firstByte += times.firstByte
        attempt.body += times.body
        attempt.isConnectionReused = times.isConnectionReused
        attempt.address = times.address
        bytesReceived += times.bytesReceived
        bytesSent += times.bytesSent
    }

    /// It has ended at the network.
    package mutating func stop(_ now: Instant) { ended = now }

    package mutating func decoded(_ options: DecodeOptions, _ duration: Int64) {
        if let known = decodes.firstIndex(where: { $0.options == options }) {
            decodes[known].duration += duration
        } else {
            decodes.append((options, duration))
        }
    }

    /// Of decoding so.
    package func decodeDuration(_ options: DecodeOptions) -> Int64 {
        decodes.first { $0.options == options }?.duration ?? 0
    }

    /// Nanoseconds from the start to the end, or to now; 0 before a start.
    package func transferDuration(_ now: Instant) -> Int64 {
        started.map { (ended ?? now).nanoseconds - $0.nanoseconds } ?? 0
    }

    /// The transfer's part: nothing of a subscriber.
    package func metrics(_ now: Instant) -> Metrics {
        var metrics = attempt
        metrics.transfer = transferDuration(now)
        metrics.total = metrics.transfer
        metrics.bytesReceived = bytesReceived
        metrics.bytesSent = bytesSent
        metrics.redirects = redirects
        metrics.retries = retries
        return metrics
    }

    /// For a subscriber that asked at `submitted` for pixels of these options.
    package func metrics(submitted: Instant, isShared: Bool, decode: DecodeOptions?, _ now: Instant) -> Metrics {
        var metrics = metrics(now)
        metrics.total = now.nanoseconds - submitted.nanoseconds
        metrics.queue = max(0, (started ?? answered ?? now).nanoseconds - submitted.nanoseconds)
        metrics.decode = decode.map { decodeDuration($0) } ?? 0
        metrics.isShared = isShared
        return metrics
    }
}
