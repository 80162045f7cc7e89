import CSystem
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlTransport

/// Turns that read from a peer who never ends, as libcurl's do.
final class TurnWatchTests: XCTestCase {
    /// A connection over TCP to itself; what one end writes, the other reads.
    private func connection() throws -> (reader: Int32, writer: Int32) {
        let listener = socket(AF_INET, SocketType.stream, 0)
        defer { close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let writer = socket(AF_INET, SocketType.stream, 0)
        let status = withUnsafeMutableBytes(of: &address) { bytes -> Int32 in
            let name = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            guard bind(listener, name, size) == 0, listen(listener, 1) == 0, getsockname(listener, name, &size) == 0
            else { return -1 }
            return connect(writer, name, size)
        }
        _ = try XCTUnwrap(status == 0 ? status : nil, "no TCP on this machine")
        return (accept(listener, nil, nil), writer)
    }

    private static func cpuMilliseconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1e3 + Double(time.tv_nsec) / 1e6
    }

    private struct Outcome: Sendable {
        var milliseconds = 0.0
        var stopped: [Int32] = []
        var reader: Int32 = 0
    }

    /// Reads in one turn for as long as something comes and `goesOn` says so, at most two seconds of CPU time; on a thread
    /// of the library's. It is told of each piece, and how much CPU time has gone.
    private func read(
        after prepare: @escaping @Sendable (TurnWatch) -> Void = { _ in },
        _ goesOn: @escaping @Sendable (TurnWatch, Int, Double) -> Bool,
        ending end: @escaping @Sendable (TurnWatch, Int32) -> Void = { _, _ in }
    ) throws -> Outcome {
        let (reader, writer) = try connection()
        let watch = TurnWatch()
        watch.opened(reader)
        let flood = try ImgdlCore.Thread.start(name: "flood") {
            let bytes = [UInt8](repeating: 1, count: 4096)
            while send(writer, bytes, bytes.count, Int32(MSG_NOSIGNAL)) > 0 {}
        }
        let outcome = Boxed(Outcome(reader: reader))
        let turn = try ImgdlCore.Thread.start(name: "turn") {
            prepare(watch)
            let start = Self.cpuMilliseconds()
            let stops = watch.during {
                var buffer = [UInt8](repeating: 0, count: 4096)
                var spent = 0.0
                while spent < 2_000 {
                    let count = recv(reader, &buffer, buffer.count, 0)
                    spent = Self.cpuMilliseconds() - start
                    if count <= 0 || !goesOn(watch, count, spent) { break }
                }
                outcome.value.milliseconds = spent
                end(watch, reader)
            }
            outcome.value.stopped = stops.map(\.socket)
        }
        turn.join()
        shutdown(writer, Int32(SHUT_RDWR))
        flood.join()
        watch.closes(reader)
        close(reader)
        close(writer)
        watch.close()
        return outcome.value
    }

    func testAFloodEnds() throws {
        // Another guest of the machine may keep the watching thread from its processor.
        var least = Double.infinity
        for _ in 0..<3 where least >= 100 {
            let outcome = try read { _, _, _ in true }
            XCTAssertEqual(outcome.stopped, [outcome.reader])
            least = min(least, outcome.milliseconds)
        }
        XCTAssertLessThan(least, 100, "of CPU time")
    }

    /// curl closes it, and may open another within the same turn, which gets its number: that one has flooded nobody.
    func testASocketThatIsClosedWithinItsTurnIsToldThen() throws {
        let closed = Boxed<Int32?>(nil)
        let outcome = try read { _, _, _ in
            true
        } ending: { watch, reader in
            closed.value = watch.closes(reader)?.socket
            watch.opened(reader)
        }
        XCTAssertEqual(closed.value, outcome.reader)
        XCTAssertEqual(outcome.stopped, [])
    }

    /// A long turn that brings a body, if a slow one, has its time.
    func testABodyPaysForItself() throws {
        let outcome = try read { watch, count, spent in
            watch.received(count)
            while Self.cpuMilliseconds() < spent + 0.2 {}
            return spent < 300
        }
        XCTAssertEqual(outcome.stopped, [])
        XCTAssertGreaterThan(outcome.milliseconds, 250)
    }

    func testTheHostsTimeDoesNotCount() throws {
        let outcome = try read { _, _, spent in
            if spent > 12 {
                ImgdlCore.Thread.resting {
                    let end = Self.cpuMilliseconds() + 150
                    while Self.cpuMilliseconds() < end {}
                }
            }
            return spent < 300
        }
        XCTAssertEqual(outcome.stopped, [])
        XCTAssertGreaterThan(outcome.milliseconds, 250)
    }

    /// A program that starts thousands of downloads keeps the engine busy between turns: no server pays for that.
    func testTimeBetweenTurnsDoesNotCount() throws {
        let work = { @Sendable (milliseconds: Double) in
            let end = Self.cpuMilliseconds() + milliseconds
            while Self.cpuMilliseconds() < end {}
        }
        // More than the turns take, and less than with what is between them.
        let bytes = Int(800_000 / (TurnBudget.nanosecondsPerByte * TurnBudget.slownessOfBuild))
        let wasCrowded = Boxed(false)
        let outcome = try read(
            after: { watch in
                for index in 0..<300 {
                    _ = watch.during {
                        work(0.5)
                        watch.received(bytes)
                    }
                    if watch.isCrowded { wasCrowded.value = true }
                    // 1.5 ms in the middle, and no beat of 8 ms: the watch, which looks every 8 ms, could see no turn.
                    work(1 + Double(index * 7 % 11) / 10)
                }
            },
            { _, _, spent in spent < 6 })
        XCTAssertEqual(outcome.stopped, [])
        XCTAssertTrue(wasCrowded.value, "nothing was counted between the turns")
        XCTAssertGreaterThanOrEqual(outcome.milliseconds, 6)
    }

    /// Whoever takes the time without reading is not stopped in place of others.
    func testATurnThatReadsNothing() throws {
        let outcome = try read { _, _, spent in
            while Self.cpuMilliseconds() < spent + 200 {}
            return false
        }
        XCTAssertEqual(outcome.stopped, [])
    }
}

private final class Boxed<Value>: @unchecked Sendable {
    var value: Value
    init(_ value: Value) { self.value = value }
}
