import ImgdlCore
import XCTest

@testable import ImgdlTransport

/// Many transfers that have something to read at once.
final class CrowdTests: TransportTestCase {
    private func silentTransfers(_ count: Int, partition: (Int) -> String = { _ in "" }) throws -> [TransferID] {
        origin.route("/silent") { exchange in try exchange.wait("never") }
        return try (0..<count).map { try start(origin.url("/silent"), partition: partition($0)) }
    }

    private func spin(nanoseconds: Int64) {
        let turn = DecodingTurn(limit: nanoseconds)
        while !turn.isOver {}
    }

    /// What curl would do by itself for each of them may take long: commands and time limits are looked at in between.
    func testLanesThatAreDueHaveTheirTurnsOneAfterTheOther() throws {
        _ = try silentTransfers(5) { String($0) }
        var served: [ObjectIdentifier] = []
        for number in 1...5 {
            transport.lanes.forEachDue(loop.now) { lane in
                served.append(ObjectIdentifier(lane))
                lane.multi.timeReached()
                spin(nanoseconds: BodyLine.timeOfPieces)
            }
            XCTAssertEqual(served.count, number)
        }
        XCTAssertEqual(Set(served).count, 5)
        run(until: origin.gate("never").waiting == 5)
    }

    /// As many as there is time for.
    func testLanesThatAreDueHaveTheirTurnsTogether() throws {
        _ = try silentTransfers(5) { String($0) }
        var served: [ObjectIdentifier] = []
        transport.lanes.forEachDue(loop.now) { served.append(ObjectIdentifier($0)) }
        XCTAssertEqual(Set(served).count, 5)
        XCTAssertEqual(served.count, 5)
    }

    /// What is left of a small body waits for no crowd of those that come again and again; neither do these wait for ever.
    func testWhoIsInLineForTheFirstTimeGoesFirst() throws {
        let transfers = try silentTransfers(4).map { try XCTUnwrap(transport.transfers[$0]) }
        var line = BodyLine()
        _ = line.join(transfers[0])
        _ = line.join(transfers[1])
        XCTAssertTrue(line.takeFirst() === transfers[0])
        _ = line.join(transfers[0])
        _ = line.join(transfers[2])
        _ = line.join(transfers[2])
        XCTAssertTrue(line.takeFirst() === transfers[1])
        _ = line.join(transfers[1])
        _ = line.join(transfers[3])
        for expected in [2, 0, 3, 1] { XCTAssertTrue(line.takeFirst() === transfers[expected], "\(expected)") }
        XCTAssertNil(line.takeFirst())
    }
}
