import XCTest

@testable import ImgdlCore

/// What follows when the transport reports a redirect; which ones are followed is RedirectRules' own.
final class RedirectTests: XCTestCase {
    private func redirect(_ path: String, method: String = "GET", sendsBody: Bool = false) -> Redirect {
        Redirect(
            url: testURL("https://a.example/\(path)"), method: method, sendsBody: sendsBody, leavesOrigin: false)
    }
    private func location(_ path: String) -> Result<ParsedURL, Failure> {
        .success(testURL("https://a.example/\(path)"))
    }
    private func failure(_ code: ErrorCode, _ message: String, _ status: Int32) -> Outcome {
        .failure(Failure(code, message, status: status))
    }

    func testARedirectIsDrainedThenFollowed() {
        var play = Play()
        let a = play.submit("a", .with([.started, .response, .progress]) { $0.decode = nil })
        play.connected(a.transfer)
        XCTAssertEqual(play.head(a.transfer, 302, location: location("b")), .discard)
        play.body(a.transfer, 100)
        play.expect([.start(a.transfer), .emit(a.subscriber, .started)])
        play.finished(a.transfer)
        play.expect([.follow(a.transfer, redirect("b"))])
        play.receive(a.transfer, 3, of: 3)
        play.finished(a.transfer)
        play.expect(
            [
                .emit(a.subscriber, .response), .emit(a.subscriber, .progress(received: 3, expected: 3)),
                .end(a.subscriber, .success(variant: nil)), .forget(a.transfer),
            ], "started once; no word of the redirect's own body")
    }

    func testADrainThatFailsOrTakesTooLongIsFollowedAllTheSame() {
        var play = Play(width: 1)
        let a = play.submit("a")
        _ = play.submit("waits")
        play.connected(a.transfer)
        play.head(a.transfer, 302, location: location("b"))
        play.skip()
        play.failed(a.transfer, .lost)
        play.expect([.follow(a.transfer, redirect("b"))])
        play.connected(a.transfer)
        play.head(a.transfer, 302, location: location("c"))
        play.pass(999)
        play.expect([])
        play.pass(1)
        play.expect([.stop(a.transfer), .follow(a.transfer, redirect("c"))])
        XCTAssertEqual(play.downloads.runningCount, 1, "it keeps its place")
    }

    func testMethodAndBodyOfTheNextHopsGoByTheLast() {
        var play = Play()
        let request = TransferRequest(url: testURL("https://a.example/a"), method: "POST", body: [1])
        let a = play.submit(request)
        for (status, path, expected) in [
            (307, "b", redirect("b", method: "POST", sendsBody: true)), (303, "c", redirect("c")),
            (308, "d", redirect("d")),
        ] as [(Int32, String, Redirect)] {
            play.skip()
            play.connected(a.transfer)
            play.head(a.transfer, status, location: location(path))
            play.finished(a.transfer)
            play.expect([.follow(a.transfer, expected)])
        }
    }

    func testTooManyAndLoops() {
        var play = Play { $0.maximumRedirects = 2 }
        let a = play.submit("a")
        for path in ["b", "c"] {
            play.connected(a.transfer)
            play.head(a.transfer, 302, location: location(path))
            play.finished(a.transfer)
        }
        play.skip()
        XCTAssertEqual(play.head(a.transfer, 302, location: location("d")), .discard)
        play.finished(a.transfer)
        let message = "more than 2 redirects: the next would lead to https://a.example/d"
        play.expect([.end(a.subscriber, failure(.tooManyRedirects, message, 302)), .forget(a.transfer)])
        let b = play.submit("b")
        play.head(b.transfer, 301, location: location("b"))
        play.skip()
        play.finished(b.transfer)
        play.expect([
            .end(
                b.subscriber,
                failure(.tooManyRedirects, "a redirect loop: https://a.example/b leads back to itself", 301)),
            .forget(b.transfer),
        ])
    }

    func testARedirectThatIsNotFollowedIsAnAnswer() {
        var play = Play()
        let request = TransferRequest(url: testURL("https://a.example/a"), followsRedirects: false)
        let a = play.submit(request, .with(.response) { $0.decode = nil })
        play.connected(a.transfer)
        XCTAssertEqual(play.head(a.transfer, 302, length: 3, location: location("b")), .receive)
        play.body(a.transfer, 3)
        play.finished(a.transfer)
        play.expect([
            .start(a.transfer), .emit(a.subscriber, .response), .end(a.subscriber, .success(variant: nil)),
            .forget(a.transfer),
        ])
    }
}
