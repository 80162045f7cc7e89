import XCTest

@testable import ImgdlCore

/// What is counted for as long as a downloader lives goes beyond 32 bits: five days at 10,000 a second.
final class CounterTests: XCTestCase {
    private let edge = UInt64(UInt32.max)

    /// Who is older is told from who is younger on both sides: the younger ones pause where memory is short.
    func testStartsAreCountedBeyond32Bits() {
        var play = Play(width: 3) { $0.memoryBudget = 1_000 }
        play.downloads.starts = edge - 1
        let entries = ["first", "second", "third"].map { play.submit($0) }
        for entry in entries {
            play.connected(entry.transfer)
            let head = ResponseHead(status: 200, httpVersion: 11, fields: [], contentLength: nil, isEncoded: false)
            _ = play.downloads.headReceived(entry.transfer, head, location: nil, play.now)
            play.body(entry.transfer, 100)
        }
        play.skip()
        play.body(entries[1].transfer, 700)
        play.expect([.setPaused(entries[1].transfer, true), .setPaused(entries[2].transfer, true)])
        XCTAssertEqual(play.downloads.starts, edge + 2)
    }

    /// A grace of before ends nothing, the last one does.
    func testStaysInTheBackgroundAreCountedBeyond32Bits() {
        var play = Play()
        play.downloads.backgroundStays = edge - 1
        let going = play.submit(
            "a",
            .with {
                $0.decode = nil
                $0.continuesInBackground = true
            })
        for _ in 0..<3 {
            play.downloads.enterBackground(grace: 100, play.now)
            play.downloads.enterForeground(play.now)
            play.pass(10)
        }
        play.downloads.enterBackground(grace: 100, play.now)
        play.skip()
        play.pass(99)
        play.expect([])
        play.pass(1)
        let failure = Failure(.backgroundExpired, "the time that it may go on in the background is over")
        play.expect([.end(going.subscriber, .failure(failure)), .stop(going.transfer), .forget(going.transfer)])
    }

    /// These two a host's program reads in 32 bits: they stay at the last number.
    func testRetriesAndRedirectsStayAtTheLastNumber() {
        let now = Instant(nanoseconds: 0)
        var meter = TransferMeter(redirects: .max - 1, retries: .max - 1)
        for _ in 0..<4 {
            meter.start(now)
            meter.follow()
        }
        let metrics = meter.metrics(now)
        XCTAssertEqual([metrics.redirects, metrics.retries], [.max, .max])
    }
}
