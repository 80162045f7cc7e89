import XCTest

@testable import ImgdlCore

final class TurnClockTests: XCTestCase {
    private final class CountingClock: Clock, @unchecked Sendable {
        var readings: Int64 = 0

        func now() -> Instant {
            readings += 1
            return Instant(nanoseconds: readings)
        }

        func wallTime() -> Int64 { -readings }
    }

    func testOneReadingForOneMoment() {
        let source = CountingClock()
        let clock = TurnClock(source)
        XCTAssertEqual(source.readings, 0)
        XCTAssertEqual([clock.now(), clock.now()], [Instant(nanoseconds: 1), Instant(nanoseconds: 1)])
        clock.passes()
        clock.passes()
        XCTAssertEqual(source.readings, 1)
        XCTAssertEqual(clock.now(), Instant(nanoseconds: 2))
        XCTAssertEqual(clock.wallTime(), -2)
        XCTAssertEqual(clock.source.now(), Instant(nanoseconds: 3))
    }
}
