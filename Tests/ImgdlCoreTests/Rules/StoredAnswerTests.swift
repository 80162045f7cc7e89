import XCTest

@testable import ImgdlCore

/// What is stored is reported at once: it has no clock, and is looked into only for who decodes it.
final class StoredAnswerTests: XCTestCase {
    private func play(_ downloads: inout Downloads, decoding: Bool) throws -> TransferID {
        downloads.hasStore = true
        var options = SubscriberOptions()
        options.wantsBody = true
        options.decode = decoding ? DecodeOptions() : nil
        let now = Instant(nanoseconds: 0)
        let request = TransferRequest(url: testURL("http://a.example/1"), cacheMode: .use)
        let id = downloads.submit(request, Boxed(wrappedValue: options), now).transfer
        var number: UInt64?
        for case .consult(_, let consultation) in downloads.takeActions() { number = consultation.number }
        downloads.consulted(id, try XCTUnwrap(number), .play, now)
        let head = ResponseHead(status: 200, httpVersion: 11, fields: [], contentLength: 10, isEncoded: false)
        XCTAssertEqual(downloads.headReceived(id, head, location: nil, now), .receive)
        downloads.bodyReceived(id, 10, now)
        return id
    }

    func testNobodyWaitsForItsBytes() throws {
        var downloads = Downloads()
        _ = try play(&downloads, decoding: false)
        XCTAssertNil(downloads.nextDeadline)
    }

    func testOnlyWhoDecodesNeedsToKnowThePicture() throws {
        for decodes in [false, true] {
            var downloads = Downloads()
            let id = try play(&downloads, decoding: decodes)
            XCTAssertEqual(downloads.needsProbe(id), decodes)
        }
    }

    /// Its answer is the first that is heard after a while: others' timeouts are due, and their places free.
    func testWhatIsNotStoredIsInTheQueueBeforeAFreePlaceIsGivenAway() {
        var play = Play(width: 1)
        play.downloads.hasStore = true
        let overdue = play.submit("overdue", .with { $0.totalTimeout = 1_000 })
        let low = play.submit("low", .with { $0.priority = .low })
        let wanted = play.submit(TransferRequest(url: testURL("https://a.example/wanted"), cacheMode: .use))
        let actions = play.take()
        XCTAssertTrue(actions.contains(.start(overdue.transfer)))
        XCTAssertTrue(actions.contains { if case .consult(wanted.transfer, _) = $0 { true } else { false } })
        play.now = play.now.advanced(byMilliseconds: 1_000)
        play.downloads.consulted(wanted.transfer, 1, .forward(fallbackUntil: nil), play.now)
        let next = play.take()
        XCTAssertTrue(next.contains(.stop(overdue.transfer)))
        XCTAssertTrue(next.contains(.send(wanted.transfer)))
        XCTAssertFalse(next.contains(.start(low.transfer)), "it has a lower priority")
    }
}
