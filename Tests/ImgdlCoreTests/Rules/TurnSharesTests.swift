import XCTest

@testable import ImgdlCore

final class TurnSharesTests: XCTestCase {
    private var shares = TurnShares()

    private func order(_ sockets: [Int32]) -> [Int32] {
        shares.compete(sockets)
        return sockets.sorted { (shares.lag(of: $0), $0) < (shares.lag(of: $1), $1) }
    }

    func testWhoHasHadLeastGoesFirst() {
        XCTAssertEqual(order([1, 2, 3]), [1, 2, 3])
        shares.took(1, 3_000)
        shares.took(2, 1_000)
        XCTAssertEqual(order([1, 2, 3]), [3, 2, 1])
        shares.took(3, 0)
        shares.took(3, -5)
        XCTAssertEqual(order([3, 4]), [4, 3], "a turn in no time is one")
    }

    /// In twenty seconds of a crowd nobody new gets further ahead than by `lead`, nor who was silent.
    func testALeadIsBounded() {
        var turns: [Int32: Int] = [:]
        for number in 0..<5_000 {
            let first = order(number < 4_000 ? [1, 2] : [1, 2, 3, 4])[0]
            shares.took(first, 4_000_000)
            if number == 0 { shares.took(3, 1) }
            if number >= 4_000 { turns[first, default: 0] += 1 }
        }
        for socket in [3, 4] as [Int32] {
            XCTAssertLessThanOrEqual(abs(turns[socket, default: 0] - 250), 6, "\(socket)")
        }
        XCTAssertLessThanOrEqual(abs(turns[1, default: 0] - turns[2, default: 0]), 1)
    }

    /// Three seconds in the host's code, say: it waits for the others' next turns, and not for three seconds of them.
    func testADebtIsBounded() {
        for _ in 0..<100 { for socket in order([1, 2, 3]) { shares.took(socket, 4_000_000) } }
        shares.took(1, 3_000_000_000)
        var others = 0
        while order([1, 2, 3])[0] != 1, others < 100 {
            shares.took(order([2, 3])[0], 4_000_000)
            others += 1
        }
        XCTAssertTrue((1...4).contains(others), "\(others)")
        shares.took(1, .max)
        XCTAssertEqual(order([1, 2])[0], 2)
    }

    func testANumberThatComesBackHasHadNothing() {
        for _ in 0..<100 { for socket in order([1, 2]) { shares.took(socket, 4_000_000) } }
        shares.forget(2)
        XCTAssertEqual(order([1, 2]), [2, 1])
        shares.forgetAll()
        XCTAssertTrue(shares.isEmpty)
        XCTAssertEqual(order([1, 2]), [1, 2])
    }

    /// Any turns: all numbers stay near to each other.
    func testAnyTurns() {
        var random = SeededGenerator(21)
        for _ in 0..<2_000 {
            let sockets = (0..<Int32(12)).filter { _ in Bool.random(using: &random) }
            guard let socket = sockets.randomElement(using: &random) else { continue }
            shares.compete(sockets)
            let any = Int64.random(in: .min ... .max, using: &random)
            shares.took(socket, Bool.random(using: &random) ? any : 1_000_000)
            for socket in sockets {
                XCTAssertTrue((0...TurnShares.lead + TurnShares.debt).contains(shares.lag(of: socket)))
            }
        }
    }
}
