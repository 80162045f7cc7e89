import XCTest

@testable import ImgdlCore

/// Transfers that bring next to nothing hold up their own source alone, however much memory they hold (issue 21, 3).
final class PaceTests: XCTestCase {
    private func request(_ url: String) -> TransferRequest { TransferRequest(url: testURL(url)) }

    private func play(width: Int = 8, _ change: (inout Limits) -> Void = { _ in }) -> Play {
        Play(width: width) {
            $0.memoryBudget = 1_000
            $0.slowBytes = 10
            change(&$0)
        }
    }

    private func receive(_ play: inout Play, _ url: String, _ count: Int) -> Play.Entry {
        let entry = play.submit(request(url), .quiet)
        play.receive(entry.transfer, count)
        return entry
    }

    /// Servers of their own, all of them before the first byte.
    private func begin(_ play: inout Play, _ count: Int, _ bytes: Int) -> [Play.Entry] {
        let entries = (0..<count).map { play.submit(request("https://\($0).example/"), .quiet) }
        for entry in entries { play.receive(entry.transfer, bytes) }
        play.skip()
        return entries
    }

    func testALeaderThatStandsStillHoldsUpNobody() {
        var play = play()
        let still = receive(&play, "https://still.example/1", 500)
        let other = receive(&play, "https://other.example/", 600)
        let later = play.submit(request("https://later.example/"), .quiet)
        play.skip()
        play.pass(999)
        play.expect([], "it may bring something yet")
        play.pass(1)
        play.expect([.setPaused(other.transfer, false), .start(later.transfer)])
        XCTAssertEqual(play.downloads.memoryInUse, 1_100)
        play.cancel(later)
        play.finished(other.transfer)
        play.finished(still.transfer)
        play.skip()
        play.expectEmpty()
    }

    /// The same source gets no more room until it has given some back.
    func testRequestsToASourceThatStandsStillWaitForIt() {
        var play = play()
        let still = (0..<3).map { receive(&play, "https://still.example/\($0)", 300) }
        let other = receive(&play, "https://other.example/", 200)
        let own = play.submit(request("https://still.example/own"), .quiet)
        let later = play.submit(request("https://later.example/"), .quiet)
        play.skip()
        play.pass(1_000)
        XCTAssertFalse(play.takeStarts().contains(own.transfer))
        play.pass(1_000)
        XCTAssertEqual(play.downloads.slowCount, 4, "\(still) \(other)")
        XCTAssertFalse(play.takeStarts().contains(own.transfer))
        XCTAssertEqual(play.downloads.transfers[later.transfer].phase, .connecting)
        for entry in still.dropLast() { play.finished(entry.transfer) }
        XCTAssertEqual(play.takeStarts(), [], "more than half of its share still stands still")
        play.finished(still[2].transfer)
        XCTAssertEqual(play.takeStarts(), [own.transfer])
    }

    /// A loader of the host's is one source, whatever the URLs.
    func testAllOfASchemeOfOnesOwnIsOneSource() {
        XCTAssertEqual(Source(testURL("app://a/1")), Source(testURL("app://b/2")))
        XCTAssertNotEqual(Source(testURL("app://a/1")), Source(testURL("other://a/1")))
        XCTAssertNotEqual(Source(testURL("https://a.example/")), Source(testURL("https://a.example:8443/")))
        XCTAssertNotEqual(Source(testURL("https://a.example/")), Source(testURL("https://b.example/")))
        XCTAssertEqual(Source(testURL("https://a.example/1")), Source(testURL("https://a.example/2")))
    }

    /// However many there are, and each with a server of its own: two looks are enough.
    func testManyThatStandStillAreSeenAtOnce() {
        var play = play(width: 200)
        for number in 0..<100 { _ = receive(&play, "https://\(number).example/", 10) }
        let later = play.submit(request("https://later.example/"), .quiet)
        XCTAssertFalse(play.takeStarts().contains(later.transfer))
        play.pass(2_000)
        XCTAssertEqual(play.takeStarts(), [later.transfer])
        XCTAssertFalse(play.downloads.isPressing)
    }

    /// Bytes now and then, as many as would keep an idle clock from ever running out.
    func testBytesNowAndThenAreSlow() {
        var play = play()
        let drip = receive(&play, "https://drip.example/", 1_000)
        let later = play.submit(request("https://later.example/"), .quiet)
        play.skip()
        for _ in 0..<4 {
            play.pass(250)
            play.body(drip.transfer, 2)
        }
        play.expect([.start(later.transfer)], "no pause: it may go on")
        XCTAssertEqual(play.downloads.slow.total, 1_008)
        XCTAssertEqual(play.downloads.memory.excused, 1_008)
    }

    /// It counts again, and waits as others do.
    func testOneThatGoesOnQuicklyIsPausedAgain() {
        var play = play()
        let first = receive(&play, "https://first.example/", 500)
        let second = receive(&play, "https://second.example/", 500)
        play.skip()
        play.pass(1_000)
        play.expect([.setPaused(second.transfer, false)])
        play.body(second.transfer, 400)
        play.expect([], "there is room: what the other holds does not count")
        play.body(first.transfer, 9)
        play.expect([], "still slow")
        play.body(first.transfer, 1)
        play.expect([.setPaused(second.transfer, true)])
        XCTAssertEqual(play.downloads.leader, first.transfer)
        XCTAssertEqual(play.downloads.slow.total, 0)
    }

    /// Whoever is quick leads, and the others wait again.
    func testTheFirstThatIsNotSlowLeads() {
        var play = play(width: 10)
        let entries = begin(&play, 10, 300)
        play.pass(1_000)
        XCTAssertTrue(play.downloads.isLeadOpen)
        XCTAssertEqual(play.downloads.pausedCount, 0)
        play.skip()
        play.body(entries[5].transfer, 9)
        play.expect([], "a slow one does not lead")
        play.body(entries[4].transfer, 20)
        XCTAssertEqual(play.downloads.leader, entries[4].transfer)
        XCTAssertEqual(play.downloads.pausedCount, 8, "all but that and the slow one")
        play.finished(entries[4].transfer)
        XCTAssertEqual(play.downloads.leader, entries[1].transfer, "the oldest of those that are not slow")
    }

    /// What has begun at one server may be far more than the budget, and comes when it may: two seconds for each, and no idle
    /// timeouts.
    func testOneServerHoldsUpNobodyHoweverMuchHadBegun() {
        var play = play(width: 30) {
            $0.idleTimeout = 3_600_000
            $0.connectTimeout = 3_600_000
        }
        var coming = (0..<20).map { play.submit(request("https://still.example/\($0)"), .quiet).transfer }
        for id in coming {
            play.connected(id)
            play.head(id)
        }
        play.skip()
        let other = play.submit(request("https://other.example/"), .quiet)
        for _ in 0..<60 {
            for id in coming where play.downloads.transfers[id].pauses.isEmpty {
                play.body(id, 300)
                coming.removeAll { $0 == id }
            }
            play.pass(1_000)
        }
        XCTAssertEqual(play.takeStarts(), [other.transfer])
        play.receive(other.transfer, 900)
        XCTAssertTrue(play.downloads.transfers[other.transfer].pauses.isEmpty)
        XCTAssertEqual(play.downloads.slow.total, 6_000)
        XCTAssertEqual(coming, [])
    }

    /// However many stand still, and each with a server of its own: there is an end to it.
    func testBeyondThreeTimesTheBudgetNothingGoesOn() {
        var play = play(width: 20)
        var coming: [TransferID] = []
        var count = 0
        for number in 0..<40 { _ = play.submit(request("https://\(number).example/"), .quiet) }
        for _ in 0..<10 {
            for id in play.takeStarts() {
                play.connected(id)
                play.head(id)
                coming.append(id)
            }
            for id in coming where play.downloads.transfers[id].pauses.isEmpty {
                play.body(id, 300)
                coming.removeAll { $0 == id }
                count += 1
            }
            play.pass(1_000)
        }
        XCTAssertGreaterThan(count, 4, "more than the budget holds")
        // Each time one more fills it.
        XCTAssertLessThanOrEqual(play.downloads.memoryInUse, 3_000 + 3 * 300)
    }

    /// A picture whose decoder is open and that does not go on is nothing that another one waits for.
    func testADecoderThatStandsStillHoldsUpNoOther() {
        let picture = PictureSize.known(width: 1_000, height: 1_000, held: 0)
        var play = play { $0.memoryBudget = 6_000_000 }
        let watching = SubscriberOptions.with([.header, .progress, .partial]) { _ in }
        func begin(_ url: String) -> Play.Entry {
            let entry = play.submit(request(url), watching)
            play.connected(entry.transfer)
            play.head(entry.transfer, length: 100)
            play.downloads.probed(entry.transfer, picture)
            play.body(entry.transfer, 31)
            return entry
        }
        let still = begin("https://still.example/")
        XCTAssertTrue(play.take().contains(.reserve(still.transfer, variant: 0, bytes: 4_000_000)))
        let other = begin("https://other.example/")
        play.body(other.transfer, 69)
        play.finished(other.transfer)
        let reserved = Action.reserve(other.transfer, variant: 0, bytes: 4_000_000)
        XCTAssertFalse(play.take().contains(reserved))
        play.pass(1_000)
        XCTAssertTrue(play.take().contains(reserved))
    }

    /// Each has its own idle timeout, and they run at the same time.
    func testTheirIdleClocksRunAtTheSameTime() {
        var play = play { $0.idleTimeout = 5_000 }
        _ = begin(&play, 6, 400)
        play.pass(7_000)
        XCTAssertEqual(play.downloads.memoryInUse, 0)
        play.expectEmpty()
    }

    /// Nobody has looked meanwhile.
    func testALateTurnMakesNobodySlow() {
        var play = play()
        let leader = receive(&play, "https://a.example/", 500)
        _ = receive(&play, "https://b.example/", 600)
        play.skip()
        play.now = play.now.advanced(byMilliseconds: 5_000)
        play.downloads.turnBegins(after: TurnDelay(awake: 5_000_000_000), play.now)
        play.downloads.deadlineReached(play.now)
        play.expect([])
        play.body(leader.transfer, 100)
        play.expect([])
        play.pass(1_000)
        play.expect([])
        XCTAssertEqual(play.downloads.leader, leader.transfer)
    }

    /// As the engine wakes for a look: whatever came before has not been told yet.
    func testALookWaitsUntilWhatHasComeIsHeard() {
        var play = play()
        _ = receive(&play, "https://a.example/", 500)
        let other = receive(&play, "https://b.example/", 600)
        play.skip()
        let began = play.now
        play.now = play.now.advanced(byMilliseconds: 1_000)
        play.downloads.deadlineReached(play.now, heardUntil: began)
        play.expect([])
        XCTAssertEqual(play.downloads.nextDeadline, play.now, "as soon as it is heard")
        play.downloads.deadlineReached(play.now)
        play.expect([.setPaused(other.transfer, false)])
    }

    /// What waits for a hook's answer counts for the hook, and nothing twice.
    func testWhatWaitsForAnAnswerIsNotSlow() {
        var play = play()
        let hooks = SilentHooks([.modifyResponse])
        let asked = play.submit(
            TransferRequest(url: testURL("https://hook.example/"), hooks: hooks), .quiet)
        play.connected(asked.transfer)
        play.head(asked.transfer)
        play.downloads.bodyHeld(asked.transfer, 800, play.now)
        let still = receive(&play, "https://still.example/", 1_000)
        play.pass(3_000)
        XCTAssertEqual(play.downloads.owedAnswers.total, 800)
        XCTAssertEqual(play.downloads.slow.total, 1_000)
        play.cancel(asked)
        play.cancel(still)
        XCTAssertEqual(play.downloads.memoryInUse, 0)
        XCTAssertEqual(play.downloads.memory.excused, 0)
        play.expectEmpty()
    }
}
