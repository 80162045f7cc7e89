import ImgdlCore
import XCTest

final class RequestLengthTests: XCTestCase {
    private func refusal(url: Int, fields: [(name: Int, value: Int)]) -> Failure? {
        let start = "http://a.example/"
        let text = start + String(repeating: "a", count: url - start.utf8.count)
        let request = TransportRequest(
            url: testURL(text), method: "GET",
            fields: fields.map {
                HeaderField(String(repeating: "n", count: $0.name), String(repeating: "v", count: $0.value))
            }, body: nil, maximumHeaderBytes: 1)
        return RequestLength.refusal(of: request)
    }

    func testURLAndHeaderTogether() {
        XCTAssertNil(refusal(url: 1_000_000, fields: []))
        XCTAssertNil(refusal(url: 900_000, fields: [(1_000, 90_000), (4_000, 5_000)]))
        let long = refusal(url: 1_000_001, fields: [])
        XCTAssertEqual(long?.code, .invalidURL)
        XCTAssertEqual(
            long?.message,
            "the request's URL has 1000001 bytes and its header 0, and no more than 1000000 together are sent")
        XCTAssertEqual(refusal(url: 900_000, fields: [(1_000, 90_000), (4_000, 5_001)])?.code, .invalidURL)
        let fields = Array(repeating: (name: 10, value: 9_990), count: 100)
        XCTAssertEqual(refusal(url: 1_000, fields: fields)?.code, .invalidHeader)
        XCTAssertEqual(refusal(url: 1_000, fields: [(10, 3_000_000)])?.code, .invalidHeader)
        XCTAssertEqual(refusal(url: 3_000_000, fields: [(10, 2_000_000)])?.code, .invalidURL)
    }
}
