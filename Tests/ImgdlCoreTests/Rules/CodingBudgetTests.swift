import XCTest

@testable import ImgdlCore

/// What undoing a body's codings may take, beside what comes out of it.
final class CodingBudgetTests: XCTestCase {
    func testWhatCodingsHandOnIsHeldAgainstWhatComes() {
        var budget = CodingBudget()
        budget.handOn(1 << 20)
        XCTAssertNil(budget.failure, "an allowance, though nothing has come")
        budget.handOn(1)
        XCTAssertEqual(budget.failure?.code, .contentEncoding)
        budget.receive(1)
        XCTAssertNil(budget.failure, "32 for a byte that has come")
        budget.handOn(31)
        XCTAssertNil(budget.failure)
        budget.handOn(1)
        XCTAssertNotNil(budget.failure)
        budget.produce(1)
        budget.handOn(31)
        XCTAssertNil(budget.failure, "and for one that has come out")
        budget.handOn(1)
        XCTAssertEqual(
            budget.failure?.message,
            "the body's codings on top of each other hand on 1048641 bytes, while 1 bytes have come and 1 have come out: "
                + "the limit is 1048576, and 32 for each of these")
    }

    func testTimeIsHeldAgainstWhatComes() {
        var budget = CodingBudget()
        budget.spend(2_000_000_000)
        XCTAssertNil(budget.failure)
        budget.spend(1)
        XCTAssertEqual(budget.failure?.code, .contentEncoding)
        budget.receive(10_000)
        XCTAssertNil(budget.failure)
        budget.spend(1_000_000)
        XCTAssertEqual(
            budget.failure?.message,
            "to undo the body's coding has taken 2001 ms of CPU time, while 10000 bytes have come and 0 have come out: "
                + "the limit is 2000 ms, and 100 ns for each of these, but for no more than 262144 of which nothing comes out"
        )
        budget.spend(-1_000_000_000)
        XCTAssertNotNil(budget.failure, "a clock that goes back gives nothing back")
    }

    /// Empty members of gzip, 20 bytes each, take 80 ns a byte for as long as they come.
    func testBytesOfWhichNothingComesOutPayForNoMore() {
        var budget = CodingBudget()
        for _ in 0..<100 { budget.receive(10_000) }
        budget.spend(2_000_000_000 + 26_214_400)
        XCTAssertNil(budget.failure)
        budget.spend(1)
        XCTAssertEqual(budget.failure?.code, .contentEncoding)
        budget.produce(0)
        budget.receive(10_000)
        XCTAssertNotNil(budget.failure)
        // Each byte that comes out makes up for a KiB: 688 bytes of what comes next pay again.
        budget.produce(731)
        budget.receive(10_000)
        budget.spend((731 + 688) * 100 - 1)
        XCTAssertNil(budget.failure)
        budget.spend(1)
        XCTAssertNotNil(budget.failure)
    }

    /// The worst that honest senders do: each byte flushed by itself in gzip, and that in gzip again; each byte a member of its
    /// own; on a machine that undoes 10 MB a second. However long the body is.
    func testHonestBodiesPass() {
        for produced in [1, 1_000, 1_000_000, 1 << 28, 1 << 40] {
            for (handedOn, received) in [(8 + 13, 13), (21, 2), (1, 1), (0, 0)] {
                var budget = CodingBudget()
                budget.receive(produced * received)
                budget.produce(produced)
                budget.handOn(produced * handedOn)
                budget.spend(Int64(produced) * 100)
                XCTAssertNil(budget.failure, "\(produced) bytes, \(handedOn) handed on for each")
            }
        }
    }

    /// In whatever order, and whatever the numbers.
    func testNumbersHaveNoEnd() {
        var budget = CodingBudget()
        for _ in 0..<3 {
            budget.receive(.max)
            budget.produce(.max)
            budget.handOn(.max)
            budget.spend(.max)
            XCTAssertNil(budget.failure)
        }
    }
}
