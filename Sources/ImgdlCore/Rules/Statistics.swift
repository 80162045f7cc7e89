/// What a downloader has done since it was made (features I40, R11). What it does now is not here: the rules know.
package struct Statistics: Equatable, Sendable {
    /// Requests.
    package private(set) var submitted: UInt64 = 0
    package private(set) var succeeded: UInt64 = 0
    package private(set) var failed: UInt64 = 0
    package private(set) var cancelled: UInt64 = 0
    /// Requests that joined a transfer.
    package private(set) var shared: UInt64 = 0
    package private(set) var transfers: UInt64 = 0
    /// Answered from the cache without the network; not among the transfers.
    package private(set) var cached: UInt64 = 0
    package private(set) var retries: UInt64 = 0
    package private(set) var redirects: UInt64 = 0
    /// Made, not used again.
    package private(set) var connections: UInt64 = 0
    package private(set) var bytesReceived: UInt64 = 0
    package private(set) var bytesSent: UInt64 = 0
    package private(set) var pixels: UInt64 = 0

    /// Of requests.
    package private(set) var queue = Histogram()
    package private(set) var total = Histogram()
    /// Of exchanges that had such a part.
    package private(set) var resolve = Histogram()
    package private(set) var connect = Histogram()
    package private(set) var tls = Histogram()
    package private(set) var firstByte = Histogram()
    /// Of transfers.
    package private(set) var transfer = Histogram()
    /// Of pictures, once for all who share them.
    package private(set) var decode = Histogram()

    package init() {}

    package mutating func submit(_ count: UInt64 = 1) { submitted += count }

    package mutating func join() { shared += 1 }

    package mutating func start(isRetry: Bool) {
        if isRetry { retries += 1 } else { transfers += 1 }
    }

    package mutating func answerFromCache() { cached += 1 }

    package mutating func follow() { redirects += 1 }

    package mutating func exchange(_ times: TransferTimes) {
        if !times.isConnectionReused, !times.address.isEmpty { connections += 1 }
        bytesReceived += UInt64(clamping: times.bytesReceived)
        bytesSent += UInt64(clamping: times.bytesSent)
        if times.resolve > 0 { resolve.add(nanoseconds: times.resolve) }
        if times.connect > 0 { connect.add(nanoseconds: times.connect) }
        if times.tls > 0 { tls.add(nanoseconds: times.tls) }
        if times.firstByte > 0 { firstByte.add(nanoseconds: times.firstByte) }
    }

    /// Nanoseconds.
    package mutating func stop(transfer duration: Int64) { transfer.add(nanoseconds: duration) }

    package mutating func decoded(_ nanoseconds: Int64, pixels: UInt64) {
        decode.add(nanoseconds: nanoseconds)
        self.pixels += pixels
    }

    /// A request has come and gone without a transfer.
    package mutating func drop(_ code: ErrorCode) {
        submitted += 1
        count(code)
    }

    /// A request has ended; `hasStarted`: its transfer had left the queue.
    package mutating func end(_ code: ErrorCode, _ metrics: Metrics, hasStarted: Bool) {
        count(code)
        if hasStarted { queue.add(nanoseconds: metrics.queue) }
        total.add(nanoseconds: metrics.total)
    }

    /// A request that had ended so was cancelled before anybody was told.
    package mutating func cancelAfterwards(_ code: ErrorCode) {
        switch code {
        case .cancelled: return
        case .ok: succeeded -= min(1, succeeded)
        default: failed -= min(1, failed)
        }
        cancelled += 1
    }

    private mutating func count(_ code: ErrorCode) {
        switch code {
        case .ok: succeeded += 1
        case .cancelled: cancelled += 1
        default: failed += 1
        }
    }
}
