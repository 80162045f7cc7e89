import XCTest

@testable import ImgdlCore

/// Which of two answers to one question is kept, whichever is stored first. Times are seconds from `start`.
final class OrderTests: CacheTestCase {
    private struct Answer {
        /// Of its request and of its head.
        let sent: Int64
        let came: Int64
        /// nil: the server sent none.
        let date: Int64?

        init(_ sent: Int64, _ came: Int64, date: Int64?) {
            self.sent = sent
            self.came = came
            self.date = date
        }
    }

    private func stored(_ answer: Answer) -> StoredResponse {
        let fields = answer.date.map { [HeaderField("Date", HTTPDate.text(start + $0))] } ?? []
        return StoredResponse(
            status: 200, httpVersion: 11,
            fields: CacheRules.storable(fields, responseTime: start + answer.came), requestTime: start + answer.sent,
            responseTime: start + answer.came, context: .blank)
    }

    func testWhichOfTwoIsOlder() {
        let cases: [(String, Answer, Answer, Bool)] = [
            ("asked before the other came, and made before", Answer(0, 9, date: 0), Answer(2, 4, date: 3), true),
            ("asked before, and made later", Answer(0, 9, date: 8), Answer(2, 4, date: 3), false),
            ("in one second, and made before", Answer(0, 0, date: -900), Answer(0, 0, date: -800), true),
            ("in one second, and made later", Answer(0, 0, date: -800), Answer(0, 0, date: -900), false),
            ("in one second, made in one", Answer(0, 0, date: 0), Answer(0, 0, date: 0), false),
            ("it came before the other was asked for", Answer(0, 1, date: 9), Answer(2, 3, date: 3), true),
            ("a reload, and the Date goes back", Answer(5, 6, date: -900), Answer(0, 1, date: 1), false),
            ("a reload, and the other's Date is to come", Answer(5, 6, date: 6), Answer(0, 1, date: 86_400), false),
            ("a reload in one second, likewise", Answer(0, 0, date: 0), Answer(0, 0, date: 86_400), false),
            ("no Date: asked before, and slow", Answer(0, 9, date: nil), Answer(2, 4, date: nil), true),
            ("no Date: asked later, and quick", Answer(2, 4, date: nil), Answer(0, 9, date: nil), false),
            ("one without a Date, asked before", Answer(0, 9, date: nil), Answer(2, 4, date: 3), true),
            ("both from a future, asked before", Answer(0, 9, date: 900), Answer(2, 4, date: 800), true),
            ("the clock has been set back since", Answer(0, 1, date: 1), Answer(5_000, 5_001, date: 1), false),
            ("the clock has been set back, a Date tells", Answer(0, 1, date: 0), Answer(5_000, 5_001, date: 9), true),
            ("the server's was ahead, too: late", Answer(0, 1, date: 0), Answer(5_000, 5_001, date: 5_000), false),
            ("the server's was ahead, too: early", Answer(5_000, 5_001, date: 5_000), Answer(0, 1, date: 0), false),
            ("the clock has been set back, no Date", Answer(0, 1, date: nil), Answer(5_000, 5_001, date: nil), false),
            ("the same, within one second each", Answer(0, 0, date: nil), Answer(5_000, 5_000, date: nil), false),
            ("the same by a whole year", Answer(0, 0, date: 0), Answer(31_536_000, 31_536_000, date: nil), false),
        ]
        for (name, one, other, isOlder) in cases {
            XCTAssertEqual(stored(one).isOlder(than: stored(other), wallTime: start + 10), isOlder, name)
        }
    }

    /// Of two within one second, where that is known of both: microseconds.
    func testWithinOneSecond() {
        let cases: [(String, TimeFractions?, TimeFractions?, isOlder: Bool, isNewer: Bool)] = [
            ("nothing is known", nil, nil, false, false),
            ("nothing of one", TimeFractions(request: 1, response: 2), nil, false, false),
            ("one after the other", .init(request: 1, response: 2), .init(request: 3, response: 4), true, false),
            ("both at once", .init(request: 1, response: 900_000), .init(request: 2, response: 3), true, false),
            ("at the same time", .init(request: 1, response: 2), .init(request: 1, response: 2), false, false),
        ]
        for (name, first, second, isOlder, isNewer) in cases {
            var (one, other) = (stored(Answer(5, 5, date: 3)), stored(Answer(5, 5, date: 3)))
            (one.fractions, other.fractions) = (first, second)
            XCTAssertEqual(one.isOlder(than: other, wallTime: start + 10), isOlder, name)
            XCTAssertEqual(other.isOlder(than: one, wallTime: start + 10), isNewer, name)
        }
        // A reload is not lost for a Date that goes back, and what was under way at once goes by it.
        for (came, isOlder) in [(2, true), (4, false)] as [(Int64, Bool)] {
            var (one, reload) = (stored(Answer(5, 5, date: 3)), stored(Answer(5, 5, date: 2)))
            one.fractions = TimeFractions(request: 1, response: came)
            reload.fractions = TimeFractions(request: 3, response: 5)
            XCTAssertEqual(one.isOlder(than: reload, wallTime: start + 10), isOlder)
            XCTAssertEqual(reload.isOlder(than: one, wallTime: start + 10), !isOlder)
        }
    }

    /// One of them was sent by a clock that has been set back before it came: Date alone tells.
    func testDateAloneTellsWhereTheClockWasSetBackMeanwhile() {
        for (date, isOlder) in [(1, true), (4, false)] as [(Int64, Bool)] {
            let one = stored(Answer(100, 3, date: date))
            let other = stored(Answer(1, 5, date: 2))
            XCTAssertEqual(one.isOlder(than: other, wallTime: start + 10), isOlder)
            XCTAssertEqual(other.isOlder(than: one, wallTime: start + 10), !isOlder)
        }
    }

    /// Else each would drop the other.
    func testNeverBothAreOlder() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            func any() -> Answer {
                let sent = Int64.random(in: -3...12, using: &random)
                let date = Bool.random(using: &random) ? Int64.random(in: -3...80, using: &random) : nil
                return Answer(sent, sent + .random(in: 0...4, using: &random), date: date)
            }
            func timed(_ answer: Answer) -> StoredResponse {
                var timed = stored(answer)
                guard Bool.random(using: &random) else { return timed }
                let fractions = (0..<2).map { _ in Int64.random(in: 0...3, using: &random) }.sorted()
                timed.fractions = TimeFractions(request: fractions[0], response: fractions[1])
                return timed
            }
            let (one, other) = (timed(any()), timed(any()))
            guard one.isOlder(than: other, wallTime: start + 10) else { continue }
            XCTAssertFalse(other.isOlder(than: one, wallTime: start + 10), "\(one) \(other)")
        }
    }

    func testTimesFromOutsideDoNotOverflow() {
        for time in [Int64.min, .max, 0] {
            for other in [Int64.min, .max, 0] {
                var (one, two) = (stored(Answer(0, 0, date: 0)), stored(Answer(0, 0, date: 1)))
                (one.requestTime, one.responseTime) = (time, other)
                (two.requestTime, two.responseTime) = (other, time)
                for now in [Int64.min, .max, 0] {
                    XCTAssertFalse(one.isOlder(than: two, wallTime: now) && two.isOlder(than: one, wallTime: now))
                }
            }
        }
    }
}
