import XCTest

@testable import ImgdlCore

/// Cancel concerns one subscriber; the last one ends the transfer (features B2, B3, D1–D3, T20, T21).
final class CancelTests: XCTestCase {
    func testOneOfTwoLeavesTheOtherAlone() {
        var play = Play()
        let a = play.submit("a")
        let b = play.submit("a")
        play.receive(a.transfer, 4, of: 10)
        play.skip()
        play.cancel(a)
        play.expect([.end(a.subscriber, .failure(Failure(.cancelled, "cancelled", status: 200)))])
        play.body(b.transfer, 6)
        play.finished(b.transfer)
        play.expect([.end(b.subscriber, .success(variant: nil)), .forget(b.transfer)])
        play.expectEmpty()
    }

    func testTheLastOneEndsTheTransferAndFreesItsSlot() {
        var play = Play(width: 1)
        let a = play.submit("a")
        let b = play.submit("a")
        let next = play.submit("next")
        play.skip()
        play.cancel(b)
        play.cancel(a)
        play.expect([
            .end(b.subscriber, .cancelled), .end(a.subscriber, .cancelled), .stop(a.transfer), .forget(a.transfer),
            .start(next.transfer),
        ])
    }

    func testAgainAndTooLateDoesNothing() {
        var play = Play()
        let a = play.submit("a")
        play.cancel(a)
        play.skip()
        play.cancel(a)
        play.downloads.setPriority(a.subscriber, .high)
        play.expect([])
        let b = play.submit("b")
        play.finished(b.transfer)
        play.skip()
        play.cancel(b)
        play.expect([])
    }

    func testWhatTheTransportReportsAfterwardsIsIgnored() {
        var play = Play()
        let a = play.submit("a", .with(.all))
        play.connected(a.transfer)
        play.cancel(a)
        let b = play.submit("b", .with(.all))
        XCTAssertEqual(SlotTable<Int>.slot(a.transfer.rawValue), SlotTable<Int>.slot(b.transfer.rawValue))
        play.skip()
        play.connected(a.transfer)
        XCTAssertEqual(play.head(a.transfer), .discard)
        play.body(a.transfer, 7)
        play.finished(a.transfer)
        play.failed(a.transfer, .lost)
        play.stepped(a.transfer, .finished)
        play.expect([])
    }

    /// Features D3: the old one's end must not take the new one's entry away.
    func testCancelQueuedThenAskTwiceIsOneTransfer() {
        var play = Play(width: 1)
        let first = play.submit("first")
        let a = play.submit("a")
        play.skip()
        play.cancel(a)
        play.expect([.end(a.subscriber, .cancelled), .forget(a.transfer)], "it never was at the transport")
        let b = play.submit("a")
        let c = play.submit("a")
        XCTAssertNotEqual(a.transfer, b.transfer)
        XCTAssertEqual(b.transfer, c.transfer)
        play.expect([])
        play.finished(first.transfer)
        XCTAssertEqual(play.takeStarts(), [b.transfer])
    }

    func testWhileSuspended() {
        var play = Play()
        play.downloads.setSuspended(true, play.now)
        let a = play.submit("a")
        let b = play.submit("b")
        play.cancel(a)
        play.expect([.end(a.subscriber, .cancelled), .forget(a.transfer)])
        XCTAssertEqual(play.downloads.waitingCount, 1, "features M9, M10: what is cancelled is gone at once")
        play.downloads.setSuspended(false, play.now)
        play.expect([.start(b.transfer)])
    }

    func testDuringADecode() {
        var play = Play()
        let a = play.submit("a", .image)
        play.receive(a.transfer, 4)
        play.finished(a.transfer)
        play.skip()
        play.cancel(a)
        play.expect(
            [
                .end(a.subscriber, .failure(Failure(.cancelled, "cancelled", status: 200))), .forget(a.transfer),
            ], "the transport has ended already")
        play.stepped(a.transfer, .finished)
        play.expect([])
        play.expectEmpty()
    }

    func testDuringADrain() {
        var play = Play()
        let a = play.submit("a")
        play.connected(a.transfer)
        play.head(a.transfer, 404)
        play.skip()
        play.cancel(a)
        play.expect([
            .end(a.subscriber, .failure(Failure(.cancelled, "cancelled", status: 404))), .stop(a.transfer),
            .forget(a.transfer),
        ])
    }

    func testAllStartsNothingInBetween() {
        var play = Play(width: 1)
        let a = play.submit("a")
        let b = play.submit("b")
        let c = play.submit("b")
        let d = play.submit("d", .image)
        play.skip()
        play.downloads.cancelAll(play.now)
        play.expect([
            .end(a.subscriber, .cancelled), .stop(a.transfer), .forget(a.transfer),
            .end(b.subscriber, .cancelled), .end(c.subscriber, .cancelled), .forget(b.transfer),
            .end(d.subscriber, .cancelled), .forget(d.transfer),
        ])
        play.expectEmpty()
        let again = play.submit("a")
        play.expect([.start(again.transfer)])
    }
}
