import XCTest

@testable import ImgdlCore

/// Every request that goes to a server has a place at that server's host, whoever chose it (features B13, R02), and none
/// goes out in the background that does not go on there (features O4).
final class HopPlaceTests: XCTestCase {
    private func url(_ host: String, _ path: String = "x") -> ParsedURL { testURL("https://\(host).example/\(path)") }

    private func request(_ host: String, _ path: String, _ kinds: HookKinds = []) -> TransferRequest {
        TransferRequest(url: url(host, path), hooks: kinds.isEmpty ? nil : SilentHooks(kinds))
    }

    private func redirect(_ host: String) -> Redirect {
        Redirect(url: url(host), method: "GET", sendsBody: false, leavesOrigin: host != "a")
    }

    private func outgoing(_ host: String) -> Answer {
        .request(OutgoingRequest(url: url(host), method: "GET", fields: [], body: nil))
    }

    /// Its hop ends in a redirect to the host.
    private func leave(_ play: inout Play, _ id: TransferID, for host: String) {
        play.connected(id)
        play.head(id, 302, location: .success(url(host)))
        play.finished(id)
    }

    private func end(_ play: inout Play, _ entry: Play.Entry) {
        play.finished(entry.transfer)
        XCTAssertNil(play.downloads.request(entry.transfer))
    }

    func testARedirectWaitsForAPlaceAtItsHost() {
        var play = Play { $0.maximumPerHost = 1 }
        let busy = play.submit(request("b", "busy"))
        let later = play.submit(request("b", "later"))
        let a = play.submit(request("a", "a"))
        let next = play.submit(request("a", "next"))
        play.skip()
        leave(&play, a.transfer, for: "b")
        play.expect([.start(next.transfer)], "the place that it left is another's")
        XCTAssertEqual(play.downloads.runningCount, 2)
        play.finished(busy.transfer)
        play.expect(
            [
                .end(busy.subscriber, .success(variant: nil)), .forget(busy.transfer),
                .follow(a.transfer, redirect("b")),
            ], "what is under way goes before what has not begun")
        end(&play, a)
        XCTAssertEqual(play.takeStarts(), [later.transfer])
    }

    func testARedirectToAHostWithAPlaceGoesAtOnce() {
        var play = Play { $0.maximumPerHost = 1 }
        let a = play.submit(request("a", "a"))
        let next = play.submit(request("a", "next"))
        let b = play.submit(request("c", "c"))
        play.skip()
        leave(&play, a.transfer, for: "b")
        play.expect([.follow(a.transfer, redirect("b")), .start(next.transfer)])
        // Both places are counted where they are now.
        leave(&play, b.transfer, for: "b")
        play.expect([])
        end(&play, a)
        play.skip()
        XCTAssertEqual(play.downloads.runningCount, 2)
        end(&play, next)
        end(&play, b)
        play.expectEmpty()
    }

    func testARedirectOfManyNeverExceedsTheLimit() {
        var play = Play(width: 20) { $0.maximumPerHost = 1 }
        let entries = (0..<7).map { play.submit(request("h\($0)", "x")) }
        play.skip()
        for entry in entries { leave(&play, entry.transfer, for: "b") }
        for round in 0..<7 {
            let followed = play.take().compactMap { action -> TransferID? in
                if case .follow(let id, _) = action { id } else { nil }
            }
            XCTAssertEqual(followed.count, 1, "round \(round)")
            XCTAssertEqual(play.downloads.runningCount, 1)
            for id in followed { play.finished(id) }
        }
        play.expectEmpty()
    }

    func testAHooksURLWaitsForAPlaceAtItsHost() {
        var play = Play { $0.maximumPerHost = 1 }
        let busy = play.submit(request("b", "busy"))
        let a = play.submit(request("a", "a", .modifyRequest))
        play.skip()
        play.answer(a.transfer, 1, outgoing("b"))
        play.expect([])
        end(&play, busy)
        play.skip()
        XCTAssertEqual(play.downloads.runningCount, 1)
        let second = play.submit(request("b", "second"))
        play.expect([], "it has the only place")
        end(&play, a)
        XCTAssertEqual(play.takeStarts(), [second.transfer])
    }

    func testARetryIsAskedForAtItsOwnHost() {
        var play = Play { $0.maximumPerHost = 1 }
        let a = play.submit(
            request("a", "a", .modifyRequest),
            .with {
                $0.decode = nil
                $0.retry.count = 1
                $0.retry.base = 0
            })
        play.answer(a.transfer, 1, outgoing("b"))
        let busy = play.submit(request("a", "busy"))
        play.skip()
        play.failed(a.transfer, .lost)
        play.expect([.restart(a.transfer)], "its own host is busy, and the other is not asked for")
        end(&play, busy)
        play.skip()
        let other = play.submit(request("b", "other"))
        play.expect([.start(other.transfer)])
        play.answer(a.transfer, 2, outgoing("b"))
        play.expect([])
        end(&play, other)
        play.skip()
        end(&play, a)
    }

    func testWhatACachedRedirectLeadsToWaitsAtItsHost() {
        var play = Play { $0.maximumPerHost = 1 }
        play.downloads.hasStore = true
        let busy = play.submit(request("b", "busy"))
        let a = play.submit(TransferRequest(url: url("a"), cacheMode: .use))
        play.downloads.consulted(a.transfer, 1, .play, play.now)
        var head = ResponseHead(status: 301, httpVersion: 11, fields: [], contentLength: 0, isEncoded: false)
        head.outcome = .hit
        _ = play.downloads.headReceived(a.transfer, head, location: .success(url("b")), play.now)
        play.finished(a.transfer)
        play.skip()
        play.downloads.consulted(a.transfer, 2, .forward(fallbackUntil: nil), play.now)
        play.expect([])
        end(&play, busy)
        play.skip()
        XCTAssertEqual(play.downloads.runningCount, 1)
        let second = play.submit(request("b", "second"))
        play.expect([])
        end(&play, a)
        XCTAssertEqual(play.takeStarts(), [second.transfer])
    }

    func testAHopThatWaitsCanBeCancelledAndJoined() {
        var play = Play { $0.maximumPerHost = 1 }
        let busy = play.submit(request("b", "busy"))
        let a = play.submit(request("a", "a"), .with([.started]) { $0.decode = nil })
        leave(&play, a.transfer, for: "b")
        play.skip()
        let joiner = play.submit(request("a", "a"), .with([.started]) { $0.decode = nil })
        XCTAssertEqual(joiner.transfer, a.transfer)
        play.expect([.emit(joiner.subscriber, .started)], "it joined what is under way")
        play.cancel(a)
        play.cancel(joiner)
        let cancelled = Outcome.failure(Failure(.cancelled, "cancelled", status: 302))
        play.expect([
            .end(a.subscriber, cancelled), .end(joiner.subscriber, cancelled), .forget(a.transfer),
        ])
        end(&play, busy)
        play.expectEmpty()
    }

    func testATotalTimeoutRunsOnWhileAHopWaits() {
        var play = Play { $0.maximumPerHost = 1 }
        _ = play.submit(request("b", "busy"))
        let a = play.submit(
            request("a", "a"),
            .with {
                $0.decode = nil
                $0.totalTimeout = 500
            })
        play.pass(100)
        leave(&play, a.transfer, for: "b")
        play.skip()
        play.pass(399)
        play.expect([])
        play.pass(1)
        let failure = Failure(.totalTimeout, "not complete within its total timeout of 500 ms", status: 302)
        play.expect([.end(a.subscriber, .failure(failure)), .forget(a.transfer)])
    }

    func testPlacesAreRecountedByTheHostsOfTheHops() {
        var play = Play()
        let a = play.submit(request("a", "a"))
        leave(&play, a.transfer, for: "b")
        play.skip()
        play.downloads.setMaximumPerHost(1, play.now)
        let b = play.submit(request("b", "b"))
        play.expect([], "the only place at b is that of the redirect")
        let own = play.submit(request("a", "own"))
        play.expect([.start(own.transfer)])
        end(&play, a)
        XCTAssertEqual(play.takeStarts(), [b.transfer])
    }

    // MARK: The background

    func testALateAnswerOfAHookSendsNothingInTheBackground() {
        var play = Play()
        let a = play.submit(request("a", "a", .modifyRequest))
        play.skip()
        play.downloads.enterBackground(grace: nil, play.now)
        play.answer(a.transfer, 1, outgoing("b"))
        play.expect([])
        play.downloads.enterForeground(play.now)
        XCTAssertEqual(play.takeStarts(), [a.transfer])
        end(&play, a)
        play.expectEmpty()
    }

    func testAHooksRedirectSendsNothingInTheBackground() {
        var play = Play()
        let a = play.submit(request("a", "a", .redirect))
        play.connected(a.transfer)
        play.head(a.transfer, 302, location: .success(url("b")))
        play.finished(a.transfer)
        play.downloads.enterBackground(grace: nil, play.now)
        play.skip()
        play.answer(a.transfer, 1, .unchanged)
        play.expect([])
        play.downloads.enterForeground(play.now)
        play.expect([.follow(a.transfer, redirect("b"))])
    }

    func testACredentialSendsNothingInTheBackground() {
        var play = Play()
        let a = play.submit(request("a", "a", .authenticate))
        play.connected(a.transfer)
        play.head(a.transfer, 401)
        play.finished(a.transfer)
        play.downloads.enterBackground(grace: nil, play.now)
        play.skip()
        let credential = Credential(user: "u", password: "p")
        play.answer(a.transfer, 1, .credential(credential))
        play.expect([])
        play.downloads.enterForeground(play.now)
        play.expect([.authenticate(a.transfer, credential)])
    }

    func testWhatTheCacheForwardsIsNotSentInTheBackground() {
        var play = Play()
        play.downloads.hasStore = true
        let a = play.submit(TransferRequest(url: url("a"), cacheMode: .use))
        play.downloads.consulted(a.transfer, 1, .forward(fallbackUntil: nil), play.now)
        play.connected(a.transfer)
        play.downloads.asksAgain(a.transfer, play.now)
        play.downloads.enterBackground(grace: nil, play.now)
        play.skip()
        play.finished(a.transfer)
        play.expect([])
        play.downloads.enterForeground(play.now)
        play.expect([.send(a.transfer)])
    }

    /// Its time stands still as that of what is paused, a joiner's too.
    func testClocksOfAHopThatWaitsForTheForegroundStandStill() {
        var play = Play()
        let timed = SubscriberOptions.with {
            $0.decode = nil
            $0.totalTimeout = 500
        }
        let a = play.submit(request("a", "a"), timed)
        play.pass(100)
        play.connected(a.transfer)
        play.downloads.enterBackground(grace: nil, play.now)
        play.head(a.transfer, 302, location: .success(url("b")))
        play.finished(a.transfer)
        play.pass(60_000)
        let joiner = play.submit(request("a", "a"), timed)
        XCTAssertEqual(joiner.transfer, a.transfer)
        play.pass(60_000)
        play.downloads.enterForeground(play.now)
        play.skip()
        play.pass(399)
        play.expect([])
        play.pass(1)
        let failure = Failure(.totalTimeout, "not complete within its total timeout of 500 ms", status: 302)
        play.expect([.end(a.subscriber, .failure(failure))])
        play.pass(99)
        play.expect([])
        play.pass(1)
        XCTAssertEqual(play.take().first, .end(joiner.subscriber, .failure(failure)))
    }

    func testOneThatGoesOnInTheBackgroundFollows() {
        var play = Play()
        let a = play.submit(
            request("a", "a"),
            .with {
                $0.decode = nil
                $0.continuesInBackground = true
            })
        play.skip()
        play.downloads.enterBackground(grace: nil, play.now)
        leave(&play, a.transfer, for: "b")
        play.expect([.follow(a.transfer, redirect("b"))])
    }
}
