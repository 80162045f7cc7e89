import ImgdlCore
import XCTest

@testable import ImgdlCache

/// How a connection waits for others that write, without any.
final class BusyWaitTests: XCTestCase {
    private func instant(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

    /// What it waits in all, where each sleep takes `excess` longer than it was asked to.
    private func waited(_ patience: Int32, excess: Int64) -> (moments: [Int64], all: Int64) {
        var wait = BusyWait()
        var moments: [Int64] = []
        var now: Int64 = 1_000
        while let moment = wait.moment(Int32(moments.count), patience: patience, instant(now)) {
            moments.append(moment)
            now += moment + excess
        }
        return (moments, now - 1_000)
    }

    func testMomentsBecomeLonger() {
        XCTAssertEqual(waited(100, excess: 0).moments, [1, 2, 4, 8, 16, 25, 25, 19])
        XCTAssertEqual(waited(100, excess: 0).all, 100)
        XCTAssertEqual(waited(0, excess: 0).moments, [])
    }

    /// A machine that is busy lets it sleep for longer: it does not wait longer for that, but for the last moment.
    func testTimeThatPassedCounts() {
        for excess: Int64 in [1, 5, 40] {
            let all = waited(250, excess: excess).all
            XCTAssertGreaterThanOrEqual(all, 250)
            XCTAssertLessThanOrEqual(all, 250 + excess)
        }
    }

    /// Each call has its patience anew.
    func testTheNextCallBeginsAnew() {
        var wait = BusyWait()
        XCTAssertEqual(wait.moment(0, patience: 10, instant(0)), 1)
        XCTAssertNil(wait.moment(1, patience: 10, instant(10)))
        XCTAssertEqual(wait.moment(0, patience: 10, instant(500)), 1)
        XCTAssertEqual(wait.moment(4, patience: 10, instant(503)), 7)
    }
}
