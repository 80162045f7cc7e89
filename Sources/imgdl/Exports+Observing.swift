import CImgdl
import ImgdlCore

/// `address`: lives as long as what holds the struct.
func metricsStruct(_ metrics: Metrics, address: UnsafePointer<CChar>?) -> imgdl_metrics {
    imgdl_metrics(
        struct_size: UInt32(MemoryLayout<imgdl_metrics>.stride), http_version: metrics.httpVersion,
        queue_ns: metrics.queue, resolve_ns: metrics.resolve, connect_ns: metrics.connect, tls_ns: metrics.tls,
        first_byte_ns: metrics.firstByte, body_ns: metrics.body, transfer_ns: metrics.transfer,
        decode_ns: metrics.decode, total_ns: metrics.total, bytes_received: metrics.bytesReceived,
        bytes_sent: metrics.bytesSent, body_bytes: metrics.bodyBytes, redirect_count: metrics.redirects,
        retry_count: metrics.retries, is_connection_reused: metrics.isConnectionReused ? 1 : 0,
        is_shared: metrics.isShared ? 1 : 0, address: address)
}

/// A struct that lives during the call.
func withMetricsStruct<Result>(_ metrics: Metrics, _ body: (UnsafePointer<imgdl_metrics>) -> Result) -> Result {
    metrics.address.withCString { address in
        withUnsafePointer(to: metricsStruct(metrics, address: address)) { body($0) }
    }
}

@_cdecl("imgdl_metrics_init") @implementation
public func imgdl_metrics_init(_ metrics: UnsafeMutablePointer<imgdl_metrics>?, _ size: Int) {
    imgdl_metrics.initialize(metrics, size)
}

@_cdecl("imgdl_token_metrics") @implementation
public func imgdl_token_metrics(_ handle: OpaquePointer?, _ metrics: UnsafeMutablePointer<imgdl_metrics>?)
    -> imgdl_status
{
    call { () throws(Failure) in
        let token: Subscription = try object(handle, .token)
        try imgdl_metrics.checkSize(of: metrics)
        guard let measured = token.recipient.downloader.metrics(of: token) else {
            throw Failure(.notReady, "the download has not begun yet")
        }
        let value = metricsStruct(measured, address: token.keep(address: measured.address.text))
        try value.write(to: metrics)
    }
}

// MARK: The observer

/// A C observer with its user_data.
private final class CallbackObserver: TransferObserver, @unchecked Sendable {
    private let callback: @convention(c) (UnsafePointer<imgdl_observation>?, UnsafeMutableRawPointer?) -> Void
    private let destructor: imgdl_destructor?
    private let userData: UnsafeMutableRawPointer?

    init(_ callback: @escaping imgdl_observer, _ destructor: imgdl_destructor?, _ userData: UnsafeMutableRawPointer?) {
        self.callback = callback
        self.destructor = destructor
        self.userData = userData
    }

    func observe(_ seen: Observation) {
        seen.url.redacted.withCString { url in
            withMetricsStruct(seen.metrics) { metrics in
                let hasMetrics = seen.kind == .stopped || seen.kind == .finished
                let observation = imgdl_observation(
                    struct_size: UInt32(MemoryLayout<imgdl_observation>.stride), kind: seen.kind.rawValue,
                    transfer: seen.transfer.rawValue, url: url, code: seen.code.rawValue, http_status: seen.status,
                    subscriber_count: UInt32(clamping: seen.subscribers), retry_count: seen.metrics.retries,
                    metrics: hasMetrics ? metrics : nil)
                withUnsafePointer(to: observation) { pointer in _ = HostCode.run { callback(pointer, userData) } }
            }
        }
    }

    func close() { dispose(destructor, userData) }
}

@_cdecl("imgdl_downloader_set_observer") @implementation
public func imgdl_downloader_set_observer(
    _ handle: OpaquePointer?, _ observer: imgdl_observer?, _ userData: UnsafeMutableRawPointer?,
    _ destructor: imgdl_destructor?
) -> imgdl_status {
    call { () throws(Failure) in
        do throws(Failure) {
            let downloader: Downloader = try object(handle, .downloader)
            downloader.setObserver(observer.map { CallbackObserver($0, destructor, userData) })
        } catch {
            dispose(destructor, userData)
            throw error
        }
        // Nothing will be called with it.
        if observer == nil { dispose(destructor, userData) }
    }
}

// MARK: Statistics

@_cdecl("imgdl_stats_init") @implementation
public func imgdl_stats_init(_ stats: UnsafeMutablePointer<imgdl_stats>?, _ size: Int) {
    imgdl_stats.initialize(stats, size)
}

@_cdecl("imgdl_downloader_stats") @implementation
public func imgdl_downloader_stats(_ handle: OpaquePointer?, _ stats: UnsafeMutablePointer<imgdl_stats>?)
    -> imgdl_status
{
    call { () throws(Failure) in
        let downloader = try object(handle, .downloader, as: Downloader.self)
        let load = downloader.statistics.load
        var total = downloader.statistics.read { statsStruct($0, load) }
        total.memory = UInt64(clamping: downloader.memoryInUse)
        total.memory_peak = UInt64(clamping: downloader.memoryPeak)
        try total.write(to: stats)
    }
}

private func statsStruct(_ total: Statistics, _ load: Load) -> imgdl_stats {
    var stats = imgdl_stats()
    stats.submitted = total.submitted
    stats.succeeded = total.succeeded
    stats.failed = total.failed
    stats.cancelled = total.cancelled
    stats.shared = total.shared
    stats.transfers = total.transfers
    stats.retries = total.retries
    stats.redirects = total.redirects
    stats.connections = total.connections
    stats.bytes_received = total.bytesReceived
    stats.bytes_sent = total.bytesSent
    stats.pixels = total.pixels
    stats.waiting = UInt64(clamping: load.waiting)
    stats.running = UInt64(clamping: load.running)
    stats.decoding = UInt64(clamping: load.decoding)
    stats.paused = UInt64(clamping: load.paused)
    fill(&stats.queue, total.queue)
    fill(&stats.resolve, total.resolve)
    fill(&stats.connect, total.connect)
    fill(&stats.tls, total.tls)
    fill(&stats.first_byte, total.firstByte)
    fill(&stats.transfer, total.transfer)
    fill(&stats.decode, total.decode)
    fill(&stats.total, total.total)
    return stats
}

private func fill(_ target: inout imgdl_histogram, _ source: Histogram) {
    target.count = source.count
    target.sum_us = source.sum
    withUnsafeMutableBytes(of: &target.buckets) { bytes in
        for (index, count) in source.buckets.enumerated() {
            bytes.storeBytes(of: count, toByteOffset: index * 8, as: UInt64.self)
        }
    }
}

@_cdecl("imgdl_histogram_quantile") @implementation
public func imgdl_histogram_quantile(_ histogram: UnsafePointer<imgdl_histogram>?, _ part: Double) -> Double {
    inLibrary {
        guard let histogram else { return 0 }
        return withUnsafeBytes(of: histogram.pointee.buckets) { bytes in
            Histogram.quantile(part, bytes.bindMemory(to: UInt64.self))
        }
    }
}
