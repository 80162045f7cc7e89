import XCTest

@testable import ImgdlCore

/// Features B12, B13, K13, I18, R02: the acceptance texts, as rules.
final class AgingTests: XCTestCase {
    /// B12: width 1, 1000 queued low: a high join to the last one starts next; when that subscriber leaves it falls back.
    func testAHighJoinToTheLastOfAThousand() {
        for leaves in [false, true] {
            var play = Play(width: 1)
            let first = play.submit("first")
            let low = (0..<1_000).map { play.submit("\($0)", .priority(.low)) }
            let high = play.submit("999", .priority(.high))
            XCTAssertEqual(high.transfer, low[999].transfer)
            if leaves { play.cancel(high) }
            play.skip()
            play.finished(first.transfer)
            XCTAssertEqual(play.takeStarts(), [low[leaves ? 0 : 999].transfer])
            guard leaves else { continue }
            for index in 0..<999 {
                play.finished(low[index].transfer)
                XCTAssertEqual(play.takeStarts(), [low[index + 1].transfer])
            }
        }
    }

    /// Features B12: while urgent work comes without end, nobody that waits is passed by more starts than four for each
    /// that has waited longer.
    func testNobodyStarves() {
        for order in [ExecutionOrder.fifo, .lifo] {
            var play = Play(width: 2, order: order) { $0.agingInterval = 100 }
            let blockers = (0..<2).map { play.submit("blocker\($0)").transfer }
            let low = (0..<20).map { play.submit("low\($0)", .priority(.low)).transfer }
            play.skip()
            var running = blockers
            var (starts, urgent) = (0, 0)
            var lowStarts: [TransferID] = []
            play.pass(100)
            while lowStarts.count < low.count {
                for _ in 0..<2 {
                    urgent += 1
                    _ = play.submit("urgent\(urgent)", .priority(.high))
                }
                play.finished(running.removeFirst())
                for id in play.takeStarts() {
                    starts += 1
                    running.append(id)
                    if low.contains(id) { lowStarts.append(id) }
                }
                guard starts <= 4 * (low.count + 1) else { return XCTFail("\(lowStarts.count) of 20 after \(starts)") }
            }
            XCTAssertEqual(lowStarts, low, "the one that has waited longest first")
            XCTAssertLessThanOrEqual(lowStarts.count * 4, starts + 4, "three of four starts stay for the urgent")
        }
    }

    /// Features B12: two places become free at the same moment, one by a total timeout that is over, the other by an end that
    /// the transport or a hook tells. The oldest waits for the second of them, and no other gets its turn in between.
    func testTheOldestIsNotPassedForAPlaceThatComesAtTheSameMoment() {
        let ends: [(inout Play, TransferID) -> Void] = [
            { play, id in play.finished(id) },
            { play, id in play.failed(id, .lost) },
            { play, id in play.answer(id, 1, .refused(.bad)) },
            { play, id in play.stepped(id, .failed(.bad)) },
        ]
        for (number, end) in ends.enumerated() {
            var play = Play(width: 2) {
                $0.maximumPerHost = 1
                $0.agingInterval = 100
            }
            func submit(_ host: String, _ options: SubscriberOptions, hooks: (any Hooks)? = nil) -> TransferID {
                let url = testURL("https://\(host).example/\(play.downloads.transferCount)")
                return play.submit(TransferRequest(url: url, hooks: hooks), options).transfer
            }
            let hooks = number == 2 ? SilentHooks(.modifyResponse) : nil
            play.finished(submit("first", .quiet))
            let overdue = submit("overdue", .with { ($0.decode, $0.totalTimeout) = (nil, 300) })
            let own = submit("own", number == 3 ? .with(.partial) : .quiet, hooks: hooks)
            play.receive(own, 10)
            // Its end waits for what the hook says.
            if hooks != nil { play.finished(own) }
            let oldest = submit("own", .priority(.low))
            play.pass(1)
            let other = submit("other", .priority(.low))
            let urgent = submit("urgent", .priority(.high))
            play.pass(298)
            play.skip()
            // What has come is told before anybody looks at the time.
            play.now = play.now.advanced(byMilliseconds: 1)
            end(&play, own)
            XCTAssertFalse(play.downloads.contains(overdue), "end \(number)")
            XCTAssertEqual(play.takeStarts(), [oldest, urgent], "end \(number)")
            XCTAssertTrue(play.downloads.contains(other), "end \(number)")
        }
    }

    /// B13: a limit for each host with three hosts, whatever their number in the queue.
    func testThreeHostsEachWithItsLimit() {
        var play = Play(width: 5) { $0.maximumPerHost = 2 }
        func submit(_ host: String, _ path: Int) -> TransferID {
            play.submit(TransferRequest(url: testURL("https://\(host).example/\(path)"))).transfer
        }
        let a = (0..<6).map { submit("a", $0) }
        let b = (0..<3).map { submit("b", $0) }
        let c = (0..<3).map { submit("c", $0) }
        XCTAssertEqual(play.takeStarts(), [a[0], a[1], b[0], b[1], c[0]])
        play.finished(c[0])
        XCTAssertEqual(play.takeStarts(), [c[1]])
        play.finished(a[1])
        XCTAssertEqual(play.takeStarts(), [a[2]])
        play.downloads.setMaximumPerHost(3, play.now)
        XCTAssertEqual(play.takeStarts(), [], "the total holds")
        play.finished(b[0])
        XCTAssertEqual(play.takeStarts(), [a[3]])
        play.downloads.setMaximumPerHost(1, play.now)
        for id in [a[0], a[2]] {
            play.finished(id)
            XCTAssertEqual(play.takeStarts(), id == a[0] ? [] : [], "more run at a, b and c than may start now")
        }
        play.finished(b[1])
        XCTAssertEqual(play.takeStarts(), [b[2]])
        play.downloads.setMaximumPerHost(0, play.now)
        XCTAssertEqual(play.takeStarts(), [a[4], a[5]])
    }

    /// B13: 8 → 2 → 16 while running, and the counts are exact when queued work is cancelled (I10, M9, M10).
    func testResizeSuspendAndCancelKeepTheCounts() {
        var play = Play(width: 8)
        let entries = (0..<40).map { play.submit("\($0)") }
        play.downloads.setMaximumConcurrent(2, play.now)
        play.downloads.setSuspended(true, play.now)
        for entry in entries[30...] { play.cancel(entry) }
        XCTAssertEqual(play.downloads.subscriberCount, 30)
        XCTAssertEqual(play.downloads.waitingCount, 22)
        for entry in entries[..<8] { play.finished(entry.transfer) }
        XCTAssertEqual(play.downloads.runningCount, 0)
        play.skip()
        play.downloads.setMaximumConcurrent(16, play.now)
        XCTAssertEqual(play.takeStarts(), [])
        play.downloads.setSuspended(false, play.now)
        XCTAssertEqual(play.takeStarts(), entries[8..<24].map(\.transfer))
        XCTAssertEqual(play.downloads.waitingCount, 6)
        play.downloads.cancelAll(play.now)
        play.expectEmpty()
    }

    /// R02: the transport hears of a change of priority of what runs, once for each change of the highest.
    func testAPriorityReachesWhatRuns() {
        var play = Play()
        let low = play.submit("a", .priority(.low))
        play.skip()
        let high = play.submit("a", .priority(.high))
        play.expect([.setPriority(low.transfer, .high)])
        play.downloads.setPriority(low.subscriber, .normal)
        play.expect([])
        play.cancel(high)
        play.expect([.end(high.subscriber, .cancelled), .setPriority(low.transfer, .normal)])
        play.downloads.setPriority(low.subscriber, .low)
        play.expect([.setPriority(low.transfer, .low)])
    }

    /// Features B12: 100 000 changes among 10 000 that wait, at 1 000 hosts.
    func testManyPriorityChangesAmongManyHosts() {
        var play = Play(width: 1) { $0.maximumPerHost = 2 }
        let entries = (0..<10_000).map { number in
            play.submit(TransferRequest(url: testURL("https://h\(number % 1_000).example/\(number)")))
        }
        for change in 0..<100_000 {
            play.downloads.setPriority(entries[change * 7 % 10_000].subscriber, Priority.allCases[change % 3])
        }
        XCTAssertEqual(play.downloads.waitingCount, 9_999)
    }
}
