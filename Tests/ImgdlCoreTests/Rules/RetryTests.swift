import XCTest

@testable import ImgdlCore

/// Another attempt after what may pass (features B14, I29, I30).
final class RetryTests: XCTestCase {
    private func retrying(
        _ count: Int, _ events: EventMask = [], base: Int64 = 100, maximum: Int64 = 60_000
    ) -> SubscriberOptions {
        .with(events) {
            $0.decode = nil
            $0.retry.count = count
            $0.retry.base = base
            $0.retry.maximum = maximum
        }
    }
    private let unavailable = Failure(.invalidStatus, "the server answered 503 (service unavailable)", status: 503)

    /// Until the next start; how long it took.
    private func rest(_ play: inout Play, _ id: TransferID) -> Int64 {
        let start = play.now
        while let deadline = play.downloads.nextDeadline, play.downloads.transfers[id].phase == .resting {
            play.now = deadline
            play.downloads.deadlineReached(deadline)
        }
        return play.now.milliseconds(since: start)
    }

    func testTwoErrorsThenAPicture() {
        var play = Play(width: 1)
        let a = play.submit("a", retrying(2, [.started, .response, .progress]))
        let next = play.submit("next")
        play.expect([.start(a.transfer), .emit(a.subscriber, .started)])
        for attempt in 1...2 {
            play.connected(a.transfer)
            XCTAssertEqual(play.head(a.transfer, 503), .discard)
            play.body(a.transfer, 9)
            play.expect([], "a response that is not the last is not told")
            play.finished(a.transfer)
            if attempt == 1 {
                play.expect([.restart(a.transfer), .start(next.transfer)], "a wait holds no place")
                play.failed(next.transfer, .lost)
                play.skip()
            } else {
                play.expect([.restart(a.transfer)])
            }
            XCTAssertLessThanOrEqual(rest(&play, a.transfer), Int64(100 * attempt))
            XCTAssertEqual(play.downloads.retryCount(a.transfer), attempt)
            play.expect([.start(a.transfer)], "started is told once")
        }
        play.receive(a.transfer, 3, of: 3)
        play.finished(a.transfer)
        play.expect([
            .emit(a.subscriber, .response), .emit(a.subscriber, .progress(received: 3, expected: 3)),
            .end(a.subscriber, .success(variant: nil)), .forget(a.transfer),
        ])
    }

    func testTheLastFailureIsTold() {
        var play = Play()
        let a = play.submit("a", retrying(1, .response, base: 0))
        for isLast in [false, true] {
            play.connected(a.transfer)
            play.skip()
            play.head(a.transfer, 503)
            play.finished(a.transfer)
            play.expect(
                isLast
                    ? [
                        .emit(a.subscriber, .response), .end(a.subscriber, .failure(unavailable)),
                        .forget(a.transfer),
                    ] : [.restart(a.transfer), .start(a.transfer)])
        }
    }

    func testWhatDoesNotPassIsNotTriedAgain() {
        for failure in [
            Failure(.tlsCertificate, "expired"), Failure(.proxyFailed, "no"), Failure(.outOfMemory, "none"),
        ] {
            var play = Play()
            let a = play.submit("a", retrying(5))
            play.skip()
            play.failed(a.transfer, failure)
            play.expect([.end(a.subscriber, .failure(failure)), .forget(a.transfer)])
        }
        for status: Int32 in [404, 501, 304, 401] {
            var play = Play()
            let a = play.submit("a", retrying(5))
            play.connected(a.transfer)
            play.head(a.transfer, status)
            play.finished(a.transfer)
            XCTAssertEqual(play.downloads.transferCount, 0, "\(status)")
        }
        var play = Play()
        _ = play.submit(TransferRequest(url: testURL("https://a.example/a"), method: "POST"), retrying(5))
        play.failed(play.takeStarts()[0], .lost)
        play.expectEmpty()
    }

    func testEachSubscriberHasItsOwnAttempts() {
        var play = Play()
        let a = play.submit("a", retrying(0, .response))
        let b = play.submit("a", retrying(1, .response, base: 0))
        play.connected(a.transfer)
        play.skip()
        play.head(a.transfer, 503)
        play.expect([.emit(a.subscriber, .response)])
        play.finished(a.transfer)
        play.expect([.end(a.subscriber, .failure(unavailable)), .restart(a.transfer), .start(a.transfer)])
        let c = play.submit("a", retrying(1, base: 0))
        XCTAssertEqual(c.transfer, b.transfer)
        play.failed(b.transfer, .lost)
        let lost = Failure.lost.with(status: 503)
        play.expect([.end(b.subscriber, .failure(lost)), .restart(b.transfer), .start(b.transfer)])
        play.failed(b.transfer, .lost)
        play.expect(
            [.end(c.subscriber, .failure(lost)), .forget(b.transfer)], "a joiner's attempts count from its own")
    }

    // MARK: Joining one that rests

    /// Tries again in `wait` milliseconds, as its server has asked.
    private func resting(_ play: inout Play, _ wait: Int64) -> Play.Entry {
        let a = play.submit("a", retrying(5))
        play.connected(a.transfer)
        play.head(a.transfer, 503, retryAfter: wait)
        play.finished(a.transfer)
        play.skip()
        XCTAssertEqual(play.downloads.transfers[a.transfer].phase, .resting)
        return a
    }

    func testOneWithoutRetriesDoesNotWaitForAnothers() {
        var play = Play()
        let a = resting(&play, 12_000)
        play.pass(1_000)
        let b = play.submit("a", retrying(0))
        XCTAssertNotEqual(b.transfer, a.transfer)
        play.expect([.start(b.transfer)])
        let c = play.submit("a", retrying(5))
        XCTAssertEqual(c.transfer, b.transfer, "one that goes on is joined rather than one that rests")
        play.pass(10_999)
        play.finished(b.transfer)
        play.expect([
            .end(b.subscriber, .success(variant: nil)), .end(c.subscriber, .success(variant: nil)),
            .forget(b.transfer),
        ])
        let late = play.submit("a", retrying(1))
        XCTAssertEqual(late.transfer, a.transfer, "the one that rests is still there")
        play.pass(1)
        play.expect([.start(a.transfer)], "at its own time")
    }

    func testAJoinerWaitsAsLongAsItWouldByItself() {
        func timed(_ milliseconds: Int64) -> SubscriberOptions {
            var options = retrying(1)
            options.totalTimeout = milliseconds
            return options
        }
        for (options, joins) in [
            (retrying(1, maximum: 12_000), true), (retrying(1, maximum: 11_999), false),
            (timed(12_001), true), (timed(12_000), false),
        ] {
            var play = Play()
            let a = resting(&play, 12_000)
            XCTAssertEqual(play.submit("a", options).transfer == a.transfer, joins)
        }
    }

    /// Full jitter: between 0 and its own longest wait. The one that was there waits no longer than it asked for, either.
    func testNobodyWaitsForAnothersRetry() {
        for seed: UInt64 in 0..<200 {
            var play = Play()
            play.downloads = Downloads(seed: seed)
            let a = play.submit("a", retrying(6, base: 8_000, maximum: 8_000))
            play.failed(a.transfer, .lost)
            guard case .resting = play.downloads.transfers[a.transfer].phase else { continue }
            play.skip()
            let began = play.now
            let b = play.submit("a", retrying(1, base: 20))
            XCTAssertEqual(b.transfer, a.transfer)
            _ = rest(&play, a.transfer)
            XCTAssertLessThanOrEqual(play.now.milliseconds(since: began), 20)
            play.expect([.start(a.transfer)])
            // Each has attempts of its own.
            play.failed(a.transfer, .lost)
            play.skip()
            _ = rest(&play, a.transfer)
            play.skip()
            play.failed(a.transfer, .lost)
            play.expect([.end(b.subscriber, .lost), .restart(a.transfer)])
        }
    }

    /// It is no shorter for those who are left.
    func testWhoLeavesTakesItsShortWaitAlong() {
        for isLater in [false, true] {
            var play = Play()
            play.downloads = Downloads(seed: 3)
            let a = play.submit("a", retrying(6, base: 8_000, maximum: 8_000))
            var b = isLater ? a : play.submit("a", retrying(1, base: 20))
            play.failed(a.transfer, .lost)
            play.skip()
            let alone = play.downloads.subscribers[a.subscriber].restsUntil
            XCTAssertGreaterThan(alone?.milliseconds(since: play.now) ?? 0, 100)
            if isLater { b = play.submit("a", retrying(1, base: 20)) }
            XCTAssertLessThan(play.downloads.transfers[a.transfer].restsUntil!, alone!)
            play.cancel(b)
            play.skip()
            play.pass(alone!.milliseconds(since: play.now) - 1)
            play.expect([])
            play.pass(1)
            play.expect([.start(a.transfer)])
        }
    }

    /// What the server has asked for holds for all.
    func testAJoinerDoesNotCutRetryAfterShort() {
        var play = Play()
        let a = resting(&play, 5_000)
        play.pass(1_000)
        XCTAssertEqual(play.submit("a", retrying(1, base: 0)).transfer, a.transfer)
        play.pass(3_999)
        play.expect([])
        play.pass(1)
        play.expect([.start(a.transfer)])
    }

    func testAJoinerThatWouldNotWaitAtAllStartsItAtOnce() {
        var play = Play()
        play.downloads = Downloads(seed: 3)
        let a = play.submit("a", retrying(1, base: 8_000, maximum: 8_000))
        play.failed(a.transfer, .lost)
        play.skip()
        XCTAssertEqual(play.submit("a", retrying(1, base: 0)).transfer, a.transfer)
        play.expect([.start(a.transfer)])
        play.pass(8_000)
        XCTAssertEqual(play.takeStarts(), [], "what it was reminded of before is forgotten")
    }

    func testJitterReachesBothEnds() {
        XCTAssertEqual(RetryRules.wait(50, 0), 0)
        XCTAssertEqual(RetryRules.wait(50, .max), 50)
        XCTAssertEqual(RetryRules.wait(0, .max), 0)
        XCTAssertEqual(RetryRules.wait(.max, .max), .max - 1)
        XCTAssertEqual(RetryRules.wait(-1, .max), 0)
    }

    /// Its time is its own, and begins when it joins.
    func testTheTotalTimeoutOfAJoinerRunsWhileTheTransferRests() {
        var play = Play()
        let a = resting(&play, 400)
        var options = retrying(1, .started)
        options.totalTimeout = 500
        let joiner = play.submit("a", options)
        XCTAssertEqual(joiner.transfer, a.transfer)
        play.expect([.emit(joiner.subscriber, .started)])
        play.pass(499)
        play.expect([.start(a.transfer)])
        play.pass(1)
        let failure = Failure(.totalTimeout, "not complete within its total timeout of 500 ms", status: 503)
        play.expect([.end(joiner.subscriber, .failure(failure))])
    }

    /// However many decline to wait, a request has two transfers to choose from at most.
    func testThoseThatDeclineShareOneTransfer() {
        var play = Play(width: 100)
        let a = resting(&play, 12_000)
        let own = (0..<10).map { _ in play.submit("a", retrying(0)).transfer }
        XCTAssertEqual(Set(own).count, 1)
        XCTAssertEqual(play.downloads.shared.count, 2)
        // It comes to rest as well: the first one stays the one to join.
        play.downloads.cancelAll(play.now)
        play.skip()
        let b = resting(&play, 12_000)
        let c = play.submit("a", retrying(3, maximum: 100))
        play.connected(c.transfer)
        play.head(c.transfer, 503, retryAfter: 50)
        play.finished(c.transfer)
        XCTAssertEqual(play.downloads.shared.count, 1)
        XCTAssertEqual(play.submit("a", retrying(1)).transfer, b.transfer)
        XCTAssertNotEqual(b.transfer, a.transfer)
    }

    func testRetryAfterIsObeyedUpToEachMaximum() {
        var play = Play()
        let a = play.submit("a", retrying(1, base: 1, maximum: 1_000))
        let b = play.submit("a", retrying(1, base: 1, maximum: 2_000))
        play.connected(a.transfer)
        play.head(a.transfer, 429, retryAfter: 2_000)
        play.skip()
        play.finished(a.transfer)
        let failure = Failure(.invalidStatus, "the server answered 429 (too many requests)", status: 429)
        play.expect([.end(a.subscriber, .failure(failure)), .restart(a.transfer)])
        XCTAssertEqual(rest(&play, b.transfer), 2_000)
        play.expect([.start(b.transfer)])
    }

    func testTheWaitIsAtRandomAndTheSmallestPolicyDecides() {
        var waits: Set<Int64> = []
        for seed: UInt64 in 0..<200 {
            var play = Play()
            play.downloads = Downloads(seed: seed)
            let a = play.submit("a", retrying(1, base: 10_000))
            _ = play.submit("a", retrying(1, base: 50))
            play.failed(a.transfer, .lost)
            let wait = rest(&play, a.transfer)
            XCTAssertTrue((0...50).contains(wait))
            waits.insert(wait)
        }
        XCTAssertGreaterThan(waits.count, 30, "full jitter")
        XCTAssertTrue(waits.contains { $0 < 10 } && waits.contains { $0 > 40 })
    }

    func testACancelEndsAWaitAtOnce() {
        var play = Play()
        let a = play.submit("a", retrying(1))
        play.connected(a.transfer)
        play.head(a.transfer, 503, retryAfter: 5_000)
        play.finished(a.transfer)
        play.skip()
        XCTAssertEqual(play.downloads.runningCount, 0)
        play.cancel(a)
        play.expect([
            .end(a.subscriber, .failure(Failure(.cancelled, "cancelled", status: 503))), .forget(a.transfer),
        ])
        play.pass(10_000)
        play.expectEmpty()
    }

    func testTheTotalTimeoutRunsOn() {
        var play = Play()
        var options = retrying(1)
        options.totalTimeout = 300
        let a = play.submit("a", options)
        play.pass(100)
        play.connected(a.transfer)
        play.head(a.transfer, 503, retryAfter: 5_000)
        play.finished(a.transfer)
        play.skip()
        play.pass(199)
        play.expect([])
        play.pass(1)
        guard case .end(_, .failure(let failure, _))? = play.take().first else { return XCTFail() }
        XCTAssertEqual(failure.code, .totalTimeout)
    }

    func testAWaitingTransferIsJoinedAndGoesFirst() {
        var play = Play(width: 1)
        let a = play.submit("a", retrying(1))
        let running = play.submit("b")
        _ = play.submit("c")
        play.connected(a.transfer)
        play.head(a.transfer, 503, retryAfter: 100)
        play.finished(a.transfer)
        let joiner = play.submit(
            "a",
            .with(.started) {
                $0.decode = nil; $0.totalTimeout = 1_000; $0.retry.count = 1
            })
        XCTAssertEqual(joiner.transfer, a.transfer)
        play.skip()
        play.pass(100)
        play.expect([], "there is no place")
        play.failed(running.transfer, .lost)
        play.expect(
            [
                .end(running.subscriber, .lost), .forget(running.transfer), .start(a.transfer),
            ], "before what has waited all the time")
    }

    /// Numbers never go back, what another attempt is answered is told again, and no decoder sees bytes of two attempts.
    func testAnotherAttemptsResponseAndHeaderAreTold() {
        var play = Play { $0.earlyDecodeBytes = 1 }
        let a = play.submit(
            "a",
            .with([.response, .header, .progress]) {
                $0.retry.count = 1
                $0.retry.base = 0
            })
        play.connected(a.transfer)
        play.head(a.transfer, length: 10)
        play.body(a.transfer, 6)
        play.stepped(a.transfer, .fed, header: true)
        play.skip()
        play.body(a.transfer, 2)
        play.expect([
            .emit(a.subscriber, .progress(received: 8, expected: 10)),
            .decode(a.transfer, variant: 0, .feed(showing: false)),
        ])
        play.failed(a.transfer, .lost)
        play.expect([.restart(a.transfer), .start(a.transfer)], "the step that is under way will not be reported")
        play.receive(a.transfer, 8, of: 10)
        play.expect([.emit(a.subscriber, .response), .decode(a.transfer, variant: 0, .feed(showing: false))])
        play.stepped(a.transfer, .fed, header: true)
        play.expect([.emit(a.subscriber, .header(variant: 0))])
        play.body(a.transfer, 2)
        play.finished(a.transfer)
        play.stepped(a.transfer, .fed, header: true)
        play.stepped(a.transfer, .finished, header: true)
        play.expect([
            .emit(a.subscriber, .progress(received: 10, expected: 10)),
            .decode(a.transfer, variant: 0, .feed(showing: false)), .decode(a.transfer, variant: 0, .finish),
            .end(a.subscriber, .success(variant: 0)), .forget(a.transfer),
        ])
    }

    /// Features D1, D3: a transfer that rests while another has taken its key does not take it back, and goes alone.
    func testARestingTransferDoesNotTakeTheKeyOfANewerOne() {
        var play = Play()
        let a = play.submit("a", retrying(1))
        play.connected(a.transfer)
        play.head(a.transfer, 503, retryAfter: 100)
        let newer = play.submit("a")
        XCTAssertNotEqual(newer.transfer, a.transfer)
        play.finished(a.transfer)
        XCTAssertEqual(play.submit("a").transfer, newer.transfer)
        play.cancel(a)
        XCTAssertEqual(play.submit("a").transfer, newer.transfer)
    }

    /// R02: the priority goes to the transport only while there is something of it there.
    func testWhoLeavesBeforeARetryChangesNothingAtTheTransport() {
        var play = Play()
        let a = play.submit(
            "a",
            .with {
                $0.decode = nil; $0.priority = .low; $0.retry.count = 1; $0.retry.base = 0
            })
        let b = play.submit("a", .priority(.high))
        play.connected(a.transfer)
        play.skip()
        play.failed(a.transfer, .lost)
        play.expect([.end(b.subscriber, .lost), .restart(a.transfer), .start(a.transfer)])
    }

    func testItsLastSubscriberMayLeaveWhileItRests() {
        var play = Play()
        let a = play.submit("a", retrying(1))
        let b = play.submit("a", retrying(1))
        play.failed(a.transfer, .lost)
        play.skip()
        play.cancel(a)
        play.expect([.end(a.subscriber, .cancelled)])
        XCTAssertEqual(play.downloads.restingCount, 1)
        play.cancel(b)
        play.expect([.end(b.subscriber, .cancelled), .forget(a.transfer)])
        XCTAssertEqual(play.downloads.restingCount, 0)
        XCTAssertNil(play.downloads.nextDeadline)
        play.expectEmpty()
    }
}
