import Synchronization

/// The meter of one transfer, which the engine turns and its subscribers may read on any thread. One lock guards those
/// of all transfers and the statistics: whoever turns the one counts in the other, and few read.
final class TransferMeasurement: @unchecked Sendable {
    private let lock: Lock
    /// Guarded by `lock`.
    fileprivate var meter = TransferMeter()
    /// Grows with each chunk: no lock for that.
    private let bodyBytes = Atomic<Int64>(0)

    fileprivate init(_ lock: Lock) { self.lock = lock }

    func setBodyBytes(_ count: Int64) { bodyBytes.store(count, ordering: .relaxed) }

    func update(_ body: (inout TransferMeter) -> Void) { lock.withLock { body(&meter) } }

    func metrics(_ now: Instant) -> Metrics {
        var metrics = lock.withLock { meter.metrics(now) }
        metrics.bodyBytes = bodyBytes.load(ordering: .relaxed)
        return metrics
    }

    /// Of a subscriber; nil before the transfer has started.
    func metrics(submitted: Instant, isShared: Bool, decode: DecodeOptions?, _ now: Instant) -> Metrics? {
        lock.withLock {
            guard meter.hasStarted else { return nil }
            return finalMetrics(submitted: submitted, isShared: isShared, decode: decode, now)
        }
    }

    /// The same, whether it has started or not. Inside the lock.
    fileprivate func finalMetrics(
        submitted: Instant, isShared: Bool, decode: DecodeOptions?, _ now: Instant
    ) -> Metrics {
        var metrics = meter.metrics(submitted: submitted, isShared: isShared, decode: decode, now)
        metrics.bodyBytes = bodyBytes.load(ordering: .relaxed)
        return metrics
    }
}

/// The statistics of one downloader, and what it does now. The engine writes, any thread reads.
package final class DownloaderStatistics: @unchecked Sendable {
    private let lock = Lock()
    private var statistics = Statistics()
    /// Grows with each request, on any thread: no lock for that.
    private let submitted = Atomic<UInt64>(0)
    private let waiting = Atomic<Int>(0)
    private let running = Atomic<Int>(0)
    private let decoding = Atomic<Int>(0)
    private let paused = Atomic<Int>(0)

    func makeMeasurement() -> TransferMeasurement { TransferMeasurement(lock) }

    func submit() { submitted.wrappingAdd(1, ordering: .relaxed) }

    func update(_ body: (inout Statistics) -> Void) { lock.withLock { body(&statistics) } }

    /// Both at once. The measurement is one of those made here.
    func update(_ measurement: TransferMeasurement, _ body: (inout Statistics, inout TransferMeter) -> Void) {
        lock.withLock { body(&statistics, &measurement.meter) }
    }

    /// One has ended that never had a transfer. A batch announces its end as a subscription that is no request.
    func drop(_ subscription: Subscription, _ failure: Failure?) {
        if subscription.id != 0 { update { $0.drop(failure?.code ?? .ok) } }
    }

    /// A request has ended; what its terminal tells.
    func end(_ subscription: Subscription, _ code: ErrorCode, _ now: Instant) -> Metrics {
        let (submitted, isShared) = (subscription.submitted, subscription.isShared)
        return lock.withLock {
            let (metrics, hasStarted) =
                subscription.withMeasurement { measurement in
                    let metrics = measurement.finalMetrics(
                        submitted: submitted, isShared: isShared, decode: subscription.options.decode, now)
                    return (metrics, measurement.meter.hasStarted)
                }
                ?? (TransferMeter().metrics(submitted: submitted, isShared: isShared, decode: nil, now), false)
            statistics.end(code, metrics, hasStarted: hasStarted)
            return metrics
        }
    }

    func note(_ load: Load) {
        waiting.store(load.waiting, ordering: .relaxed)
        running.store(load.running, ordering: .relaxed)
        decoding.store(load.decoding, ordering: .relaxed)
        paused.store(load.paused, ordering: .relaxed)
    }

    /// `body` runs inside the lock.
    package func read<Result>(_ body: (borrowing Statistics) -> Result) -> Result {
        lock.withLock {
            statistics.submit(submitted.exchange(0, ordering: .relaxed))
            return body(statistics)
        }
    }

    package var load: Load {
        Load(
            waiting: waiting.load(ordering: .relaxed), running: running.load(ordering: .relaxed),
            decoding: decoding.load(ordering: .relaxed), paused: paused.load(ordering: .relaxed))
    }
}

/// Transfers of a downloader at one moment.
package struct Load {
    package var waiting: Int
    package var running: Int
    package var decoding: Int
    package var paused: Int
}
