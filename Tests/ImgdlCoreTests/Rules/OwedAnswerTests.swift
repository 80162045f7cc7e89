import XCTest

@testable import ImgdlCore

/// Bodies that wait for the answers of hooks hold up those hooks' own requests alone (issue 21, 3).
final class OwedAnswerTests: XCTestCase {
    // MARK: The count

    func testHooksAreBehindFromTheirShareOnUntilHalfOfItIsAnswered() {
        let (hooks, others) = (SilentHooks([.transformBody]), SilentHooks([.transformBody]))
        let (first, second) = (ObjectIdentifier(hooks), ObjectIdentifier(others))
        var owed = Shares<ObjectIdentifier>()
        owed.change(99, of: first, budget: 400)
        owed.change(50, of: second, budget: 400)
        XCTAssertFalse(owed.isBehind(first))
        owed.change(21, of: first, budget: 400)
        XCTAssertTrue(owed.isBehind(first))
        XCTAssertFalse(owed.isBehind(second))
        XCTAssertEqual(owed.total, 170)
        owed.change(-69, of: first, budget: 400)
        XCTAssertTrue(owed.isBehind(first))
        owed.change(-1, of: first, budget: 400)
        XCTAssertFalse(owed.isBehind(first))
        owed.change(-50, of: first, budget: 400)
        owed.change(-50, of: second, budget: 400)
        XCTAssertEqual([owed.total, Int64(owed.behindCount)], [0, 0])
        withExtendedLifetime((hooks, others)) {}
    }

    // MARK: The rules

    private func request(_ path: String, _ hooks: SilentHooks) -> TransferRequest {
        TransferRequest(url: testURL("https://a.example/\(path)"), hooks: hooks)
    }

    private let options = SubscriberOptions.with([]) { $0.decode = nil }

    /// Bodies of 40 each, of a budget of 100, whose answers wait for another request.
    func testBodiesThatWaitForAnswersStopNobodyElse() {
        for width in [1, 3] {
            var play = Play(width: width) { $0.memoryBudget = 100 }
            let hooks = SilentHooks([.transformBody])
            let entries = (0..<12).map { play.submit(request("\($0)", hooks), options) }
            var asked: [(id: TransferID, number: UInt64)] = []
            runAll(&play, &asked)
            XCTAssertGreaterThan(asked.count, 0)
            XCTAssertLessThanOrEqual(asked.count, width, "no other begins with the same hooks")
            var answered = 0
            while let question = asked.first {
                asked.removeFirst()
                let key = play.submit("key-\(answered)")
                XCTAssertEqual(starts(&play, &asked), [key.transfer], "a place is free, and it does not wait")
                play.cancel(key)
                play.skip()
                play.answer(question.id, question.number, .unchanged)
                answered += 1
                runAll(&play, &asked)
            }
            XCTAssertEqual(answered, entries.count)
            XCTAssertEqual(play.downloads.memoryInUse, 0)
            XCTAssertEqual(play.downloads.transformingCount, 0)
            play.expectEmpty()
        }
    }

    /// Many hooks owe less than their share each: together they would fill the budget.
    func testManyHooksThatOweALittleStopNobodyElse() {
        var play = Play { $0.memoryBudget = 200 }
        let hooks = (0..<10).map { _ in SilentHooks([.transformBody]) }
        for (number, own) in hooks.enumerated() { _ = play.submit(request("\(number)", own), options) }
        var asked: [(id: TransferID, number: UInt64)] = []
        runAll(&play, &asked)
        XCTAssertEqual(asked.count, 10)
        let other = play.submit("other")
        XCTAssertEqual(starts(&play, &asked), [other.transfer])
        play.cancel(other)
        for question in asked { play.answer(question.id, question.number, .unchanged) }
        play.skip()
        XCTAssertEqual(play.downloads.memoryInUse, 0)
        play.expectEmpty()
    }

    /// What a transport holds while a hook is asked about the head counts for the hook.
    func testWhatIsHeldUntilTheHeadIsAnsweredStopsNobodyElse() {
        var play = Play(width: 2) { $0.memoryBudget = 100 }
        let held = play.submit(request("a", SilentHooks([.modifyResponse])), options)
        play.connected(held.transfer)
        play.head(held.transfer)
        play.downloads.bodyHeld(held.transfer, 800, play.now)
        play.skip()
        XCTAssertEqual(play.downloads.owedAnswers.total, 800)
        let other = play.submit("other")
        play.expect([.start(other.transfer)])
        play.cancel(other)
        play.cancel(held)
        play.skip()
        XCTAssertEqual(play.downloads.owedAnswers.total, 0)
        XCTAssertEqual(play.downloads.memoryInUse, 0)
        play.expectEmpty()
    }

    /// What counts from then on is what it gave, while it is decoded, too.
    func testWhatAHookMakesOfABodyCountsInItsPlace() {
        for bytes in [0, 3, 300] as [Int64] {
            var play = Play(width: 1) { $0.memoryBudget = 100 }
            let entry = play.submit(request("a", SilentHooks([.transformBody])), .with([]))
            play.receive(entry.transfer, 40, of: 40)
            play.finished(entry.transfer)
            let next = play.submit("next")
            XCTAssertTrue(play.take().contains(.start(next.transfer)))
            play.cancel(next)
            play.answer(entry.transfer, 1, .body(bytes: bytes))
            XCTAssertTrue(play.take().contains(.decode(entry.transfer, variant: 0, .finish)))
            XCTAssertEqual(play.downloads.memoryInUse, bytes)
            let other = play.submit("other")
            XCTAssertEqual(play.take().contains(.start(other.transfer)), bytes < 100, "\(bytes) of a budget of 100")
            play.stepped(entry.transfer, .finished)
            XCTAssertEqual(play.take().contains(.start(other.transfer)), bytes >= 100)
            XCTAssertEqual(play.downloads.memoryInUse, 0)
            play.cancel(other)
            play.skip()
            play.expectEmpty()
        }
    }

    func testWhatWaitsForAnswersCanBeCancelled() {
        var play = Play(width: 1) { $0.memoryBudget = 100 }
        let hooks = SilentHooks([.transformBody])
        let entries = (0..<200).map { play.submit(request("\($0)", hooks), options) }
        var asked: [(id: TransferID, number: UInt64)] = []
        runAll(&play, &asked)
        XCTAssertEqual(asked.count, 1)
        for entry in entries { play.cancel(entry) }
        play.skip()
        XCTAssertEqual(play.downloads.restingCount, 0)
        XCTAssertEqual(play.downloads.owedAnswers.total, 0)
        XCTAssertEqual(play.downloads.transformingCount, 0)
        XCTAssertEqual(play.downloads.memoryInUse, 0)
        play.expectEmpty()
    }

    /// Receives whatever starts to its end.
    private func runAll(_ play: inout Play, _ asked: inout [(id: TransferID, number: UInt64)]) {
        while true {
            let started = starts(&play, &asked)
            if started.isEmpty { return }
            for id in started {
                play.receive(id, 40, of: 40)
                play.finished(id)
            }
        }
    }

    private func starts(_ play: inout Play, _ asked: inout [(id: TransferID, number: UInt64)]) -> [TransferID] {
        var started: [TransferID] = []
        for action in play.downloads.takeActions() {
            switch action {
            case .start(let id): started.append(id)
            case .ask(let id, let question): asked.append((id, question.number))
            default: break
            }
        }
        return started
    }
}
