import ImgdlCore
import XCTest

@testable import ImgdlTransport

final class TurnBudgetTests: XCTestCase {
    private typealias Sample = TurnBudget.Sample

    private func sample(
        _ turn: UInt64?, ms: Int64, other: Int64 = 0, isInHost: Bool = false, bytes: Int64 = 0
    ) -> Sample {
        Sample(
            turn: turn, time: ms * 1_000_000, otherTime: other * 1_000_000, isInHost: isInHost,
            answerBytes: bytes)
    }

    func testATurnThatTakesTooLong() {
        let before = 7_000 as Int64
        let table: [(String, [Sample], [TurnBudget.Verdict])] = [
            (
                "one turn", [sample(1, ms: before), sample(1, ms: before + 34), sample(1, ms: before + 35)],
                [.begins, .goesOn, .isSpent]
            ),
            (
                "many turns", (0..<9).map { sample($0, ms: before + 30 * Int64($0)) },
                Array(repeating: .begins, count: 9)
            ),
            (
                "a pause between", [sample(1, ms: 0), sample(nil, ms: 0), sample(1, ms: 90)],
                [.begins, .nothing, .begins]
            ),
            (
                "the host's time", [sample(1, ms: 0), sample(1, ms: 900, other: 880), sample(1, ms: 940, other: 880)],
                [.begins, .goesOn, .isSpent]
            ),
            (
                "in the host's code",
                [
                    sample(1, ms: 0, isInHost: true), sample(1, ms: 900, isInHost: true),
                    sample(1, ms: 900), sample(1, ms: 990, isInHost: true), sample(1, ms: 999),
                ],
                [.nothing, .nothing, .begins, .nothing, .isSpent]
            ),
            (
                "bodies",
                [sample(1, ms: 0), sample(1, ms: 74, bytes: 400_000), sample(1, ms: 75, bytes: 400_000)],
                [.begins, .goesOn, .isSpent]
            ),
            (
                "bodies without end",
                [
                    sample(1, ms: 0), sample(1, ms: 184, bytes: 1_000_000_000),
                    sample(1, ms: 185, bytes: 1_000_000_000),
                ],
                [.begins, .goesOn, .isSpent]
            ),
            (
                "the pieces that come before the time of a turn is looked at, at 100 ns for each byte",
                [sample(1, ms: 0), sample(1, ms: 27, bytes: Int64(2 * BodyLine.piecesUntimed) * (16 << 10))],
                [.begins, .goesOn]
            ),
        ]
        for (name, samples, expected) in table {
            var budget = TurnBudget(slowness: 1)
            XCTAssertEqual(samples.map { budget.judge($0) }, expected, name)
        }
    }

    /// At these milliseconds, which are of the thread's CPU time, too.
    private func watched(_ turn: UInt64?, at ms: Double, bytes: Int64 = 0) -> Sample {
        let time = Int64(ms * 1_000_000)
        return Sample(
            instant: Instant(nanoseconds: 9_000_000_000 + time), turn: turn, time: turn == nil ? 0 : time,
            answerBytes: bytes)
    }

    /// How many milliseconds each turn has until it is spent: they follow one another, and never end by themselves.
    private func spans(of turns: Int, in budget: inout TurnBudget, bytesPerMillisecond: Int64 = 0) -> [Double] {
        var now = 0.0
        return (0..<turns).map { turn in
            let start = now
            while now < start + 1_000 {
                now += Double(budget.interval) / 1e6
                let sample = watched(UInt64(turn), at: now, bytes: Int64(now) * bytesPerMillisecond)
                if budget.judge(sample) == .isSpent { break }
            }
            return now - start
        }
    }

    func testACrowdHasLittleMoreThanOne() {
        var budget = TurnBudget(slowness: 1)
        let spans = spans(of: 60, in: &budget)
        XCTAssertLessThanOrEqual(spans[0], 50)
        XCTAssertGreaterThan(spans[0], 30)
        XCTAssertLessThanOrEqual(spans.dropFirst(2).max()!, 5, "\(spans)")
        XCTAssertTrue(budget.isCrowded)
    }

    func testBodiesLeaveTheAllowanceAsItIs() {
        var budget = TurnBudget(slowness: 1)
        for ms in 1...400 { _ = budget.judge(watched(UInt64(ms / 20), at: Double(8 * ms), bytes: Int64(ms) * 80_000)) }
        XCTAssertEqual(budget.spent, 0)
        XCTAssertFalse(budget.isCrowded)
    }

    /// They are read first, and then the request hears of them.
    func testBytesPayForTheTimeBeforeThem() {
        var budget = TurnBudget(slowness: 1)
        for ms in 0...400 {
            _ = budget.judge(watched(UInt64(ms / 20), at: Double(ms), bytes: Int64((ms + 1) / 4) * 40_000))
            XCTAssertLessThanOrEqual(budget.spent, 4_000_000)
        }
        XCTAssertLessThanOrEqual(budget.spent, 3_000_000)
    }

    /// Of HTTP/2 all streams are read for before any of them hears of it, which takes long on slow machines: that is paid for
    /// afterwards. Not twice, and what is paid for does not pay for what comes.
    func testBytesPayForWhatWasReadAhead() {
        var budget = TurnBudget(slowness: 1)
        for ms in 0...40 { _ = budget.judge(watched(1, at: Double(ms))) }
        XCTAssertGreaterThan(budget.spent, 30_000_000)
        for ms in 41...45 { _ = budget.judge(watched(1, at: Double(ms), bytes: Int64(ms - 40) * 1_000_000)) }
        XCTAssertEqual(budget.spent, 0)
        for ms in 46...86 { _ = budget.judge(watched(2, at: Double(ms), bytes: 5_000_000)) }
        XCTAssertGreaterThan(budget.spent, 30_000_000)
    }

    /// As long as buffers of the streams of the connection that is read may take, however many; less what has been read ahead and
    /// not been paid for. No turn has more than the longest.
    func testTimeToReadAhead() {
        for (streams, milliseconds) in [(0, 34), (1, 40), (6, 73), (25, 184), (1 << 40, 184)] as [(Int, Int64)] {
            var budget = TurnBudget(slowness: 1)
            XCTAssertEqual(budget.judge(sample(1, ms: 0)), .begins)
            let (within, beyond) = (sample(1, ms: milliseconds), sample(1, ms: milliseconds + 1))
            _ = budget.judge(within)
            XCTAssertFalse(budget.isSpent(within, streams: streams), "\(streams)")
            XCTAssertEqual(budget.judge(beyond), .isSpent)
            XCTAssertTrue(budget.isSpent(beyond, streams: streams), "\(streams)")
        }
        var budget = TurnBudget(slowness: 1)
        func judge(_ turn: UInt64, _ ms: Double) -> (TurnBudget.Verdict, Sample) {
            var sample = watched(turn, at: ms)
            sample.streams = 6
            return (budget.judge(sample), sample)
        }
        for ms in 0...70 { _ = judge(1, Double(ms)) }
        XCTAssertGreaterThan(budget.spent, 60_000_000)
        _ = judge(2, 71)
        let (verdict, sample) = judge(2, 100)
        XCTAssertEqual(verdict, .isSpent)
        XCTAssertTrue(budget.isSpent(sample, streams: 6))
        XCTAssertFalse(budget.isSpent(sample, streams: 25))
        // Those that are left are given back in a second.
        _ = budget.judge(watched(nil, at: 101))
        XCTAssertLessThanOrEqual(budget.spent, TurnBudget.limit)
    }

    /// Each of them far below what one turn may have.
    func testShortBurstsAddUp() {
        var budget = TurnBudget(slowness: 1)
        var turn: UInt64 = 0
        for ms in stride(from: 0.0, to: 60, by: 8) {
            turn += 1
            XCTAssertEqual(budget.judge(watched(turn, at: ms)), .begins)
        }
        XCTAssertTrue(budget.isCrowded)
        XCTAssertEqual(budget.interval, TurnBudget.shortInterval)
    }

    func testASecondGivesItBack() {
        var budget = TurnBudget(slowness: 1)
        _ = spans(of: 3, in: &budget)
        let before = budget.spent
        XCTAssertGreaterThan(before, 40_000_000)
        XCTAssertEqual(budget.judge(watched(nil, at: 600)), .nothing)
        XCTAssertFalse(budget.isCrowded)
        XCTAssertEqual(budget.judge(watched(nil, at: 2_000)), .nothing)
        XCTAssertEqual(budget.spent, 0)
        for far in [Int64.max - 1, 0, Int64.max] {
            XCTAssertEqual(budget.judge(Sample(instant: Instant(nanoseconds: far))), .nothing)
        }
    }

    /// What the thread does otherwise is not its connections'.
    func testTimeBetweenTurnsIsNotTheirs() {
        var budget = TurnBudget(slowness: 1)
        _ = budget.judge(watched(1, at: 0))
        _ = budget.judge(watched(nil, at: 900))
        XCTAssertEqual(budget.judge(watched(2, at: 901)), .begins)
        XCTAssertLessThanOrEqual(budget.spent, 1_000_000)
    }

    func testTheSocketThatWasReadMost() {
        let much = TurnBudget.leastBytes
        let table: [([Int32: Int64], [Int32: Int64], Int32?)] = [
            ([:], [:], nil), ([3: 0], [3: much], 3), ([3: 0], [3: much - 1], nil), ([3: 5], [3: much + 4], nil),
            ([3: 0, 4: 0], [3: much, 4: much + 1], 4), ([3: 0], [3: much, 4: 9 * much], 3),
            ([3: -1], [3: much], nil), ([3: 0], [3: -1], nil), ([3: 0, 4: 0], [4: 0], nil),
        ]
        for (before, now, expected) in table { XCTAssertEqual(TurnBudget.culprit(before, now), expected) }
    }
}
