import XCTest

@testable import ImgdlCore

/// What waits for a slow subscriber (features R27).
final class PendingEventsTests: XCTestCase {
    private var downloader: Downloader!
    private let executor = HoldingExecutor()
    private var subscription: Subscription!

    override func setUpWithError() throws {
        let factory = StillTransportFactory()
        let ports = DownloaderPorts(codec: NoCodec(), clock: MonotonicClock()) {
            (configuration, _, events) throws(Failure) in try factory.make(configuration, events)
        }
        downloader = try Downloader(
            DownloaderConfiguration(userAgent: "test"), ports: ports, executor: InlineExecutor.shared)
    }

    override func tearDown() { downloader.destroy() }

    /// Of another request each time.
    private func terminal(_ failure: Failure? = nil) -> Terminal {
        subscription = Subscription(announcingTo: Recipient(downloader, executor: executor, sink: Deaf()))
        downloader.outstanding.accept(subscription).post(failure)
        return executor.terminal.take()!
    }

    private func taken(_ pending: inout PendingEvents) -> [String] {
        var names: [String] = []
        while let event = pending.takeFirst() {
            switch consume event {
            case .event(let event): names.append(name(event))
            case .terminal(let terminal):
                names.append("terminal \(terminal.result.code)")
                subscription.deliver(terminal)
            }
        }
        return names
    }

    private func name(_ event: DownloadEvent) -> String {
        switch event {
        case .started: "started"
        case .response: "response"
        case .header: "header"
        case .progress(let progress): "progress \(progress.received)"
        case .partial: "partial"
        case .step(let step): "step \(step.finished)"
        }
    }

    private func isEnd(_ pending: consuming PendingEvents) -> Bool {
        guard let terminal = pending.onlyTerminal() else { return false }
        subscription.deliver(terminal)
        return true
    }

    private func step(_ finished: Int) -> DownloadEvent {
        var progress = BatchProgress(total: 4)
        progress.finished = finished
        return .step(progress)
    }

    func testATerminalAlone() {
        var pending = PendingEvents.nothing
        XCTAssertTrue(pending.isEmpty)
        _ = pending.add(terminal())
        XCTAssertFalse(pending.isEmpty)
        XCTAssertEqual(taken(&pending), ["terminal ok"])
        XCTAssertTrue(pending.isEmpty)
        let isEnd = isEnd(pending)
        XCTAssertFalse(isEnd)
    }

    func testTheNewestProgressOfEachAndTheTerminalLast() {
        var pending = PendingEvents.nothing
        _ = pending.add(.progress(ImgdlCore.Progress(received: 1)))
        _ = pending.add(.started)
        _ = pending.add(.progress(ImgdlCore.Progress(received: 2)))
        _ = pending.add(terminal(Failure(.cancelled, "cancelled")))
        XCTAssertEqual(taken(&pending), ["started", "progress 2", "terminal cancelled"])
        XCTAssertTrue(pending.isEmpty)
        _ = pending.add(terminal())
        XCTAssertEqual(taken(&pending), ["terminal ok"])
    }

    func testEachStepOfABatchAndItsTerminalLast() {
        var pending = PendingEvents.nothing
        _ = pending.add(step(1))
        XCTAssertFalse(pending.isEmpty)
        XCTAssertEqual(taken(&pending), ["step 1"])
        XCTAssertTrue(pending.isEmpty)
        _ = pending.add(step(2))
        _ = pending.add(step(3))
        _ = pending.add(terminal())
        XCTAssertEqual(taken(&pending), ["step 2", "step 3", "terminal ok"])
        XCTAssertTrue(pending.isEmpty)
    }

    func testOnceTakenNothingIsLeft() {
        var pending = PendingEvents.nothing
        _ = pending.add(.progress(ImgdlCore.Progress(received: 1)))
        XCTAssertEqual(taken(&pending), ["progress 1"])
        XCTAssertTrue(pending.isEmpty)
        _ = pending.add(.progress(ImgdlCore.Progress(received: 5)))
        XCTAssertEqual(taken(&pending), ["progress 5"])
        let isEnd = isEnd(pending)
        XCTAssertFalse(isEnd)
    }

    /// For whoever drops what waits: whether there is an end among it.
    func testTheTerminalOfAllThatWaits() {
        let isEndOfNothing = isEnd(.nothing)
        XCTAssertFalse(isEndOfNothing)
        for events in [[], [.started], [.progress(ImgdlCore.Progress(received: 1))], [step(1), step(2)]]
            as [[DownloadEvent]]
        {
            var without = PendingEvents.nothing
            for event in events { _ = without.add(event) }
            let isEndWithout = isEnd(without)
            XCTAssertFalse(isEndWithout)
            var with = PendingEvents.nothing
            for event in events { _ = with.add(event) }
            _ = with.add(terminal())
            let isEndWith = isEnd(with)
            XCTAssertTrue(isEndWith)
        }
    }
}

/// Nothing is delivered of what it is given.
private final class HoldingExecutor: Executor, @unchecked Sendable {
    var terminal: Terminal?

    func post(_ subscription: Subscription, _ event: DownloadEvent) {}
    func post(_ subscription: Subscription, _ terminal: consuming Terminal) { self.terminal = consume terminal }
}

private final class Deaf: EventSink {
    func deliver(_ event: DownloadEvent, of subscription: Subscription) -> Bool { true }
    func deliver(_ terminal: DownloadResult, of subscription: Subscription) -> Bool { true }
    func close(_ subscription: Subscription) {}
}
