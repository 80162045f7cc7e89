import XCTest

@testable import ImgdlCore

/// Who goes next (features B12, B13, C1, C6, K13, I18, T05, T15).
final class SchedulingTests: XCTestCase {
    /// Runs what is started to its end, one after the other, and says in which order they started.
    private func runAll(_ play: inout Play, _ started: [TransferID]) -> [TransferID] {
        var order = started
        var next = 0
        while next < order.count {
            play.finished(order[next])
            order += play.takeStarts()
            next += 1
        }
        play.expectEmpty()
        return order
    }

    func testFIFO() {
        var play = Play(width: 1)
        let ids = (1...7).map { play.submit("\($0)").transfer }
        XCTAssertEqual(runAll(&play, play.takeStarts()), ids)
    }

    /// Several have ended together: what comes in between has its part in what starts.
    func testNothingStartsInBetween() {
        var play = Play(width: 2, order: .lifo)
        let ids = (1...4).map { play.submit("\($0)").transfer }
        XCTAssertEqual(play.takeStarts(), [ids[0], ids[1]])
        play.downloads.holdStarts()
        play.finished(ids[0])
        let late = play.submit("late").transfer
        play.finished(ids[1])
        XCTAssertEqual(play.takeStarts(), [])
        play.downloads.releaseStarts(play.now)
        XCTAssertEqual(play.takeStarts(), [late, ids[3]])
    }

    /// Features T15: 1 to 7 at once; when 7 starts, 8 to 14.
    func testLIFOScriptAtWidthOne() {
        var play = Play(width: 1, order: .lifo)
        var ids = (1...7).map { play.submit("\($0)").transfer }
        XCTAssertEqual(play.takeStarts(), [ids[0]])
        play.finished(ids[0])
        XCTAssertEqual(play.takeStarts(), [ids[6]])
        ids += (8...14).map { play.submit("\($0)").transfer }
        let order = [ids[0]] + runAll(&play, [ids[6]])
        XCTAssertEqual(order, [1, 7, 14, 13, 12, 11, 10, 9, 8, 6, 5, 4, 3, 2].map { ids[$0 - 1] })
    }

    /// Features I22: a stack does not cost the concurrency.
    func testLIFOScriptAtWidthFour() {
        var play = Play(width: 4, order: .lifo)
        var ids = (1...7).map { play.submit("\($0)").transfer }
        var running = play.takeStarts()
        XCTAssertEqual(running, Array(ids[0..<4]))
        var order = running
        play.finished(running.removeFirst())
        running += play.takeStarts()
        order.append(running.last!)
        XCTAssertEqual(order.last, ids[6])
        ids += (8...14).map { play.submit("\($0)").transfer }
        while !running.isEmpty {
            XCTAssertEqual(play.downloads.runningCount, running.count)
            if play.downloads.waitingCount > 0 { XCTAssertEqual(running.count, 4) }
            play.finished(running.removeFirst())
            let started = play.takeStarts()
            running += started
            order += started
        }
        XCTAssertEqual(order, [1, 2, 3, 4, 7, 14, 13, 12, 11, 10, 9, 8, 6, 5].map { ids[$0 - 1] })
    }

    func testAChangeOfOrderHoldsForLaterRequests() {
        var play = Play(width: 1)
        let ids = (0..<3).map { play.submit("\($0)").transfer }
        play.downloads.setOrder(.lifo)
        let later = (3..<5).map { play.submit("\($0)").transfer }
        XCTAssertEqual(runAll(&play, play.takeStarts()), [ids[0], later[1], later[0], ids[1], ids[2]])
    }

    /// Features T05: never more than the limit, also while it changes; what runs runs on.
    func testResizeWhileRunning() {
        var play = Play(width: 8)
        let ids = (0..<30).map { play.submit("\($0)").transfer }
        XCTAssertEqual(play.takeStarts(), Array(ids[0..<8]))
        play.downloads.setMaximumConcurrent(2, play.now)
        for done in 0..<6 {
            play.finished(ids[done])
            XCTAssertEqual(play.takeStarts(), [])
        }
        XCTAssertEqual(play.downloads.runningCount, 2)
        play.finished(ids[6])
        XCTAssertEqual(play.takeStarts(), [ids[8]])
        play.downloads.setMaximumConcurrent(16, play.now)
        XCTAssertEqual(play.takeStarts(), Array(ids[9..<23]))
        XCTAssertEqual(play.downloads.runningCount, 16)
    }

    func testSuspendStartsNothingAndStopsNothing() {
        var play = Play(width: 2)
        let a = play.submit("a")
        play.downloads.setSuspended(true, play.now)
        let b = play.submit("b")
        XCTAssertEqual(play.takeStarts(), [a.transfer])
        play.finished(a.transfer)
        play.expect([.end(a.subscriber, .success(variant: nil)), .forget(a.transfer)])
        play.downloads.setMaximumConcurrent(9, play.now)
        play.expect([])
        play.downloads.setSuspended(false, play.now)
        play.expect([.start(b.transfer)])
    }

    func testARedirectIsFollowedWhileSuspended() {
        var play = Play()
        let a = play.submit("a")
        play.downloads.setSuspended(true, play.now)
        play.connected(a.transfer)
        play.head(a.transfer, 302, location: .success(testURL("https://a.example/b")))
        play.skip()
        play.finished(a.transfer)
        let redirect = Redirect(
            url: testURL("https://a.example/b"), method: "GET", sendsBody: false, leavesOrigin: false)
        play.expect([.follow(a.transfer, redirect)])
    }

    func testADecodeHoldsNoSlot() {
        var play = Play(width: 1)
        let a = play.submit("a", .image)
        let b = play.submit("b")
        play.receive(a.transfer, 4)
        play.skip()
        play.finished(a.transfer)
        play.expect([.decode(a.transfer, variant: 0, .finish), .start(b.transfer)])
        XCTAssertEqual(play.downloads.runningCount, 1)
        XCTAssertEqual(play.downloads.transferCount, 2)
    }

    func testHigherPrioritiesGoFirst() {
        var play = Play(width: 1)
        let first = play.submit("first")
        let low = play.submit("low", .priority(.low))
        let normal = play.submit("normal")
        let high = play.submit("high", .priority(.high))
        XCTAssertEqual(
            runAll(&play, play.takeStarts()), [first, high, normal, low].map(\.transfer))
    }

    /// Features K13, B12: a transfer has the highest priority of those who want it now.
    func testAJoinerRaisesAndItsLeavingLowersThePriority() {
        var play = Play(width: 1)
        let first = play.submit("first").transfer
        let low = SubscriberOptions.priority(.low)
        let ids = (0..<5).map { play.submit("\($0)", low).transfer }
        let high = play.submit("4", .priority(.high))
        XCTAssertEqual(high.transfer, ids[4])
        XCTAssertEqual(play.downloads.priority(ids[4]), .high)
        play.cancel(high)
        XCTAssertEqual(play.downloads.priority(ids[4]), .low)
        _ = play.submit("3", .priority(.normal))
        let order = runAll(&play, play.takeStarts())
        XCTAssertEqual(order, [first, ids[3], ids[0], ids[1], ids[2], ids[4]])
    }

    func testAJoinerOfLowerPriorityLowersNothing() {
        var play = Play(width: 1)
        let first = play.submit("first").transfer
        let a = play.submit("a", .priority(.high))
        let b = play.submit("b", .priority(.high))
        _ = play.submit("a", .priority(.low))
        XCTAssertEqual(runAll(&play, play.takeStarts()), [first, a.transfer, b.transfer])
    }

    func testPriorityChangesWhileWaiting() {
        var play = Play(width: 1)
        let first = play.submit("first").transfer
        let a = play.submit("a")
        let b = play.submit("b")
        let c = play.submit("c")
        play.downloads.setPriority(c.subscriber, .high)
        play.downloads.setPriority(a.subscriber, .low)
        play.downloads.setPriority(b.subscriber, .normal)
        XCTAssertEqual(runAll(&play, play.takeStarts()), [first, c.transfer, b.transfer, a.transfer])
    }

    func testPriorityChangesWhileRunningMoveNothing() {
        var play = Play(width: 1)
        let a = play.submit("a")
        let b = play.submit("b")
        play.downloads.setPriority(a.subscriber, .low)
        XCTAssertEqual(play.downloads.priority(a.transfer), .low)
        XCTAssertEqual(play.downloads.waitingCount, 1)
        XCTAssertEqual(runAll(&play, play.takeStarts()), [a.transfer, b.transfer])
    }

    /// Features B12: each change costs no more than a heap does.
    func testManyPriorityChanges() {
        var play = Play(width: 1)
        let entries = (0..<1_000).map { play.submit("\($0)") }
        for change in 0..<100_000 {
            play.downloads.setPriority(entries[change * 7 % 1_000].subscriber, Priority.allCases[change % 3])
        }
        XCTAssertEqual(play.downloads.waitingCount, 999)
    }
}
