import CImgdl
import Origin
import XCTest

/// One batch as a test makes it, and everything that was called for it.
final class BatchRun: @unchecked Sendable {
    struct Step: Equatable {
        var isFinished: Bool
        var finished: Int
        var failed: Int
        var cancelled: Int
        var total: Int
    }

    struct Record {
        var steps: [Step] = []
        var destructors = 0
        var isInside = false
        var overlapped = false
        var late = 0
    }

    let monitor = Monitor(Record())
    private(set) var batch: OpaquePointer?
    private(set) var status: Int32 = 0
    /// Runs inside each progress callback; set before `start`.
    var onProgress: ((Step) -> Void)?

    deinit { imgdl_batch_release(batch) }

    var record: Record { monitor.read { $0 } }

    /// `downloads`: one callback for each URL, or nil for none at all.
    @discardableResult
    func start(
        _ downloader: OpaquePointer?, _ urls: [String], downloads: [Download]? = nil,
        options configure: (inout imgdl_batch_options) -> Void = { _ in },
        request: (Int, inout imgdl_request) -> Void = { _, _ in }
    ) -> BatchRun {
        var options = imgdl_batch_options()
        imgdl_batch_options_init(&options, MemoryLayout<imgdl_batch_options>.stride)
        options.progress = { progress, data in BatchRun.from(data).received(progress!.pointee) }
        options.destructor = { data in
            BatchRun.from(data).monitor.change { $0.destructors += 1 }
            Unmanaged<BatchRun>.fromOpaque(data!).release()
        }
        options.user_data = Unmanaged.passRetained(self).toOpaque()
        configure(&options)
        let texts = urls.map { strdup($0) }
        defer { for text in texts { free(text) } }
        var requests = [imgdl_request](repeating: imgdl_request(), count: urls.count)
        for index in requests.indices {
            imgdl_request_init(&requests[index], MemoryLayout<imgdl_request>.stride)
            downloads?[index].prepare(&requests[index])
            requests[index].url = UnsafePointer(texts[index])
            request(index, &requests[index])
        }
        status = imgdl_downloader_prefetch(downloader, requests, requests.count, &options, &batch)
        return self
    }

    /// Until the destructor has run.
    @discardableResult
    func wait(_ file: StaticString = #filePath, _ line: UInt = #line) -> BatchRun {
        let isOver = monitor.wait(until: .patient) { $0.destructors > 0 ? true : nil } ?? false
        XCTAssertTrue(isOver, "no end; seen \(record.steps.suffix(3))", file: file, line: line)
        let record = record
        XCTAssertEqual(record.destructors, 1, "destructors", file: file, line: line)
        XCTAssertFalse(record.overlapped, "progress overlaps", file: file, line: line)
        XCTAssertEqual(record.late, 0, "calls after the destructor", file: file, line: line)
        guard status == 0 else { return self }
        let total = record.steps.last?.total ?? -1
        let finished = record.steps.map(\.finished)
        XCTAssertEqual(
            finished, total == 0 ? [0] : Array(1...max(total, 1)), "one for each (F1)", file: file, line: line)
        XCTAssertEqual(record.steps.map(\.isFinished).filter { $0 }.count, 1, file: file, line: line)
        XCTAssertEqual(record.steps.last?.isFinished, true, file: file, line: line)
        return self
    }

    @discardableResult
    func waitFor(finished: Int, _ file: StaticString = #filePath, _ line: UInt = #line) -> BatchRun {
        let isSeen = monitor.wait(until: .patient) { ($0.steps.last?.finished ?? 0) >= finished ? true : nil }
        XCTAssertNotNil(isSeen, "\(finished) do not end", file: file, line: line)
        return self
    }

    private static func from(_ data: UnsafeMutableRawPointer?) -> BatchRun {
        Unmanaged<BatchRun>.fromOpaque(data!).takeUnretainedValue()
    }

    private func received(_ progress: imgdl_batch_progress) {
        let step = Step(
            isFinished: progress.is_finished != 0, finished: progress.finished, failed: progress.failed,
            cancelled: progress.cancelled, total: progress.total)
        monitor.change { record in
            if record.isInside { record.overlapped = true }
            if record.destructors > 0 { record.late += 1 }
            record.isInside = true
            record.steps.append(step)
        }
        onProgress?(step)
        monitor.change { $0.isInside = false }
    }
}
