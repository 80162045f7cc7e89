import XCTest

@testable import ImgdlTransport

final class TurnBudgetTests: XCTestCase {
    private typealias Sample = TurnBudget.Sample

    private func sample(
        _ turn: UInt64?, ms: Int64, host: Int64 = 0, isInHost: Bool = false, bytes: Int64 = 0
    ) -> Sample {
        Sample(
            turn: turn, time: ms * 1_000_000, hostTime: host * 1_000_000, isInHost: isInHost, bodyBytes: bytes)
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
                "the host's time", [sample(1, ms: 0), sample(1, ms: 900, host: 880), sample(1, ms: 940, host: 880)],
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
                [sample(1, ms: 0), sample(1, ms: 133, bytes: 1_000_000), sample(1, ms: 135, bytes: 1_000_000)],
                [.begins, .goesOn, .isSpent]
            ),
            (
                "bodies without end",
                [
                    sample(1, ms: 0), sample(1, ms: 384, bytes: 1_000_000_000),
                    sample(1, ms: 385, bytes: 1_000_000_000),
                ],
                [.begins, .goesOn, .isSpent]
            ),
            (
                "a whole receive buffer, at 60 ns for each byte",
                [sample(1, ms: 0), sample(1, ms: 378, bytes: 6 << 20)], [.begins, .goesOn]
            ),
        ]
        for (name, samples, expected) in table {
            var budget = TurnBudget()
            XCTAssertEqual(samples.map { budget.judge($0) }, expected, name)
        }
    }

    func testTheSocketThatWasReadMost() {
        let much = TurnBudget.floodBytes
        let table: [([Int32: Int64], [Int32: Int64], Int32?)] = [
            ([:], [:], nil), ([3: 0], [3: much], 3), ([3: 0], [3: much - 1], nil), ([3: 5], [3: much + 4], nil),
            ([3: 0, 4: 0], [3: much, 4: much + 1], 4), ([3: 0], [3: much, 4: 9 * much], 3),
            ([3: -1], [3: much], nil), ([3: 0], [3: -1], nil), ([3: 0, 4: 0], [4: 0], nil),
        ]
        for (before, now, expected) in table { XCTAssertEqual(TurnBudget.culprit(before, now), expected) }
    }
}
