import XCTest

@testable import ImgdlCore

/// What a decode has to tell, in which order and how often (DESIGN section 2, promise 2; features R27).
final class PictureEventTests: XCTestCase {
    private func decode(_ entry: Play.Entry, _ step: DecodeStep, variant: Int = 0) -> Action {
        .decode(entry.transfer, variant: variant, step)
    }

    // MARK: The order of events

    /// DESIGN section 2, promise 2: started, response, header, then progress and partial images.
    func testProgressWaitsForTheHeaderOfWhoWantsBoth() {
        var play = Play()
        let a = play.submit("a", .with([.header, .progress, .partial]))
        let b = play.submit("a", .with(.progress))
        let c = play.submit("a", .with([.header, .progress]) { $0.decode = nil })
        play.receive(a.transfer, 1, of: 9)
        play.skip()
        play.body(a.transfer, 1)
        let two = Notice.progress(received: 2, expected: 9)
        play.expect([.emit(b.subscriber, two), .emit(c.subscriber, two)], "no decode, no header to wait for")
        play.stepped(a.transfer, .fed, header: true, partial: true)
        play.expect([
            .emit(a.subscriber, .header(variant: 0)), .emit(a.subscriber, two),
            .emit(a.subscriber, .partial(variant: 0)), decode(a, .feed(showing: false)),
        ])
        play.body(a.transfer, 1)
        play.expect([a, b, c].map { .emit($0.subscriber, .progress(received: 3, expected: 9)) })
    }

    func testProgressDoesNotWaitForBytesThatHaveNotCome() {
        var play = Play()
        let a = play.submit("a", .with([.header, .progress]))
        play.receive(a.transfer, 1, of: 9)
        play.body(a.transfer, 1)
        play.stepped(a.transfer, .fed)
        play.expect([.start(a.transfer), decode(a, .feed(showing: false)), decode(a, .feed(showing: false))])
        play.stepped(a.transfer, .fed)
        play.expect([.emit(a.subscriber, .progress(received: 2, expected: 9))], "the header is not in what has come")
        play.body(a.transfer, 1)
        play.expect([decode(a, .feed(showing: false))])
        play.stepped(a.transfer, .fed, header: true)
        play.expect([
            .emit(a.subscriber, .header(variant: 0)), .emit(a.subscriber, .progress(received: 3, expected: 9)),
        ])
    }

    func testAHeaderThatComesWithTheLastStepComesBeforeTheFinalProgress() {
        var play = Play()
        let a = play.submit("a", .with([.header, .progress]))
        play.receive(a.transfer, 1)
        play.body(a.transfer, 1)
        play.finished(a.transfer)
        play.stepped(a.transfer, .fed)
        play.expect([.start(a.transfer), decode(a, .feed(showing: false)), decode(a, .finish)])
        play.stepped(a.transfer, .finished, header: true)
        play.expect([
            .emit(a.subscriber, .header(variant: 0)), .emit(a.subscriber, .progress(received: 2, expected: 2)),
            .end(a.subscriber, .success(variant: 0)), .forget(a.transfer),
        ])
    }

    func testTheFinalProgressComesWithoutAHeaderToo() {
        var play = Play()
        let a = play.submit("a", .with([.header, .progress]))
        play.receive(a.transfer, 1, of: 2)
        play.body(a.transfer, 1)
        play.finished(a.transfer)
        play.stepped(a.transfer, .fed)
        play.skip()
        play.stepped(a.transfer, .failed(.bad))
        play.expect([
            .emit(a.subscriber, .progress(received: 2, expected: 2)),
            .end(a.subscriber, .failure(Failure.bad.with(status: 200))), .forget(a.transfer),
        ])
    }

    func testAJoinerWithADecoderOfItsOwnWaitsForItsHeader() {
        var play = Play()
        let a = play.submit("a", .with(.all))
        play.receive(a.transfer, 4, of: 9)
        play.stepped(a.transfer, .fed, header: true, partial: true)
        play.skip()
        let b = play.submit("a", .with([.header, .progress]) { $0.decode = .number(1) })
        play.expect([decode(a, .feed(showing: false), variant: 1)])
        play.stepped(a.transfer, variant: 1, .fed, header: true)
        play.expect([
            .emit(b.subscriber, .header(variant: 1)), .emit(b.subscriber, .progress(received: 4, expected: 9)),
        ])
    }

    // MARK: The pace of partial images

    func testPartialImagesArePacedByTime() {
        var play = Play()
        let a = play.submit("a", .with(.partial) { $0.partialInterval = 100 })
        play.receive(a.transfer, 1)
        play.stepped(a.transfer, .fed, partial: true)
        play.expect([.start(a.transfer), decode(a, .feed(showing: true)), .emit(a.subscriber, .partial(variant: 0))])
        play.pass(40)
        play.body(a.transfer, 1)
        play.expect([decode(a, .feed(showing: false))], "too early to show, not to decode")
        play.stepped(a.transfer, .fed)
        play.pass(59)
        play.expect([])
        play.pass(1)
        play.expect([decode(a, .feed(showing: true))], "shown without waiting for more bytes")
        play.stepped(a.transfer, .fed, partial: true)
        play.expect([.emit(a.subscriber, .partial(variant: 0))])
        play.pass(10_000)
        play.expect([], "nothing new: nothing to show")
        play.body(a.transfer, 1)
        play.expect([decode(a, .feed(showing: true))], "after a pause at once")
    }

    func testAStepThatShowsNothingDoesNotHoldUpTheNext() {
        var play = Play()
        let a = play.submit("a", .with(.partial))
        play.receive(a.transfer, 1)
        play.stepped(a.transfer, .fed, partial: false)
        play.skip()
        play.body(a.transfer, 1)
        play.expect([decode(a, .feed(showing: true))])
    }

    func testATimerThatFindsTheDecoderBusyDoesNotDisturbIt() {
        var play = Play()
        let a = play.submit("a", .with(.partial) { $0.partialInterval = 100 })
        play.receive(a.transfer, 1)
        play.stepped(a.transfer, .fed, partial: true)
        play.body(a.transfer, 1)
        play.stepped(a.transfer, .fed)
        play.body(a.transfer, 1)
        play.skip()
        play.pass(100)
        play.expect([])
        play.stepped(a.transfer, .fed)
        play.expect([decode(a, .feed(showing: true))])
    }

    /// What is not about the bytes belongs to the subscriber (features B4): one in a hurry does not hurry the others.
    func testEachSubscriberHasItsOwnPace() {
        var play = Play()
        let fast = play.submit("a", .with(.partial) { $0.partialInterval = 100 })
        let slow = play.submit("a", .with(.partial) { $0.partialInterval = 250 })
        play.receive(fast.transfer, 1)
        play.stepped(fast.transfer, .fed, partial: true)
        let told = [fast, slow].map { Action.emit($0.subscriber, .partial(variant: 0)) }
        play.expect([.start(fast.transfer), decode(fast, .feed(showing: true))] + told)
        for _ in 0..<2 {
            play.pass(100)
            play.body(fast.transfer, 1)
            play.stepped(fast.transfer, .fed, partial: true)
            play.expect([decode(fast, .feed(showing: true)), told[0]])
        }
        play.pass(49)
        play.expect([])
        play.pass(1)
        play.expect([told[1]], "the newest picture, when its time has come")
        play.pass(1_000)
        play.expect([], "each picture once")
        play.body(fast.transfer, 1)
        play.stepped(fast.transfer, .fed, partial: true)
        play.expect([decode(fast, .feed(showing: true))] + told)
    }

    func testAJoinerInAHurryHasTheDecoderShowMoreOften() {
        var play = Play()
        let slow = play.submit("a", .with(.partial) { $0.partialInterval = 10_000 })
        play.receive(slow.transfer, 1)
        play.stepped(slow.transfer, .fed, partial: true)
        play.pass(100)
        play.body(slow.transfer, 1)
        play.stepped(slow.transfer, .fed)
        play.skip()
        let fast = play.submit("a", .with(.partial) { $0.partialInterval = 100 })
        play.expect([.emit(fast.subscriber, .partial(variant: 0)), decode(slow, .feed(showing: true))])
        play.stepped(slow.transfer, .fed, partial: true)
        play.expect([])
        play.pass(100)
        play.expect([.emit(fast.subscriber, .partial(variant: 0))])
    }
}
