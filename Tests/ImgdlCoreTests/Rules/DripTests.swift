import XCTest

@testable import ImgdlCore

/// Transfers that bring next to nothing, beyond what may be slow, end after their idle timeout (issue 19).
final class DripTests: XCTestCase {
    private func request(_ url: String) -> TransferRequest { TransferRequest(url: testURL(url)) }

    private func play(_ change: (inout Limits) -> Void) -> Play {
        Play(width: 8) {
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

    /// Two servers that each send what fills the budget, and then a byte now and then: the second may not be slow any more.
    private func beginDrips(_ play: inout Play) -> (drips: [TransferID], later: Play.Entry) {
        let drips = (0..<2).map { play.submit(request("https://\($0).example/"), .quiet).transfer }
        for id in drips {
            play.connected(id)
            play.head(id)
        }
        let first = play.submit(request("https://later.example/0"), .quiet)
        play.skip()
        play.body(drips[0], 2_000)
        for _ in 0..<3 { drip(&play, drips) }
        play.cancel(first)
        play.body(drips[1], 2_000)
        let later = play.submit(request("https://later.example/1"), .quiet)
        play.skip()
        return (drips, later)
    }

    private func drip(_ play: inout Play, _ drips: [TransferID]) {
        play.pass(1_000)
        for id in drips where play.downloads.transfers.contains(id) && play.downloads.transfers[id].pauses.isEmpty {
            play.body(id, 1)
        }
    }

    /// Seen: two servers held up all others for as long as they liked.
    func testADripThatHoldsUpAllOthersEndsAfterItsIdleTimeout() {
        var play = play { $0.idleTimeout = 5_000 }
        let (drips, later) = beginDrips(&play)
        for _ in 0..<4 { drip(&play, drips) }
        XCTAssertEqual(play.downloads.transfers[later.transfer].phase, .waiting)
        XCTAssertEqual(play.downloads.transfers.count, 3, "its idle timeout is not over")
        // A byte of ten pays for a tenth of a second.
        for _ in 0..<3 { drip(&play, drips) }
        let actions = play.take()
        XCTAssertTrue(actions.contains(.start(later.transfer)), "\(actions)")
        XCTAssertEqual(actions.filter { $0 == .stop(drips[1]) }.count, 1, "\(actions)")
        XCTAssertTrue(play.downloads.transfers.contains(drips[0]), "what it holds counts for its own server alone")
    }

    /// Each ten bytes pay for a second here.
    func testWhatItBringsPaysForTime() {
        var play = play { $0.idleTimeout = 5_000 }
        let (drips, _) = beginDrips(&play)
        for _ in 0..<4 { drip(&play, drips) }
        play.pass(500)
        play.body(drips[1], 30)
        for _ in 0..<3 { drip(&play, drips) }
        XCTAssertTrue(play.downloads.transfers.contains(drips[1]))
        for _ in 0..<3 { drip(&play, drips) }
        XCTAssertFalse(play.downloads.transfers.contains(drips[1]))
    }

    /// As much as one look asks for, once in an idle timeout.
    func testBurstsNowAndThenAreADrip() {
        var play = play { $0.idleTimeout = 5_000 }
        let (drips, later) = beginDrips(&play)
        for _ in 0..<3 {
            for _ in 0..<4 { play.pass(1_000) }
            if play.downloads.transfers.contains(drips[1]) { play.body(drips[1], 10) }
            if play.downloads.transfers.contains(drips[0]) { play.body(drips[0], 1) }
        }
        XCTAssertFalse(play.downloads.transfers.contains(drips[1]))
        XCTAssertEqual(play.downloads.transfers[later.transfer].phase, .connecting)
    }

    /// It holds little itself, and all others are paused for it.
    func testALeaderThatDripsEndsHoweverLittleItHolds() {
        var play = play { $0.idleTimeout = 5_000 }
        let entries = (0..<4).map { play.submit(request("https://\($0).example/"), .quiet) }
        let (leader, quick, still) = (entries[0].transfer, entries[1].transfer, entries[2...].map(\.transfer))
        for id in entries.map(\.transfer) {
            play.connected(id)
            play.head(id)
        }
        for id in still { play.body(id, 600) }
        for _ in 0..<2 { play.pass(1_000) }
        for _ in 0..<2 {
            for id in [leader, quick] { play.body(id, 10) }
            play.pass(1_000)
        }
        XCTAssertEqual(play.downloads.slow.total, 1_200)
        play.body(quick, 1_000)
        XCTAssertEqual(play.downloads.leader, leader)
        XCTAssertEqual(play.downloads.transfers[quick].pauses, .memory)
        play.skip()
        for _ in 0..<6 {
            play.pass(1_000)
            for id in still + [leader] where play.downloads.transfers.contains(id) { play.body(id, 1) }
        }
        XCTAssertFalse(play.downloads.transfers.contains(leader))
        XCTAssertEqual(play.downloads.leader, quick)
        XCTAssertTrue(play.downloads.transfers[quick].pauses.isEmpty)
    }

    /// A host that was stopped, or a callback that took long, has kept nobody.
    func testTimeInWhichNobodyLookedIsNoDrips() {
        var play = play { $0.idleTimeout = 5_000 }
        let (drips, _) = beginDrips(&play)
        for _ in 0..<3 { drip(&play, drips) }
        play.now = play.now.advanced(byMilliseconds: 60_000)
        play.downloads.turnBegins(after: TurnDelay(awake: 60_000_000_000), play.now)
        play.downloads.deadlineReached(play.now)
        drip(&play, drips)
        XCTAssertTrue(play.downloads.transfers.contains(drips[1]))
        for _ in 0..<3 { drip(&play, drips) }
        XCTAssertFalse(play.downloads.transfers.contains(drips[1]))
    }

    /// Nobody has looked for 0.9 s, again and again: it is looked all the same.
    func testLooksAreNotPutOffForEver() {
        var play = play { $0.idleTimeout = 5_000 }
        let (drips, _) = beginDrips(&play)
        for _ in 0..<20 where play.downloads.transfers.contains(drips[1]) {
            play.now = play.now.advanced(byMilliseconds: 900)
            play.downloads.turnBegins(after: TurnDelay(awake: 150_000_000), play.now)
            play.downloads.deadlineReached(play.now)
            for id in drips where play.downloads.transfers.contains(id) { play.body(id, 1) }
        }
        XCTAssertFalse(play.downloads.transfers.contains(drips[1]))
    }

    /// One is slow and the other is not, in turns: it is no less behind while it is slow.
    func testTwoThatTakeTurnsHoldUpNobodyForEver() {
        var play = play { $0.idleTimeout = 5_000 }
        let (drips, later) = beginDrips(&play)
        for round in 0..<20 {
            for _ in 0..<3 { drip(&play, drips) }
            let id = drips[round % 2]
            guard play.downloads.transfers.contains(id) else { break }
            play.body(id, 10)
            play.pass(1_000)
            if play.downloads.transfers.contains(id) { play.body(id, 10) }
        }
        XCTAssertEqual(play.downloads.transfers[later.transfer].phase, .connecting)
    }

    /// A canvas that nothing fills counts as well.
    func testADripWhoseCanvasOthersWaitForEnds() {
        let picture = PictureSize.known(width: 1_000, height: 1_000, held: 0)
        var play = play {
            $0.memoryBudget = 6_000_000
            $0.idleTimeout = 5_000
        }
        let watching = SubscriberOptions.with([.header, .partial]) { _ in }
        let first = receive(&play, "https://a.example/", 7_000_000)
        play.pass(1_000)
        let two = ["b", "c"].map { play.submit(request("https://\($0).example/"), watching) }
        for entry in two {
            play.connected(entry.transfer)
            play.head(entry.transfer, length: 100)
            play.downloads.probed(entry.transfer, picture)
            play.body(entry.transfer, 31)
        }
        play.body(two[1].transfer, 69)
        play.finished(two[1].transfer)
        for _ in 0..<10 { drip(&play, [first.transfer, two[0].transfer]) }
        XCTAssertTrue(play.take().contains(.stop(two[0].transfer)), "its canvas is given back")
    }

    func testADripForWhomNobodyWaitsGoesOn() {
        var play = play { $0.idleTimeout = 5_000 }
        let (drips, later) = beginDrips(&play)
        play.cancel(later)
        for _ in 0..<10 { drip(&play, drips) }
        XCTAssertTrue(play.downloads.transfers.contains(drips[1]))
    }

    /// HTTP/2, whose streams are not paused.
    private func beginStream(_ play: inout Play, _ url: String, _ count: Int) -> TransferID {
        let id = play.submit(request(url), .quiet).transfer
        play.connected(id)
        let head = ResponseHead(status: 200, httpVersion: 20, fields: [], contentLength: nil, isEncoded: false)
        _ = play.downloads.headReceived(id, head, location: nil, play.now)
        play.body(id, count)
        return id
    }

    /// The few bytes that it holds would help nobody.
    func testASmallDripIsNotEndedForALargeOne() {
        var play = play { $0.idleTimeout = 5_000 }
        let still = receive(&play, "https://a.example/", 2_000).transfer
        play.pass(1_000)
        let small = beginStream(&play, "https://b.example/", 5)
        let quick = beginStream(&play, "https://c.example/", 1_100)
        _ = play.submit(request("https://later.example/"), .quiet)
        for _ in 0..<10 {
            drip(&play, [still, small])
            play.body(quick, 10)
        }
        XCTAssertTrue(play.downloads.transfers.contains(small))
    }

    func testTheLargestEndsFirstAndOneAtEachLook() {
        // With the second of 900 there is no room for others yet, with 700 there is.
        for (bytes, ends) in [(900, [false, false, true]), (700, [false, false])] {
            var play = play { $0.idleTimeout = 5_000 }
            let still = receive(&play, "https://a.example/", 2_000).transfer
            play.pass(1_000)
            let smaller = beginStream(&play, "https://b.example/", bytes)
            let larger = beginStream(&play, "https://c.example/", 1_200)
            let later = play.submit(request("https://later.example/"), .quiet)
            play.skip()
            var gone: [(larger: Bool, smaller: Bool)] = []
            for _ in 0..<9 {
                drip(&play, [still, smaller, larger])
                let hasEnded = { (play: borrowing Play, id: TransferID) in !play.downloads.transfers.contains(id) }
                let now = (larger: hasEnded(play, larger), smaller: hasEnded(play, smaller))
                if gone.last.map({ $0 != now }) ?? true { gone.append(now) }
            }
            XCTAssertEqual(gone.map(\.larger), Array([false, true, true].prefix(ends.count)), "\(bytes)")
            XCTAssertEqual(gone.map(\.smaller), ends, "\(bytes)")
            XCTAssertTrue(play.takeStarts().contains(later.transfer), "\(bytes)")
        }
    }

    /// Its own time has only begun.
    func testOneThatHasJustJoinedADripWaits() {
        var play = play { $0.idleTimeout = 5_000 }
        let (drips, _) = beginDrips(&play)
        for _ in 0..<4 { drip(&play, drips) }
        _ = play.submit(request("https://1.example/"), .quiet)
        for _ in 0..<3 { drip(&play, drips) }
        XCTAssertTrue(play.downloads.transfers.contains(drips[1]))
        for _ in 0..<3 { drip(&play, drips) }
        XCTAssertFalse(play.downloads.transfers.contains(drips[1]))
    }
}
