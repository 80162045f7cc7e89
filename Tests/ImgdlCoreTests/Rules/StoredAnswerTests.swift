import XCTest

@testable import ImgdlCore

/// What is stored is reported at once: it has no clock, and is looked into only for who decodes it.
final class StoredAnswerTests: XCTestCase {
    private func play(decoding: Bool) throws -> (Downloads, TransferID) {
        var downloads = Downloads()
        downloads.hasStore = true
        var options = SubscriberOptions()
        options.wantsBody = true
        options.decode = decoding ? DecodeOptions() : nil
        let now = Instant(nanoseconds: 0)
        let request = TransferRequest(url: testURL("http://a.example/1"), cacheMode: .use)
        let id = downloads.submit(request, Boxed(wrappedValue: options), now).transfer
        var number: UInt32?
        for case .consult(_, let consultation) in downloads.takeActions() { number = consultation.number }
        XCTAssertTrue(downloads.needsProbe(id), "it may still come from the server")
        downloads.consulted(id, try XCTUnwrap(number), .play, now)
        let head = ResponseHead(status: 200, httpVersion: 11, fields: [], contentLength: 10, isEncoded: false)
        XCTAssertEqual(downloads.headReceived(id, head, location: nil, now), .receive)
        downloads.bodyReceived(id, 10, now)
        return (downloads, id)
    }

    func testNobodyWaitsForItsBytes() throws {
        let (downloads, _) = try play(decoding: false)
        XCTAssertNil(downloads.nextDeadline)
    }

    func testOnlyWhoDecodesNeedsToKnowThePicture() throws {
        let (body, bodyID) = try play(decoding: false)
        XCTAssertFalse(body.needsProbe(bodyID))
        let (picture, pictureID) = try play(decoding: true)
        XCTAssertTrue(picture.needsProbe(pictureID))
    }
}
