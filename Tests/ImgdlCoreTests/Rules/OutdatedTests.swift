import XCTest

@testable import ImgdlCore

/// A request that comes after its URL was outdated joins nothing that was asked for before.
final class OutdatedTests: XCTestCase {
    private let url = testURL("https://a.example/a")
    private let b = testURL("https://a.example/b")

    /// `outdated`: since this moment.
    private func part(_ play: inout Play, _ outdated: [ParsedURL: UInt64]) {
        play.downloads.partFromOutdated(TransferRequest(url: url)) { outdated[$0] ?? 0 > $1 }
    }

    func testWhatWasAskedForBefore() {
        var play = Play()
        let first = play.submit("a")
        play.downloads.asked(first.transfer, at: 3)
        part(&play, [url: 3])
        XCTAssertEqual(play.submit("a").transfer, first.transfer, "it was asked for after that")
        part(&play, [b: 9])
        XCTAssertEqual(play.submit("a").transfer, first.transfer)
        play.skip()
        part(&play, [url: 4])
        let second = play.submit("a")
        XCTAssertNotEqual(second.transfer, first.transfer)
        play.expect([.start(second.transfer)])
        play.downloads.asked(second.transfer, at: 4)
        part(&play, [url: 4])
        XCTAssertEqual(play.submit("a").transfer, second.transfer)
        XCTAssertEqual(play.downloads.subscriberCount(first.transfer), 3, "who has joined it keeps it")
        play.receive(first.transfer, 1)
        play.finished(first.transfer)
        part(&play, [url: 4])
        XCTAssertEqual(play.submit("a").transfer, second.transfer, "its end opens nothing")
    }

    func testInAnyState() {
        let states: [(String, (inout Play, TransferID) -> Void)] = [
            ("connecting", { _, _ in }), ("sent", { $0.connected($1) }), ("received", { $0.receive($1, 5, of: 10) }),
            (
                "decoding",
                {
                    $0.receive($1, 10, of: 10)
                    $0.finished($1)
                }
            ),
        ]
        for (name, bring) in states {
            var play = Play()
            let first = play.submit("a", .image)
            play.downloads.asked(first.transfer, at: 0)
            bring(&play, first.transfer)
            part(&play, [url: 1])
            let second = play.submit("a", .image)
            XCTAssertNotEqual(second.transfer, first.transfer, name)
            XCTAssertEqual(play.submit("a", .image).transfer, second.transfer, name)
        }
    }

    func testWhatWaitsIsJoined() {
        var play = Play(width: 1)
        _ = play.submit("busy")
        let first = play.submit("a")
        part(&play, [url: 1])
        XCTAssertEqual(play.submit("a").transfer, first.transfer)
    }

    /// It was looked for, and nothing that was found has a part in what it will send.
    func testWhatWaitsAfterALookUpIsJoined() {
        for isStored in [false, true] {
            var play = Play(width: 1)
            play.downloads.hasStore = true
            _ = play.submit("busy")
            let request = TransferRequest(url: url, cacheMode: .use)
            let first = play.submit(request)
            play.downloads.asked(first.transfer, at: 0)
            if !isStored { play.downloads.forgetLookUp(first.transfer) }
            play.downloads.consulted(first.transfer, 1, .forward(fallbackUntil: nil), play.now)
            play.downloads.partFromOutdated(request) { 1 > $1 }
            XCTAssertEqual(play.submit(request).transfer == first.transfer, !isStored)
        }
    }

    /// One hop is enough.
    func testRedirects() {
        for outdated in [url, b] {
            var play = Play()
            let first = play.submit("a")
            play.downloads.asked(first.transfer, at: 0)
            play.connected(first.transfer)
            play.head(first.transfer, 302, location: .success(b))
            play.finished(first.transfer)
            // What led there was asked for earlier, and what was found for the next hop does not change that.
            play.downloads.asked(first.transfer, at: 5)
            play.downloads.forgetLookUp(first.transfer)
            part(&play, [outdated: 1])
            XCTAssertNotEqual(play.submit("a").transfer, first.transfer)
        }
    }

    /// What comes of it is asked for anew.
    func testAnotherAttemptIsJoined() {
        var play = Play()
        let first = play.submit("a", .with { $0.retry.count = 1 })
        play.downloads.asked(first.transfer, at: 0)
        part(&play, [url: 1])
        play.failed(first.transfer, .lost)
        part(&play, [url: 1])
        XCTAssertEqual(play.submit("a", .with { $0.retry.count = 1 }).transfer, first.transfer)
    }

    /// One at a time, unless it was outdated.
    func testValidationsInTheBackground() throws {
        var play = Play()
        let request = TransferRequest(url: url)
        let first = try XCTUnwrap(play.downloads.revalidate(request, SubscriberOptions(), play.now))
        play.downloads.asked(first, at: 0)
        part(&play, [b: 1])
        XCTAssertNil(play.downloads.revalidate(request, SubscriberOptions(), play.now))
        part(&play, [url: 1])
        XCTAssertNotNil(play.downloads.revalidate(request, SubscriberOptions(), play.now))
    }

    func testFailuresOfBefore() {
        for asked in [nil, 0, 1] as [UInt64?] {
            for redirects in [false, true] {
                for outdated in [url, b] {
                    var play = Play { $0.failureLifetime = 1_000 }
                    let first = play.submit("a", .image)
                    if let asked { play.downloads.asked(first.transfer, at: asked) }
                    if redirects {
                        play.connected(first.transfer)
                        play.head(first.transfer, 302, location: .success(b))
                        play.finished(first.transfer)
                    }
                    play.receive(first.transfer, 1)
                    play.finished(first.transfer)
                    play.stepped(first.transfer, .failed(.bad))
                    play.skip()
                    part(&play, [outdated: 1])
                    _ = play.submit("a")
                    let isForgotten = asked ?? 0 < 1 && (outdated == url || redirects)
                    XCTAssertEqual(play.takeStarts().count, isForgotten ? 1 : 0)
                }
            }
        }
    }

    // MARK: The table

    func testItKnowsWhatWasSaidLater() {
        let outdated = OutdatedURLs()
        XCTAssertEqual(outdated.moment, 0)
        XCTAssertFalse(outdated.contains("a", since: 0))
        let keys = (0..<5_000).map { "https://a.example/\($0)" }
        for key in keys.prefix(100) { outdated.insert(key) }
        XCTAssertEqual(outdated.moment, 100)
        for (index, key) in keys.prefix(100).enumerated() {
            XCTAssertTrue(outdated.contains(key, since: UInt64(index)))
            XCTAssertFalse(outdated.contains(key, since: 100))
        }
        // With 100 of 1,024 places taken twice, some 50 of 4,900 share both.
        XCTAssertLessThan(keys.dropFirst(100).count { outdated.contains($0, since: 0) }, 200)
        outdated.insertAll()
        XCTAssertTrue(outdated.contains(keys[4_000], since: 100))
        XCTAssertFalse(outdated.contains(keys[4_000], since: 101))
    }
}
