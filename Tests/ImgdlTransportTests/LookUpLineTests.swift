import ImgdlCore
import XCTest

@testable import ImgdlTransport

/// Whose turn it is to be looked up: time is a number here.
final class LookUpLineTests: XCTestCase {
    private var line = LookUpLine(.init(prompt: 2, total: 4, patience: 250, turn: 2_000))
    private var lastID: UInt64 = 0

    private func at(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }

    @discardableResult
    private func join(_ host: String) -> LookUpID {
        lastID += 1
        line.join(host, LookUpID(rawValue: lastID))
        return LookUpID(rawValue: lastID)
    }

    func testANameIsLookedUpOnceHoweverManyWait() {
        let ids = (0..<50).map { _ in join("a") }
        XCTAssertEqual(line.next(at: at(0)), [.begin("a")])
        let later = join("a")
        XCTAssertEqual(line.next(at: at(0)), [])
        XCTAssertEqual(line.end("a"), ids + [later])
        XCTAssertEqual(line.count, 0)
        XCTAssertEqual(line.end("a"), [])
    }

    func testNamesTakeTurnsWhoeverHasMoreTransfers() {
        for _ in 0..<1_000 { join("many") }
        join("b")
        join("single")
        XCTAssertEqual(line.next(at: at(0)), [.begin("many"), .begin("b")])
        _ = line.end("many")
        for _ in 0..<1_000 { join("many") }
        XCTAssertEqual(line.next(at: at(1)), [.begin("single")])
    }

    func testOneWithoutAnAnswerHoldsUpNobody() {
        for host in ["dead-1", "dead-2", "live"] { join(host) }
        XCTAssertEqual(line.next(at: at(0)), [.begin("dead-1"), .begin("dead-2")])
        XCTAssertEqual(line.deadline, at(250))
        XCTAssertEqual(line.next(at: at(249)), [])
        XCTAssertEqual(line.next(at: at(250)), [.begin("live")])
        XCTAssertNil(line.deadline, "nobody waits for a turn")
    }

    func testTheLongestGivesWayWhereAllPlacesAreTaken() {
        for number in 1...4 {
            join("dead-\(number)")
            XCTAssertEqual(line.next(at: at(Int64(number) * 300)), [.begin("dead-\(number)")])
        }
        let live = join("live")
        XCTAssertEqual(line.next(at: at(2_000)), [])
        XCTAssertEqual(line.deadline, at(2_300))
        XCTAssertEqual(line.next(at: at(2_300)), [.stop("dead-1"), .begin("live")])
        XCTAssertEqual(line.runningCount, 4)
        XCTAssertEqual(line.end("live"), [live])
        XCTAssertEqual(line.next(at: at(2_300)), [.begin("dead-1")], "behind those that waited, and not forgotten")
    }

    func testWhatCannotBeStoppedKeepsItsPlace() {
        line = LookUpLine(.init(prompt: 2, total: 2))
        let dead = join("dead-1")
        join("dead-2")
        XCTAssertEqual(line.next(at: at(0)).count, 2)
        join("live")
        XCTAssertNil(line.deadline)
        XCTAssertEqual(line.next(at: at(100_000)), [])
        XCTAssertNil(line.leave(dead))
        XCTAssertEqual(line.next(at: at(100_000)), [], "it is looked up, though nobody waits")
        XCTAssertEqual(line.end("dead-1"), [])
        XCTAssertEqual(line.next(at: at(100_000)), [.begin("live")])
    }

    func testAbandonedNamesLeaveTheLine() {
        let running = join("a")
        join("b")
        _ = line.next(at: at(0))
        let waiting = [join("c"), join("c")]
        join("d")
        XCTAssertNil(line.leave(waiting[0]))
        XCTAssertNil(line.leave(waiting[1]), "it was not looked up")
        XCTAssertEqual(line.count, 3)
        XCTAssertEqual(line.leave(running), "a")
        XCTAssertEqual(line.next(at: at(0)), [.begin("d")])
        XCTAssertNil(line.leave(running), "once")
        join("a")
        XCTAssertEqual(line.next(at: at(250)), [.begin("a")])
    }

    func testOneThatLeavesAndComesBackWaitsAtTheEnd() {
        join("a")
        join("b")
        _ = line.next(at: at(0))
        let first = join("c")
        join("d")
        _ = line.leave(first)
        join("c")
        _ = line.end("a")
        _ = line.end("b")
        XCTAssertEqual(line.next(at: at(0)), [.begin("d"), .begin("c")])
    }

    func testAHundredDeadNamesDelayALiveOneLessThanASecond() {
        XCTAssertEqual(delayOfALiveName(behind: 100), 750)
    }

    /// 128 begin within 750 ms; the others take the places of those before after a turn each, in 7 rounds.
    func testAThousandDeadNamesDelayALiveOneByABoundedTime() {
        XCTAssertEqual(delayOfALiveName(behind: 1_000), 14_750)
    }

    private func delayOfALiveName(behind count: Int) -> Int64 {
        line = LookUpLine(LookUpLine.Bounds.queries)
        for number in 0..<count { join("dead-\(number).test") }
        join("live.test")
        var now = at(0)
        while true {
            let steps = line.next(at: now)
            XCTAssertLessThanOrEqual(line.runningCount, LookUpLine.Bounds.queries.total)
            if steps.contains(.begin("live.test")) { return now.milliseconds(since: at(0)) }
            guard let deadline = line.deadline, deadline > now else {
                XCTFail("nothing would ever happen")
                return -1
            }
            now = deadline
        }
    }

    /// Whatever happens, no more than allowed are looked up, nobody is forgotten, and what has left takes no room.
    func testAnySequenceOfEvents() {
        var generator = SystemRandomNumberGenerator()
        let seed = generator.next()
        var state = seed
        func random(_ bound: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % bound
        }
        var waiting: [LookUpID: String] = [:]
        var running: Set<String> = []
        for step in 0..<20_000 {
            let host = "h\(random(20))"
            switch random(4) {
            case 0, 1: waiting[join(host)] = host
            case 2:
                guard let id = waiting.keys.sorted().first(where: { _ in random(3) == 0 }) else { break }
                let left = waiting.removeValue(forKey: id)!
                let stopped = line.leave(id)
                let isLast = !waiting.values.contains(left)
                XCTAssertEqual(stopped, isLast && running.contains(left) ? left : nil, "seed \(seed), step \(step)")
                if let stopped { running.remove(stopped) }
            default:
                guard running.remove(host) != nil else { break }
                let ended = line.end(host)
                XCTAssertEqual(
                    ended, waiting.filter { $0.value == host }.keys.sorted(), "seed \(seed), step \(step)")
                for id in ended { waiting[id] = nil }
            }
            for action in line.next(at: at(Int64(step) * 40)) {
                switch action {
                case .begin(let host): XCTAssertTrue(running.insert(host).inserted, "seed \(seed), step \(step)")
                case .stop(let host): XCTAssertNotNil(running.remove(host), "seed \(seed), step \(step)")
                }
            }
            XCTAssertEqual(line.runningCount, running.count)
            XCTAssertLessThanOrEqual(running.count, 4)
            XCTAssertEqual(line.count, Set(waiting.values).count, "seed \(seed), step \(step)")
            XCTAssertLessThanOrEqual(line.queueCount, 2 * 20 + 17)
        }
        XCTAssertEqual(line.removeAll(), waiting.keys.sorted())
        XCTAssertEqual(line.count, 0)
    }
}
