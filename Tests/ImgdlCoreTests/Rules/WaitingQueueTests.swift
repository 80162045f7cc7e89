import XCTest

@testable import ImgdlCore

/// Features B12, B13, C6, I22: the queue by itself.
final class WaitingQueueTests: XCTestCase {
    private let now = Instant(nanoseconds: 0)
    private let never = Int64.max

    private func host(_ name: String, port: UInt16 = 443) -> HostAndPort {
        HostAndPort(testURL("https://\(name):\(port)/"))
    }

    private func insert(
        _ queue: inout WaitingQueue, _ slot: Int, _ priority: Priority = .normal, _ order: ExecutionOrder = .fifo,
        host name: String = "a", continues: Bool = false, at time: Instant? = nil
    ) {
        queue.insert(
            slot, host(name), priority: priority, continuesInBackground: continues, order: order, time ?? now)
    }

    private func pop(_ queue: inout WaitingQueue, inBackground: Bool = false) -> Int? {
        queue.popFirst(now, agingInterval: never, inBackground: inBackground)?.slot
    }

    private func popAll(_ queue: inout WaitingQueue, inBackground: Bool = false) -> [Int] {
        var slots: [Int] = []
        while let slot = pop(&queue, inBackground: inBackground) { slots.append(slot) }
        return slots
    }

    func testFIFOServesInOrder() {
        var queue = WaitingQueue()
        for slot in [3, 1, 2] { insert(&queue, slot) }
        XCTAssertEqual(queue.count, 3)
        XCTAssertEqual(popAll(&queue), [3, 1, 2])
        XCTAssertEqual(queue.count, 0)
    }

    func testLIFOServesTheLatestFirst() {
        var queue = WaitingQueue()
        for slot in [3, 1, 2] { insert(&queue, slot, .normal, .lifo) }
        XCTAssertEqual(popAll(&queue), [2, 1, 3])
    }

    func testPriorityGoesBeforeOrder() {
        for order in [ExecutionOrder.fifo, .lifo] {
            var queue = WaitingQueue()
            insert(&queue, 0, .low, order)
            insert(&queue, 1, .high, order)
            insert(&queue, 2, .normal, order)
            insert(&queue, 3, .high, order)
            XCTAssertEqual(popAll(&queue), order == .fifo ? [1, 3, 2, 0] : [3, 1, 2, 0])
        }
    }

    func testRemovesFromBothEndsAndTheMiddle() {
        for order in [ExecutionOrder.fifo, .lifo] {
            for removed in 0..<4 {
                var queue = WaitingQueue()
                for slot in 0..<4 { insert(&queue, slot, .low, order) }
                queue.remove(removed)
                queue.remove(removed)
                queue.remove(77)
                XCTAssertEqual(queue.count, 3)
                let rest = (0..<4).filter { $0 != removed }
                XCTAssertEqual(popAll(&queue), order == .fifo ? rest : rest.reversed())
            }
        }
    }

    /// Features B13: a full host is passed over, its transfers keep their turn.
    func testAFullHostIsPassedOverAndNotLost() {
        var queue = WaitingQueue(maximumPerHost: 1)
        for (slot, name) in ["a", "a", "b", "a", "c", "b"].enumerated() { insert(&queue, slot, host: name) }
        let first = queue.popFirst(now, agingInterval: never)!
        XCTAssertEqual(first.slot, 0)
        XCTAssertEqual(popAll(&queue), [2, 4])
        queue.leave(first.place)
        XCTAssertEqual(popAll(&queue), [1])
        XCTAssertEqual(queue.count, 2)
    }

    func testAnotherPortIsAnotherHost() {
        var queue = WaitingQueue(maximumPerHost: 1)
        queue.insert(0, host("a"), priority: .normal, order: .fifo, now)
        queue.insert(1, host("a", port: 8443), priority: .normal, order: .fifo, now)
        XCTAssertEqual(popAll(&queue), [0, 1])
    }

    func testTheLimitForEachHostChangesWhileOthersWait() {
        var queue = WaitingQueue()
        let names = ["a", "b", "a", "a", "b"]
        for (slot, name) in names.enumerated() { insert(&queue, slot, host: name) }
        XCTAssertTrue(queue.setMaximumPerHost(1) { self.host(names[$0]) })
        XCTAssertEqual(popAll(&queue), [0, 1])
        XCTAssertFalse(queue.setMaximumPerHost(2) { self.host(names[$0]) })
        XCTAssertEqual(popAll(&queue), [2, 4])
        XCTAssertTrue(queue.setMaximumPerHost(0) { self.host(names[$0]) })
        XCTAssertEqual(popAll(&queue), [3])
    }

    /// Features O4: only those that go on there, each at its turn, also when that changes while they wait.
    func testTheBackgroundPassesOverTheRest() {
        var queue = WaitingQueue()
        for slot in 0..<6 { insert(&queue, slot, continues: slot % 2 == 1) }
        queue.setContinuesInBackground(1, false)
        queue.setContinuesInBackground(4, true)
        XCTAssertEqual(popAll(&queue, inBackground: true), [3, 4, 5])
        XCTAssertEqual(popAll(&queue), [0, 1, 2])
    }

    /// Features B12: three of four starts are for the urgent, the fourth for whoever waits longest.
    func testEveryFourthStartIsForTheOldest() {
        for order in [ExecutionOrder.fifo, .lifo] {
            var queue = WaitingQueue()
            for slot in 0..<2 { insert(&queue, slot, .low, order) }
            let later = now.advanced(byMilliseconds: 10)
            for slot in 2..<12 { insert(&queue, slot, .high, order, at: later) }
            let turns = (0..<8).compactMap { _ in queue.popFirst(later, agingInterval: 10)?.slot }
            XCTAssertEqual(turns[3], 0, "the oldest, in \(order) too")
            XCTAssertEqual(turns[7], 1)
            XCTAssertEqual(turns.filter { $0 > 1 }.count, 6)
        }
    }

    func testNobodyAgesBeforeTheInterval() {
        var queue = WaitingQueue()
        insert(&queue, 0, .low)
        for slot in 1..<9 { insert(&queue, slot, .high) }
        let soon = now.advanced(byMilliseconds: 9)
        let turns = (0..<9).compactMap { _ in queue.popFirst(soon, agingInterval: 10)?.slot }
        XCTAssertEqual(turns.last, 0)
    }

    /// The same as a plain list that is searched, for any sequence.
    func testEqualsASearchedList() {
        struct Waiting {
            var slot: Int, host: String, priority: Priority, rank: Int, since: Int, continues: Bool, age: Int
        }
        for seed in 1...60 as ClosedRange<UInt64> {
            var random = SeededGenerator(seed)
            var limit = Int.random(in: 0...2, using: &random)
            var queue = WaitingQueue(maximumPerHost: limit)
            var list: [Waiting] = []
            var places: [(place: WaitingQueue.Place, host: String)] = []
            var (last, first, age, sinceAged, time) = (0, 0, 0, 0, 0)
            let names = ["a", "b", "c"]
            var hostOf: [Int: String] = [:]
            func rank(_ order: ExecutionOrder) -> Int {
                if order == .fifo { last += 1; return last }
                first -= 1
                return first
            }
            for step in 0..<600 {
                let instant = Instant(nanoseconds: Int64(time) * 1_000_000)
                let order = Bool.random(using: &random) ? ExecutionOrder.fifo : .lifo
                let priority = Priority.allCases.randomElement(using: &random)!
                switch Int.random(in: 0..<10, using: &random) {
                case 0..<4:
                    let (name, continues) = (names.randomElement(using: &random)!, Bool.random(using: &random))
                    age += 1
                    hostOf[step] = name
                    list.append(
                        Waiting(
                            slot: step, host: name, priority: priority, rank: rank(order), since: time,
                            continues: continues, age: age))
                    insert(&queue, step, priority, order, host: name, continues: continues, at: instant)
                case 4:
                    guard let index = list.indices.randomElement(using: &random) else { continue }
                    queue.remove(list.remove(at: index).slot)
                case 5:
                    guard let index = list.indices.randomElement(using: &random) else { continue }
                    list[index].priority = priority
                    list[index].rank = rank(order)
                    queue.setPriority(list[index].slot, priority, order: order)
                case 6:
                    guard let index = list.indices.randomElement(using: &random) else { continue }
                    list[index].continues.toggle()
                    queue.setContinuesInBackground(list[index].slot, list[index].continues)
                case 7:
                    guard let index = places.indices.randomElement(using: &random) else { continue }
                    queue.leave(places.remove(at: index).place)
                case 8:
                    time += Int.random(in: 0...20, using: &random)
                    guard Int.random(in: 0..<8, using: &random) == 0 else { continue }
                    limit = Int.random(in: 0...3, using: &random)
                    if queue.setMaximumPerHost(limit, host: { self.host(hostOf[$0]!) }) {
                        for index in places.indices {
                            places[index].place = queue.takePlace(host(places[index].host), always: true)!
                        }
                    }
                default:
                    let inBackground = Int.random(in: 0..<4, using: &random) == 0
                    let open = list.filter { waiting in
                        (limit == 0 || places.filter { $0.host == waiting.host }.count < limit)
                            && (waiting.continues || !inBackground)
                    }
                    let oldest = open.min { $0.age < $1.age }
                    var expected = open.min {
                        $0.priority == $1.priority ? $0.rank < $1.rank : $0.priority > $1.priority
                    }
                    if sinceAged >= 3, let oldest, oldest.since + 30 <= time {
                        expected = oldest
                        sinceAged = 0
                    } else if expected != nil {
                        sinceAged += 1
                    }
                    let popped = queue.popFirst(instant, agingInterval: 30, inBackground: inBackground)
                    XCTAssertEqual(popped?.slot, expected?.slot, "seed \(seed), step \(step)")
                    guard let popped, popped.slot == expected?.slot else { continue }
                    list.removeAll { $0.slot == popped.slot }
                    places.append((popped.place, hostOf[popped.slot]!))
                }
                XCTAssertEqual(queue.count, list.count)
            }
        }
    }

    /// A crowd that is over leaves nothing behind that those who come next would stand behind.
    func testWhoComesAfterACrowdIsServedAsBefore() {
        for limit in [0, 2] {
            var queue = WaitingQueue(maximumPerHost: limit)
            let now = Instant(nanoseconds: 1)
            for round in 0..<3 {
                for slot in 0..<3_000 { queue.insert(slot, host("h\(slot % 7)"), priority: .low, order: .lifo, now) }
                let first = queue.popFirst(now, agingInterval: 1_000)
                XCTAssertEqual(first?.slot, 2_999)
                for slot in 0..<2_999 { queue.remove(slot) }
                XCTAssertEqual(queue.count, 0)
                XCTAssertNil(queue.popFirst(now, agingInterval: 1_000))
                for (slot, priority) in [(5, Priority.normal), (6, .high), (7, .low)] {
                    queue.insert(slot, host("h\(round)"), priority: priority, order: .fifo, now)
                }
                queue.setPriority(5, .high, order: .fifo)
                var served: [Int] = []
                while let next = queue.popFirst(now, agingInterval: 1_000) {
                    served.append(next.slot)
                    queue.leave(next.place)
                }
                XCTAssertEqual(served, [6, 5, 7])
                if let first { queue.leave(first.place) }
            }
        }
    }
}
