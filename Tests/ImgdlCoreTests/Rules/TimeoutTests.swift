import XCTest

@testable import ImgdlCore

/// Three timeouts, each with its code (features B16, C2, I32).
final class TimeoutTests: XCTestCase {
    private func timeout(_ code: ErrorCode, _ message: String, _ status: Int32 = 0) -> Outcome {
        .failure(Failure(code, message, status: status))
    }

    func testConnect() {
        var play = Play(width: 1) { $0.connectTimeout = 500 }
        let a = play.submit("a")
        let next = play.submit("next")
        play.skip()
        play.pass(499)
        play.expect([])
        play.pass(1)
        play.expect([
            .stop(a.transfer), .end(a.subscriber, timeout(.connectTimeout, "no connection within 500 ms")),
            .forget(a.transfer), .start(next.transfer),
        ])
        play.pass(500)
        XCTAssertEqual(play.downloads.runningCount, 0, "the next one has a clock of its own")
        play.expectEmpty()
        XCTAssertNil(play.downloads.nextDeadline)
    }

    func testConnectWhileTheNameIsLookedUp() {
        var play = Play { $0.connectTimeout = 500 }
        let a = play.submit("a")
        play.skip()
        play.now = play.now.advanced(byMilliseconds: 500)
        play.downloads.deadlineReached(play.now) {
            var silence = Silence()
            if $0 == a.transfer { silence.nameLookedUp = "a.example" }
            return silence
        }
        let message = "no connection within 500 ms: “a.example” was still being looked up"
        play.expect([
            .stop(a.transfer), .end(a.subscriber, timeout(.connectTimeout, message)), .forget(a.transfer),
        ])
    }

    func testEachHopConnectsAnew() {
        var play = Play { $0.connectTimeout = 500 }
        let a = play.submit("a")
        play.pass(400)
        play.head(a.transfer, 302, location: .success(testURL("https://a.example/b")))
        play.finished(a.transfer)
        play.skip()
        play.pass(400)
        play.expect([])
        play.pass(100)
        play.expect([
            .stop(a.transfer), .end(a.subscriber, timeout(.connectTimeout, "no connection within 500 ms", 302)),
            .forget(a.transfer),
        ])
    }

    /// A large request body that goes out slowly.
    func testSendingIsNotIdle() {
        var play = Play { $0.idleTimeout = 300 }
        let a = play.submit("a")
        play.downloads.advanced(a.transfer, play.now)
        play.connected(a.transfer)
        play.skip()
        for _ in 0..<5 {
            play.pass(299)
            play.downloads.advanced(a.transfer, play.now)
        }
        play.expect([])
        play.pass(300)
        play.expect([
            .stop(a.transfer),
            .end(a.subscriber, timeout(.idleTimeout, "the server sent nothing of the answer for 300 ms")),
            .forget(a.transfer),
        ])
    }

    func testIdleBeginsAnewWithEachByte() {
        var play = Play { $0.idleTimeout = 300 }
        let a = play.submit("a")
        play.connected(a.transfer)
        play.pass(299)
        play.head(a.transfer)
        play.skip()
        for _ in 0..<10 {
            play.pass(299)
            play.body(a.transfer, 1)
        }
        play.expect([])
        play.pass(300)
        play.expect([
            .stop(a.transfer),
            .end(a.subscriber, timeout(.idleTimeout, "the server sent nothing of the answer for 300 ms", 200)),
            .forget(a.transfer),
        ])
    }

    /// It is not the server that is silent: what was left before is left after.
    func testABodyThatWaitsForItsTurnIsNotIdle() {
        var play = Play { $0.idleTimeout = 300 }
        let a = play.submit("a")
        play.connected(a.transfer)
        play.head(a.transfer)
        play.skip()
        for _ in 0..<3 {
            play.body(a.transfer, 1)
            play.pass(200)
            play.downloads.bodyWaits(a.transfer, true, play.now)
            play.pass(60_000)
            play.downloads.bodyWaits(a.transfer, false, play.now)
            play.pass(99)
        }
        play.body(a.transfer, 1)
        play.pass(200)
        play.downloads.bodyWaits(a.transfer, true, play.now)
        play.pass(1_000)
        play.downloads.enterBackground(grace: nil, play.now)
        play.pass(1_000)
        play.downloads.bodyWaits(a.transfer, false, play.now)
        play.pass(1_000)
        play.downloads.enterForeground(play.now)
        play.skip()
        play.pass(99)
        play.expect([])
        play.pass(1)
        play.expect([
            .stop(a.transfer),
            .end(a.subscriber, timeout(.idleTimeout, "the server sent nothing of the answer for 300 ms", 200)),
            .forget(a.transfer),
        ])
    }

    /// Nor does what comes of it while it waits give it more than a whole time.
    func testABodyThatWaitsHasAWholeTimeAtMost() {
        var play = Play { $0.idleTimeout = 300 }
        let a = play.submit("a")
        play.connected(a.transfer)
        play.head(a.transfer)
        play.downloads.bodyWaits(a.transfer, true, play.now)
        play.pass(500)
        play.body(a.transfer, 1)
        play.pass(500)
        play.downloads.bodyWaits(a.transfer, false, play.now)
        play.skip()
        play.pass(299)
        play.expect([])
        play.pass(1)
        play.expect([
            .stop(a.transfer),
            .end(a.subscriber, timeout(.idleTimeout, "the server sent nothing of the answer for 300 ms", 200)),
            .forget(a.transfer),
        ])
    }

    private func pass(_ milliseconds: Int64, _ silence: Silence, _ play: inout Play) {
        play.now = play.now.advanced(byMilliseconds: milliseconds)
        play.downloads.deadlineReached(play.now) { _ in silence }
    }

    /// A flood is not silence: it ends all who wait for the answer, however patient, as it does all on its connection.
    func testAServerThatSendsWhatIsForNobodyFloods() {
        for (bytes, hasUnsent) in [(196_608, false), (65_536, true)] as [(UInt64, Bool)] {
            var play = Play { $0.idleTimeout = 300 }
            let a = play.submit("a", .with { $0.retry.count = 3 })
            let patient = play.submit("a", .with { ($0.idleTimeout, $0.retry.count) = (500, 3) })
            play.connected(a.transfer)
            play.skip()
            pass(300, Silence(strayBytes: bytes, hasUnsent: hasUnsent), &play)
            let silence = "the server sent nothing of the answer for 300 ms"
            let flood = Failure(.flood, silence + ", and meanwhile \(bytes) bytes that gave nothing of an answer")
            play.expect([
                .stopFlooded(a.transfer), .end(a.subscriber, .failure(flood)),
                .end(patient.subscriber, .failure(flood)), .forget(a.transfer),
            ])
        }
    }

    func testLessThanAFloodIsSilence() {
        for (bytes, hasUnsent) in [(196_607, false), (65_535, true)] as [(UInt64, Bool)] {
            let silence = Silence(strayBytes: bytes, hasUnsent: hasUnsent)
            var play = Play { $0.idleTimeout = 300 }
            let a = play.submit("a")
            let patient = play.submit("a", .with { $0.idleTimeout = 500 })
            play.connected(a.transfer)
            play.skip()
            pass(300, silence, &play)
            play.expect([.end(a.subscriber, timeout(.idleTimeout, "the server sent nothing of the answer for 300 ms"))])
            pass(200, silence, &play)
            play.expect([
                .stop(a.transfer),
                .end(patient.subscriber, timeout(.idleTimeout, "the server sent nothing of the answer for 500 ms")),
                .forget(a.transfer),
            ])
        }
    }

    func testIdleBringsWhatCanBeSalvaged() {
        var play = Play { $0.idleTimeout = 300 }
        let a = play.submit("a", .with { $0.salvages = true })
        play.receive(a.transfer, 5)
        play.skip()
        play.pass(300)
        play.expect([.stop(a.transfer), .decode(a.transfer, variant: 0, .salvage)])
        play.stepped(a.transfer, .failed(.bad))
        let idle = Failure(.idleTimeout, "the server sent nothing of the answer for 300 ms", status: 200)
        play.expect([.end(a.subscriber, .failure(idle, salvaged: 0)), .forget(a.transfer)])
    }

    /// A server that drips never is idle.
    func testADripHitsTotalNotIdle() {
        var play = Play { $0.idleTimeout = 1_500 }
        let a = play.submit(
            "a",
            .with {
                $0.decode = nil; $0.totalTimeout = 5_000
            })
        play.connected(a.transfer)
        play.head(a.transfer)
        play.skip()
        for _ in 0..<4 {
            play.pass(1_000)
            play.body(a.transfer, 1)
        }
        play.pass(999)
        play.expect([])
        play.pass(1)
        play.expect([
            .end(a.subscriber, timeout(.totalTimeout, "not complete within its total timeout of 5000 ms", 200)),
            .stop(a.transfer), .forget(a.transfer),
        ])
    }

    func testTotalIsEachSubscribersOwn() {
        var play = Play()
        let a = play.submit(
            "a",
            .with {
                $0.decode = nil; $0.totalTimeout = 100
            })
        let b = play.submit("a")
        play.skip()
        play.pass(60)
        let c = play.submit(
            "a",
            .with {
                $0.decode = nil; $0.totalTimeout = 100
            })
        play.pass(40)
        let total = timeout(.totalTimeout, "not complete within its total timeout of 100 ms")
        play.expect([.end(a.subscriber, total)])
        play.pass(60)
        play.expect([.end(c.subscriber, total)], "a joiner's clock starts when it joins")
        play.finished(b.transfer)
        play.expect([.end(b.subscriber, .success(variant: nil)), .forget(b.transfer)])
    }

    func testTotalHoldsForTheLastDecodeToo() {
        var play = Play()
        let a = play.submit("a", .with { $0.totalTimeout = 100 })
        play.receive(a.transfer, 5)
        play.finished(a.transfer)
        play.skip()
        play.pass(100)
        play.expect([
            .end(a.subscriber, timeout(.totalTimeout, "not complete within its total timeout of 100 ms", 200)),
            .forget(a.transfer),
        ])
    }

    func testAnErrorThatIsKnownIsToldInstead() {
        var play = Play { $0.drainTimeout = 1_000 }
        let a = play.submit(
            "a",
            .with {
                $0.decode = nil; $0.totalTimeout = 100
            })
        play.connected(a.transfer)
        play.head(a.transfer, 404)
        play.skip()
        play.pass(100)
        play.expect([
            .end(a.subscriber, timeout(.invalidStatus, "the server answered 404 (not found)", 404)),
            .stop(a.transfer), .forget(a.transfer),
        ])
    }

    func testWhatIsSalvagedTooSlowlyFailsAsItsTransferDid() {
        var play = Play()
        let a = play.submit(
            "a",
            .with {
                $0.salvages = true; $0.totalTimeout = 100
            })
        play.receive(a.transfer, 5)
        play.failed(a.transfer, .lost)
        play.skip()
        play.pass(100)
        play.expect([.end(a.subscriber, .failure(Failure.lost.with(status: 200))), .forget(a.transfer)])
    }

    func testWhatHasEndedIsNotTimedOut() {
        var play = Play()
        let a = play.submit(
            "a",
            .with {
                $0.decode = nil; $0.totalTimeout = 100
            })
        play.finished(a.transfer)
        let b = play.submit("b")
        XCTAssertEqual(SlotTable<Int>.slot(a.subscriber), SlotTable<Int>.slot(b.subscriber))
        play.skip()
        play.pass(1_000)
        play.expect([])
    }

    /// Features I32: nothing times out in the queue.
    func testSixHundredQueuedOnWidthTwoNeverTimeOut() {
        var play = Play(width: 2) {
            $0.connectTimeout = 1_000
            $0.idleTimeout = 1_000
        }
        let entries = (0..<600).map {
            play.submit(
                "\($0)",
                .with {
                    $0.decode = nil; $0.totalTimeout = 1_500
                })
        }
        var running = play.takeStarts()
        var done = 0
        while !running.isEmpty {
            XCTAssertEqual(running.count, 2)
            for id in running { play.connected(id) }
            play.pass(900)
            for id in running { play.finished(id) }
            let actions = play.downloads.takeActions()
            for case .end(_, let outcome) in actions {
                XCTAssertEqual(outcome, .success(variant: nil))
                done += 1
            }
            running = actions.compactMap { if case .start(let id) = $0 { id } else { nil } }
        }
        XCTAssertEqual(done, entries.count)
        play.expectEmpty()
    }

    func testManyExpireAtTheSameMoment() {
        var play = Play(width: 50)
        for number in 0..<120 { _ = play.submit("\(number)") }
        XCTAssertEqual(play.takeStarts().count, 50)
        play.pass(15_000)
        XCTAssertEqual(play.takeStarts().count, 50)
        play.pass(15_000)
        XCTAssertEqual(play.takeStarts().count, 20)
        play.pass(15_000)
        play.expectEmpty()
    }
}
