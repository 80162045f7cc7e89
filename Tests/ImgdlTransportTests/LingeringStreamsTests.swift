import ImgdlCore
import XCTest

@testable import ImgdlTransport

/// Which stopped streams wait for their reset, and for how long.
final class LingeringStreamsTests: XCTestCase {
    private final class Stream: LingeringStream {
        var hasStream = true
        var isHTTP2 = true
        let connectionName: UInt64
        let server: ServerConnections?
        var isLingering = false

        init(_ server: ServerConnections?, on connectionName: UInt64 = 1) {
            self.server = server
            self.connectionName = connectionName
        }
    }

    private let now = Instant(nanoseconds: 5_000_000_000)
    private var later: Instant { now.advanced(byMilliseconds: 60_000) }

    /// All of whose resets are used up.
    private func busyServer() -> ServerConnections {
        let server = ServerConnections()
        while server.resets.take(now) {}
        return server
    }

    func testOnlyStreamsOverTheirServersPaceWait() {
        let rested = ServerConnections()
        let unconnected = Stream(busyServer())
        unconnected.hasStream = false
        let separate = Stream(busyServer())
        separate.isHTTP2 = false
        let table: [(String, Stream, Bool)] = [
            ("no server", Stream(nil), false), ("HTTP/1.1", separate, false),
            ("not connected", unconnected, false), ("within the pace", Stream(rested), false),
            ("over the pace, though nothing was answered", Stream(busyServer()), true),
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

    /// However many wait, none is reset ahead of its turn; connections with nothing else on them are closed.
    func testConnectionsOfACrowdedServerAreClosed() {
        let maximum = LingeringStreams<Stream>.maximumOfServer
        let server = busyServer()
        let other = busyServer()
        var lingering = LingeringStreams<Stream>()
        XCTAssertTrue(lingering.join(Stream(other), now))
        for number in 0..<maximum - 1 {
            XCTAssertTrue(lingering.join(Stream(server, on: UInt64(number / 50)), now))
        }
        XCTAssertFalse(lingering.hasTooMany(server))
        XCTAssertTrue(lingering.takeCrowdedConnection { _ in false }.isEmpty)
        XCTAssertTrue(lingering.join(Stream(server, on: 3), now))
        XCTAssertTrue(lingering.hasTooMany(server))
        XCTAssertFalse(lingering.hasTooMany(other))
        XCTAssertTrue(lingering.take(now).isEmpty, "none ahead of its turn")
        XCTAssertTrue(lingering.takeCrowdedConnection { _ in true }.isEmpty, "somebody waits on each of them")
        let taken = lingering.takeCrowdedConnection { $0.connectionName == 0 }
        XCTAssertEqual(taken.map(\.connectionName), Array(repeating: 1, count: 50))
        XCTAssertTrue(taken.allSatisfy { $0.server === server && !$0.isLingering })
        XCTAssertFalse(lingering.hasTooMany(server))
        XCTAssertEqual(server.lingering, maximum - 50)
        XCTAssertEqual(lingering.take(later).count, ResetPace.burst + 1, "a burst of one server, and the other's one")
        XCTAssertEqual(lingering.takeAll().count, maximum - 50 - ResetPace.burst)
        XCTAssertEqual([server.lingering, other.lingering, lingering.count], [0, 0, 0])
    }

    /// Of many servers each has few: together they may be too many.
    func testManyServersAreCrowdedTogether() {
        let rested = ServerConnections()
        let servers = (0..<LingeringStreams<Stream>.maximumCount).map { _ in busyServer() }
        var lingering = LingeringStreams<Stream>()
        for server in servers {
            XCTAssertFalse(lingering.hasTooMany(server))
            XCTAssertTrue(lingering.join(Stream(server), now))
        }
        XCTAssertTrue(servers.allSatisfy(lingering.hasTooMany))
        XCTAssertFalse(lingering.hasTooMany(rested), "it has none")
        XCTAssertTrue(lingering.takeCrowdedConnection { _ in false }.first?.server === servers[0])
        XCTAssertFalse(servers.contains(where: lingering.hasTooMany))
    }
}
