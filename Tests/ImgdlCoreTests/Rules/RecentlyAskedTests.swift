import XCTest

@testable import ImgdlCore

/// What is asked for again stays; what is not goes, and there is never more than twice the half.
final class RecentlyAskedTests: XCTestCase {
    func testWhatIsAskedForAgainStays() {
        var recent = RecentlyAsked<Int, Int>(half: 4)
        recent.insert(-1, 1000)
        for key in 0..<100 {
            recent.insert(key, key)
            XCTAssertEqual(recent.value(1000), -1, "\(key)")
        }
        XCTAssertNil(recent.value(0))
        XCTAssertEqual(recent.value(99), 99)
    }

    /// The last `half` that were asked for are there, in whatever order they came.
    func testTheLastOnesAreThere() {
        for half in 1...5 {
            var recent = RecentlyAsked<Int, Int>(half: half)
            var order: [Int] = []
            var random = SeededGenerator(UInt64(half))
            for _ in 0..<2000 {
                let key = Int.random(in: 0..<20, using: &random)
                if recent.value(key) == nil { recent.insert(key * 10, key) }
                order.removeAll { $0 == key }
                order.append(key)
                XCTAssertLessThanOrEqual(recent.count, 2 * half)
                for last in order.suffix(half) {
                    var asked = recent
                    XCTAssertEqual(asked.value(last), last * 10)
                }
            }
        }
    }

    func testANewValueTakesThePlaceOfAnOlderOne() {
        var recent = RecentlyAsked<Int, Int>(half: 2)
        for key in 0..<3 { recent.insert(key, key) }
        recent.insert(-1, 0)
        XCTAssertEqual(recent.value(0), -1)
        recent.insert(-2, 0)
        XCTAssertEqual(recent.value(0), -2)
        recent.removeAll()
        XCTAssertNil(recent.value(0))
        XCTAssertEqual(recent.count, 0)
    }
}
