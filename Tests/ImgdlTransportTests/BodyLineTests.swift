import XCTest

@testable import ImgdlTransport

final class BodyLineTests: XCTestCase {
    /// A turn of curl gives a body out in any number of pieces: together they may mean as much as one transfer's turn.
    func testATurnOfCurlIsBounded() {
        var line = BodyLine()
        XCTAssertFalse(line.isFull(inTurnOfCurl: 1))
        line.decoded(BodyLine.bytesInTurnOfCurl - 1)
        XCTAssertFalse(line.isFull(inTurnOfCurl: 1))
        line.decoded(1)
        XCTAssertTrue(line.isFull(inTurnOfCurl: 1))
        XCTAssertFalse(line.isFull(inTurnOfCurl: 2), "another turn has a bound of its own")
        line.decoded(BodyLine.bytesInTurnOfCurl)
        XCTAssertTrue(line.isFull(inTurnOfCurl: 2))
        line.decoded(BodyLine.bytesInTurnOfCurl)
        XCTAssertFalse(line.isFull(inTurnOfCurl: 3))
    }

    /// Also in time: bytes that take long may mean nothing.
    func testATurnOfCurlIsBoundedInTime() {
        var line = BodyLine()
        XCTAssertFalse(line.isFull(inTurnOfCurl: 1))
        line.decoded(0, in: DecodingTurn.limit - 1)
        XCTAssertFalse(line.isFull(inTurnOfCurl: 1))
        line.decoded(0, in: 1)
        XCTAssertTrue(line.isFull(inTurnOfCurl: 1))
        XCTAssertFalse(line.isFull(inTurnOfCurl: 2), "another turn has a bound of its own")
        line.decoded(0, in: .max - DecodingTurn.limit)
        XCTAssertTrue(line.isFull(inTurnOfCurl: 2))
    }

    /// Chunks of a byte: so many of a turn of curl are taken, and again as many in each turn that the line has.
    func testPiecesOfATurnAreCounted() {
        var line = BodyLine()
        for _ in 0..<BodyLine.piecesInTurnOfCurl { XCTAssertTrue(line.takesPiece(inTurnOfCurl: 1)) }
        XCTAssertFalse(line.takesPiece(inTurnOfCurl: 1))
        XCTAssertFalse(line.takesPiece(inTurnOfCurl: 1))
        XCTAssertTrue(line.takesPiece(inTurnOfCurl: 2), "another turn")
        for _ in 1..<BodyLine.piecesInTurnOfCurl { XCTAssertTrue(line.takesPiece(inTurnOfCurl: 2)) }
        XCTAssertFalse(line.takesPiece(inTurnOfCurl: 2))
        _ = line.beginTurn()
        XCTAssertTrue(line.takesPiece(inTurnOfCurl: 2), "the line's turn")
    }

    /// Also in time, which is looked at with every few of them: buffers of frames that bring a byte each, say.
    func testPiecesOfATurnAreTimed() {
        var time: Int64 = 0
        var line = BodyLine { time }
        func taken(inTurnOfCurl turn: UInt64) -> Int {
            var count = 0
            while line.takesPiece(inTurnOfCurl: turn) {
                count += 1
                time += BodyLine.timeOfPieces / 25
            }
            XCTAssertFalse(line.takesPiece(inTurnOfCurl: turn))
            return count
        }
        // The first look begins the time, and others follow until it is over.
        let most = 5 * BodyLine.piecesUntimed
        XCTAssertEqual(taken(inTurnOfCurl: 1), most)
        time += 1_000_000_000
        XCTAssertEqual(taken(inTurnOfCurl: 2), most, "another turn")
        _ = line.beginTurn()
        XCTAssertEqual(taken(inTurnOfCurl: 2), most, "the line's turn")
    }
}
