import XCTest

@testable import ImgdlCore

/// Requests for the same bytes share one transfer, whatever its state (features B3, B4, K12, K14, B15).
final class JoinTests: XCTestCase {
    private let all = SubscriberOptions.with(.all)

    func testOneAloneFromStartToEnd() {
        var play = Play()
        let a = play.submit("a", all)
        play.expect([.start(a.transfer), .emit(a.subscriber, .started)])
        play.connected(a.transfer)
        play.expect([])
        XCTAssertEqual(play.head(a.transfer, length: 10), .receive)
        play.expect([.emit(a.subscriber, .response)])
        play.body(a.transfer, 10)
        play.stepped(a.transfer, .fed, header: true)
        play.finished(a.transfer)
        play.skip()
        play.stepped(a.transfer, .finished)
        play.expect([.end(a.subscriber, .success(variant: 0)), .forget(a.transfer)])
        play.expectEmpty()
    }

    func testQueued() {
        var play = Play(width: 1)
        let first = play.submit("first")
        let a = play.submit("a", all)
        play.skip()
        let b = play.submit("a", all)
        XCTAssertEqual(a.transfer, b.transfer)
        play.expect([])
        XCTAssertEqual(play.downloads.waitingCount, 1)
        play.finished(first.transfer)
        play.expect([
            .end(first.subscriber, .success(variant: nil)), .forget(first.transfer), .start(a.transfer),
            .emit(a.subscriber, .started), .emit(b.subscriber, .started),
        ])
    }

    func testConnecting() {
        var play = Play()
        let a = play.submit("a")
        play.skip()
        let b = play.submit("a", all)
        XCTAssertEqual(a.transfer, b.transfer)
        play.expect([.emit(b.subscriber, .started)])
    }

    func testWhileARedirectIsFollowed() {
        var play = Play()
        let a = play.submit("a")
        play.connected(a.transfer)
        play.head(a.transfer, 302, location: .success(testURL("https://a.example/b")))
        play.skip()
        let b = play.submit("a", all)
        XCTAssertEqual(a.transfer, b.transfer)
        play.expect([.emit(b.subscriber, .started)], "the response that counts is still to come")
        play.finished(a.transfer)
        play.skip()
        play.head(a.transfer)
        play.expect([.emit(b.subscriber, .response)])
    }

    func testAfterTheHead() {
        var play = Play()
        let a = play.submit("a")
        play.connected(a.transfer)
        play.head(a.transfer, length: 10)
        play.skip()
        let b = play.submit("a", all)
        play.expect([.emit(b.subscriber, .started), .emit(b.subscriber, .response)])
    }

    func testMidBodyWithADecoderAtWork() {
        var play = Play()
        let a = play.submit("a", all)
        play.receive(a.transfer, 4, of: 10)
        play.stepped(a.transfer, .fed, header: true, partial: true)
        play.skip()
        let b = play.submit("a", all)
        play.expect([
            .emit(b.subscriber, .started), .emit(b.subscriber, .response), .emit(b.subscriber, .header(variant: 0)),
            .emit(b.subscriber, .progress(received: 4, expected: 10)), .emit(b.subscriber, .partial(variant: 0)),
        ])
    }

    func testMidBodyWithOtherDecodeOptions() {
        var play = Play()
        let a = play.submit("a", all)
        play.receive(a.transfer, 4, of: 10)
        play.stepped(a.transfer, .fed, header: true, partial: true)
        play.skip()
        let b = play.submit("a", .with([.started, .header, .partial]) { $0.decode = .number(1) })
        play.expect(
            [
                .emit(b.subscriber, .started), .decode(a.transfer, variant: 1, .feed(showing: true)),
            ], "the new decoder gets at once what the first has had")
    }

    func testOnlyWhatTheMaskAsksFor() {
        for (mask, notices) in [
            (.started, [.started]), (.response, [.response]), (.header, [.header(variant: 0)]),
            (.progress, [.progress(received: 4, expected: 10)]), (.partial, [.partial(variant: 0)]), ([], []),
        ] as [(EventMask, [Notice])] {
            var play = Play()
            let a = play.submit("a", all)
            play.receive(a.transfer, 4, of: 10)
            play.stepped(a.transfer, .fed, header: true, partial: true)
            play.skip()
            let b = play.submit("a", .with(mask))
            play.expect(notices.map { .emit(b.subscriber, $0) })
        }
    }

    func testDecoding() {
        var play = Play()
        let a = play.submit("a", .image)
        play.receive(a.transfer, 10, of: 10)
        play.finished(a.transfer)
        play.skip()
        let same = play.submit("a", .image)
        let body = play.submit("a", .with([.response, .progress]) { $0.decode = nil })
        let other = play.submit("a", .with { $0.decode = .number(1) })
        XCTAssertEqual([same.transfer, body.transfer, other.transfer], [a.transfer, a.transfer, a.transfer])
        play.expect([
            .emit(body.subscriber, .response), .emit(body.subscriber, .progress(received: 10, expected: 10)),
            .end(body.subscriber, .success(variant: nil)), .decode(a.transfer, variant: 1, .finish),
        ])
        play.stepped(a.transfer, variant: 1, .finished)
        play.expect([.end(other.subscriber, .success(variant: 1))])
        play.stepped(a.transfer, variant: 0, .finished)
        play.expect([
            .end(a.subscriber, .success(variant: 0)), .end(same.subscriber, .success(variant: 0)), .forget(a.transfer),
        ])
        play.expectEmpty()
    }

    /// Open until the last delivery (features B3, K10): the picture is there, and so are the bytes.
    func testDeliveredWhileAnotherDecodeRuns() {
        var play = Play()
        let a = play.submit("a", .image)
        let slow = play.submit("a", .with { $0.decode = .number(1) })
        play.receive(a.transfer, 10, of: 10)
        play.finished(a.transfer)
        play.stepped(a.transfer, variant: 0, .finished, header: true)
        play.skip()
        let same = play.submit("a", .with([.header, .progress, .partial]))
        play.expect([
            .emit(same.subscriber, .header(variant: 0)),
            .emit(same.subscriber, .progress(received: 10, expected: 10)),
            .end(same.subscriber, .success(variant: 0)),
        ])
        let other = play.submit("a", .with { $0.decode = .number(2) })
        let patient = play.submit("a", .with { $0.decode = .number(1) })
        play.expect([.decode(a.transfer, variant: 2, .finish)])
        XCTAssertEqual([same, other, patient].map(\.transfer), [a.transfer, a.transfer, a.transfer])
        play.stepped(a.transfer, variant: 1, .finished)
        play.stepped(a.transfer, variant: 2, .finished)
        play.expect([
            .end(slow.subscriber, .success(variant: 1)), .end(patient.subscriber, .success(variant: 1)),
            .end(other.subscriber, .success(variant: 2)), .forget(a.transfer),
        ])
    }

    func testWhatIsOverIsNotJoined() {
        var play = Play()
        let a = play.submit("a")
        play.receive(a.transfer, 10)
        play.finished(a.transfer)
        play.skip()
        let b = play.submit("a")
        XCTAssertNotEqual(a.transfer, b.transfer)
        play.expect([.start(b.transfer)])
    }

    func testFailedAndSalvagingIsNotJoined() {
        var play = Play()
        let a = play.submit("a", .with { $0.salvages = true })
        play.receive(a.transfer, 4, of: 10)
        play.skip()
        play.failed(a.transfer, .lost)
        play.expect([.decode(a.transfer, variant: 0, .salvage)])
        let b = play.submit("a", .image)
        play.expect([.start(b.transfer)])
        XCTAssertNotEqual(a.transfer, b.transfer)
        // The first one's end leaves the entry of the second alone (features D3).
        play.stepped(a.transfer, .failed(.bad))
        play.expect([
            .end(a.subscriber, .failure(Failure.lost.with(status: 200), salvaged: 0)), .forget(a.transfer),
        ])
        XCTAssertEqual(play.submit("a").transfer, b.transfer)
    }

    func testCondemnedIsNotJoined() {
        var play = Play()
        let a = play.submit("a")
        play.connected(a.transfer)
        XCTAssertEqual(play.head(a.transfer, 404), .discard)
        play.skip()
        let b = play.submit("a")
        XCTAssertNotEqual(a.transfer, b.transfer)
        play.expect([.start(b.transfer)])
        play.finished(a.transfer)
        XCTAssertEqual(play.submit("a").transfer, b.transfer)
    }

    func testCancelledIsNotJoined() {
        var play = Play()
        let a = play.submit("a")
        play.cancel(a)
        play.skip()
        let b = play.submit("a")
        XCTAssertNotEqual(a.transfer, b.transfer)
        play.expect([.start(b.transfer)])
    }

    func testABodyThatIsNotAPictureIsNotJoined() {
        var play = Play()
        let a = play.submit("a", .with(.header))
        let body = play.submit("a")
        play.receive(a.transfer, 4, of: 10)
        play.skip()
        play.stepped(a.transfer, .failed(.bad))
        play.expect([.end(a.subscriber, .failure(Failure.bad.with(status: 200)))])
        XCTAssertNotEqual(play.submit("a", .image).transfer, body.transfer)
    }

    func testWhatMakesRequestsDifferent() {
        let url = testURL("https://a.example/a")
        let different = [
            TransferRequest(url: url),
            TransferRequest(url: testURL("https://a.example/b")),
            // As it is read.
            TransferRequest(
                url: testURL("https://a.example/a", user: "u"),
                identity: RequestIdentity(credential: Credential(user: "u", password: ""))),
            TransferRequest(url: url, method: "HEAD"),
            TransferRequest(url: url, fields: [HeaderField("Authorization", "x")]),
            TransferRequest(url: url, fields: [HeaderField("Authorization", "y")]),
            TransferRequest(url: url, body: [1]),
            TransferRequest(url: url, followsRedirects: false),
            TransferRequest(url: url, allowsDowngrade: true),
        ]
        var play = Play(width: 100)
        let entries = different.map { play.submit($0) }
        XCTAssertEqual(Set(entries.map(\.transfer)).count, different.count)
        XCTAssertEqual(play.takeStarts().count, different.count)
        let same = play.submit(TransferRequest(url: url, fields: [HeaderField("Authorization", "y")]))
        XCTAssertEqual(same.transfer, entries[5].transfer)
    }

    func testOnlySafeMethodsAreShared() {
        for (method, isShared) in [("GET", true), ("HEAD", true), ("POST", false), ("PUT", false), ("DELETE", false)] {
            var play = Play()
            let request = TransferRequest(url: testURL("https://a.example/a"), method: method)
            let a = play.submit(request)
            let b = play.submit(request)
            XCTAssertEqual(a.transfer == b.transfer, isShared, method)
            play.cancel(a)
            play.cancel(b)
            play.expectEmpty()
        }
    }

    /// Features T30, D4.
    func testTenOptionsAreOneTransferAndTenDecodes() {
        var play = Play()
        let entries = (0..<10).map { number in play.submit("a", .with { $0.decode = .number(UInt64(number)) }) }
        let twin = play.submit("a", .with { $0.decode = .number(3) })
        let id = entries[0].transfer
        play.expect([.start(id)])
        play.receive(id, 10, of: 10)
        play.expect([])
        play.finished(id)
        play.expect((0..<10).map { .decode(id, variant: $0, .finish) })
        for variant in (0..<10).reversed() {
            play.stepped(id, variant: variant, .finished)
            var ends = [Action.end(entries[variant].subscriber, .success(variant: variant))]
            if variant == 3 { ends.append(.end(twin.subscriber, .success(variant: 3))) }
            if variant == 0 { ends.append(.forget(id)) }
            play.expect(ends)
        }
        play.expectEmpty()
    }
}
