import XCTest

@testable import ImgdlCore

/// When a hook is asked and what becomes of its answer (features R1–R3, M16, K8–K11, B23).
final class HookTests: XCTestCase {
    private func request(
        _ kinds: HookKinds, method: String = "GET", path: String = "a"
    ) -> TransferRequest {
        TransferRequest(url: testURL("https://a.example/\(path)"), method: method, hooks: SilentHooks(kinds))
    }
    private func ask(_ entry: Play.Entry, _ kind: Question.Kind, _ number: UInt64) -> Action {
        .ask(entry.transfer, Question(kind, number: number))
    }
    private func head(_ status: Int32, type: String? = nil) -> ResponseHead {
        let fields = type.map { [HeaderField("Content-Type", $0)] } ?? []
        return ResponseHead(status: status, httpVersion: 11, fields: fields, contentLength: nil, isEncoded: false)
    }
    private let refusal = Failure(.invalidOperation, "the hook refuses")

    // MARK: The request

    func testTheRequestIsAskedForWithItsPlaceTaken() {
        var play = Play(width: 1)
        let a = play.submit(request(.modifyRequest), .with(.started) { $0.decode = nil })
        let next = play.submit("next")
        play.expect([ask(a, .request, 1), .emit(a.subscriber, .started)])
        XCTAssertEqual(play.downloads.runningCount, 1)
        play.answer(a.transfer, 1, .unchanged)
        play.expect([.start(a.transfer)])
        play.receive(a.transfer, 1)
        play.finished(a.transfer)
        play.expect([.end(a.subscriber, .success(variant: nil)), .forget(a.transfer), .start(next.transfer)])
    }

    func testARefusedRequestEndsWithoutATransport() {
        var play = Play(width: 1)
        let a = play.submit(request(.modifyRequest))
        let next = play.submit("next")
        play.skip()
        play.answer(a.transfer, 1, .refused(refusal))
        play.expect([.end(a.subscriber, .failure(refusal)), .forget(a.transfer), .start(next.transfer)])
    }

    /// Hops, loops and origins go by the new URL; sharing by the first request.
    func testAReplacedRequestBeginsTheHops() {
        var play = Play()
        let original = request([.modifyRequest])
        let a = play.submit(original)
        let other = OutgoingRequest(url: testURL("https://b.example/b"), method: "POST", fields: [], body: [1])
        play.answer(a.transfer, 1, .request(other))
        XCTAssertEqual(play.submit(original).transfer, a.transfer)
        play.connected(a.transfer)
        play.head(a.transfer, 307, location: .success(testURL("https://b.example/c")))
        play.skip()
        play.finished(a.transfer)
        play.expect(
            [
                .follow(
                    a.transfer,
                    Redirect(url: testURL("https://b.example/c"), method: "POST", sendsBody: true, leavesOrigin: false))
            ], "the hook is not asked about hops")
        play.connected(a.transfer)
        play.head(a.transfer, 307, location: .success(testURL("https://b.example/b")))
        XCTAssertEqual(play.downloads.transfers[a.transfer].doom?.code, .tooManyRedirects)
    }

    func testItIsAskedAgainBeforeEachRetry() {
        var play = Play()
        let a = play.submit(
            request(.modifyRequest),
            .with {
                $0.decode = nil; $0.retry.count = 1; $0.retry.base = 0
            })
        let other = OutgoingRequest(url: testURL("https://b.example/b"), method: "GET", fields: [], body: nil)
        play.answer(a.transfer, 1, .request(other))
        play.skip()
        play.failed(a.transfer, .lost)
        play.expect([.restart(a.transfer), ask(a, .request, 2)])
        XCTAssertEqual(play.downloads.transfers[a.transfer].hops.map(\.canonical), ["https://a.example/a"])
        play.answer(a.transfer, 2, .unchanged)
        play.expect([.start(a.transfer)])
    }

    // MARK: The response

    func testTheResponseIsAskedForBeforeItIsJudgedOrTold() {
        var play = Play()
        let a = play.submit(request(.modifyResponse), .with([.response, .progress]) { $0.decode = nil })
        play.connected(a.transfer)
        play.skip()
        XCTAssertEqual(play.head(a.transfer, 404), .receive)
        play.expect([ask(a, .response, 1), .setPaused(a.transfer, true)])
        play.answer(a.transfer, 1, .response(head(200), retryAfter: nil))
        play.expect([.emit(a.subscriber, .response), .setPaused(a.transfer, false)])
        play.body(a.transfer, 3)
        play.finished(a.transfer)
        play.expect([
            .emit(a.subscriber, .progress(received: 3, expected: -1)),
            .emit(a.subscriber, .progress(received: 3, expected: 3)), .end(a.subscriber, .success(variant: nil)),
            .forget(a.transfer),
        ])
    }

    /// T24: what the hook makes of it drives the checks.
    func testAReplacedResponseIsValidated() {
        for (status, type, code) in [
            (500, "image/png", .invalidStatus), (200, "text/html", .invalidContentType),
        ] as [(Int32, String, ErrorCode)] {
            var play = Play()
            let a = play.submit(
                request(.modifyResponse),
                .with {
                    $0.decode = nil; $0.validation.contentTypes = ["image/*"]
                })
            play.connected(a.transfer)
            play.head(a.transfer, 200, type: "image/png")
            play.answer(a.transfer, 1, .response(head(status, type: type), retryAfter: nil))
            XCTAssertEqual(play.downloads.disposition(a.transfer), .discard)
            play.skip()
            play.finished(a.transfer)
            guard case .end(_, .failure(let failure, _))? = play.take().first else { return XCTFail() }
            XCTAssertEqual(failure.code, code)
            XCTAssertEqual(failure.status, status)
        }
    }

    func testARefusedResponseIsDrained() {
        var play = Play { $0.drainBytes = 100 }
        let a = play.submit(request(.modifyResponse), .with(.response) { $0.retry.count = 3 })
        play.connected(a.transfer)
        play.head(a.transfer, 503)
        let refused = Failure(.invalidResponse, "the hook refuses")
        play.answer(a.transfer, 1, .refused(refused))
        play.skip()
        play.body(a.transfer, 100)
        play.expect([])
        play.body(a.transfer, 1)
        play.expect(
            [.stop(a.transfer), .end(a.subscriber, .failure(refused.with(status: 503))), .forget(a.transfer)],
            "no further than a drain goes, and never tried again")
    }

    func testAnEndThatComesMeanwhileWaits() {
        for fails in [false, true] {
            var play = Play(width: 1)
            let a = play.submit(request(.modifyResponse))
            let next = play.submit("next")
            play.connected(a.transfer)
            play.head(a.transfer)
            play.skip()
            play.body(a.transfer, 4)
            if fails { play.failed(a.transfer, .lost) } else { play.finished(a.transfer) }
            play.expect([])
            play.answer(a.transfer, 1, .unchanged)
            play.expect([
                .end(a.subscriber, fails ? .failure(Failure.lost.with(status: 200)) : .success(variant: nil)),
                .forget(a.transfer), .start(next.transfer),
            ])
        }
    }

    // MARK: Redirects

    func testARedirectThatIsAllowedIsAskedFor() {
        let b = testURL("https://a.example/b")
        var play = Play()
        let a = play.submit(request(.redirect))
        play.connected(a.transfer)
        XCTAssertEqual(play.head(a.transfer, 302, location: .success(b)), .discard)
        play.skip()
        play.finished(a.transfer)
        play.expect([ask(a, .redirect(b), 1)])
        XCTAssertEqual(play.downloads.runningCount, 1)
        play.answer(a.transfer, 1, .unchanged)
        play.expect([.follow(a.transfer, Redirect(url: b, method: "GET", sendsBody: false, leavesOrigin: false))])
        play.connected(a.transfer)
        play.head(a.transfer, 302, location: .success(testURL("http://a.example/c")))
        play.finished(a.transfer)
        XCTAssertEqual(play.downloads.transferCount, 0, "what the rules refuse is not asked for")
    }

    /// The rules hold for what the hook says, too.
    func testAReplacedTargetIsJudgedLikeALocation() {
        let elsewhere = testURL("https://b.example/c")
        let outcomes: [(Result<ParsedURL, Failure>, ErrorCode?)] = [
            (.success(elsewhere), nil), (.success(testURL("http://b.example/c")), .redirectRefused),
            (.success(testURL("https://a.example/a")), .tooManyRedirects),
            (.failure(Failure(.invalidURL, "no host")), .redirectRefused),
        ]
        for (target, code) in outcomes {
            var play = Play()
            let a = play.submit(request(.redirect))
            play.connected(a.transfer)
            play.head(a.transfer, 302, location: .success(testURL("https://a.example/b")))
            play.finished(a.transfer)
            play.skip()
            play.answer(a.transfer, 1, .redirect(target))
            let first = play.take().first
            if let code {
                guard case .end(_, .failure(let failure, _))? = first else { return XCTFail("\(code)") }
                XCTAssertEqual(failure.code, code)
            } else {
                XCTAssertEqual(
                    first,
                    .follow(a.transfer, Redirect(url: elsewhere, method: "GET", sendsBody: false, leavesOrigin: true)))
            }
        }
    }

    // MARK: Challenges

    func testAChallengeIsAskedForOnce() {
        var play = Play()
        let a = play.submit(request(.authenticate))
        play.connected(a.transfer)
        play.skip()
        XCTAssertEqual(play.head(a.transfer, 401), .receive)
        play.expect([ask(a, .challenge, 1), .setPaused(a.transfer, true)])
        let credential = Credential(user: "u", password: "p")
        play.answer(a.transfer, 1, .credential(credential))
        play.expect([.setPaused(a.transfer, false)])
        XCTAssertEqual(play.downloads.disposition(a.transfer), .discard)
        play.finished(a.transfer)
        play.expect([.authenticate(a.transfer, credential)])
        play.connected(a.transfer)
        play.head(a.transfer, 401)
        play.finished(a.transfer)
        let failure = Failure(.invalidStatus, "the server answered 401 (authentication required)", status: 401)
        play.expect([.end(a.subscriber, .failure(failure)), .forget(a.transfer)])
    }

    func testAChallengeWithoutAnswerIsAResponse() {
        var play = Play()
        let a = play.submit(
            request([.authenticate, .modifyResponse]),
            .with {
                $0.decode = nil; $0.acceptsAnyStatus = true
            })
        play.connected(a.transfer)
        play.head(a.transfer, 401)
        play.skip()
        play.answer(a.transfer, 1, .unchanged)
        play.expect([ask(a, .response, 2)], "still paused")
        play.answer(a.transfer, 2, .unchanged)
        play.expect([.setPaused(a.transfer, false)])
        play.body(a.transfer, 3)
        play.finished(a.transfer)
        play.expect([.end(a.subscriber, .success(variant: nil)), .forget(a.transfer)])
    }

    // MARK: Bodies

    func testABodyIsAskedForWhenItIsWholeAndDecodedThen() {
        var play = Play(width: 1) { $0.earlyDecodeBytes = 1 }
        let a = play.submit(request(.transformBody), .with([.header, .progress, .partial]) { $0.salvages = true })
        let next = play.submit("next")
        play.receive(a.transfer, 10)
        play.finished(a.transfer)
        play.expect(
            [
                .start(a.transfer), .emit(a.subscriber, .progress(received: 10, expected: -1)),
                .emit(a.subscriber, .progress(received: 10, expected: 10)), ask(a, .body, 1), .start(next.transfer),
            ], "nothing is decoded early, and the place is free")
        play.answer(a.transfer, 1, .body(bytes: 10))
        play.expect([.decode(a.transfer, variant: 0, .finish)])
        play.stepped(a.transfer, .finished, header: true)
        play.expect([
            .emit(a.subscriber, .header(variant: 0)), .end(a.subscriber, .success(variant: 0)), .forget(a.transfer),
        ])
    }

    func testARefusedBodyIsNobodys() {
        var play = Play()
        let shared = request(.transformBody)
        let a = play.submit(shared)
        let b = play.submit(shared, .image)
        play.receive(a.transfer, 10)
        play.finished(a.transfer)
        let c = play.submit(shared)
        XCTAssertEqual(c.transfer, a.transfer)
        play.skip()
        play.answer(a.transfer, 1, .refused(.bad))
        let bad = Outcome.failure(Failure.bad.with(status: 200))
        play.expect([.end(a.subscriber, bad), .end(b.subscriber, bad), .end(c.subscriber, bad), .forget(a.transfer)])
    }

    // MARK: Time

    func testClocksStandStillWhileItIsAskedButNotTheTotalOne() {
        for kinds in [HookKinds.modifyRequest, .modifyResponse] {
            var play = Play {
                $0.connectTimeout = 100; $0.idleTimeout = 100
            }
            let a = play.submit(
                request(kinds),
                .with {
                    $0.decode = nil; $0.totalTimeout = 5_000
                })
            if kinds == .modifyResponse {
                play.connected(a.transfer)
                play.head(a.transfer)
            }
            play.skip()
            play.pass(4_900)
            play.expect([])
            play.answer(a.transfer, 1, .unchanged)
            play.skip()
            play.pass(99)
            play.expect([], "a clock of its own begins with the answer")
            play.pass(1)
            guard case .end? = play.take().first(where: { if case .end = $0 { true } else { false } })
            else { return XCTFail() }
            play.expectEmpty()
        }
    }

    func testAHookThatNeverAnswersAndACancel() {
        for kinds in [HookKinds.modifyRequest, .modifyResponse, .transformBody] {
            for isCancelled in [false, true] {
                var play = Play()
                let a = play.submit(
                    request(kinds),
                    .with {
                        $0.decode = nil; $0.totalTimeout = 500
                    })
                play.receive(a.transfer, 1)
                play.finished(a.transfer)
                play.skip()
                if isCancelled { play.cancel(a) } else { play.pass(500) }
                let last = play.take()
                XCTAssertEqual(last.last, .forget(a.transfer))
                XCTAssertEqual(last.count, 2, "nothing is at the transport any more")
                play.expectEmpty()
                play.answer(a.transfer, 1, .unchanged)
                play.expect([], "too late")
            }
        }
    }

    func testAnswersToOldQuestionsMeanNothing() {
        var play = Play()
        let a = play.submit(request([.modifyRequest, .modifyResponse]))
        play.answer(a.transfer, 1, .unchanged)
        play.connected(a.transfer)
        play.head(a.transfer)
        play.skip()
        play.answer(a.transfer, 1, .refused(refusal))
        play.answer(a.transfer, 3, .refused(refusal))
        play.expect([])
        play.answer(a.transfer, 2, .unchanged)
        play.answer(a.transfer, 2, .refused(refusal))
        play.expect([.setPaused(a.transfer, false)])
    }

    // MARK: Bodies that come while a hook is asked

    func testTheyMeetTheirLimitWithTheAnswer() {
        for isFinished in [false, true] {
            var play = Play()
            let a = play.submit(
                request(.modifyResponse),
                .with {
                    $0.decode = nil; $0.maximumBodyBytes = 10
                })
            play.connected(a.transfer)
            play.head(a.transfer)
            play.body(a.transfer, 11)
            if isFinished { play.finished(a.transfer) }
            play.skip()
            play.answer(a.transfer, 1, .unchanged)
            let actions = play.take()
            guard let end = actions.first(where: { if case .end = $0 { true } else { false } }),
                case .end(_, .failure(let failure, _)) = end
            else { return XCTFail("a body that is too large") }
            XCTAssertEqual(failure.code, .bodyLimit)
            XCTAssertEqual(actions.contains(.stop(a.transfer)), !isFinished)
        }
    }

    private func failures(_ actions: [Action]) -> [ErrorCode] {
        actions.compactMap { if case .end(_, .failure(let failure, _)) = $0 { failure.code } else { nil } }
    }

    /// What is held at the transport, for as long as a hook is silent.
    func testWhatIsHeldMeetsItsLimitAtOnce() {
        var play = Play()
        let asking = request(.modifyResponse)
        let a = play.submit(asking, .with { $0.maximumBodyBytes = 10 })
        let b = play.submit(asking, .with { $0.maximumBodyBytes = 20 })
        XCTAssertEqual(a.transfer, b.transfer)
        play.connected(a.transfer)
        play.head(a.transfer)
        play.skip()
        XCTAssertEqual(play.downloads.bodyLimit(a.transfer), 20)
        play.downloads.bodyHeld(a.transfer, 11, play.now)
        XCTAssertEqual(failures(play.take()), [.bodyLimit], "of who takes no more than 10")
        play.downloads.bodyHeld(a.transfer, 21, play.now)
        let actions = play.take()
        XCTAssertEqual(failures(actions), [.bodyLimit])
        XCTAssertTrue(actions.contains(.stop(a.transfer)))
        XCTAssertEqual(play.downloads.memoryInUse, 0)
        play.answer(a.transfer, 1, .unchanged)
        play.expect([], "too late")
    }

    /// The body of a challenge, and of a response that is refused, may be of any length.
    func testWhatIsHeldOfABodyThatMayBeNobodysMeetsNoLimit() {
        for (kinds, status) in [(HookKinds.authenticate, Int32(401)), (.modifyResponse, 404)] {
            var play = Play()
            let a = play.submit(request(kinds), .with { $0.maximumBodyBytes = 10 })
            play.connected(a.transfer)
            play.head(a.transfer, status)
            XCTAssertEqual(play.downloads.bodyLimit(a.transfer), .max)
            play.skip()
            play.downloads.bodyHeld(a.transfer, 50, play.now)
            play.expect([])
            XCTAssertEqual(play.downloads.memoryInUse, 50)
            play.downloads.cancel(a.subscriber, play.now)
            XCTAssertEqual(play.downloads.memoryInUse, 0)
        }
    }

    /// It does once a hook has made a response of it that is taken, also where memory keeps it from coming on.
    func testWhatIsHeldMeetsItsLimitWithTheAnswer() {
        let head = ResponseHead(status: 200, httpVersion: 11, fields: [], contentLength: nil, isEncoded: false)
        for answer in [Answer.response(head, retryAfter: nil), .unchanged] {
            var play = Play()
            let a = play.submit(request(.modifyResponse), .with { $0.maximumBodyBytes = 10 })
            play.connected(a.transfer)
            play.head(a.transfer, 404)
            play.downloads.bodyHeld(a.transfer, 50, play.now)
            play.skip()
            play.answer(a.transfer, 1, answer)
            guard case .response = answer else {
                XCTAssertEqual(failures(play.take()), [], "it is refused, whatever its length")
                continue
            }
            let actions = play.take()
            XCTAssertEqual(failures(actions), [.bodyLimit])
            XCTAssertTrue(actions.contains(.stop(a.transfer)))
            XCTAssertEqual(play.downloads.memoryInUse, 0)
        }
    }

    /// The transport could not hold what came: no answer brings that back.
    func testABodyThatCannotBeHeldEndsWithoutTheAnswer() {
        for (kinds, status) in [(HookKinds.authenticate, Int32(401)), (.modifyResponse, 200)] {
            var play = Play(width: 1)
            let a = play.submit(request(kinds), .with { $0.salvages = true })
            let next = play.submit("next")
            play.connected(a.transfer)
            play.head(a.transfer, status)
            play.downloads.bodyHeld(a.transfer, 50, play.now)
            play.skip()
            play.failed(a.transfer, Failure(.bodyLimit, "too much"))
            let actions = play.take()
            XCTAssertEqual(failures(actions), [.bodyLimit])
            XCTAssertTrue(actions.contains(.start(next.transfer)))
            XCTAssertFalse(actions.contains(.stop(a.transfer)), "there is nothing to stop")
            XCTAssertEqual(play.downloads.memoryInUse, 0)
            play.answer(a.transfer, 1, .unchanged)
            play.expect([], "too late")
        }
    }

    func testTheyAreToldAndDecodedWithTheAnswer() {
        var play = Play()
        let a = play.submit(request(.modifyResponse), .with([.progress, .partial]))
        play.connected(a.transfer)
        play.head(a.transfer)
        play.body(a.transfer, 7)
        play.skip()
        play.answer(a.transfer, 1, .unchanged)
        play.expect([
            .setPaused(a.transfer, false), .emit(a.subscriber, .progress(received: 7, expected: -1)),
            .decode(a.transfer, variant: 0, .feed(showing: true)),
        ])
    }

    /// What came of the challenge is not the beginning of the picture.
    func testThoseOfAChallengeAreNotThePicture() {
        var play = Play()
        let a = play.submit(request(.authenticate), .with(.progress))
        play.connected(a.transfer)
        play.head(a.transfer, 401, length: 35)
        play.body(a.transfer, 35)
        play.answer(a.transfer, 1, .credential(Credential(user: "u", password: "p")))
        play.skip()
        play.finished(a.transfer)
        play.expect([.authenticate(a.transfer, Credential(user: "u", password: "p"))])
        XCTAssertEqual(play.downloads.memoryInUse, 0)
        play.receive(a.transfer, 5, of: 5)
        play.expect([.emit(a.subscriber, .progress(received: 5, expected: 5))])
    }

    func testAPriorityIsNotToldOfAnEndThatWaits() {
        var play = Play()
        let a = play.submit(request(.modifyResponse))
        play.connected(a.transfer)
        play.head(a.transfer)
        play.finished(a.transfer)
        play.skip()
        play.downloads.setPriority(a.subscriber, .high)
        play.expect([])
    }
}
