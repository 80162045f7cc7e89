import Synchronization

/// The meter of one transfer, which the engine turns and its subscribers may read on any thread.
final class TransferMeasurement: @unchecked Sendable {
    private let lock = Lock()
    private var meter = TransferMeter()
    /// Grows with each chunk: no lock for that.
    private let bodyBytes = Atomic<Int64>(0)

    func setBodyBytes(_ count: Int) { bodyBytes.store(Int64(count), ordering: .relaxed) }

    @discardableResult
    func update<Result>(_ body: (inout TransferMeter) -> Result) -> Result { lock.withLock { body(&meter) } }

    var hasStarted: Bool { lock.withLock { meter.hasStarted } }

    func metrics(_ now: Instant) -> Metrics {
        var metrics = lock.withLock { meter.metrics(now) }
        metrics.bodyBytes = bodyBytes.load(ordering: .relaxed)
        return metrics
    }

    func metrics(submitted: Instant, isShared: Bool, decode: DecodeOptions?, _ now: Instant) -> Metrics {
        var metrics = lock.withLock {
            meter.metrics(submitted: submitted, isShared: isShared, decode: decode, now)
        }
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

    func submit() { submitted.wrappingAdd(1, ordering: .relaxed) }

    func update(_ body: (inout Statistics) -> Void) { lock.withLock { body(&statistics) } }

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
