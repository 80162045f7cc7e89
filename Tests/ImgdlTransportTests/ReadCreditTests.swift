import ImgdlCore
import XCTest

@testable import ImgdlTransport

/// How far a connection is read as one that brings answers.
final class ReadCreditTests: XCTestCase {
    /// The places at which it is no longer, of a server that sends so many encrypted bytes for each piece of so many.
    private func firstExcess(_ sent: UInt64, forEach piece: Int, upTo most: UInt64) -> UInt64? {
        var credit = ReadCredit()
        var place: UInt64 = 0
        while place < most {
            place += sent
            if place > credit.end { return place }
            credit.receive(piece, at: place)
        }
        return nil
    }

    func testBodiesStayWithinIt() {
        // As records of TLS bring them; and in frames of one byte, each in a record, or many that come in one piece.
        for (piece, sent) in [(16_384, 16_438), (8_192, 8_300), (100, 150), (1, 40), (2_000, 20_030)] as [(Int, UInt64)]
        {
            XCTAssertNil(firstExcess(sent, forEach: piece, upTo: 100 << 20), "\(piece)")
        }
    }

    func testFloodsWithALittleOfAnAnswerDoNot() {
        for (piece, sent) in [(1, 30_000), (1, 1_000), (1_000, 20_000)] as [(Int, UInt64)] {
            let excess = firstExcess(sent, forEach: piece, upTo: 100 << 20)
            XCTAssertLessThan(excess ?? .max, 4 * ReadCredit.first, "\(piece)")
        }
    }

    func testWhatIsBeyondItIsCounted() {
        var credit = ReadCredit()
        for number in 1...100 as ClosedRange<UInt64> { credit.receive(1, at: number * 30_000) }
        XCTAssertEqual(credit.excess, 3_000_000 - ReadCredit.first - 99 * 266)
    }

    func testMuchThatWasHeardLetsNoMuchLongerFloodFollow() {
        var credit = ReadCredit()
        for place in stride(from: 16_000 as UInt64, to: 1 << 30, by: 16_000) { credit.receive(16_384, at: place) }
        XCTAssertLessThanOrEqual(credit.end, 1 << 30 + 1 << 20)
        XCTAssertGreaterThan(credit.end, 1 << 30 + 500_000)
    }

    func testStreamsThatWereReset() {
        var credit = ReadCredit()
        for _ in 0..<1_000 { credit.reset(at: 100) }
        XCTAssertEqual(credit.end, 100 + 32 << 20)
        credit.receive(1, at: 200)
        XCTAssertEqual(credit.end, 100 + 32 << 20, "what is on its way still is")
    }

    /// Bodies that were on their way as their streams were reset are no excess, also where little of others comes between.
    func testWhatComesOfStreamsThatWereReset() {
        for resets in [1, 30] {
            var credit = ReadCredit()
            for number in 0...100 as ClosedRange<UInt64> { credit.receive(1, at: number * 30_000) }
            let before = credit.excess
            XCTAssertGreaterThan(before, 2_500_000)
            for _ in 0..<resets { credit.reset(at: 3_000_000) }
            XCTAssertEqual(credit.excess, before)
            for number in 1...8 as ClosedRange<UInt64> { credit.receive(1_000, at: 3_000_000 + number << 22) }
            XCTAssertEqual(credit.excess, before, "they were on their way")
            for number in 9...24 as ClosedRange<UInt64> { credit.receive(1_000, at: 3_000_000 + number << 22) }
            XCTAssertGreaterThan(credit.excess, before + 30 << 20, "a window was, of however many")
        }
    }

    func testWhatCameBeforeAStreamWasResetIsCounted() {
        var credit = ReadCredit()
        credit.reset(at: 20 << 20)
        XCTAssertEqual(credit.excess, 20 << 20 - ReadCredit.first)
    }

    /// Nobody hears what comes for a body that curl keeps.
    func testBodiesThatCurlKeeps() {
        var credit = ReadCredit()
        for bodies in 1...3 as ClosedRange<UInt64> { credit.keep(bodies, at: 0) }
        credit.receive(1, at: 96 << 20)
        XCTAssertEqual(credit.excess, 0)
        credit.receive(1, at: 97 << 20)
        XCTAssertGreaterThan(credit.excess, 0)
        let before = credit.excess
        for _ in 0..<100 { credit.keep(1, at: 97 << 20) }
        credit.receive(1, at: 197 << 20)
        XCTAssertGreaterThan(credit.excess, before + 60 << 20, "one goes on and is kept again, and has its window")
    }

    /// Bytes that are no answer's count also where the piece of one behind them comes as late as another second.
    func testHowManyInASecond() {
        for (gap, bytes, isTooMuch) in [
            (10, 80_000, false), (10, 90_000, true), (990, 9 << 20, true), (1_500, 12 << 20, false),
            (1_500, 13 << 20, true), (60_000, 100 << 20, false), (60_000, 500 << 20, true),
        ] as [(Int64, UInt64, Bool)] {
            var (rate, excess, now) = (ExcessRate(), UInt64(0), Instant(nanoseconds: 5))
            rate.note(excess, now)
            XCTAssertFalse(rate.isTooMuch)
            var wasTooMuch = false
            for _ in 0..<300 {
                now = now.advanced(byMilliseconds: gap)
                excess += bytes
                rate.note(excess, now)
                wasTooMuch = wasTooMuch || rate.isTooMuch
            }
            XCTAssertEqual(wasTooMuch, isTooMuch, "\(bytes) in \(gap) ms")
        }
    }

    func testItGrowsAgainBehindAFlood() {
        var credit = ReadCredit()
        credit.receive(1_000, at: 10 << 20)
        XCTAssertEqual(credit.end, 10 << 20 + 10_256)
        credit.receive(.max, at: 10 << 20)
        XCTAssertEqual(credit.end, 11 << 20)
    }
}
