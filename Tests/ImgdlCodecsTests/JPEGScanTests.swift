import XCTest

@testable import ImgdlCodecs

/// B9: which scans are worth a picture of their own.
final class JPEGScanTests: XCTestCase {
    private func scan(
        _ number: Int, _ component: Int?, _ band: ClosedRange<Int> = 1...63, _ before: Int = 0, _ after: Int = 1
    ) -> JPEGScan {
        JPEGScan(number: number, component: component, band: band, missingBefore: before, missingAfter: after)
    }

    func testOneColourDifferenceWaitsForTheOther() {
        XCTAssert(scan(3, 2).isHalfOfColours(before: scan(4, 1)), "Cr, Cb, as libjpeg writes them")
        XCTAssert(scan(3, 1).isHalfOfColours(before: scan(4, 2)), "Cb, Cr")
        XCTAssert(
            scan(2, 1, 0...63, 0, 0).isHalfOfColours(before: scan(3, 2, 0...63, 0, 0)), "a scan for each component")
        XCTAssert(scan(8, 2, 1...63, 1, 0).isHalfOfColours(before: scan(9, 1, 1...63, 1, 0)), "a refinement")
    }

    func testEveryOtherScanIsShown() {
        XCTAssertFalse(scan(3, 2).isHalfOfColours(before: nil), "nothing is known of the next")
        XCTAssertFalse(scan(3, 0).isHalfOfColours(before: scan(4, 1)), "brightness")
        XCTAssertFalse(scan(4, 1).isHalfOfColours(before: scan(5, 0)), "brightness follows")
        XCTAssertFalse(scan(3, 2).isHalfOfColours(before: scan(4, 2)), "the same again")
        XCTAssertFalse(scan(3, nil).isHalfOfColours(before: scan(4, 1)), "several components")
        XCTAssertFalse(scan(3, 2).isHalfOfColours(before: scan(4, nil)), "several follow")
        XCTAssertFalse(scan(3, 2).isHalfOfColours(before: scan(5, 1)), "not the next")
        XCTAssertFalse(scan(3, 2, 1...5).isHalfOfColours(before: scan(4, 1)), "another band")
        XCTAssertFalse(scan(3, 2).isHalfOfColours(before: scan(4, 1, 1...63, 1, 1)), "a refinement")
        XCTAssertFalse(scan(3, 2).isHalfOfColours(before: scan(4, 1, 1...63, 0, 2)), "less precise")
    }
}
