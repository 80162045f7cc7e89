import XCTest

@testable import ImgdlCore

/// What waits for a host that does not take it holds up that host alone (issue 21, 3).
final class BacklogTests: XCTestCase {
    // MARK: The count

    /// 500 bytes at most for one of 1,000 that wait (docs/performance.md): to know its executor takes none of them.
    func testASubscriberIsNoLargerForItsExecutor() { XCTAssertLessThanOrEqual(MemoryLayout<Subscriber>.stride, 48) }

    func testAnExecutorIsBehindFromItsShareOnUntilHalfOfItIsTaken() {
        var backlogs = Backlogs()
        backlogs.add(99, to: 1, budget: 400)
        XCTAssertFalse(backlogs.isBehind(1))
        XCTAssertEqual(backlogs.excused, 0)
        backlogs.add(1, to: 1, budget: 400)
        backlogs.add(30, to: 2, budget: 400)
        XCTAssertTrue(backlogs.isBehind(1))
        XCTAssertFalse(backlogs.isBehind(2))
        XCTAssertEqual([backlogs.total, backlogs.excused], [130, 100])
        backlogs.add(20, to: 1, budget: 400)
        XCTAssertEqual([backlogs.total, backlogs.excused], [150, 120])
        XCTAssertFalse(backlogs.take(69, from: 1))
        XCTAssertTrue(backlogs.isBehind(1))
        XCTAssertTrue(backlogs.take(1, from: 1))
        XCTAssertFalse(backlogs.isBehind(1))
        XCTAssertEqual([backlogs.total, backlogs.excused], [80, 0])
    }

    func testWhoeverHasSomethingToTakeIsBehindWhenNothingElseMakesRoom() {
        var backlogs = Backlogs()
        backlogs.add(1, to: 1, budget: 400)
        backlogs.add(50, to: 3, budget: 400)
        backlogs.fallBehind()
        XCTAssertEqual([1, 2, 3, 4].map { backlogs.isBehind($0) }, [true, false, true, false])
        XCTAssertEqual([backlogs.total, backlogs.excused], [51, 51])
        XCTAssertTrue(backlogs.take(1, from: 1))
        XCTAssertFalse(backlogs.take(24, from: 3))
        XCTAssertTrue(backlogs.take(1, from: 3))
        XCTAssertEqual([backlogs.total, backlogs.excused], [25, 0])
        XCTAssertFalse(backlogs.take(25, from: 3))
        XCTAssertEqual(backlogs.behindCount, 0)
    }

    func testNobodysExecutorIsNeverBehind() {
        var backlogs = Backlogs()
        backlogs.add(1_000, to: 0, budget: 4)
        XCTAssertFalse(backlogs.isBehind(0))
        XCTAssertEqual(backlogs.total, 0)
    }

    func testTurnsThatHavePassed() {
        var turns = PassedTurns<UInt32>()
        for number in 1...300 { turns.append(TransferID(rawValue: UInt64(number)), UInt32(number % 2)) }
        XCTAssertEqual(turns.hosts, [0, 1])
        for number in stride(from: 1, to: 200, by: 2) {
            XCTAssertEqual(turns.popFirst(1), TransferID(rawValue: UInt64(number)))
        }
        XCTAssertTrue(turns.needsLook)
        for number in [300, 252, 252] as [UInt64] { turns.append(TransferID(rawValue: number), 0) }
        turns.keep { $0.rawValue > 250 }
        XCTAssertEqual(turns.count, 50)
        XCTAssertFalse(turns.needsLook)
        XCTAssertEqual(turns.popFirst(1), TransferID(rawValue: 251))
        XCTAssertEqual(turns.popFirst(0), TransferID(rawValue: 252))
        turns.keep { _ in false }
        XCTAssertTrue(turns.isEmpty)
        XCTAssertNil(turns.popFirst(1))
    }

    // MARK: The rules

    private let large: Int64 = 120_000_000

    /// 30 megapixels each; six of them are more than the default budget.
    func testPicturesThatOneHostDoesNotTakeStopNobodyElse() {
        var course = Course(budget: Limits().memoryBudget, stalled: [1])
        for number in 0..<20 {
            course.submit("\(number)", executor: 1)
            course.submit("other-\(number)", executor: 2)
        }
        course.run()
        XCTAssertEqual(course.ended[2], 20)
        XCTAssertLessThan(course.ended[1] ?? 0, 20, "its own wait for it")
        XCTAssertGreaterThan(course.ended[1] ?? 0, 0)
        XCTAssertLessThanOrEqual(course.play.downloads.memoryPeak, 2 * Limits().memoryBudget)
        course.stalled = []
        course.takeAll(1)
        course.run()
        XCTAssertEqual(course.ended, [1: 20, 2: 20])
        XCTAssertEqual(course.play.downloads.memoryInUse, 0)
        course.play.expectEmpty()
    }

    /// Each has less than its share; together they fill the budget.
    func testManyHostsWithALittleEachStopNobodyElse() {
        var course = Course(budget: Limits().memoryBudget, stalled: [1, 2, 3, 4, 5, 6])
        for executor in 1...6 as ClosedRange<UInt32> { course.submit("\(executor)", executor: executor) }
        course.run()
        for number in 0..<10 { course.submit("other-\(number)", executor: 7) }
        course.run()
        XCTAssertEqual(course.ended[7], 10)
        for executor in 1...6 as ClosedRange<UInt32> { course.takeAll(executor) }
        course.run()
        XCTAssertEqual(course.ended.values.reduce(0, +), 16)
        XCTAssertEqual(course.play.downloads.memoryInUse, 0)
        course.play.expectEmpty()
    }

    /// However many of them there are, and however the budget is filled: none of them need reach its share, and each may
    /// have begun as many as there are places before it is behind.
    func testHoweverManyHostsTakeNothingThereIsRoomForOneThatDoes() {
        for (count, budget) in [(3, 1), (4, 1), (4, 5), (4, 10), (5, 9), (5, 14), (8, 20), (16, 10), (16, 33)] {
            for (width, slowly) in [(1, true), (3, true), (8, false), (8, true)] {
                for events in [[], [.header, .progress, .partial]] as [EventMask] {
                    expectRoom(hosts: UInt32(count), budget: Int64(budget) * large - 1, width, slowly, events)
                }
            }
        }
    }

    private func expectRoom(hosts: UInt32, budget: Int64, _ width: Int, _ decodesSlowly: Bool, _ events: EventMask) {
        var course = Course(budget: budget, width: width, stalled: Set(1...hosts))
        course.decodesSlowly = decodesSlowly
        for number in 0..<4 {
            for executor in 1...hosts { course.submit("\(executor)-\(number)", executor: executor, events) }
        }
        course.run()
        for number in 0..<4 { course.submit("other-\(number)", executor: hosts + 1) }
        course.run()
        XCTAssertEqual(
            course.ended[hosts + 1], 4,
            "\(hosts) hosts, budget \(budget), \(width) at once, slow \(decodesSlowly), \(events)")
        course.stalled = []
        for _ in 0..<4 {
            for executor in 1...hosts { course.takeAll(executor) }
            course.run()
        }
        XCTAssertEqual(course.ended.values.reduce(0, +), 4 * Int(hosts) + 4)
        XCTAssertEqual(course.play.downloads.memoryInUse, 0)
        course.play.expectEmpty()
    }

    /// It is on two executors that are behind: whichever catches up first.
    func testASharedPictureWaitsForTheFirstHostThatTakes() {
        for takes in [1, 2] as [UInt32] {
            var course = Course(budget: 1_000, stalled: [1, 2])
            for executor in 1...2 as ClosedRange<UInt32> { course.submit("\(executor)", executor: executor) }
            course.run()
            XCTAssertEqual(course.ended, [1: 1, 2: 1])
            for executor in 1...2 as ClosedRange<UInt32> { course.submit("shared", executor: executor) }
            course.run()
            XCTAssertEqual(course.ended, [1: 1, 2: 1])
            course.takeAll(takes)
            course.run()
            XCTAssertEqual(course.ended, [1: 2, 2: 2])
            course.takeAll(1)
            course.takeAll(2)
            XCTAssertEqual(course.play.downloads.memoryInUse, 0)
            course.play.expectEmpty()
        }
    }

    /// Others do not wait for what one that is held up itself holds for as long as it lives.
    func testWhatATransferHoldsBesidesItsBodyMakesNoRoom() {
        var play = Play { $0.memoryBudget = 100 }
        let (first, other) = (play.submit("a"), play.submit("b"))
        play.downloads.holdMemory(90, of: first.transfer)
        play.receive(first.transfer, 5, of: 50)
        play.skip()
        play.receive(other.transfer, 10, of: 50)
        play.expect([.setPaused(other.transfer, true)])
        play.cancel(first)
        play.expect([
            .end(first.subscriber, .failure(Failure(.cancelled, "cancelled", status: 200))),
            .stop(first.transfer), .forget(first.transfer),
        ])
        play.downloads.memoryReleased(90, play.now)
        play.expect([.setPaused(other.transfer, false)])
    }

    /// A body that is handed over counts once more, and may be what fills the budget.
    func testABodyThatIsHandedOverHoldsUpTheOthers() {
        var play = Play { $0.memoryBudget = 100 }
        let (first, other) = (play.submit("a"), play.submit("b"))
        play.receive(other.transfer, 10, of: 50)
        play.receive(first.transfer, 80, of: 80)
        play.finished(first.transfer)
        play.skip()
        play.downloads.holdMemory(90)
        XCTAssertTrue(play.downloads.reviewBacklogs(play.now))
        play.expect([.setPaused(other.transfer, true)])
        play.downloads.memoryReleased(90, play.now)
        play.expect([.setPaused(other.transfer, false)])
    }

    /// There is always room for one to lead, and for one to be decoded.
    func testABudgetThatNothingFitsInto() {
        var course = Course(budget: 1_000, stalled: [1, 2])
        for executor in 1...3 as ClosedRange<UInt32> {
            for number in 0..<3 { course.submit("\(executor)-\(number)", executor: executor) }
        }
        course.run()
        XCTAssertEqual(course.ended, [1: 1, 2: 1, 3: 3])
        course.takeAll(2)
        course.run()
        XCTAssertEqual(course.ended, [1: 1, 2: 2, 3: 3], "one picture more, which it does not take either")
        for _ in 0..<3 {
            course.takeAll(1)
            course.takeAll(2)
            course.run()
        }
        XCTAssertEqual(course.ended, [1: 3, 2: 3, 3: 3])
        XCTAssertEqual(course.play.downloads.memoryInUse, 0)
        course.play.expectEmpty()
    }

    /// Who joins a transfer that waits for another's host does not wait for it.
    func testASharedPictureWaitsForNobody() {
        var course = Course(budget: 4 * large, stalled: [1])
        for number in 0..<8 { course.submit("\(number)", executor: 1) }
        course.run()
        let before = course.ended[1] ?? 0
        XCTAssertLessThan(before, 8)
        for number in 0..<8 { course.submit("\(number)", executor: 2) }
        course.run()
        XCTAssertEqual(course.ended, [1: 8, 2: 8])
        course.takeAll(1)
        course.run()
        XCTAssertEqual(course.play.downloads.memoryInUse, 0)
        course.play.expectEmpty()
    }

    func testWhatWaitsForItsHostCanBeCancelled() {
        var course = Course(budget: 1_000, stalled: [1])
        let entries = (0..<200).map { course.submit("\($0)", executor: 1) }
        course.run()
        XCTAssertEqual(course.ended, [1: 1])
        for entry in entries { course.play.cancel(entry) }
        course.run()
        XCTAssertEqual(course.play.downloads.restingCount, 0)
        course.takeAll(1)
        XCTAssertEqual(course.play.downloads.memoryInUse, 0)
        course.play.expectEmpty()
    }

    /// Turns that have passed come again in their order, before what came later.
    func testOnceItHasTakenItsRequestsGoOnInTheirOrder() {
        var course = Course(budget: 4 * large, width: 1, stalled: [1])
        let entries = (0..<6).map { course.submit("\($0)", executor: 1) }
        course.run()
        let begun = course.started.count
        XCTAssertLessThan(begun, 6)
        course.started = []
        course.takeAll(1)
        course.stalled = []
        course.run()
        XCTAssertEqual(course.started, entries[begun...].map(\.transfer))
        XCTAssertEqual(course.ended, [1: 6])
        course.play.expectEmpty()
    }
}

/// Requests that run to their ends. Executors that are stalled take nothing.
private struct Course: ~Copyable {
    var play: Play
    var stalled: Set<UInt32>
    var ended: [UInt32: Int] = [:]
    var started: [TransferID] = []
    /// Only when nothing moves at the transport.
    var decodesSlowly = false
    private var executors: [SubscriberID: UInt32] = [:]
    private var transfers: [SubscriberID: TransferID] = [:]
    private var stages: [TransferID: Int] = [:]
    private var paused: Set<TransferID> = []
    private var decodes: [TransferID] = []
    private var reserved: [TransferID: Int64] = [:]
    /// Executors that hold the picture of a transfer, which lives until none does.
    private var holders: [TransferID: Set<UInt32>] = [:]

    init(budget: Int64, width: Int = 6, stalled: Set<UInt32>) {
        play = Play(width: width) { $0.memoryBudget = budget }
        self.stalled = stalled
    }

    @discardableResult
    mutating func submit(_ path: String, executor: UInt32, _ events: EventMask = []) -> Play.Entry {
        let request = TransferRequest(url: testURL("https://a.example/\(path)"))
        let options = SubscriberOptions.with(events)
        let admission = play.downloads.submit(request, Boxed(wrappedValue: options), executor: executor, play.now)
        executors[admission.subscriber] = executor
        transfers[admission.subscriber] = admission.transfer
        return (admission.subscriber, admission.transfer)
    }

    /// Until nothing moves any more.
    mutating func run() {
        var rounds = 0
        while perform() || (decodesSlowly ? advance() || decode() : decode() || advance()) {
            rounds += 1
            guard rounds < 100_000 else { return XCTFail("it goes on for ever") }
        }
    }

    /// Its host takes all that waits there now.
    mutating func takeAll(_ executor: UInt32) {
        for id in holders.keys.sorted(by: { $0.rawValue < $1.rawValue }) { take(id, executor) }
    }

    private mutating func take(_ id: TransferID, _ executor: UInt32) {
        guard holders[id]?.remove(executor) != nil, let bytes = reserved[id] else { return }
        if holders[id]?.isEmpty == true, play.downloads.request(id) == nil {
            holders[id] = nil
            reserved[id] = nil
            play.downloads.memoryReleased(bytes, play.now)
        }
        play.downloads.taken(bytes, by: executor, play.now)
    }

    private mutating func perform() -> Bool {
        let actions = play.downloads.takeActions()
        var isAny = !actions.isEmpty
        for action in actions {
            switch action {
            case .start(let id):
                stages[id] = 0
                started.append(id)
            case .setPaused(let id, let isPaused): if isPaused { paused.insert(id) } else { paused.remove(id) }
            case .reserve(let id, _, let bytes): reserved[id] = bytes
            case .decode(let id, _, _): decodes.append(id)
            case .end(let subscriber, .success): end(subscriber)
            case .stop(let id), .stopFlooded(let id): stages[id] = nil
            case .forget(let id):
                stages[id] = nil
                for executor in holders[id] ?? [] where !stalled.contains(executor) { take(id, executor) }
                guard holders[id] == nil || holders[id]?.isEmpty == true, let bytes = reserved[id] else { continue }
                reserved[id] = nil
                play.downloads.memoryReleased(bytes, play.now)
            default: break
            }
        }
        if play.downloads.reviewBacklogs(play.now) { isAny = true }
        return isAny
    }

    private mutating func end(_ subscriber: SubscriberID) {
        guard let executor = executors[subscriber], let id = transfers[subscriber] else { return }
        ended[executor, default: 0] += 1
        holders[id, default: []].insert(executor)
        play.downloads.waits(reserved[id] ?? 0, for: executor)
    }

    private mutating func advance() -> Bool {
        var hasMoved = false
        for id in stages.keys.sorted(by: { $0.rawValue < $1.rawValue }) {
            guard let stage = stages[id], !paused.contains(id) else { continue }
            hasMoved = true
            stages[id] = stage + 1
            switch stage {
            case 0:
                play.connected(id)
                play.head(id, length: 40)
                play.downloads.probed(id, .known(width: 6_000, height: 5_000, held: 0))
            case 1...4: play.body(id, 10)
            default:
                stages[id] = nil
                play.finished(id)
            }
            _ = perform()
        }
        return hasMoved
    }

    private mutating func decode() -> Bool {
        guard !decodes.isEmpty else { return false }
        let id = decodes.removeFirst()
        guard play.downloads.request(id) != nil else { return true }
        play.stepped(id, play.downloads.transfers[id].phase == .decoding ? .finished : .fed, header: true)
        return true
    }
}
