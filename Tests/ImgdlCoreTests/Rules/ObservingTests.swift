import XCTest

@testable import ImgdlCore

/// What an observer is told, and when (features N1–N4, D15).
final class ObservingTests: XCTestCase {
    func testN1_N3_StoppedComesOnceAndBeforeTheEnds() {
        var play = Play()
        let first = play.submit("a")
        let second = play.submit("a")
        let id = first.transfer
        play.receive(id, 5, of: 5)
        play.finished(id)
        play.expectObserved([
            .start(id), .observe(id, .answered, subscribers: 2), .observe(id, .stopped(.ok), subscribers: 2),
            .end(first.subscriber, .success(variant: nil)), .end(second.subscriber, .success(variant: nil)),
        ])
        play.expectEmpty()
    }

    func testN3_TheLastCancelIsAStop() {
        var play = Play()
        let first = play.submit("a")
        let second = play.submit("a")
        let id = first.transfer
        play.cancel(first)
        play.cancel(second)
        play.expectObserved([
            .start(id), .end(first.subscriber, .cancelled),
            .observe(id, .stopped(.cancelled), subscribers: 1),
            .end(second.subscriber, .cancelled), .stop(id),
        ])
    }

    func testN2_ARefusedResponseIsTold_ARedirectIsNot() {
        var play = Play()
        let entry = play.submit("a")
        let id = entry.transfer
        play.connected(id)
        play.head(id, 302, location: .success(testURL("https://a.example/b")))
        play.finished(id)
        play.connected(id)
        play.head(id, 404)
        play.finished(id)
        let seen = play.downloads.takeActions()
        XCTAssertEqual(seen.filter { $0 == .observe(id, .answered, subscribers: 1) }.count, 1)
        let stops = seen.compactMap { action -> ErrorCode? in
            if case .observe(_, .stopped(let code), _) = action { code } else { nil }
        }
        XCTAssertEqual(stops, [.invalidStatus])
    }

    func testN1_OneThatNeverLeftTheQueueIsNotObserved() {
        var play = Play(width: 1)
        let running = play.submit("a")
        let waiting = play.submit("b")
        play.cancel(waiting)
        play.expectObserved([.start(running.transfer), .end(waiting.subscriber, .cancelled)])
    }

    func testN4_AFailureWhileDecodingComesAfterTheStop() {
        var play = Play()
        let entry = play.submit("a", .image)
        let id = entry.transfer
        play.receive(id, 5, of: 5)
        play.finished(id)
        play.stepped(id, .failed(.bad))
        play.expectObserved([
            .start(id), .observe(id, .answered, subscribers: 1), .observe(id, .stopped(.ok), subscribers: 1),
            .end(entry.subscriber, .failure(.bad.with(status: 200), salvaged: nil)),
        ])
    }

    func testWithoutAnObserverNobodyIsToldOfAnswers() {
        var play = Play()
        play.downloads.hasObserver = false
        let entry = play.submit("a")
        play.receive(entry.transfer, 5, of: 5)
        play.finished(entry.transfer)
        play.expectObserved([
            .start(entry.transfer), .observe(entry.transfer, .stopped(.ok), subscribers: 1),
            .end(entry.subscriber, .success(variant: nil)),
        ])
    }

    func testN3_ATimeoutIsAStop() {
        var play = Play { $0.connectTimeout = 50 }
        let entry = play.submit("a")
        play.skip()
        play.pass(50)
        let seen = play.downloads.takeActions()
        let stop = seen.firstIndex {
            if case .observe(_, .stopped(let code), _) = $0 { code == .connectTimeout } else { false }
        }
        let end = seen.firstIndex { if case .end(entry.subscriber, _) = $0 { true } else { false } }
        XCTAssertNotNil(stop)
        XCTAssertLessThan(stop!, end!)
    }
}
