import XCTest

@testable import ImgdlCore

/// Features O4: in the background only what asked for it runs.
final class BackgroundTests: XCTestCase {
    private let flagged = SubscriberOptions.with {
        $0.decode = nil
        $0.continuesInBackground = true
    }
    private let expired = Outcome.failure(
        Failure(.backgroundExpired, "the time that it may go on in the background is over"))

    func testOnlyFlaggedOnesStartAndRun() {
        var play = Play(width: 2)
        let plain = play.submit("plain")
        let going = play.submit("going", flagged)
        let waiting = play.submit("waiting")
        let next = play.submit("next", flagged)
        play.skip()
        play.downloads.enterBackground(grace: nil, play.now)
        // The paused one's place is free for one that may run.
        play.expect([.setPaused(plain.transfer, true), .start(next.transfer)])
        play.finished(going.transfer)
        play.expect([.end(going.subscriber, .success(variant: nil)), .forget(going.transfer)])
        play.downloads.enterForeground(play.now)
        play.expect([.setPaused(plain.transfer, false)])
        play.finished(next.transfer)
        XCTAssertEqual(play.takeStarts(), [waiting.transfer])
    }

    /// Each has a deadline of its own, and the latest alone means something.
    func testManyGracesTakeNoMoreRoomThanFew() {
        var play = Play(width: 2)
        let going = play.submit("going", flagged)
        for stay in 0..<10_000 {
            play.downloads.enterBackground(grace: 100_000, play.now)
            if stay % 3 == 0 { play.downloads.enterForeground(play.now) }
        }
        XCTAssertLessThan(play.downloads.deadlines.count, 200)
        play.skip()
        play.downloads.enterBackground(grace: 100, play.now)
        play.pass(100)
        play.expect([.end(going.subscriber, expired), .stop(going.transfer), .forget(going.transfer)])
    }

    func testThePausedWaitForAPlaceInTheForeground() {
        var play = Play(width: 1)
        let plain = play.submit("plain")
        let going = play.submit("going", flagged)
        let late = play.submit("late", .priority(.high))
        play.downloads.enterBackground(grace: nil, play.now)
        play.skip()
        play.downloads.enterForeground(play.now)
        play.expect([])
        play.finished(going.transfer)
        // What ran before goes before what has not begun.
        play.expect([
            .end(going.subscriber, .success(variant: nil)), .forget(going.transfer),
            .setPaused(plain.transfer, false),
        ])
        play.finished(plain.transfer)
        XCTAssertEqual(play.takeStarts(), [late.transfer])
    }

    func testJoiningAndLeavingCountAtOnce() {
        var play = Play(width: 1)
        let plain = play.submit("a")
        play.downloads.enterBackground(grace: nil, play.now)
        play.skip()
        let joiner = play.submit("a", flagged)
        play.expect([.setPaused(plain.transfer, false)])
        play.cancel(joiner)
        play.expect([.end(joiner.subscriber, .cancelled), .setPaused(plain.transfer, true)])
        let waiting = play.submit("b")
        play.expect([])
        let other = play.submit("b", flagged)
        play.expect([.start(waiting.transfer)])
        play.cancel(other)
        play.expect([.end(other.subscriber, .cancelled), .setPaused(waiting.transfer, true)])
    }

    func testWhenTheGraceEndsOnlyTheFlaggedEnd() {
        var play = Play()
        let plain = play.submit("a")
        let joiner = play.submit("a", flagged)
        let alone = play.submit("b", flagged)
        play.downloads.enterBackground(grace: 500, play.now)
        play.skip()
        play.pass(499)
        play.expect([])
        play.pass(1)
        play.expect([
            .end(joiner.subscriber, expired), .setPaused(plain.transfer, true), .end(alone.subscriber, expired),
            .stop(alone.transfer), .forget(alone.transfer),
        ])
        let late = play.submit("c", flagged)
        play.expect([])
        play.downloads.enterForeground(play.now)
        play.expect([.setPaused(plain.transfer, false), .start(late.transfer)])
    }

    /// Whoever asks then knows that the time is over: it waits as all others do, and its clocks with it.
    func testWhatIsAskedForAfterTheGraceWaitsForTheForegroundOrANewGrace() {
        var continuing = SubscriberOptions.with {
            $0.decode = nil
            $0.continuesInBackground = true
        }
        for isForeground in [false, true] {
            var play = Play()
            let paused = play.submit("paused")
            play.connected(paused.transfer)
            play.downloads.enterBackground(grace: 500, play.now)
            play.pass(500)
            play.skip()
            continuing.totalTimeout = 1_000
            let late = play.submit("late", continuing)
            let joined = play.submit("paused", continuing)
            XCTAssertEqual(joined.transfer, paused.transfer)
            play.pass(3_600_000)
            play.expect([], "nothing starts, goes on or ends")
            if isForeground {
                play.downloads.enterForeground(play.now)
            } else {
                play.downloads.enterBackground(grace: 500, play.now)
            }
            play.expect([.setPaused(paused.transfer, false), .start(late.transfer)])
        }
    }

    func testANewGraceTakesThePlaceOfTheOld() {
        var play = Play()
        let going = play.submit("a", flagged)
        play.downloads.enterBackground(grace: 100, play.now)
        play.pass(90)
        play.downloads.enterBackground(grace: 100, play.now)
        play.skip()
        play.pass(99)
        play.expect([])
        play.pass(1)
        play.expect([.end(going.subscriber, expired), .stop(going.transfer), .forget(going.transfer)])
    }

    func testAGraceThatTheForegroundOvertookEndsNothing() {
        var play = Play()
        _ = play.submit("a", flagged)
        play.downloads.enterBackground(grace: 100, play.now)
        play.downloads.enterForeground(play.now)
        play.skip()
        play.pass(1_000)
        play.expect([])
    }

    /// The clocks of what is paused stand still: what was left before is left after.
    func testClocksStandStill() {
        var play = Play { $0.idleTimeout = 1_000 }
        let plain = play.submit(
            "a",
            .with {
                $0.decode = nil
                $0.totalTimeout = 1_500
            })
        play.connected(plain.transfer)
        play.pass(700)
        play.downloads.enterBackground(grace: nil, play.now)
        play.pass(60_000)
        play.downloads.enterForeground(play.now)
        play.skip()
        play.pass(299)
        play.expect([])
        play.body(plain.transfer, 1)
        play.pass(500)
        play.expect([])
        play.pass(1)
        let failure = Failure(.totalTimeout, "not complete within its total timeout of 1500 ms")
        play.expect([.end(plain.subscriber, .failure(failure)), .stop(plain.transfer), .forget(plain.transfer)])
    }

    /// The transport has kept it from being sent: it has all the time there is for a connection, and then for the answer.
    func testWhatBeginsAnewHasItsConnectTimeoutAnew() {
        var play = Play {
            $0.connectTimeout = 1_000
            $0.idleTimeout = 500
        }
        for isConnected in [false, true] {
            let plain = play.submit("a\(isConnected)")
            if isConnected { play.connected(plain.transfer) }
            play.pass(400)
            play.downloads.enterBackground(grace: nil, play.now)
            play.pass(60_000)
            play.downloads.enterForeground(play.now)
            play.downloads.beginsAnew(plain.transfer, play.now)
            play.skip()
            play.pass(999)
            play.expect([])
            play.connected(plain.transfer)
            play.pass(499)
            play.expect([])
            play.head(plain.transfer)
            play.finished(plain.transfer)
            play.skip()
        }
        let late = play.submit("late")
        play.downloads.beginsAnew(late.transfer, play.now)
        play.skip()
        play.pass(1_000)
        XCTAssertTrue(play.take().contains(.forget(late.transfer)), "and no more")
    }

    func testAnIdleClockGoesOnWithWhatWasLeft() {
        var play = Play { $0.idleTimeout = 1_000 }
        let plain = play.submit("a")
        play.connected(plain.transfer)
        play.pass(700)
        play.downloads.enterBackground(grace: nil, play.now)
        play.pass(60_000)
        play.downloads.enterForeground(play.now)
        play.skip()
        play.pass(299)
        play.expect([])
        play.pass(1)
        let failure = Failure(.idleTimeout, "the server sent nothing of the answer for 1000 ms")
        play.expect([.stop(plain.transfer), .end(plain.subscriber, .failure(failure)), .forget(plain.transfer)])
    }

    func testAJoinerOfAPausedTransferHasItsWholeTime() {
        var play = Play()
        let plain = play.submit("a")
        play.downloads.enterBackground(grace: nil, play.now)
        play.pass(100)
        let joiner = play.submit(
            "a",
            .with {
                $0.decode = nil
                $0.totalTimeout = 50
            })
        XCTAssertEqual(joiner.transfer, plain.transfer)
        play.pass(1_000)
        play.downloads.enterForeground(play.now)
        play.skip()
        play.pass(49)
        play.expect([])
        play.pass(1)
        let failure = Failure(.totalTimeout, "not complete within its total timeout of 50 ms")
        play.expect([.end(joiner.subscriber, .failure(failure))])
    }

    func testWhatEndsWhilePausedEnds() {
        var play = Play()
        let plain = play.submit("a")
        play.downloads.enterBackground(grace: nil, play.now)
        play.skip()
        play.failed(plain.transfer, .lost)
        play.expect([.end(plain.subscriber, .lost), .forget(plain.transfer)])
        play.downloads.enterForeground(play.now)
        play.expect([])
        play.expectEmpty()
        XCTAssertNil(play.downloads.nextDeadline)
    }

    /// Starts are held while the transport is read: what is counted then is what there is (features N2).
    func testWhatEndsWhilePausedIsNotCountedAnyMore() {
        var play = Play(width: 2)
        let ids = ["a", "b"].map { play.submit($0).transfer }
        play.downloads.enterBackground(grace: nil, play.now)
        play.downloads.holdStarts()
        play.failed(ids[0], .lost)
        XCTAssertEqual(play.downloads.decodingCount, 0)
        XCTAssertEqual(play.downloads.pausedCount, 1)
        play.failed(ids[1], .lost)
        XCTAssertEqual(play.downloads.decodingCount, 0)
        play.downloads.releaseStarts(play.now)
        XCTAssertEqual(play.downloads.decodingCount, 0)
    }

    func testARedirectOfAPausedTransferWaitsForTheForeground() {
        var play = Play()
        let plain = play.submit("a")
        play.connected(plain.transfer)
        play.downloads.enterBackground(grace: nil, play.now)
        play.head(plain.transfer, 302, location: .success(testURL("https://a.example/b")))
        play.skip()
        play.finished(plain.transfer)
        let redirect = Redirect(
            url: testURL("https://a.example/b"), method: "GET", sendsBody: false, leavesOrigin: false)
        play.expect([])
        play.downloads.enterForeground(play.now)
        play.expect([.follow(plain.transfer, redirect)])
    }

    private let retrying = SubscriberOptions.with {
        $0.decode = nil
        $0.totalTimeout = 500
        $0.retry.count = 1
    }

    /// It would run if it could: its total timeout stands still as that of a paused one.
    func testTheClocksOfWhatIsToBeTriedAgainStandStill() {
        var play = Play()
        let a = play.submit("a", retrying)
        play.pass(100)
        play.downloads.enterBackground(grace: nil, play.now)
        play.failed(a.transfer, .lost)
        play.skip()
        play.pass(100_000)
        play.expect([])
        let joiner = play.submit("a", flagged)
        play.expect([.start(a.transfer)])
        play.pass(300)
        play.cancel(joiner)
        play.expect([.end(joiner.subscriber, .cancelled), .setPaused(a.transfer, true)])
        play.failed(a.transfer, Failure(.tlsCertificate, "expired"))
        guard case .end(a.subscriber, _)? = play.take().first else { return XCTFail() }
        play.expectEmpty()
    }

    func testARestRunsOutItsClockInTheForeground() {
        var play = Play(width: 1)
        let a = play.submit("a", retrying)
        play.downloads.enterBackground(grace: nil, play.now)
        play.failed(a.transfer, .lost)
        play.pass(100_000)
        play.downloads.setSuspended(true, play.now)
        play.downloads.enterForeground(play.now)
        play.skip()
        play.pass(499)
        play.expect([])
        play.pass(1)
        guard case .end(a.subscriber, .failure(let failure, _))? = play.take().first else { return XCTFail() }
        XCTAssertEqual(failure.code, .totalTimeout)
    }

    /// One moment ends the transfer and the grace: it is not sent anew to be stopped at once.
    func testNothingStartsBetweenWhatIsDueAtOnce() {
        var play = Play { $0.connectTimeout = 100 }
        let a = play.submit(
            "a",
            .with {
                $0.decode = nil
                $0.continuesInBackground = true
                $0.retry.count = 1
                $0.retry.base = 0
            })
        play.downloads.enterBackground(grace: 100, play.now)
        play.skip()
        play.pass(100)
        play.expect([.stop(a.transfer), .restart(a.transfer), .end(a.subscriber, expired), .forget(a.transfer)])
    }

    /// Its own timeout is of time that ran.
    func testOneThatJoinedBeforeThePauseHasItsTimeLeft() {
        var play = Play()
        let a = play.submit("a")
        play.receive(a.transfer, 1)
        play.pass(95)
        let joiner = play.submit(
            "a",
            .with {
                $0.decode = nil; $0.idleTimeout = 100
            })
        play.pass(1)
        play.downloads.enterBackground(grace: nil, play.now)
        play.pass(1_000)
        play.downloads.enterForeground(play.now)
        play.skip()
        play.pass(98)
        play.expect([])
        play.pass(1)
        guard case .end(joiner.subscriber, .failure(let failure, _))? = play.take().first else { return XCTFail() }
        XCTAssertEqual(failure.code, .idleTimeout)
    }

    /// The place is given up and taken again while the hook is asked.
    func testAQuestionAndThePlaceGoTheirOwnWays() {
        var play = Play(width: 1)
        let url = testURL("https://a.example/a")
        let a = play.submit(TransferRequest(url: url, hooks: SilentHooks([.modifyRequest, .modifyResponse])))
        play.skip()
        play.downloads.enterBackground(grace: nil, play.now)
        XCTAssertEqual(play.downloads.runningCount, 0)
        play.expect([], "nothing is at the transport")
        play.downloads.enterForeground(play.now)
        play.expect([])
        XCTAssertEqual(play.downloads.runningCount, 1)
        play.answer(a.transfer, 1, .unchanged)
        play.expect([.start(a.transfer)])
        play.connected(a.transfer)
        play.head(a.transfer)
        play.skip()
        play.downloads.enterBackground(grace: nil, play.now)
        XCTAssertEqual(play.downloads.runningCount, 0)
        play.expect([], "paused for its question already")
        play.downloads.enterForeground(play.now)
        play.expect([], "still paused for its question")
        XCTAssertEqual(play.downloads.runningCount, 1)
        play.answer(a.transfer, 2, .unchanged)
        play.expect([.setPaused(a.transfer, false)])
    }
}
