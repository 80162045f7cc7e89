import CImgdl
import Origin
import XCTest

/// An observer of a downloader, and everything that it was told.
final class SeenTransfers: @unchecked Sendable {
    struct Seen: Equatable {
        var kind: Int
        var transfer: UInt64
        var url: String
        var code: String
        var status: Int32
        var subscribers: UInt32
        var transferTime: Int64?
    }

    struct Record {
        var seen: [Seen] = []
        var destructors = 0
        var late = 0
    }

    let monitor = Monitor(Record())
    /// Runs inside each call; set before `watch`.
    var onSeen: ((Seen) -> Void)?

    var record: Record { monitor.read { $0 } }
    var kinds: [Int] { record.seen.map(\.kind) }

    @discardableResult
    func watch(_ downloader: OpaquePointer?) -> SeenTransfers {
        let status = imgdl_downloader_set_observer(
            downloader, { SeenTransfers.from($1).received($0!.pointee) }, Unmanaged.passRetained(self).toOpaque(),
            { data in
                SeenTransfers.from(data).monitor.change { $0.destructors += 1 }
                Unmanaged<SeenTransfers>.fromOpaque(data!).release()
            })
        XCTAssertEqual(status, 0)
        return self
    }

    func waitForDestructor(_ file: StaticString = #filePath, _ line: UInt = #line) {
        let isOver = monitor.wait(until: .patient) { $0.destructors > 0 ? true : nil }
        XCTAssertNotNil(isOver, "no destructor", file: file, line: line)
        XCTAssertEqual(record.destructors, 1, file: file, line: line)
    }

    private static func from(_ data: UnsafeMutableRawPointer?) -> SeenTransfers {
        Unmanaged<SeenTransfers>.fromOpaque(data!).takeUnretainedValue()
    }

    private func received(_ observation: imgdl_observation) {
        let seen = Seen(
            kind: Int(observation.kind), transfer: observation.transfer, url: String(cString: observation.url),
            code: String(cString: imgdl_error_name(observation.code)), status: observation.http_status,
            subscribers: observation.subscriber_count, transferTime: observation.metrics?.pointee.transfer_ns)
        monitor.change {
            if $0.destructors > 0 { $0.late += 1 }
            $0.seen.append(seen)
        }
        onSeen?(seen)
    }
}
