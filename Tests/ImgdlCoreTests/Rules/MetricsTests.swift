import XCTest

@testable import ImgdlCore

/// Where the time went (features B24, K1, T26), and what becomes of it over many transfers (features I40, R11).
final class MetricsTests: XCTestCase {
    private func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

    private func times(_ parts: Int64, received: Int64, reused: Bool = false) -> TransferTimes {
        var times = TransferTimes()
        times.resolve = parts
        times.connect = parts
        times.tls = parts
        times.firstByte = parts
        times.body = parts
        times.bytesReceived = received
        times.bytesSent = 10
        times.isConnectionReused = reused
        times.address = "192.0.2.1"
        return times
    }

    func testB24_TheSumsFit() {
        var meter = TransferMeter()
        meter.start(at(30))
        meter.exchange(times(2_000_000, received: 100))
        meter.follow()
        meter.answer(11)
        meter.exchange(times(1_000_000, received: 1_000, reused: true))
        meter.stop(at(50))
        meter.decoded(.number(1), 7)
        meter.decoded(.number(2), 9)
        meter.decoded(.number(1), 5)
        let metrics = meter.metrics(submitted: at(10), isShared: false, decode: .number(1), at(60))
        XCTAssertEqual(metrics.queue, 20_000_000)
        XCTAssertEqual(metrics.transfer, 20_000_000)
        XCTAssertEqual(metrics.total, 50_000_000)
        XCTAssertEqual(metrics.decode, 12)
        XCTAssertLessThanOrEqual(metrics.queue + metrics.transfer, metrics.total)
        XCTAssertEqual(metrics.resolve + metrics.connect + metrics.tls + metrics.firstByte + metrics.body, 15_000_000)
        XCTAssertEqual([metrics.bytesReceived, metrics.bytesSent], [1_100, 20])
        XCTAssertEqual([metrics.redirects, metrics.retries], [1, 0])
        XCTAssertTrue(metrics.isConnectionReused)
        XCTAssertEqual(metrics.httpVersion, 11)
        XCTAssertEqual(metrics.address, "192.0.2.1")
    }

    func testB24_PartsAreOfTheLastAttempt_BytesOfAll() {
        var meter = TransferMeter()
        meter.start(at(0))
        meter.answer(10)
        meter.exchange(times(5, received: 100))
        meter.start(at(10))
        XCTAssertEqual(meter.metrics(at(10)).httpVersion, 0)
        meter.exchange(times(3, received: 50))
        meter.stop(at(12))
        let metrics = meter.metrics(at(99))
        XCTAssertEqual(metrics.retries, 1)
        XCTAssertEqual(metrics.resolve, 3)
        XCTAssertEqual(metrics.bytesReceived, 150)
        XCTAssertEqual(metrics.transfer, 12_000_000, "waits between attempts included")
    }

    func testK1_OneThatJoinsHasWaitedForNothing() {
        var meter = TransferMeter()
        XCTAssertFalse(meter.hasStarted)
        let waiting = meter.metrics(submitted: at(5), isShared: false, decode: nil, at(8))
        XCTAssertEqual(waiting.queue, 3_000_000)
        XCTAssertEqual(waiting.transfer, 0)
        meter.start(at(10))
        let joined = meter.metrics(submitted: at(20), isShared: true, decode: nil, at(25))
        XCTAssertEqual(joined.queue, 0)
        XCTAssertEqual(joined.total, 5_000_000)
        XCTAssertTrue(joined.isShared)
    }

    // MARK: Histograms

    func testI40_EachDurationIsInItsBucket() {
        for (microseconds, bucket) in [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (1023, 10), (1024, 11)]
            as [(UInt64, Int)]
        {
            XCTAssertEqual(Histogram.bucket(microseconds), bucket, "\(microseconds)")
            XCTAssertLessThan(Double(microseconds), Double(UInt64(1) << UInt64(bucket)))
        }
        XCTAssertEqual(Histogram.bucket(.max), 39)
        var histogram = Histogram()
        histogram.add(nanoseconds: .max)
        histogram.add(nanoseconds: -1)
        XCTAssertEqual(histogram.buckets[39], 1)
        XCTAssertEqual(histogram.buckets[0], 1)
        XCTAssertEqual(histogram.count, 2)
    }

    func testI40_QuantilesAreRightToWithinABucket() {
        var random = SeededGenerator(40)
        for count in [1, 2, 10, 1000] {
            var histogram = Histogram()
            var exact: [Int64] = []
            for _ in 0..<count {
                let microseconds =
                    Int64(1) << Int64.random(in: 0...20, using: &random) + Int64.random(in: 0...50, using: &random)
                exact.append(microseconds)
                histogram.add(nanoseconds: microseconds * 1_000)
            }
            exact.sort()
            var last = 0.0
            for part in stride(from: 0.05, through: 1, by: 0.05) {
                let found = Histogram.quantile(part, histogram.buckets)
                let rank = max(1, Int((part * Double(count)).rounded(.up)))
                let bucket = Histogram.bucket(UInt64(exact[min(rank, count) - 1]))
                XCTAssertLessThanOrEqual(found, Double(UInt64(1) << UInt64(bucket)), "q \(part) of \(count)")
                XCTAssertGreaterThanOrEqual(found, bucket == 0 ? 0 : Double(UInt64(1) << UInt64(bucket - 1)))
                XCTAssertGreaterThanOrEqual(found, last, "quantiles never go back")
                last = found
            }
        }
    }

    func testI40_QuantilesOfNothingAndOutOfRange() {
        XCTAssertEqual(Histogram.quantile(0.5, Histogram().buckets), 0)
        var histogram = Histogram()
        for _ in 0..<4 { histogram.add(nanoseconds: 3_000) }
        XCTAssertEqual(Histogram.quantile(.nan, histogram.buckets), 0)
        XCTAssertEqual(Histogram.quantile(-1, histogram.buckets), 2)
        XCTAssertEqual(Histogram.quantile(0.5, histogram.buckets), 3)
        XCTAssertEqual(Histogram.quantile(2, histogram.buckets), 4)
    }

    func testR11_StatisticsCountRequestsTransfersAndConnections() {
        var statistics = Statistics()
        for _ in 0..<3 { statistics.submit() }
        statistics.join()
        statistics.start(isRetry: false)
        statistics.start(isRetry: true)
        statistics.follow()
        statistics.exchange(times(1_000, received: 70))
        statistics.exchange(times(0, received: 30, reused: true))
        statistics.exchange(TransferTimes())
        statistics.decoded(5_000, pixels: 12)
        statistics.end(.ok, Metrics(), hasStarted: true)
        statistics.end(.cancelled, Metrics(), hasStarted: false)
        statistics.end(.truncated, Metrics(), hasStarted: true)
        XCTAssertEqual(statistics.succeeded + statistics.failed + statistics.cancelled, statistics.submitted)
        XCTAssertEqual(
            [statistics.shared, statistics.transfers, statistics.retries, statistics.redirects], [1, 1, 1, 1])
        XCTAssertEqual(statistics.connections, 1)
        XCTAssertEqual([statistics.bytesReceived, statistics.bytesSent, statistics.pixels], [100, 20, 12])
        XCTAssertEqual(statistics.connect.count, 1, "what was not there is not counted as quick")
        XCTAssertEqual([statistics.queue.count, statistics.total.count, statistics.decode.count], [2, 3, 1])
    }
}
