import XCTest

@testable import ImgdlCore

/// Transfers that nobody waits for: they end in time, and give way to what somebody waits for.
final class UnattendedTests: XCTestCase {
    private func request(_ path: String, host: String = "a") -> TransferRequest {
        TransferRequest(url: testURL("https://\(host).example/\(path)"))
    }

    /// Under way, with bytes of its body.
    private func revalidate(_ play: inout Play, _ path: String) throws -> TransferID {
        let id = try XCTUnwrap(play.downloads.revalidate(request(path), SubscriberOptions(), play.now))
        play.receive(id, 1)
        return id
    }

    func testAServerThatDripsHasItsTime() throws {
        var play = Play()
        let id = try revalidate(&play, "1")
        play.skip()
        for _ in 1..<30 {
            play.pass(1_000)
            play.body(id, 1)
        }
        play.expect([])
        play.pass(1_000)
        XCTAssertEqual(play.take().prefix(2).last, .stop(id))
        play.expectEmpty()
    }

    /// What who has had the stale answer would not take is not stored, and it has no more of a body, and no more time.
    func testItHasTheLimitsOfTheRequestThatWasAnswered() throws {
        var asked = SubscriberOptions()
        asked.maximumBodyBytes = 100
        asked.idleTimeout = 500
        asked.totalTimeout = 2_000
        asked.validation.contentTypes = ["image/*"]
        func begin(_ play: inout Play) throws -> TransferID {
            let id = try XCTUnwrap(play.downloads.revalidate(request("1"), asked, play.now))
            play.connected(id)
            return id
        }
        func head(_ play: inout Play, _ id: TransferID, _ status: Int32, _ type: String, length: Int64?) {
            _ = play.downloads.headReceived(
                id,
                ResponseHead(
                    status: status, httpVersion: 11, fields: [HeaderField("Content-Type", type)],
                    contentLength: length, isEncoded: false), location: nil, play.now)
        }
        for (status, type) in [(404, "image/png"), (500, "image/png"), (200, "text/html")] as [(Int32, String)] {
            var play = Play()
            let id = try begin(&play)
            head(&play, id, status, type, length: 10)
            XCTAssertEqual(play.downloads.disposition(id), .discard, "\(status) \(type)")
            play.finished(id)
            play.expectEmpty()
        }
        var announced = Play()
        head(&announced, try begin(&announced), 200, "image/png", length: 101)
        announced.expectEmpty()
        var unknown = Play()
        let large = try begin(&unknown)
        head(&unknown, large, 200, "image/png", length: nil)
        unknown.body(large, 100)
        XCTAssertTrue(unknown.downloads.contains(large))
        unknown.body(large, 1)
        unknown.expectEmpty()
        var silent = Play()
        let idle = try begin(&silent)
        silent.pass(499)
        XCTAssertTrue(silent.downloads.contains(idle))
        silent.pass(1)
        silent.expectEmpty()
        var slow = Play()
        let late = try begin(&slow)
        head(&slow, late, 200, "image/png", length: nil)
        for _ in 1...4 {
            slow.body(late, 1)
            XCTAssertTrue(slow.downloads.contains(late))
            slow.pass(499)
        }
        slow.body(late, 1)
        slow.pass(4)
        slow.expectEmpty()
    }

    func testItGivesWayToWhoComes() throws {
        var play = Play(width: 2)
        let first = try revalidate(&play, "1")
        let second = try revalidate(&play, "2")
        play.skip()
        let a = play.submit(request("3", host: "b"))
        XCTAssertEqual(play.take().suffix(3), [.stop(second), .forget(second), .start(a.transfer)])
        let b = play.submit(request("4", host: "b"))
        XCTAssertEqual(play.take().suffix(3), [.stop(first), .forget(first), .start(b.transfer)])
        _ = play.submit(request("5", host: "b"))
        play.expect([], "what somebody waits for does not give way")
    }

    func testItStaysWhereThereIsRoom() throws {
        var play = Play(width: 2)
        _ = try revalidate(&play, "1")
        play.skip()
        let a = play.submit(request("2"))
        play.expect([.start(a.transfer)])
        XCTAssertEqual(play.downloads.runningCount, 2)
    }

    func testItGivesWayAtItsHostAlone() throws {
        var play = Play { $0.maximumPerHost = 1 }
        let id = try revalidate(&play, "1")
        play.skip()
        let other = play.submit(request("2", host: "b"))
        play.expect([.start(other.transfer)])
        let same = play.submit(request("3"))
        XCTAssertEqual(play.take().suffix(3), [.stop(id), .forget(id), .start(same.transfer)])
    }

    func testWhoeverJoinsKeepsIt() throws {
        var play = Play(width: 1)
        let id = try revalidate(&play, "1")
        let a = play.submit("1")
        XCTAssertEqual(a.transfer, id)
        play.skip()
        let b = play.submit("2")
        play.expect([])
        for _ in 1...4 {
            play.pass(10_000)
            play.body(id, 1)
        }
        XCTAssertTrue(play.downloads.contains(id))
        play.cancel(a)
        XCTAssertEqual(play.take().last, .start(b.transfer))
        XCTAssertFalse(play.downloads.contains(id))
    }

    /// Each request that waits is before it, whatever its priority, and it does not begin only to give way.
    func testItWaitsForAllOthers() throws {
        var play = Play(width: 1)
        let running = play.submit("1")
        play.receive(running.transfer, 1)
        let id = try XCTUnwrap(play.downloads.revalidate(request("2"), SubscriberOptions(), play.now))
        let low = play.submit("3", .priority(.low))
        play.skip()
        play.pass(20_000)
        play.finished(running.transfer)
        let actions = play.take()
        XCTAssertEqual(actions.last, .start(low.transfer))
        XCTAssertFalse(actions.contains(.start(id)))
        XCTAssertFalse(play.downloads.contains(id))
    }

    func testWhatNobodyWaitsForDoesNotGiveWayToItsLike() throws {
        var play = Play(width: 1)
        let first = try revalidate(&play, "1")
        let second = try XCTUnwrap(play.downloads.revalidate(request("2"), SubscriberOptions(), play.now))
        XCTAssertEqual(play.takeStarts(), [first])
        play.finished(first)
        XCTAssertEqual(play.takeStarts(), [second])
    }

    /// Whoever joins one that waits needs its place as whoever comes with a request of his own.
    func testOneThatIsJoinedInTheQueueTakesThePlaceOfAnother() throws {
        var play = Play(width: 1)
        let first = try revalidate(&play, "1")
        let second = try XCTUnwrap(play.downloads.revalidate(request("2"), SubscriberOptions(), play.now))
        play.skip()
        XCTAssertEqual(play.submit("2").transfer, second)
        XCTAssertEqual(play.take().suffix(3), [.stop(first), .forget(first), .start(second)])
    }

    /// Where memory was full, what was paused for it goes on with what one that gives way gives back.
    func testWhatWasPausedForMemoryGoesOnWhenOneGivesWay() throws {
        var play = Play { $0.memoryBudget = 300 }
        let a = play.submit("1")
        play.receive(a.transfer, 50)
        let b = play.submit("2")
        play.receive(b.transfer, 50)
        let id = try revalidate(&play, "3")
        play.skip()
        play.body(id, 250)
        XCTAssertEqual(Set(play.take().map { "\($0)" }), Set([b.transfer, id].map { "\(Action.setPaused($0, true))" }))
        let c = play.submit("4")
        let actions = play.take()
        XCTAssertTrue(actions.contains(.forget(id)))
        XCTAssertTrue(actions.contains(.setPaused(b.transfer, false)), "\(actions)")
        XCTAssertEqual(actions.last, .start(c.transfer))
        XCTAssertFalse(play.downloads.isHeldBack)
    }

    func testOneThatIsPausedGoesOnInItsPlace() throws {
        var play = Play(width: 1)
        let a = play.submit("1")
        play.receive(a.transfer, 1)
        play.downloads.enterBackground(grace: nil, play.now)
        let other = play.submit(
            "2",
            .with {
                $0.decode = nil; $0.continuesInBackground = true
            })
        play.receive(other.transfer, 1)
        play.downloads.setMaximumConcurrent(2, play.now)
        play.skip()
        play.downloads.enterForeground(play.now)
        play.expect([.setPaused(a.transfer, false)])
        play.finished(other.transfer)
        play.downloads.setMaximumConcurrent(1, play.now)
        play.downloads.enterBackground(grace: nil, play.now)
        play.skip()
        let id = try XCTUnwrap(play.downloads.revalidate(request("3"), SubscriberOptions(), play.now))
        play.downloads.enterForeground(play.now)
        XCTAssertEqual(play.take(), [.setPaused(a.transfer, false)])
        XCTAssertTrue(play.downloads.contains(id), "it waits")
    }

    // MARK: What is nearly done

    /// Cancelled when 600 of 1,000,600 bytes are missing; the first byte took a second.
    private func finishing(_ play: inout Play) -> TransferID {
        play.downloads.finishesNearlyDone = true
        let a = play.submit("1")
        play.connected(a.transfer)
        play.pass(1_000)
        play.head(a.transfer, length: 1_000_600)
        play.downloads.stores(a.transfer)
        play.pass(10)
        play.body(a.transfer, 1_000_000)
        play.skip()
        play.cancel(a)
        return a.transfer
    }

    func testWhatIsNearlyDoneIsDoneSoonOrNotAtAll() {
        var play = Play()
        let id = finishing(&play)
        XCTAssertTrue(play.downloads.contains(id))
        for _ in 1...4 {
            XCTAssertTrue(play.downloads.contains(id))
            play.pass(1_000)
            play.body(id, 1)
        }
        XCTAssertFalse(play.downloads.contains(id))
        play.expectEmpty()
    }

    func testWhatIsNearlyDoneGivesWay() {
        var play = Play(width: 1)
        let id = finishing(&play)
        play.skip()
        let b = play.submit("2")
        XCTAssertEqual(play.take().suffix(3), [.stop(id), .forget(id), .start(b.transfer)])
    }

    func testHowLongTheRestMayTake() {
        let ms: Int64 = 1_000_000
        XCTAssertEqual(
            [0, 1, 250 * ms, 251 * ms, 2_000 * ms].map { ResumeRules.finishTimeout(firstByteNanoseconds: $0) },
            [1_000, 1_000, 1_000, 1_004, 8_000])
    }
}
