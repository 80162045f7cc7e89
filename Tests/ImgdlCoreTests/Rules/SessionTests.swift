import XCTest

@testable import ImgdlCore

/// Features M4, M5, M11, D7: the end of a session and a new one.
final class SessionTests: XCTestCase {
    private let refused = Outcome.failure(Failure(.invalidOperation, "the downloader's session is invalidated"))

    /// D7: what waits ends, and no place stays taken.
    func testInvalidatingLetsWhatRunsFinish() {
        var play = Play(width: 1)
        let running = play.submit("a")
        let waiting = play.submit("b")
        let joined = play.submit("b", .priority(.high))
        play.skip()
        play.downloads.invalidate(cancels: false, play.now)
        play.expect([.end(waiting.subscriber, refused), .end(joined.subscriber, refused), .forget(waiting.transfer)])
        play.finished(running.transfer)
        play.expect([.end(running.subscriber, .success(variant: nil)), .forget(running.transfer)])
        play.expectEmpty()
    }

    func testInvalidatingWithCancelEndsAll() {
        var play = Play(width: 1)
        let running = play.submit("a")
        let waiting = play.submit("b")
        play.skip()
        play.downloads.invalidate(cancels: true, play.now)
        play.expect([
            .end(running.subscriber, .cancelled), .stop(running.transfer), .forget(running.transfer),
            .end(waiting.subscriber, .cancelled), .forget(waiting.transfer),
        ])
        play.expectEmpty()
    }

    func testAnewWithOtherLimits() {
        var play = Play(width: 1)
        _ = play.submit("a")
        _ = play.submit("b")
        var limits = Limits()
        limits.maximumConcurrent = 4
        limits.maximumPerHost = 2
        play.downloads.reconfigure(limits, play.now)
        play.expectEmpty()
        play.skip()
        let ids = (0..<5).map { play.submit("\($0)").transfer }
        XCTAssertEqual(play.takeStarts(), Array(ids[..<2]), "two to one host")
    }

    /// It has begun: its next attempt belongs to it.
    func testInvalidatingLetsWhatIsTriedAgainFinish() {
        var play = Play(width: 1)
        let a = play.submit(
            "a",
            .with {
                $0.decode = nil; $0.retry.count = 2
            })
        let b = play.submit("b")
        play.failed(a.transfer, .lost)
        play.skip()
        play.downloads.invalidate(cancels: false, play.now)
        play.expect([])
        play.pass(1_000)
        play.skip()
        play.failed(b.transfer, .lost)
        XCTAssertEqual(play.takeStarts(), [a.transfer])
        play.finished(a.transfer)
        play.expect([.end(a.subscriber, .success(variant: nil)), .forget(a.transfer)])
        play.expectEmpty()
    }

    func testAnewWhileSomethingRests() {
        var play = Play()
        let a = play.submit(
            "a",
            .with {
                $0.decode = nil; $0.retry.count = 2
            })
        play.failed(a.transfer, .lost)
        play.skip()
        play.downloads.reconfigure(Limits(), play.now)
        play.expect([.end(a.subscriber, .cancelled), .forget(a.transfer)])
        XCTAssertEqual(play.downloads.decodingCount, 0)
        XCTAssertNil(play.downloads.nextDeadline)
    }
}
