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

    /// They come out in base64, in a field that is nobody's.
    func testCredentialsCount() {
        let request = TransportRequest(
            url: testURL("http://a.example/"), method: "GET", fields: [], body: nil, maximumHeaderBytes: 1,
            identity: RequestIdentity(
                credential: Credential(user: "u", password: String(repeating: "p", count: 750_000))))
        XCTAssertEqual(RequestLength.refusal(of: request)?.code, .invalidHeader)
    }

    /// What a cache adds with a server's own words is no reason to refuse what the caller asks.
    func testConditionsHaveRoomOfTheirOwn() {
        let names = ["If-None-Match", "if-range", "Range"]
        func refusal(_ count: Int) -> Failure? {
            let fields = names.map { HeaderField($0, String(repeating: "v", count: count)) }
            let own = HeaderField("X", String(repeating: "v", count: 999_000))
            return RequestLength.refusal(
                of: TransportRequest(
                    url: testURL("http://a.example/"), method: "GET", fields: [own] + fields, body: nil,
                    maximumHeaderBytes: 1))
        }
        XCTAssertNil(refusal(5_000))
        XCTAssertEqual(refusal(6_000)?.code, .invalidHeader)
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
