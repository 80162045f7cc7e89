import XCTest

@testable import ImgdlCore

/// URLs that failed for good fail at once for a while (features E4, E10, I29).
final class FailedURLsTests: XCTestCase {
    private func instant(_ milliseconds: Int64) -> Instant { Instant(nanoseconds: milliseconds * 1_000_000) }
    private func request(_ number: Int) -> TransferRequest {
        TransferRequest(url: testURL("https://a.example/\(number)"))
    }

    func testItLastsForItsTime() {
        var failed = FailedURLs()
        failed.insert(request(1), .bad, lifetime: 50, instant(100))
        XCTAssertEqual(
            failed.failure(request(1), lifetime: 50, instant(149)),
            Failure(.blacklisted, "it failed 49 ms ago and is not asked for again yet: not a picture"))
        XCTAssertNil(failed.failure(request(2), lifetime: 50, instant(149)))
        XCTAssertNil(failed.failure(request(1), lifetime: 50, instant(150)))
        XCTAssertEqual(failed.count, 0)
    }

    /// A page to log in is no picture for one; for another there is one behind it.
    func testWhoAsksOtherwiseIsNotHeldUp() {
        var failed = FailedURLs()
        failed.insert(request(1), .bad, lifetime: 50, instant(0))
        let url = request(1).url
        let others = [
            TransferRequest(url: url, fields: [HeaderField("Authorization", "x")]),
            TransferRequest(url: url, identity: RequestIdentity(credential: Credential(user: "a", password: "b"))),
            TransferRequest(url: url, identity: RequestIdentity(trust: RequestTrust(partition: "a"))),
            TransferRequest(url: url).asked(with: Array("a=1".utf8)),
            TransferRequest(url: url, fields: [HeaderField("Accept", "image/png")]),
            TransferRequest(url: url, body: [1]),
            TransferRequest(url: url, method: "HEAD"),
        ]
        for other in others { XCTAssertNil(failed.failure(other, lifetime: 50, instant(1))) }
        XCTAssertNotNil(failed.failure(request(1), lifetime: 50, instant(1)))
    }

    /// A Cookie field is what the server gets, whoever wrote it; where it has led to another URL, the jar is asked anew.
    func testTheSameCookiesAreHeldUpWhoeverHasThem() {
        let url = request(1).url
        let jar = RequestIdentity(usesCookies: true)
        let given = TransferRequest(url: url, fields: [HeaderField("Cookie", "a=1")])
        let ofTheJar = TransferRequest(url: url, identity: jar).asked(with: Array("Cookie: a=1".utf8))
        let none = TransferRequest(url: url, identity: jar).asked(with: nil)
        for (one, other) in [(given, ofTheJar), (ofTheJar, given), (none, request(1)), (request(1), none)] {
            var failed = FailedURLs()
            failed.insert(one, .bad, lifetime: 50, instant(0))
            XCTAssertNotNil(failed.failure(other, lifetime: 50, instant(1)))
            failed.insert(one, .bad, hops: [testURL("https://a.example/other")], lifetime: 50, instant(0))
            XCTAssertNotNil(failed.failure(one, lifetime: 50, instant(1)))
            XCTAssertNil(failed.failure(other, lifetime: 50, instant(1)))
            failed.remove(other)
            XCTAssertEqual(failed.count, 0)
        }
    }

    /// 1,024 of them are bounded in bytes, too.
    func testALongRequestIsNotRemembered() {
        var failed = FailedURLs()
        let long = String(repeating: "x", count: FailedURLs.maximumRequestBytes)
        let requests =
            [
                TransferRequest(url: testURL("https://a.example/\(long)")),
                TransferRequest(url: request(1).url, fields: [HeaderField("X", long)]),
                TransferRequest(url: request(1).url, body: Array(long.utf8)),
                TransferRequest(url: request(1).url).asked(with: Array(long.utf8)),
                TransferRequest(
                    url: request(1).url, identity: RequestIdentity(credential: Credential(user: "", password: long))),
                TransferRequest(
                    url: request(1).url, identity: RequestIdentity(trust: RequestTrust(partition: long))),
                TransferRequest(url: request(1).url, method: long),
            ] + trusting(long)
        for request in requests { failed.insert(request, .bad, lifetime: 50, instant(0)) }
        failed.insert(request(1), Failure(.badImageData, long), lifetime: 50, instant(0))
        XCTAssertEqual(failed.count, 0)
    }

    /// With this text in each place where options of TLS have one.
    private func trusting(_ text: String) -> [TransferRequest] {
        let places: [String: WritableKeyPath<TLSOptions, String?>] = [
            "certificateAuthorities": \.certificateAuthorities, "clientCertificate": \.clientCertificate,
            "clientKey": \.clientKey, "clientKeyPassword": \.clientKeyPassword,
            "pinnedPublicKey": \.pinnedPublicKey, "unusable": \.unusable,
        ]
        let texts = Mirror(reflecting: TLSOptions()).children.filter {
            [ObjectIdentifier(ExactOptionalText.self), ObjectIdentifier(String?.self)].contains(
                ObjectIdentifier(type(of: $0.value)))
        }
        XCTAssertEqual(Set(texts.compactMap { $0.label.map { String($0.drop { $0 == "_" }) } }), Set(places.keys))
        return places.values.map { place in
            var tls = TLSOptions()
            tls[keyPath: place] = text
            return TransferRequest(url: request(1).url, identity: RequestIdentity(trust: RequestTrust(tls: tls)))
        }
    }

    private func contents(_ digest: UInt8) -> FileContents {
        FileContents(taking: .allocate(byteCount: 1, alignment: 1), count: 1, digest: [digest])
    }

    private func request(
        _ contents: FileContents, at place: WritableKeyPath<TLSOptions, FileContents?>
    ) -> TransferRequest {
        var tls = TLSOptions()
        tls[keyPath: place] = contents
        return TransferRequest(url: request(1).url, identity: RequestIdentity(trust: RequestTrust(tls: tls)))
    }

    /// Private keys are held as long as requests and connections go by them, and their digests tell requests apart.
    func testWhatWasInAFileIsNotHeld() {
        for place in [\TLSOptions.authorities, \.certificate, \.key] {
            var failed = FailedURLs()
            weak var held: FileContents?
            do {
                let contents = contents(1)
                held = contents
                failed.insert(request(contents, at: place), .bad, lifetime: 50, instant(0))
            }
            XCTAssertNil(held)
            XCTAssertNotNil(failed.failure(request(contents(1), at: place), lifetime: 50, instant(1)))
            XCTAssertNil(failed.failure(request(contents(2), at: place), lifetime: 50, instant(1)))
            XCTAssertNil(failed.failure(request(1), lifetime: 50, instant(1)))
            XCTAssertEqual(failed.count, 1)
        }
        let places = Mirror(reflecting: TLSOptions()).children.filter { type(of: $0.value) == FileContents?.self }
        XCTAssertEqual(places.count, 3, "there is another one")
    }

    func testWhatIsPastItsLifetimeGoes() {
        var failed = FailedURLs()
        failed.insert(request(1), .bad, lifetime: 50, instant(0))
        failed.insert(request(2), .bad, lifetime: 50, instant(30))
        failed.insert(request(3), .bad, lifetime: 50, instant(50))
        XCTAssertEqual(failed.count, 2, "with the next one")
        XCTAssertNil(failed.failure(request(4), lifetime: 50, instant(80)))
        XCTAssertEqual(failed.count, 1, "with the next question")
        failed.insert(request(3), .bad, lifetime: 50, instant(90))
        failed.removeExpired(lifetime: 50, instant(139))
        XCTAssertEqual(failed.count, 1, "it failed again meanwhile")
        failed.removeExpired(lifetime: 50, instant(140))
        XCTAssertEqual(failed.count, 0)
    }

    func testTheOldestGoesFirst() {
        var failed = FailedURLs()
        for number in 0..<5_000 {
            failed.insert(request(number), .bad, lifetime: 50, instant(0))
            failed.insert(request(3), .bad, lifetime: 50, instant(0))
            XCTAssertLessThanOrEqual(failed.count, FailedURLs.capacity)
        }
        XCTAssertNotNil(failed.failure(request(4_999), lifetime: 1, instant(0)))
        XCTAssertNotNil(failed.failure(request(3), lifetime: 1, instant(0)), "it failed again and again")
        XCTAssertNotNil(failed.failure(request(5_000 - 1023), lifetime: 1, instant(0)))
        XCTAssertNil(failed.failure(request(5_000 - 1024), lifetime: 1, instant(0)))
    }

    func testASuccessForgetsIt() {
        var failed = FailedURLs()
        failed.insert(request(1), .bad, lifetime: 50, instant(0))
        failed.remove(request(1))
        failed.remove(request(2))
        XCTAssertNil(failed.failure(request(1), lifetime: 1, instant(0)))
    }

    func testOtherTrustIsAnotherQuestion() {
        var failed = FailedURLs()
        failed.insert(request(1), Failure(.tlsCertificate, "expired"), lifetime: 50, instant(0))
        var tls = TLSOptions()
        tls.allowsInvalidCertificates = true
        let trusting = TransferRequest(url: request(1).url, identity: RequestIdentity(trust: RequestTrust(tls: tls)))
        XCTAssertNil(failed.failure(trusting, lifetime: 1, instant(0)))
    }

    func testWhichFailuresLast() {
        let lasting: [ErrorCode] = [
            .badImageData, .tlsCertificate, .tlsPin, .protocolError, .redirectRefused, .tooManyRedirects,
            .contentEncoding, .flood,
        ]
        for code in ErrorCode.allCases { XCTAssertEqual(FailedURLs.isLasting(code), lasting.contains(code), "\(code)") }
    }

    // MARK: In the rules

    private func fail(_ play: inout Play, _ failure: Failure) {
        let a = play.submit("a", .image)
        play.receive(a.transfer, 1)
        play.finished(a.transfer)
        play.stepped(a.transfer, .failed(failure))
        play.skip()
    }

    func testWhatFailedForGoodIsNotAskedAgain() {
        var play = Play { $0.failureLifetime = 1_000 }
        fail(&play, .bad)
        play.pass(10)
        let again = play.submit("a")
        let blacklisted = Failure(
            .blacklisted, "it failed 10 ms ago and is not asked for again yet: not a picture")
        play.expect([.end(again.subscriber, .failure(blacklisted)), .forget(again.transfer)])
        play.expectEmpty()

        let insistent = play.submit("a", .with { $0.retriesFailed = true })
        play.expect([.start(insistent.transfer)])
        let joiner = play.submit("a")
        XCTAssertEqual(joiner.transfer, insistent.transfer, "it is being asked for: that is shared")
        play.receive(insistent.transfer, 1)
        play.finished(insistent.transfer)
        play.stepped(insistent.transfer, .finished)
        play.skip()
        let after = play.submit("a")
        play.expect([.start(after.transfer)], "a success forgets the failure")
        play.cancel(after)

        play.skip()
        fail(&play, .bad)
        play.pass(1_000)
        let later = play.submit("a")
        play.expect([.start(later.transfer)])
    }

    func testWhatIsPastItsLifetimeGoesWhenTheProcessIsTrimmed() {
        var play = Play { $0.failureLifetime = 1_000 }
        fail(&play, .bad)
        play.pass(999)
        play.downloads.forgetExpiredFailures(play.now)
        XCTAssertEqual(play.downloads.failedURLs.count, 1)
        play.pass(1)
        play.downloads.forgetExpiredFailures(play.now)
        XCTAssertEqual(play.downloads.failedURLs.count, 0)
    }

    func testOffByDefaultAndNotForWhatMayPass() {
        var play = Play()
        fail(&play, .bad)
        play.expect([])
        XCTAssertEqual(play.takeStarts().count, 0)
        _ = play.submit("a")
        XCTAssertEqual(play.takeStarts().count, 1)

        for failure in [Failure.lost, Failure(.truncated, "cut"), Failure(.pixelLimit, "large")] {
            var play = Play { $0.failureLifetime = 1_000 }
            fail(&play, failure)
            _ = play.submit("a")
            XCTAssertEqual(play.takeStarts().count, 1, "\(failure.code)")
        }
    }

    func testAnErrorPageThatIsNoPictureIsNoReason() {
        var play = Play { $0.failureLifetime = 1_000 }
        let a = play.submit("a", .with { $0.acceptsAnyStatus = true })
        play.connected(a.transfer)
        play.head(a.transfer, 404)
        play.body(a.transfer, 1)
        play.finished(a.transfer)
        play.stepped(a.transfer, .failed(.bad))
        play.skip()
        _ = play.submit("a")
        XCTAssertEqual(play.takeStarts().count, 1)
    }

    func testWhatAskedForMoreThanAPictureIsNoReason() {
        var play = Play { $0.failureLifetime = 1_000 }
        let a = play.submit("a", .with { $0.decode?.requiresAnimation = true })
        play.receive(a.transfer, 1)
        play.finished(a.transfer)
        play.stepped(a.transfer, .failed(.bad))
        play.skip()
        _ = play.submit("a")
        XCTAssertEqual(play.takeStarts().count, 1)
    }

    func testWhatIsRefusedAtOnceIsCountedNowhere() {
        var play = Play { $0.failureLifetime = 1_000 }
        let a = play.submit("a", .image)
        play.failed(a.transfer, Failure(.tlsCertificate, "expired"))
        for _ in 0..<3 {
            _ = play.submit("a", .image)
            XCTAssertEqual(play.downloads.decodingCount, 0)
            XCTAssertEqual(play.downloads.restingCount, 0)
            play.expectEmpty()
        }
    }
}
