import Glibc
import XCTest

@testable import ImgdlCore

/// Features D5, B21: SDWebImage finds the operation of a chunk by looking through its whole queue, so that a burst costs
/// the square of its size. Here a chunk costs the same whatever else runs and waits.
final class ChunkCostTests: XCTestCase {
    func testD5_AChunkCostsTheSameWhateverElseIsThere() {
        let few = cost(transfers: 10)
        let many = cost(transfers: 4_000)
        // By theirs it would be four hundred times as much; the bound leaves room for caches.
        XCTAssertLessThan(many, 30 * few, "CPU of 5 000 chunks among 10 transfers and among 4 000")
    }

    func testD5_AChunkIsToldToItsOwnSubscribersAlone() throws {
        var downloads = play(transfers: 1000)
        let id = downloads.running[250]
        downloads.bodyReceived(id, 100, Instant(nanoseconds: 5))
        let own = try XCTUnwrap(downloads.firstSubscriber(of: id))
        XCTAssertEqual(downloads.takeActions(), [.emit(own, .progress(received: 100, expected: 1_000_000_000))])
    }

    /// Half of them run, half wait.
    private func play(transfers count: Int) -> Downloads {
        var limits = Limits()
        limits.maximumConcurrent = count / 2
        limits.memoryBudget = .max
        limits.earlyDecodeBytes = .max
        var downloads = Downloads(limits)
        var options = SubscriberOptions()
        options.events = .progress
        options.maximumBodyBytes = .max
        options.decode = nil
        for index in 0..<count {
            let request = TransferRequest(url: testURL("http://a.example/\(index)"))
            _ = downloads.submit(request, Boxed(wrappedValue: options), Instant(nanoseconds: 0))
        }
        let head = ResponseHead(
            status: 200, httpVersion: 11, fields: [], contentLength: 1_000_000_000, isEncoded: false)
        for id in downloads.running {
            downloads.connected(id, Instant(nanoseconds: 1))
            _ = downloads.headReceived(id, head, location: nil, Instant(nanoseconds: 2))
        }
        _ = downloads.takeActions()
        return downloads
    }

    /// Nanoseconds of this thread's CPU for 5 000 chunks.
    private func cost(transfers count: Int) -> Int64 {
        var downloads = play(transfers: count)
        let running = downloads.running
        let start = cpu()
        for chunk in 0..<5_000 {
            downloads.bodyReceived(running[chunk % running.count], 100, Instant(nanoseconds: 3))
            _ = downloads.takeActions()
        }
        return cpu() - start
    }

    private func cpu() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
