import XCTest

@testable import ImgdlCore

/// When a decoder does what (features B5, B6, B8, R26, R27).
final class DecodingTests: XCTestCase {
    private func decode(_ entry: Play.Entry, _ step: DecodeStep, variant: Int = 0) -> Action {
        .decode(entry.transfer, variant: variant, step)
    }

    // MARK: When it begins

    func testASmallBodyNobodyWatchesIsDecodedAtItsEnd() {
        var play = Play()
        let a = play.submit("a", .image)
        play.receive(a.transfer, 1000)
        play.expect([.start(a.transfer)])
        play.finished(a.transfer)
        play.expect([decode(a, .finish)])
    }

    func testALargeBodyIsDecodedWhileItComes() {
        var play = Play { $0.earlyDecodeBytes = 100 }
        let a = play.submit("a", .image)
        play.receive(a.transfer, 99)
        play.expect([.start(a.transfer)])
        play.body(a.transfer, 1)
        play.expect([decode(a, .feed(showing: false))])
    }

    func testALargeBodyWaitsForAThreadThatIsFree() {
        var play = Play { $0.earlyDecodeBytes = 100 }
        let a = play.submit("a", .image)
        play.downloads.hasFreeWorker = false
        play.receive(a.transfer, 500)
        play.expect([.start(a.transfer)])
        play.downloads.hasFreeWorker = true
        play.body(a.transfer, 1)
        play.expect([decode(a, .feed(showing: false))])
        play.downloads.hasFreeWorker = false
        play.stepped(a.transfer, .fed)
        play.body(a.transfer, 1)
        play.expect([decode(a, .feed(showing: false))], "once begun it goes on")
        play.finished(a.transfer)
        play.stepped(a.transfer, .fed)
        play.expect([decode(a, .finish)])
    }

    func testWhoWatchesWaitsForNoFreeThread() {
        for mask in [EventMask.header, .partial] {
            var play = Play()
            let a = play.submit("a", .with(mask))
            play.downloads.hasFreeWorker = false
            play.receive(a.transfer, 1)
            play.expect([.start(a.transfer), decode(a, .feed(showing: mask == .partial))])
        }
    }

    func testWhoWantsAHeaderOrPartialImagesBeginsTheDecode() {
        for (mask, shows) in [(EventMask.header, false), (.partial, true), ([.header, .partial], true)] {
            var play = Play()
            let a = play.submit("a", .with(mask))
            play.receive(a.transfer, 1)
            play.expect([.start(a.transfer), decode(a, .feed(showing: shows))])
        }
    }

    func testAJoinerWhoWantsPartialImagesBeginsIt() {
        var play = Play()
        let a = play.submit("a", .image)
        play.receive(a.transfer, 10)
        play.skip()
        _ = play.submit("a", .with(.partial))
        play.expect([decode(a, .feed(showing: true))])
    }

    func testAnEmptyBodyIsDecodedToo() {
        var play = Play()
        let a = play.submit("a", .image)
        play.connected(a.transfer)
        play.head(a.transfer, length: 0)
        play.skip()
        play.finished(a.transfer)
        play.expect([decode(a, .finish)])
        play.stepped(a.transfer, .failed(.bad))
        play.expect([.end(a.subscriber, .failure(Failure.bad.with(status: 200))), .forget(a.transfer)])
    }

    // MARK: One step at a time

    func testNeverTwoStepsInFlightAndTheNewestBytesWin() {
        var play = Play()
        let a = play.submit("a", .with(.header))
        play.receive(a.transfer, 1)
        play.skip()
        for _ in 0..<5 { play.body(a.transfer, 1) }
        play.expect([])
        play.stepped(a.transfer, .fed)
        play.expect([decode(a, .feed(showing: false))], "five chunks are one step")
        play.stepped(a.transfer, .fed, header: true)
        play.expect([.emit(a.subscriber, .header(variant: 0))], "nothing new: nothing to do")
        play.body(a.transfer, 1)
        play.expect([decode(a, .feed(showing: false))])
        play.finished(a.transfer)
        play.expect([], "the last step waits for the one in flight")
        play.stepped(a.transfer, .fed, header: true)
        play.expect([decode(a, .finish)], "the header is told once")
        play.stepped(a.transfer, .finished, header: true)
        play.expect([.end(a.subscriber, .success(variant: 0)), .forget(a.transfer)])
    }

    func testAFailureWaitsForTheStepInFlightThenSalvages() {
        var play = Play()
        let a = play.submit("a", .with(.partial) { $0.salvages = true })
        play.receive(a.transfer, 1)
        play.skip()
        play.failed(a.transfer, .lost)
        play.expect([])
        play.stepped(a.transfer, .fed, partial: true)
        play.expect([.emit(a.subscriber, .partial(variant: 0)), decode(a, .salvage)])
        play.stepped(a.transfer, .failed(.bad))
        play.expect([
            .end(a.subscriber, .failure(Failure.lost.with(status: 200), salvaged: 0)), .forget(a.transfer),
        ])
    }

    // MARK: Its end

    func testABrokenPictureEndsTheTransferOfWhoWantedItAlone() {
        var play = Play(width: 1)
        let a = play.submit("a", .with(.header))
        let next = play.submit("next")
        play.receive(a.transfer, 1)
        play.skip()
        play.stepped(a.transfer, .failed(.bad))
        play.expect([
            .end(a.subscriber, .failure(Failure.bad.with(status: 200))), .stop(a.transfer), .forget(a.transfer),
            .start(next.transfer),
        ])
    }

    func testABrokenPictureLeavesOtherWaysOfDecodingAndTheBodyAlone() {
        var play = Play()
        let a = play.submit("a", .with(.header))
        let b = play.submit("a", .with(.header) { $0.decode = .number(1) })
        let c = play.submit("a")
        play.receive(a.transfer, 1)
        play.skip()
        let limit = Failure(.pixelLimit, "too many pixels")
        play.stepped(a.transfer, variant: 1, .failed(limit), header: true)
        play.expect([
            .emit(b.subscriber, .header(variant: 1)), .end(b.subscriber, .failure(limit.with(status: 200))),
        ])
        play.body(a.transfer, 1)
        play.stepped(a.transfer, .fed)
        play.expect([decode(a, .feed(showing: false))])
        play.finished(a.transfer)
        play.expect([.end(c.subscriber, .success(variant: nil))])
        play.stepped(a.transfer, .fed)
        play.stepped(a.transfer, .finished)
        play.expect([decode(a, .finish), .end(a.subscriber, .success(variant: 0)), .forget(a.transfer)])
    }

    func testOnlyWhoSalvagesGetsThePixelsOfABrokenPicture() {
        var play = Play()
        let a = play.submit("a", .image)
        let b = play.submit("a", .with { $0.salvages = true })
        play.receive(a.transfer, 1)
        play.finished(a.transfer)
        play.skip()
        play.stepped(a.transfer, .failed(.bad))
        let bad = Failure.bad.with(status: 200)
        play.expect([
            .end(a.subscriber, .failure(bad)), .end(b.subscriber, .failure(bad, salvaged: 0)), .forget(a.transfer),
        ])
    }

    func testADecodeNobodyWaitsForIsNotFinished() {
        var play = Play()
        let a = play.submit("a", .with(.header))
        let b = play.submit("a", .with(.header) { $0.decode = .number(1) })
        play.receive(a.transfer, 1)
        play.cancel(a)
        play.skip()
        play.stepped(a.transfer, variant: 0, .fed, header: true)
        play.stepped(a.transfer, variant: 1, .fed)
        play.body(b.transfer, 1)
        play.expect([decode(b, .feed(showing: false), variant: 1)])
        play.finished(b.transfer)
        play.stepped(b.transfer, variant: 1, .fed)
        play.expect([decode(b, .finish, variant: 1)])
    }

    func testAReportOfAnUnknownVariantIsIgnored() {
        var play = Play()
        let a = play.submit("a")
        play.skip()
        play.stepped(a.transfer, variant: 3, .finished)
        play.expect([])
    }
}
