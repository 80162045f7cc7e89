import XCTest

@testable import ImgdlTransport

final class DecodingLineTests: XCTestCase {
    /// A turn of curl gives a body out in any number of pieces: together they may mean as much as one transfer's turn.
    func testATurnOfCurlIsBounded() {
        var line = DecodingLine()
        XCTAssertFalse(line.isFull(inTurnOfCurl: 1))
        line.decoded(DecodingLine.bytesInTurnOfCurl - 1)
        XCTAssertFalse(line.isFull(inTurnOfCurl: 1))
        line.decoded(1)
        XCTAssertTrue(line.isFull(inTurnOfCurl: 1))
        XCTAssertFalse(line.isFull(inTurnOfCurl: 2), "another turn has a bound of its own")
        line.decoded(DecodingLine.bytesInTurnOfCurl)
        XCTAssertTrue(line.isFull(inTurnOfCurl: 2))
        line.decoded(DecodingLine.bytesInTurnOfCurl)
        XCTAssertFalse(line.isFull(inTurnOfCurl: 3))
    }
}
