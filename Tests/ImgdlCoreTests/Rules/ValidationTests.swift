import XCTest

@testable import ImgdlCore

/// What belongs to each subscriber of one transfer: what it accepts, how long it waits, how often it is told (features B4,
/// B16, B18, B19, C3, C9, C10, D8, I32).
final class ValidationTests: XCTestCase {
    private func accepting(
        _ statuses: [ClosedRange<Int32>]?, _ types: [String]? = nil, _ events: EventMask = []
    ) -> SubscriberOptions {
        .with(events) {
            $0.decode = nil
            $0.validation.statuses = statuses?.map { StatusRange(first: $0.lowerBound, last: $0.upperBound) }
            $0.validation.contentTypes = types
        }
    }

    /// Features C9, D8: the default is 200 to 299, and says so.
    func testD8StatusesAreThoseThatAreDocumented() {
        let request = TransferRequest(url: testURL("https://a.example/a"))
        for status: Int32 in 100...999 {
            let accepts = { ResponseRules.accepts(status, self.accepting($0), request: request) }
            XCTAssertEqual(accepts(nil), (200...299).contains(status))
            XCTAssertEqual(accepts([200...299, 404...404]), (200...299).contains(status) || status == 404)
            XCTAssertEqual(accepts([206...206]), status == 206)
            XCTAssertFalse(accepts([]))
        }
    }

    /// Features B18, D8, E3: reachable by default, and an answer for who wants it to be one.
    func testD8A304IsNotModifiedUnlessItIsAccepted() {
        let request = TransferRequest(
            url: testURL("https://a.example/a"), fields: [HeaderField("If-None-Match", "\"1\"")])
        func refusal(_ options: SubscriberOptions) -> ErrorCode? {
            ResponseRules.refusal(status: 304, mediaType: "", options, request: request)?.code
        }
        XCTAssertEqual(refusal(accepting(nil)), .notModified)
        XCTAssertEqual(refusal(accepting([200...200])), .notModified)
        XCTAssertNil(refusal(accepting([304...304])))
    }

    /// RFC 9110 section 8.4: who wants the body alone may know what to do about it; a decoder does not.
    func testACodingThatNobodyUndoesIsForWhoWantsTheBody() {
        let request = TransferRequest(url: testURL("https://a.example/a"))
        func refusal(_ options: SubscriberOptions) -> Failure? {
            ResponseRules.refusal(status: 200, mediaType: "", coding: "rot13", options, request: request)
        }
        XCTAssertNil(refusal(accepting(nil)))
        XCTAssertEqual(refusal(SubscriberOptions())?.code, .contentEncoding)
        XCTAssertEqual(refusal(SubscriberOptions())?.message.contains("rot13"), true)
    }

    func testEachIsJudgedByItsOwn() {
        var play = Play()
        let a = play.submit("a", accepting([200...200], nil, .response))
        let b = play.submit("a", accepting(nil, ["image/*"], .response))
        let c = play.submit("a", accepting([404...404]))
        play.connected(a.transfer)
        play.skip()
        XCTAssertEqual(play.head(a.transfer, type: "text/html"), .receive)
        let type = Failure(.invalidContentType, "the server sent text/html, accepted is image/*", status: 200)
        play.expect([
            .emit(a.subscriber, .response), .emit(b.subscriber, .response), .end(b.subscriber, .failure(type)),
            .end(c.subscriber, .failure(Failure(.invalidStatus, "the server answered 200", status: 200))),
        ])
        let d = play.submit("a", accepting(nil, ["image/*"]))
        XCTAssertEqual(d.transfer, a.transfer)
        play.expect([.end(d.subscriber, .failure(type))], "a joiner is judged, too")
        play.body(a.transfer, 1)
        play.finished(a.transfer)
        play.expect([.end(a.subscriber, .success(variant: nil)), .forget(a.transfer)])
    }

    func testWhatNobodyAcceptsIsDrainedAndEachHasItsOwnReason() {
        var play = Play()
        let a = play.submit("a", accepting(nil, ["image/*"]))
        let b = play.submit("a", accepting([404...404]))
        play.connected(a.transfer)
        play.skip()
        XCTAssertEqual(play.head(a.transfer, type: "text/html"), .discard)
        play.expect([])
        play.finished(a.transfer)
        play.expect([
            .end(
                a.subscriber,
                .failure(Failure(.invalidContentType, "the server sent text/html, accepted is image/*", status: 200))),
            .end(b.subscriber, .failure(Failure(.invalidStatus, "the server answered 200", status: 200))),
            .forget(a.transfer),
        ])
    }

    /// Features C10.
    func testAMissingTypePasses() {
        var play = Play()
        let a = play.submit("a", accepting(nil, ["image/png"]))
        play.connected(a.transfer)
        XCTAssertEqual(play.head(a.transfer), .receive)
    }

    /// Features D10, B9: a body shorter than announced is an error, whatever its picture says.
    func testD10AShortBodyIsNoSuccess() {
        var play = Play()
        let a = play.submit("a", .image)
        play.receive(a.transfer, 5, of: 10)
        play.skip()
        play.failed(a.transfer, Failure(.truncated, "5 of 10 bytes"))
        play.expect([
            .end(a.subscriber, .failure(Failure(.truncated, "5 of 10 bytes", status: 200))), .forget(a.transfer),
        ])
    }

    // MARK: Timeouts

    func testConnectAndIdleAreEachSubscribersOwn() {
        for isConnected in [false, true] {
            var play = Play(width: 1) {
                $0.connectTimeout = 500; $0.idleTimeout = 500
            }
            let a = play.submit(
                "a",
                .with {
                    $0.connectTimeout = 100; $0.idleTimeout = 100
                })
            let b = play.submit(
                "a",
                .with {
                    $0.connectTimeout = 900; $0.idleTimeout = 900
                })
            let c = play.submit("a")
            if isConnected { play.connected(a.transfer) }
            play.skip()
            func late(_ milliseconds: Int) -> Outcome {
                isConnected
                    ? .failure(Failure(.idleTimeout, "the server sent nothing of the answer for \(milliseconds) ms"))
                    : .failure(Failure(.connectTimeout, "no connection within \(milliseconds) ms"))
            }
            play.pass(50)
            let d = play.submit(
                "a",
                .with {
                    $0.connectTimeout = 100; $0.idleTimeout = 100
                })
            play.pass(49)
            play.expect([])
            play.pass(1)
            play.expect([.end(a.subscriber, late(100))])
            play.pass(50)
            play.expect([.end(d.subscriber, late(100))], "a joiner's clock starts when it joins")
            play.pass(350)
            play.expect([.end(c.subscriber, late(500))])
            play.pass(399)
            play.expect([])
            play.pass(1)
            play.expect([.stop(a.transfer), .end(b.subscriber, late(900)), .forget(a.transfer)])
            play.expectEmpty()
        }
    }

    func testAByteIsOneForAll() {
        var play = Play()
        let a = play.submit(
            "a",
            .with {
                $0.decode = nil; $0.idleTimeout = 100
            })
        play.connected(a.transfer)
        play.head(a.transfer)
        play.skip()
        for _ in 0..<5 {
            play.pass(99)
            play.body(a.transfer, 1)
        }
        play.expect([])
    }

    // MARK: Progress

    /// Features C3.
    func testTheProgressIntervalHoldsBackAllButTheLast() {
        var play = Play { $0.progressInterval = 0.25 }
        let a = play.submit("a", .with(.progress) { $0.decode = nil })
        play.receive(a.transfer, 24, of: 100)
        play.expect([.start(a.transfer)])
        for (count, told) in [(1, 25), (24, nil), (2, 51), (24, nil), (24, 99), (1, 100)] as [(Int, Int64?)] {
            play.body(a.transfer, count)
            play.expect(told.map { [.emit(a.subscriber, .progress(received: $0, expected: 100))] } ?? [])
        }
    }

    func testTheProgressIntervalIsIgnoredWhereTheWholeIsUnknown() {
        var play = Play { $0.progressInterval = 1 }
        let a = play.submit("a", .with(.progress) { $0.decode = nil })
        play.receive(a.transfer, 1)
        play.skip()
        play.body(a.transfer, 1)
        play.expect([.emit(a.subscriber, .progress(received: 2, expected: -1))])
    }

    func testTheProgressIntervalHoldsBackPartialImages() {
        var play = Play { $0.progressInterval = 0.5 }
        let a = play.submit("a", .with(.partial) { $0.partialInterval = 0 })
        play.receive(a.transfer, 49, of: 100)
        play.expect([.start(a.transfer), .decode(a.transfer, variant: 0, .feed(showing: false))])
        play.stepped(a.transfer, .fed)
        play.body(a.transfer, 1)
        play.expect([.decode(a.transfer, variant: 0, .feed(showing: true))])
        play.stepped(a.transfer, .fed, partial: true)
        play.skip()
        play.body(a.transfer, 49)
        play.expect([.decode(a.transfer, variant: 0, .feed(showing: false))])
    }
}
