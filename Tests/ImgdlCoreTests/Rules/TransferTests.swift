import XCTest

@testable import ImgdlCore

/// What the transport reports and what follows: progress, statuses, limits, failures.
final class TransferTests: XCTestCase {
    private func failure(_ code: ErrorCode, _ message: String, _ status: Int32) -> Outcome {
        .failure(Failure(code, message, status: status))
    }

    // MARK: Progress

    func testProgressWithAKnownLength() {
        var play = Play()
        let a = play.submit("a", .with(.progress) { $0.decode = nil })
        play.receive(a.transfer, 4, of: 10)
        play.body(a.transfer, 6)
        play.finished(a.transfer)
        play.expect(
            [
                .start(a.transfer), .emit(a.subscriber, .progress(received: 4, expected: 10)),
                .emit(a.subscriber, .progress(received: 10, expected: 10)), .end(a.subscriber, .success(variant: nil)),
                .forget(a.transfer),
            ], "the last progress is the final one: it comes once")
    }

    func testProgressWithAnUnknownLengthEndsWithIt() {
        for isEncoded in [false, true] {
            var play = Play()
            let a = play.submit("a", .with(.progress) { $0.decode = nil })
            play.connected(a.transfer)
            play.head(a.transfer, length: isEncoded ? 3 : nil, isEncoded: isEncoded)
            play.body(a.transfer, 4)
            play.finished(a.transfer)
            play.expect([
                .start(a.transfer), .emit(a.subscriber, .progress(received: 4, expected: -1)),
                .emit(a.subscriber, .progress(received: 4, expected: 4)), .end(a.subscriber, .success(variant: nil)),
                .forget(a.transfer),
            ])
        }
    }

    func testProgressOfAnEmptyBody() {
        var play = Play()
        let a = play.submit("a", .with(.progress) { $0.decode = nil })
        play.connected(a.transfer)
        play.head(a.transfer, length: 0)
        play.finished(a.transfer)
        play.expect([
            .start(a.transfer), .emit(a.subscriber, .progress(received: 0, expected: 0)),
            .end(a.subscriber, .success(variant: nil)), .forget(a.transfer),
        ])
    }

    // MARK: Statuses

    /// Features T10: the body of an error page is read for the connection's sake and never decoded.
    func testAnErrorPageIsDrained() {
        var play = Play()
        let a = play.submit("a", .with([.response, .progress, .partial]))
        play.connected(a.transfer)
        XCTAssertEqual(play.head(a.transfer, 404, length: 9), .discard)
        play.body(a.transfer, 9)
        play.expect([.start(a.transfer), .emit(a.subscriber, .response)])
        play.finished(a.transfer)
        play.expect([
            .end(a.subscriber, failure(.invalidStatus, "the server answered 404 (not found)", 404)),
            .forget(a.transfer),
        ])
        play.expectEmpty()
    }

    func testADrainThatFailsOrTakesTooLongChangesNothing() {
        let outcome = failure(.invalidStatus, "the server answered 500 (internal server error)", 500)
        for isSlow in [false, true] {
            var play = Play()
            let a = play.submit("a", .with { $0.salvages = true })
            play.connected(a.transfer)
            play.head(a.transfer, 500)
            play.skip()
            if isSlow {
                for _ in 0..<9 {
                    play.pass(100)
                    play.body(a.transfer, 1)
                }
                play.expect([])
                play.pass(100)
                play.expect([.stop(a.transfer), .end(a.subscriber, outcome), .forget(a.transfer)])
            } else {
                play.failed(a.transfer, .lost)
                play.expect([.end(a.subscriber, outcome), .forget(a.transfer)])
            }
        }
    }

    func testWhoAcceptsAnyStatusGetsTheBody() {
        var play = Play()
        let a = play.submit(
            "a",
            .with {
                $0.decode = nil; $0.acceptsAnyStatus = true
            })
        let b = play.submit("a", .image)
        play.connected(a.transfer)
        play.skip()
        XCTAssertEqual(play.head(a.transfer, 404), .receive)
        play.expect([.end(b.subscriber, failure(.invalidStatus, "the server answered 404 (not found)", 404))])
        XCTAssertNotEqual(play.submit("a").transfer, a.transfer, "a joiner would have missed its refusal")
        play.skip()
        play.body(a.transfer, 9)
        play.expect([])
        play.finished(a.transfer)
        play.expect([.end(a.subscriber, .success(variant: nil)), .forget(a.transfer)])
    }

    func testNotModified() {
        var play = Play()
        let request = TransferRequest(
            url: testURL("https://a.example/a"), fields: [HeaderField("If-None-Match", "\"1\"")])
        let a = play.submit(request)
        play.connected(a.transfer)
        XCTAssertEqual(play.head(a.transfer, 304), .discard)
        play.finished(a.transfer)
        play.expect([
            .start(a.transfer),
            .end(a.subscriber, failure(.notModified, "not modified since the caller's copy (304)", 304)),
            .forget(a.transfer),
        ])
    }

    // MARK: The limit on the body

    func testAnAnnouncedLengthAboveTheLimitEndsOnlyWhoSetIt() {
        var play = Play()
        let a = play.submit(
            "a",
            .with {
                $0.decode = nil; $0.maximumBodyBytes = 9
            })
        let b = play.submit(
            "a",
            .with {
                $0.decode = nil; $0.maximumBodyBytes = 10
            })
        play.connected(a.transfer)
        play.skip()
        XCTAssertEqual(play.head(a.transfer, length: 10), .receive)
        let refusal = failure(.bodyLimit, "the server announces 10 bytes, the limit is 9 bytes", 200)
        play.expect([.end(a.subscriber, refusal)])
        let c = play.submit(
            "a",
            .with {
                $0.decode = nil; $0.maximumBodyBytes = 9
            })
        play.expect([.end(c.subscriber, refusal)])
        play.body(b.transfer, 10)
        play.finished(b.transfer)
        play.expect([.end(b.subscriber, .success(variant: nil)), .forget(b.transfer)])
    }

    func testAnAnnouncedLengthAboveEveryLimitStopsTheTransfer() {
        var play = Play(width: 1)
        let a = play.submit("a", .with { $0.maximumBodyBytes = 9 })
        let next = play.submit("next")
        play.connected(a.transfer)
        play.skip()
        XCTAssertEqual(play.head(a.transfer, length: 1 << 40), .discard)
        play.expect([
            .end(
                a.subscriber,
                failure(.bodyLimit, "the server announces 1099511627776 bytes, the limit is 9 bytes", 200)),
            .stop(a.transfer), .forget(a.transfer), .start(next.transfer),
        ])
    }

    func testBytesAboveTheLimitEndOnlyWhoSetIt() {
        var play = Play()
        let a = play.submit(
            "a",
            .with(.progress) {
                $0.decode = nil; $0.maximumBodyBytes = 9
            })
        let b = play.submit(
            "a",
            .with {
                $0.decode = nil; $0.maximumBodyBytes = 12
            })
        play.receive(a.transfer, 9)
        play.skip()
        play.body(a.transfer, 1)
        play.expect([.end(a.subscriber, failure(.bodyLimit, "the body is larger, the limit is 9 bytes", 200))])
        let c = play.submit("a", .with { $0.maximumBodyBytes = 9 })
        play.expect([.end(c.subscriber, failure(.bodyLimit, "the body is larger, the limit is 9 bytes", 200))])
        play.body(b.transfer, 3)
        play.expect([
            .end(b.subscriber, failure(.bodyLimit, "the body is larger, the limit is 12 bytes", 200)),
            .stop(b.transfer), .forget(b.transfer),
        ])
        play.expectEmpty()
    }

    func testTheLengthOfAHeadRequestIsNoBody() {
        var play = Play()
        let a = play.submit(
            TransferRequest(url: testURL("https://a.example/a"), method: "HEAD"),
            .with {
                $0.decode = nil; $0.maximumBodyBytes = 1
            })
        play.connected(a.transfer)
        XCTAssertEqual(play.head(a.transfer, length: 1000), .receive)
        play.skip()
        play.finished(a.transfer)
        play.expect([.end(a.subscriber, .success(variant: nil)), .forget(a.transfer)])
    }

    // MARK: Failures

    func testAFailureEndsAllAndStartsTheNext() {
        var play = Play(width: 1)
        let a = play.submit("a", .image)
        let b = play.submit("a")
        let next = play.submit("next")
        play.skip()
        play.failed(a.transfer, .lost)
        play.expect([
            .end(a.subscriber, .lost), .end(b.subscriber, .lost), .forget(a.transfer), .start(next.transfer),
        ])
    }

    /// Features B5.
    func testWhoSalvagesGetsPixelsWithTheFailure() {
        var play = Play()
        let a = play.submit("a", .with { $0.salvages = true })
        let b = play.submit("a", .image)
        let c = play.submit(
            "a",
            .with {
                $0.salvages = true; $0.decode = .number(1)
            })
        let d = play.submit(
            "a",
            .with {
                $0.salvages = true; $0.decode = nil
            })
        play.receive(a.transfer, 4, of: 9)
        play.skip()
        play.failed(a.transfer, .lost)
        let lost = Failure.lost.with(status: 200)
        play.expect([
            .end(b.subscriber, .failure(lost)), .end(d.subscriber, .failure(lost)),
            .decode(a.transfer, variant: 0, .salvage), .decode(a.transfer, variant: 1, .salvage),
        ])
        play.stepped(a.transfer, variant: 1, .finished)
        play.expect([.end(c.subscriber, .failure(lost, salvaged: 1))], "a whole picture is still a failed transfer")
        play.stepped(a.transfer, variant: 0, .failed(Failure(.truncated, "cut")))
        play.expect([.end(a.subscriber, .failure(lost, salvaged: 0)), .forget(a.transfer)])
        play.expectEmpty()
    }

    func testWithoutABodyThereIsNothingToSalvage() {
        var play = Play()
        let a = play.submit("a", .with { $0.salvages = true })
        play.connected(a.transfer)
        play.skip()
        play.failed(a.transfer, .lost)
        play.expect([.end(a.subscriber, .lost), .forget(a.transfer)])
    }
}
