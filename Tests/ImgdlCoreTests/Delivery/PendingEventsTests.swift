import XCTest

@testable import ImgdlCore

/// What waits for a slow subscriber (features R27).
final class PendingEventsTests: XCTestCase {
    private func taken(_ pending: inout PendingEvents) -> [String] {
        var names: [String] = []
        while let event = pending.takeFirst() {
            switch event {
            case .started: names.append("started")
            case .response: names.append("response")
            case .header: names.append("header")
            case .progress(let progress): names.append("progress \(progress.received)")
            case .partial: names.append("partial")
            case .terminal(let result): names.append("terminal \(result.code)")
            case .step(let step): names.append("step \(step.finished)")
            }
        }
        return names
    }

    func testATerminalAlone() {
        var pending = PendingEvents.nothing
        XCTAssertTrue(pending.isEmpty)
        _ = pending.add(.terminal(DownloadResult(failure: nil)))
        XCTAssertFalse(pending.isEmpty)
        XCTAssertNotNil(pending.terminal)
        XCTAssertEqual(taken(&pending), ["terminal ok"])
        XCTAssertTrue(pending.isEmpty)
        XCTAssertNil(pending.terminal)
    }

    func testTheNewestProgressOfEachAndTheTerminalLast() {
        var pending = PendingEvents.nothing
        _ = pending.add(.progress(ImgdlCore.Progress(received: 1)))
        XCTAssertNil(pending.terminal)
        _ = pending.add(.started)
        _ = pending.add(.progress(ImgdlCore.Progress(received: 2)))
        _ = pending.add(.terminal(DownloadResult(failure: Failure(.cancelled, "cancelled"))))
        XCTAssertNotNil(pending.terminal)
        XCTAssertEqual(taken(&pending), ["started", "progress 2", "terminal cancelled"])
        XCTAssertTrue(pending.isEmpty)
        _ = pending.add(.terminal(DownloadResult(failure: nil)))
        XCTAssertEqual(taken(&pending), ["terminal ok"])
    }

    func testEachStepOfABatchAndItsTerminalLast() {
        func step(_ finished: Int) -> DownloadEvent {
            var progress = BatchProgress(total: 4)
            progress.finished = finished
            return .step(progress)
        }
        var pending = PendingEvents.nothing
        _ = pending.add(step(1))
        XCTAssertFalse(pending.isEmpty)
        XCTAssertEqual(taken(&pending), ["step 1"])
        XCTAssertTrue(pending.isEmpty)
        XCTAssertNil(pending.terminal)
        _ = pending.add(step(2))
        _ = pending.add(step(3))
        _ = pending.add(.terminal(DownloadResult(failure: nil)))
        XCTAssertNotNil(pending.terminal)
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
    }
}
