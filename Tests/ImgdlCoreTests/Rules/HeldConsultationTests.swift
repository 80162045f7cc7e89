import XCTest

@testable import ImgdlCore

/// What the cache answers waits where what a server answers waits: for hooks that owe answers, and for executors that take
/// nothing (issue 21, 3).
final class HeldConsultationTests: XCTestCase {
    /// Stored bodies of 40 each, of a budget of 100, which go to whoever waits for them.
    private struct Course: ~Copyable {
        var play: Play
        var asked: [(id: TransferID, number: UInt64)] = []
        var consultations: [(id: TransferID, consultation: Consultation)] = []
        var ended: [SubscriberID] = []
        /// Of these subscribers, the ones whose host takes nothing.
        var executors: [SubscriberID: Backlogs.Executor] = [:]
        var redirected: Set<TransferID> = []
        var isRedirect = false

        init(width: Int, consulting: Int = 64) {
            play = Play(width: width) {
                $0.memoryBudget = 100
                $0.maximumConsulting = consulting
            }
            play.downloads.hasStore = true
        }

        mutating func submit(
            _ path: String, _ hooks: SilentHooks? = nil, executor: Backlogs.Executor = 0
        ) -> Downloads.Admission {
            let request = TransferRequest(
                url: testURL("https://a.example/\(path)"), cacheMode: .use, hooks: hooks)
            let options = SubscriberOptions.with([]) {
                $0.decode = nil
                $0.wantsBody = true
            }
            let admission = play.downloads.submit(request, Boxed(wrappedValue: options), executor: executor, play.now)
            executors[admission.subscriber] = executor
            look()
            return admission
        }

        /// What the rules want done is done, but for what the cache is asked.
        mutating func look() {
            repeat {
                for action in play.downloads.takeActions() {
                    switch action {
                    case .consult(let id, let consultation): consultations.append((id, consultation))
                    case .ask(let id, let question): asked.append((id, question.number))
                    case .end(let subscriber, .success):
                        ended.append(subscriber)
                        guard let executor = executors[subscriber], executor > 0 else { continue }
                        play.downloads.holdMemory(40)
                        play.downloads.waits(40, for: executor)
                    default: break
                    }
                }
            } while play.downloads.reviewBacklogs(play.now)
        }

        /// The cache answers all that it has been asked.
        mutating func run() {
            while !consultations.isEmpty {
                let (id, consultation) = consultations.removeFirst()
                let isReplacement = [.answer, .standIn].contains(consultation.kind)
                if play.downloads.postpones(id, consultation.number, isReplacement: isReplacement, play.now) {
                    look()
                    continue
                }
                play.downloads.consulted(id, consultation.number, .play, play.now)
                if isRedirect, redirected.insert(id).inserted {
                    play.head(id, 301, location: .success(testURL("https://a.example/\(id.rawValue)/there")))
                } else {
                    play.head(id, length: 40)
                    play.body(id, 40)
                }
                play.finished(id)
                look()
            }
        }

        mutating func take(_ count: Int = 1) {
            play.downloads.taken(40 * Int64(count), by: 1, play.now)
            play.downloads.memoryReleased(40 * Int64(count), play.now)
            look()
        }
    }

    func testWhatIsStoredWaitsForHooksThatOweAnswers() {
        for (width, consulting, isRedirect) in [(1, 1, false), (1, 64, false), (6, 64, false), (1, 64, true)] {
            var course = Course(width: width, consulting: consulting)
            course.isRedirect = isRedirect
            let hooks = SilentHooks([.transformBody])
            for number in 0..<100 { _ = course.submit("\(number)", hooks) }
            course.run()
            XCTAssertEqual(course.asked.count, 1, "a quarter of the budget waits for these hooks")
            XCTAssertEqual(course.play.downloads.heldConsultationCount, 99)
            let other = course.submit("other")
            course.run()
            XCTAssertEqual(course.ended, [other.subscriber], "nobody else waits")
            var answered = 0
            while let question = course.asked.first {
                XCTAssertEqual(course.asked.count, 1)
                course.asked.removeFirst()
                course.play.answer(question.id, question.number, .unchanged)
                course.look()
                course.run()
                answered += 1
            }
            XCTAssertEqual(answered, 100)
            XCTAssertLessThanOrEqual(course.play.downloads.memoryPeak, 100)
            XCTAssertEqual(course.play.downloads.memoryInUse, 0)
            XCTAssertEqual(course.play.downloads.heldConsultationCount, 0)
            course.play.expectEmpty()
        }
    }

    func testWhatIsStoredWaitsForAnExecutorThatTakesNothing() {
        for consulting in [1, 64] {
            var course = Course(width: 2, consulting: consulting)
            for number in 0..<100 { _ = course.submit("\(number)", executor: 1) }
            course.run()
            XCTAssertEqual(course.ended.count, 1)
            let other = course.submit("other", executor: 2)
            course.run()
            XCTAssertEqual(course.ended.last, other.subscriber, "nobody else waits")
            for count in 2...100 {
                course.take()
                course.run()
                XCTAssertEqual(course.ended.count, count + 1)
            }
            XCTAssertEqual(course.play.downloads.heldConsultationCount, 0)
            course.play.expectEmpty()
        }
    }

    /// It was of one whose host takes nothing, and is of one whose host does, too.
    func testWhoJoinsWithAnotherExecutorNeedNotWait() {
        var course = Course(width: 2)
        for number in 0..<3 { _ = course.submit("\(number)", executor: 1) }
        course.run()
        XCTAssertEqual(course.ended.count, 1)
        _ = course.submit("2", executor: 2)
        course.run()
        XCTAssertEqual(course.ended.count, 3, "both of those get it")
        XCTAssertEqual(course.play.downloads.heldConsultationCount, 1)
    }

    func testWhatWaitsForHostsCanBeCancelled() {
        var course = Course(width: 1)
        let hooks = SilentHooks([.transformBody])
        let all = (0..<200).map { course.submit("\($0)", hooks) }
        course.run()
        XCTAssertEqual(course.play.downloads.heldConsultationCount, 199)
        for one in all { course.play.downloads.cancel(one.subscriber, course.play.now) }
        course.look()
        XCTAssertEqual(course.play.downloads.heldConsultationCount, 0)
        XCTAssertEqual(course.play.downloads.recalledCount, 0)
        XCTAssertEqual(course.play.downloads.memoryInUse, 0)
        course.play.expectEmpty()
    }

    /// What has a place waits in the queue: for its hooks, too, when it comes back from a host that had no place.
    func testOneThatIsUnderWayWaitsForHooksInTheQueue() {
        var play = Play(width: 4) {
            $0.memoryBudget = 100
            $0.maximumPerHost = 1
        }
        let hooks = SilentHooks([.transformBody])
        let options = SubscriberOptions.with([]) { $0.decode = nil }
        let all = (0..<3).map {
            play.submit(TransferRequest(url: testURL("https://\($0).example/"), hooks: hooks), options)
        }
        play.skip()
        for (number, entry) in all.enumerated() {
            play.connected(entry.transfer)
            play.head(entry.transfer, 302, location: .success(testURL("https://there.example/\(number)")))
            play.finished(entry.transfer)
        }
        play.skip()
        play.receive(all[0].transfer, 40, of: 40)
        play.finished(all[0].transfer)
        XCTAssertEqual(play.downloads.runningCount, 0, "its hooks owe an answer for more than a quarter")
        XCTAssertEqual(play.downloads.restingCount, 2)
        play.answer(all[0].transfer, 1, .unchanged)
        XCTAssertEqual(play.downloads.runningCount, 1)
        for entry in all.dropFirst() { play.cancel(entry) }
        play.skip()
        play.expectEmpty()
    }
}
