import ImgdlCore
import XCTest

@testable import ImgdlTransport

/// Which cancelled streams wait for their reset, and for how long.
final class LingeringStreamsTests: XCTestCase {
    private final class Stream: LingeringStream {
        var isConnected = true
        let server: ServerConnections?
        var isLingering = false

        init(_ server: ServerConnections?) { self.server = server }
    }

    private let now = Instant(nanoseconds: 5_000_000_000)
    private var later: Instant { now.advanced(byMilliseconds: 60_000) }

    /// All of whose resets are used up.
    private func busyServer(inHTTP2: Bool = true) -> ServerConnections {
        let server = ServerConnections()
        server.answers(inHTTP2: inHTTP2)
        while server.resets.take(now) {}
        return server
    }

    func testOnlyStreamsOverTheirServersPaceWait() {
        let rested = ServerConnections()
        rested.answers(inHTTP2: true)
        let unconnected = Stream(busyServer())
        unconnected.isConnected = false
        let table: [(String, Stream, Bool)] = [
            ("no server", Stream(nil), false), ("HTTP/1.1", Stream(busyServer(inHTTP2: false)), false),
            ("not connected", unconnected, false), ("within the pace", Stream(rested), false),
            ("over the pace", Stream(busyServer()), true),
        ]
        for (name, stream, waits) in table {
            var lingering = LingeringStreams<Stream>()
            XCTAssertEqual(lingering.join(stream, now), waits, name)
            XCTAssertEqual(stream.isLingering, waits, name)
            XCTAssertEqual(lingering.count, waits ? 1 : 0, name)
            XCTAssertEqual(lingering.deadline(now) != nil, waits, name)
        }
        XCTAssertEqual((0..<500).count { _ in rested.resets.take(now) }, ResetPace.burst - 1, "a reset was taken")
    }

    func testTheyAreResetAtTheirServersPace() {
        let server = busyServer()
        let streams = (0..<5).map { _ in Stream(server) }
        var lingering = LingeringStreams<Stream>()
        for stream in streams { XCTAssertTrue(lingering.join(stream, now)) }
        XCTAssertTrue(lingering.take(now).isEmpty)
        lingering.leave(streams[0])
        for stream in streams[1...] {
            guard let due = lingering.deadline(now) else { return XCTFail("nothing is due") }
            XCTAssertGreaterThan(due, now)
            let taken = lingering.take(due)
            XCTAssertEqual(taken.count, 1)
            XCTAssertTrue(taken.first === stream, "the oldest first")
        }
        XCTAssertNil(lingering.deadline(now))
    }

    func testTheOldestAreResetWhereTooManyWait() {
        let server = busyServer()
        let streams = (0..<LingeringStreams<Stream>.maximumCount + 3).map { _ in Stream(server) }
        var lingering = LingeringStreams<Stream>()
        for stream in streams { XCTAssertTrue(lingering.join(stream, now)) }
        let taken = lingering.take(now)
        XCTAssertEqual(taken.count, 3)
        XCTAssertTrue(zip(taken, streams).allSatisfy { $0 === $1 })
        XCTAssertEqual(lingering.take(later).count, ResetPace.burst)
        XCTAssertEqual(lingering.takeAll().count, LingeringStreams<Stream>.maximumCount - ResetPace.burst)
        XCTAssertEqual(lingering.count, 0)
    }
}
