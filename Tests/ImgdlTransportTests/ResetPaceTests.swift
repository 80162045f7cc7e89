import ImgdlCore
import XCTest

@testable import ImgdlTransport

final class ResetPaceTests: XCTestCase {
    private func instant(_ seconds: Double) -> Instant { Instant(nanoseconds: Int64(seconds * 1e9)) }

    func testABurstThenThirtyASecond() {
        for start in [-5.0, 0, 1e9] {
            var pace = ResetPace()
            XCTAssertEqual((0..<500).count { _ in pace.take(instant(start)) }, ResetPace.burst)
            XCTAssertGreaterThan(pace.next(instant(start)), instant(start))
            let later = (1...1_000).count { pace.take(instant(start + Double($0) / 100)) }
            XCTAssertEqual(Double(later), 300, accuracy: 2)
            XCTAssertEqual((0..<500).count { _ in pace.take(instant(start + 60)) }, ResetPace.burst, "after a rest")
        }
    }

    /// Those that nobody asked for: the others wait as after a burst, and not longer.
    func testResetsThatWereNotAsked() {
        var pace = ResetPace()
        for _ in 0..<ResetPace.burst / 2 { pace.use(instant(7)) }
        XCTAssertEqual((0..<500).count { _ in pace.take(instant(7)) }, ResetPace.burst / 2)
        for _ in 0..<10_000 { pace.use(instant(7)) }
        XCTAssertFalse(pace.take(instant(7)))
        XCTAssertEqual(pace.next(instant(7)).nanoseconds, instant(7).nanoseconds + ResetPace.interval)
    }

    /// Streams that go on sending: so many ahead of their turn, which the others make good. Whoever resets as early as it may
    /// stays below what servers allow, however long it goes on.
    func testResetsAheadOfTheirTurn() {
        var pace = ResetPace()
        XCTAssertEqual((0..<500).count { _ in pace.take(instant(7)) }, ResetPace.burst)
        XCTAssertEqual((0..<5_000).count { _ in pace.takeAhead(instant(7)) }, ResetPace.ahead)
        XCTAssertFalse(pace.take(instant(8)), "the others wait")
        XCTAssertFalse(pace.take(instant(16.9)))
        XCTAssertTrue(pace.take(instant(17.1)), "they are made good")
        pace.use(instant(17.1))
        var resets = ResetPace.burst + ResetPace.ahead + 2
        for hundredth in 1...6_000 {
            let now = instant(17.1 + Double(hundredth) / 100)
            while pace.takeAhead(now) { resets += 1 }
            if pace.take(now) { resets += 1 }
        }
        XCTAssertEqual(Double(resets), Double(ResetPace.burst + ResetPace.ahead) + 70.1 * 30, accuracy: 5)
        XCTAssertLessThan(Double(resets), 1_000 + 70.1 * 33)
    }

    /// Those that nobody asked for take nothing back of what is to be made good.
    func testWhatIsToBeMadeGoodStays() {
        var pace = ResetPace()
        for _ in 0..<ResetPace.burst + ResetPace.ahead { XCTAssertTrue(pace.takeAhead(instant(7))) }
        pace.use(instant(7))
        XCTAssertFalse(pace.takeAhead(instant(7)))
        XCTAssertEqual(
            pace.next(instant(7)).nanoseconds,
            instant(7).nanoseconds + Int64(ResetPace.ahead + 1) * ResetPace.interval)
    }

    func testTheNextOneIsAllowedWhenItSaysSo() {
        var pace = ResetPace()
        var now = instant(7)
        for _ in 0..<300 {
            now = pace.next(now)
            XCTAssertTrue(pace.take(now))
        }
        XCTAssertEqual(Double(now.nanoseconds - instant(7).nanoseconds) / 1e9, 200 / 30.0, accuracy: 0.1)
    }
}
