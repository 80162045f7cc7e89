import XCTest

@testable import ImgdlCore

/// Time in which nobody looked: the host's code ran, the process was stopped, or the machine slept.
final class TurnDelayTests: XCTestCase {
    private let second: Int64 = 1_000_000_000
    private func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

    // MARK: What is late

    func testASleepThatEndsInTimeIsNoDelay() {
        var turns = TurnMeter(at(0), withSleep: 0)
        turns.sleeps(at(0), until: at(15_000))
        XCTAssertEqual(turns.wakes(at(15_000), withSleep: 15 * second), TurnDelay())
        turns.sleeps(at(15_000), until: nil)
        XCTAssertEqual(turns.wakes(at(99_000), withSleep: 99 * second), TurnDelay(), "nothing was due")
        turns.sleeps(at(99_000), until: at(98_000))
        XCTAssertEqual(turns.wakes(at(99_000), withSleep: 99 * second), TurnDelay(), "what was due was known")
    }

    func testATurnThatTakesLongDelaysTheNext() {
        var turns = TurnMeter(at(0), withSleep: 0)
        turns.sleeps(at(3_000), until: at(3_000))
        let delay = turns.wakes(at(3_000), withSleep: 3 * second)
        XCTAssertEqual(delay, TurnDelay(awake: 3 * second))
        XCTAssertEqual(delay.excess, 2_900_000_000)
        XCTAssertFalse(delay.outlivesConnections)
    }

    func testAProcessThatWasStoppedOversleeps() {
        var turns = TurnMeter(at(0), withSleep: 0)
        turns.sleeps(at(0), until: at(15_000))
        let delay = turns.wakes(at(60_000), withSleep: 60 * second)
        XCTAssertEqual(delay, TurnDelay(awake: 45 * second))
        XCTAssertTrue(delay.outlivesConnections)
    }

    /// When it was is not known: none of the sleep counts.
    func testAProcessThatWasStoppedInItsSleep() {
        var turns = TurnMeter(at(0), withSleep: 0)
        turns.sleeps(at(1_000), until: at(15_000))
        XCTAssertEqual(
            turns.wakes(at(9_000), withSleep: 9 * second, wasStopped: true), TurnDelay(awake: 9 * second))
        turns.sleeps(at(9_000), until: nil)
        XCTAssertEqual(
            turns.wakes(at(10_000), withSleep: 10 * second, wasStopped: true), TurnDelay(awake: second))
    }

    /// The clocks of timeouts stand still meanwhile.
    func testAMachineThatSleptHasLostNothingButItsConnections() {
        var turns = TurnMeter(at(0), withSleep: 5)
        turns.sleeps(at(0), until: at(15_000))
        let delay = turns.wakes(at(1_000), withSleep: 5 + 3_601 * second)
        XCTAssertEqual(delay, TurnDelay(asleep: 3_600 * second))
        XCTAssertEqual(delay.excess, 0)
        XCTAssertTrue(delay.outlivesConnections)
        turns.sleeps(at(1_000), until: nil)
        XCTAssertFalse(turns.wakes(at(1_001), withSleep: 5 + 3_601_001_000_000).matters, "once")
    }

    func testALittleIsNothing() {
        XCTAssertFalse(TurnDelay(awake: 100_000_000).matters)
        XCTAssertTrue(TurnDelay(awake: 100_000_001).matters)
        XCTAssertFalse(TurnDelay(awake: 10 * second).outlivesConnections)
        XCTAssertTrue(TurnDelay(awake: 10 * second + 1).outlivesConnections)
    }

    // MARK: What follows

    private let idle = Failure(.idleTimeout, "the server sent nothing of the answer for 1000 ms")

    /// As the engine does: a turn of that length, then the next one.
    private func lateTurn(_ play: inout Play, _ milliseconds: Int64, arriving: (inout Play) -> Void = { _ in }) {
        let began = play.now
        play.now = began.advanced(byMilliseconds: milliseconds)
        play.downloads.deadlineReached(play.now, heardUntil: began)
        play.downloads.turnBegins(after: TurnDelay(awake: milliseconds * 1_000_000), play.now)
        arriving(&play)
        play.downloads.deadlineReached(play.now)
    }

    func testWhatLiesInTheSocketsIsHeardFirst() {
        var play = Play { $0.idleTimeout = 1_000 }
        let all = (0..<5).map { play.submit("\($0)") }
        for entry in all { play.connected(entry.transfer) }
        play.skip()
        lateTurn(&play, 3_000) { play in
            for entry in all { play.body(entry.transfer, 1) }
        }
        play.expect([])
        play.pass(999)
        play.expect([])
        play.pass(1)
        XCTAssertEqual(play.take().count { if case .end = $0 { true } else { false } }, 5, "silence is silence")
    }

    /// 600 ms of silence before and 100 ms of grace: 300 ms are left.
    func testSilenceDoesNotCountWhileNobodyListens() {
        var play = Play { $0.idleTimeout = 1_000 }
        let a = play.submit("a")
        play.connected(a.transfer)
        play.pass(600)
        play.skip()
        lateTurn(&play, 60_000)
        play.expect([.leaveConnections])
        play.pass(299)
        play.expect([])
        play.pass(1)
        play.expect([.stop(a.transfer), .end(a.subscriber, .failure(idle)), .forget(a.transfer)])
    }

    func testClocksGetOnWhereEachTurnIsLate() {
        var play = Play { $0.idleTimeout = 1_000 }
        let a = play.submit("a")
        play.connected(a.transfer)
        play.skip()
        for _ in 0..<9 { lateTurn(&play, 5_000) }
        play.expect([])
        lateTurn(&play, 5_000)
        play.expect([.stop(a.transfer), .end(a.subscriber, .failure(idle)), .forget(a.transfer)])
    }

    func testAConnectTimeoutWaitsToo() {
        var play = Play { $0.connectTimeout = 1_000 }
        let a = play.submit("a")
        play.skip()
        lateTurn(&play, 3_000)
        play.expect([])
        play.pass(899)
        play.expect([])
        play.pass(1)
        let failure = Failure(.connectTimeout, "no connection within 1000 ms")
        play.expect([.stop(a.transfer), .end(a.subscriber, .failure(failure)), .forget(a.transfer)])
    }

    /// Its own idle timeout falls into the time of which nobody has heard yet: the engine's thread never came back from that.
    func testWhoHasJoinedLaterWaitsUntilWhatCameIsHeard() {
        var play = Play { $0.idleTimeout = 1_000 }
        let a = play.submit("a")
        play.connected(a.transfer)
        play.pass(500)
        let joined = play.submit("a")
        XCTAssertEqual(joined.transfer, a.transfer)
        play.skip()
        let heardUntil = play.now.advanced(byMilliseconds: 700)
        play.now = play.now.advanced(byMilliseconds: 1_300)
        play.downloads.deadlineReached(play.now, heardUntil: heardUntil)
        play.expect([.end(a.subscriber, .failure(idle))])
        play.downloads.deadlineReached(play.now)
        play.expect([.stop(a.transfer), .end(joined.subscriber, .failure(idle)), .forget(a.transfer)])
        XCTAssertNil(play.downloads.nextDeadline)
    }

    func testATotalTimeoutWaitsForNobody() {
        var play = Play { $0.idleTimeout = 1_000 }
        let a = play.submit(
            "a",
            .with {
                $0.decode = nil
                $0.totalTimeout = 2_000
            })
        play.connected(a.transfer)
        play.skip()
        let began = play.now
        play.now = began.advanced(byMilliseconds: 3_000)
        play.downloads.deadlineReached(play.now, heardUntil: began)
        let failure = Failure(.totalTimeout, "not complete within its total timeout of 2000 ms")
        play.expect([.end(a.subscriber, .failure(failure)), .stop(a.transfer), .forget(a.transfer)])
        XCTAssertNil(play.downloads.nextDeadline)
    }

    private let total = Failure(.totalTimeout, "not complete within its total timeout of 1000 ms")
    private let inASecond = SubscriberOptions.with([.started, .response, .progress, .header]) {
        $0.totalTimeout = 1_000
    }

    /// While the process was stopped, or in a callback of its own: nobody has looked since.
    func testWhatComesAfterItsTotalTimeoutIsNotGivenOut() {
        for event in 0..<4 {
            var play = Play()
            let a = play.submit("a", inASecond)
            let other = play.submit("b")
            play.connected(a.transfer)
            play.connected(other.transfer)
            if event > 0 { play.head(a.transfer, length: 5) }
            if event > 2 { play.body(a.transfer, 5) }
            play.pass(999)
            play.skip()
            play.now = play.now.advanced(byMilliseconds: 1)
            switch event {
            case 0: play.head(a.transfer, length: 5)
            case 1: play.body(a.transfer, 5)
            case 2: play.failed(a.transfer, .lost)
            default: play.finished(a.transfer)
            }
            let isOver = event >= 2
            play.expect(
                [.end(a.subscriber, .failure(total.with(status: 200)))] + (isOver ? [] : [.stop(a.transfer)])
                    + [.forget(a.transfer)])
            XCTAssertEqual(play.downloads.disposition(a.transfer), .discard)
            play.finished(other.transfer)
            play.expect([.end(other.subscriber, .success(variant: nil)), .forget(other.transfer)])
        }
    }

    /// Its own callback took that long, or a decoder, or a hook.
    func testADecoderOrAHookThatComesTooLate() {
        var play = Play()
        let a = play.submit("a", inASecond)
        play.receive(a.transfer, 5, of: 5)
        play.finished(a.transfer)
        play.skip()
        play.now = play.now.advanced(byMilliseconds: 1_000)
        play.stepped(a.transfer, .finished, header: true)
        play.expect([.end(a.subscriber, .failure(total.with(status: 200))), .forget(a.transfer)])

        let hooks = SilentHooks(.modifyRequest)
        let b = play.submit(TransferRequest(url: testURL("https://a.example/b"), hooks: hooks), inASecond)
        play.skip()
        play.now = play.now.advanced(byMilliseconds: 1_000)
        play.answer(b.transfer, 1, .unchanged)
        play.expect([.end(b.subscriber, .failure(total)), .forget(b.transfer)], "and nothing is sent")
    }

    /// One place: whoever waits for it has it at once.
    func testItsPlaceIsAnothersAtOnce() {
        var play = Play(width: 1)
        let a = play.submit("a", inASecond)
        let next = play.submit("next")
        play.receive(a.transfer, 2)
        play.skip()
        play.now = play.now.advanced(byMilliseconds: 5_000)
        play.body(a.transfer, 3)
        play.expect([
            .end(a.subscriber, .failure(total.with(status: 200))), .stop(a.transfer), .forget(a.transfer),
            .start(next.transfer),
        ])
    }

    /// Those who share have clocks of their own.
    func testOthersOfTheSameTransferGetTheBytes() {
        var play = Play()
        let a = play.submit("a", inASecond)
        let b = play.submit("a", .with([.progress]) { $0.decode = nil })
        play.receive(a.transfer, 2)
        play.skip()
        play.now = play.now.advanced(byMilliseconds: 5_000)
        play.body(a.transfer, 3)
        play.expect([
            .end(a.subscriber, .failure(total.with(status: 200))),
            .emit(b.subscriber, .progress(received: 5, expected: -1)),
        ])
    }

    /// In the background its clock stands still, but one that is over has nothing left.
    func testWhatIsOverDoesNotWaitForTheForeground() {
        var play = Play()
        let a = play.submit("a", inASecond)
        play.connected(a.transfer)
        play.skip()
        play.now = play.now.advanced(byMilliseconds: 1_000)
        play.downloads.enterBackground(grace: nil, play.now)
        play.downloads.deadlineReached(play.now)
        play.expect([
            .setPaused(a.transfer, true), .end(a.subscriber, .failure(total)), .stop(a.transfer), .forget(a.transfer),
        ])
    }

    /// It gets nothing back of the time that it waits, so it gets this: 100 ms of grace and 600 of waiting are gone.
    func testADrainThatWaitsForItsTurnHasLeftWhatItHad() {
        var play = Play { $0.drainTimeout = 1_000 }
        let a = play.submit("a")
        play.connected(a.transfer)
        play.head(a.transfer, 404)
        play.downloads.bodyWaits(a.transfer, true, play.now)
        play.pass(600)
        play.skip()
        lateTurn(&play, 3_000)
        play.expect([])
        play.pass(299)
        play.expect([])
        play.pass(1)
        let failure = Failure(.invalidStatus, "the server answered 404 (not found)", status: 404)
        play.expect([.stop(a.transfer), .end(a.subscriber, .failure(failure)), .forget(a.transfer)])
    }

    func testWhatIsPausedGetsNothingTwice() {
        var play = Play { $0.idleTimeout = 1_000 }
        let a = play.submit("a")
        play.connected(a.transfer)
        play.pass(600)
        play.downloads.enterBackground(grace: nil, play.now)
        lateTurn(&play, 5_000)
        play.downloads.enterForeground(play.now)
        play.skip()
        play.pass(399)
        play.expect([])
        play.pass(1)
        play.expect([.stop(a.transfer), .end(a.subscriber, .failure(idle)), .forget(a.transfer)])
    }

    func testALongDelayLeavesConnectionsOnce() {
        var play = Play()
        play.downloads.turnBegins(after: TurnDelay(awake: 10 * second), play.now)
        play.expect([])
        play.downloads.turnBegins(after: TurnDelay(asleep: 3_600 * second), play.now)
        play.expect([.leaveConnections])
    }

    /// A certificate that a hotel's network had in place of the server's.
    func testAnotherNetworkIsAnotherChance() {
        var play = Play { $0.failureLifetime = 60_000 }
        let a = play.submit("a")
        play.failed(a.transfer, Failure(.tlsCertificate, "not the server's"))
        let refused = play.submit("a")
        play.skip()
        XCTAssertNil(play.downloads.request(refused.transfer))
        play.downloads.networkChanged()
        play.expect([.leaveConnections])
        let again = play.submit("a")
        play.expect([.start(again.transfer)])
    }
}
