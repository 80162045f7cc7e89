import XCTest

@testable import ImgdlCore

/// Features C10, B19.
final class ContentTypeRulesTests: XCTestCase {
    private func accepts(_ type: String, _ patterns: String...) -> Bool {
        let fields = [HeaderField("CONTENT-TYPE", type)]
        let head = ResponseHead(status: 200, httpVersion: 11, fields: fields, contentLength: nil, isEncoded: false)
        return ContentTypeRules.accepts(head.mediaType, patterns)
    }

    func testWildcardsCaseAndParameters() {
        XCTAssertTrue(accepts("image/png", "image/png"))
        XCTAssertTrue(accepts("IMAGE/PNG ; charset=utf-8", "text/html", "Image/Png;q=0.5"))
        XCTAssertTrue(accepts("image/svg+xml", "image/*"))
        XCTAssertTrue(accepts("text/html", "*/*"))
        XCTAssertTrue(accepts("text/html", "*"))
        XCTAssertFalse(accepts("text/html", "image/*"))
        XCTAssertFalse(accepts("imagery/png", "image/*"))
        XCTAssertFalse(accepts("image", "image/*"))
        XCTAssertFalse(accepts("image/png", "image/p*"), "half a name is no wildcard")
        XCTAssertFalse(accepts("image/png"), "none is accepted")
    }

    func testAMissingOneIsNotJudged() {
        let head = ResponseHead(status: 200, httpVersion: 11, fields: [], contentLength: nil, isEncoded: false)
        XCTAssertEqual(head.mediaType, "")
        XCTAssertTrue(ContentTypeRules.accepts(head.mediaType, ["image/png"]))
        XCTAssertTrue(accepts("", "image/png"))
    }
}
