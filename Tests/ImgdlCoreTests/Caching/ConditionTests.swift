import XCTest

@testable import ImgdlCore

/// RFC 9111 section 4.3.2 and RFC 9110 sections 13 and 14: a caller's own conditions and ranges, answered from a stored
/// response.
final class ConditionTests: CacheTestCase {
    private let fresh = ("Cache-Control", "max-age=600")
    private func cached(_ fields: Fields = [], length: Int64 = 11, isEncoded: Bool = false) -> StoredResponse? {
        stored([fresh, ("Date", date(0))] + fields, length: length, isEncoded: isEncoded)
    }

    /// RFC 9110 section 13.1.2: weak comparison, a list, or "*".
    func testIfNoneMatch() {
        for (own, asked, isSame) in [
            ("\"a\"", "\"a\"", true), ("\"a\"", "W/\"a\"", true), ("W/\"a\"", "\"a\"", true),
            ("W/\"a\"", "W/\"a\"", true),
            ("\"a\"", "\"a\", \"1\", \"5\"", true), ("\"a\"", "\"1\", \"a\", \"5\"", true),
            ("\"a\"", "\"1\",\"5\",\"a\"", true),
            ("\"a,b\"", "\"1\", \"a,b\"", true), ("\"a\"", "*", true), ("\"č\"", "\"č\"", true), ("\"\"", "\"\"", true),
            ("\"a\"", "\"b\"", false), ("\"a\"", "\"A\"", false), ("\"a\"", "a", false), ("a", "a", false),
            ("a", "\"a\"", false),
            // What came may have been other bytes than those that the caller sends.
            ("\"ü\"", "\"ü\"", false),
            ("w/\"a\"", "w/\"a\"", false), ("\"a\"", "\"*\"", false), ("\"a b\"", "\"a b\"", false),
            ("\"a\"", "\"a", false),
        ] {
            let result = decision(cached([("ETag", own)]), with: [("If-None-Match", asked)])
            XCTAssertEqual(result.isNotModified, isSame, "\(own) \(asked)")
            XCTAssertEqual(result.isHit, !isSame, "otherwise the stored response is the answer")
        }
        let lines = [("If-None-Match", "\"1\""), ("If-None-Match", "\"a\"")]
        XCTAssertTrue(decision(cached([("ETag", "\"a\"")]), with: lines).isNotModified)
        XCTAssertTrue(decision(cached(), with: [("If-None-Match", "*")]).isNotModified)
        XCTAssertTrue(decision(cached(), with: [("If-None-Match", "\"a\"")]).isHit)
    }

    /// 4.3.2: "If a request contains an If-Modified-Since header field and the Last-Modified header field is not
    /// present in a stored response, a cache SHOULD use the stored response's Date field value (or, if no Date field is
    /// present, the time that the stored response was received)".
    func testIfModifiedSince() {
        let modified = [("Last-Modified", date(-3000))]
        for (fields, since, isSame) in [
            (modified, date(-3000), true), (modified, date(-2000), true), (modified, date(-3001), false),
            (modified, "Thursday, 01-Jan-98 00:00:00 GMT", false), (modified, "soon", false), ([], date(0), true),
            ([], date(-1), false), ([("Last-Modified", "x")], date(0), true),
        ] as [(Fields, String, Bool)] {
            XCTAssertEqual(decision(cached(fields), with: [("If-Modified-Since", since)]).isNotModified, isSame, since)
        }
        var undated = stored([fresh], at: -5)
        undated?.fields.removeAll { $0.name == "Date" }
        XCTAssertTrue(decision(undated, with: [("If-Modified-Since", date(-5))]).isNotModified)
        XCTAssertTrue(decision(undated, with: [("If-Modified-Since", date(-6))]).isHit)
    }

    /// 4.3.2: "If-None-Match takes precedence over If-Modified-Since".
    func testPrecedence() {
        let entry = cached([("ETag", "\"a\""), ("Last-Modified", date(-5000))])
        let since = ("If-Modified-Since", date(-1))
        XCTAssertTrue(decision(entry, with: [since, ("If-None-Match", "\"b\"")]).isHit)
        XCTAssertTrue(
            decision(entry, with: [("If-None-Match", "\"a\""), ("If-Modified-Since", date(-9999))]).isNotModified)
    }

    /// RFC 9110 section 15.4.5: Content-Location, Date, ETag, Vary, Cache-Control and Expires are in a 304; what
    /// describes the content is not. It has an Age, since nothing was validated.
    func testFieldsOf304() {
        let entry = cached([
            ("ETag", "\"a\""), ("Vary", "Foo"), ("Content-Location", "/x"), ("Expires", date(5)),
            ("Last-Modified", date(-9)),
            ("Content-Length", "11"), ("Content-Type", "image/png"), ("Content-Encoding", "gzip"),
            ("Content-Language", "de"), ("X", "1"),
        ])
        let head = decision(entry, with: [("If-None-Match", "\"a\"")], after: 3).head
        let names = [
            "Cache-Control", "Date", "ETag", "Vary", "Content-Location", "Expires", "Last-Modified", "X", "Age",
        ]
        XCTAssertEqual(head?.fields.map(\.name), names)
        XCTAssertEqual(head?.fields.last?.value, "3")
        XCTAssertNil(head?.contentLength)
    }

    /// 4.3.2: "A cache MUST NOT evaluate conditional header fields that only apply to an origin server"; "the If-Match
    /// and If-Unmodified-Since conditional header fields are not applicable to a cache".
    func testConditionsForTheOrigin() {
        for name in ["If-Match", "If-Unmodified-Since"] {
            XCTAssertEqual(
                decision(cached([("ETag", "\"a\"")]), with: [(name, "\"a\"")]), .forward(adding: [], stores: true))
            XCTAssertEqual(decision(cached(), with: [(name, "*")], mode: .only), .unavailable)
        }
    }

    /// RFC 9110 section 13.2.1: preconditions are ignored where the answer without them is no success.
    func testConditionsOnErrors() {
        let missing = stored([fresh, ("ETag", "\"a\"")], status: 404)
        XCTAssertTrue(decision(missing, with: [("If-None-Match", "\"a\"")]).isHit)
        XCTAssertTrue(decision(missing, with: [("Range", "bytes=0-1")]).isHit)
    }

    /// The server's 304 to a caller's own condition is the caller's: no validator of the store is added (features B18).
    func testConditionsOnStaleResponses() {
        let stale = stored([("Cache-Control", "max-age=1"), ("ETag", "\"a\""), ("Last-Modified", date(-3000))])
        for condition in [("If-None-Match", "\"a\""), ("If-Modified-Since", date(-3000)), ("Range", "bytes=0-1")] {
            XCTAssertEqual(decision(stale, with: [condition], after: 9), .forward(adding: [], stores: true))
            XCTAssertEqual(decision(with: [condition]), .forward(adding: [], stores: true), "and with nothing stored")
        }
        XCTAssertTrue(decision(stale, with: [("If-None-Match", "\"a\"")], mode: .only, after: 9).isNotModified)
    }

    func testHeadWithACondition() {
        let asked = request([("If-None-Match", "\"a\"")], method: "HEAD")
        XCTAssertTrue(decision(cached([("ETag", "\"a\"")]), to: asked).isNotModified)
    }

    /// RFC 9110 sections 14.1.2 and 15.3.7: one range of a whole body.
    func testRanges() {
        for (text, range) in [
            ("bytes=0-1", 0..<2), ("bytes=1-", 1..<11), ("bytes=-1", 10..<11), ("bytes=-99", 0..<11),
            ("bytes=5-99", 5..<11),
            ("BYTES=10-10", 10..<11), ("bytes= 2-3 ", 2..<4), ("bytes=,2-3,", 2..<4),
            ("bytes=0-9223372036854775807", 0..<11),
        ] as [(String, Range<Int64>)] {
            let result = decision(cached([("Content-Length", "11"), ("A", "1")]), with: [("Range", text)])
            XCTAssertEqual(result.range, range, text)
            XCTAssertEqual(result.head?.status, 206)
            XCTAssertEqual(result.head?.contentLength, Int64(range.count))
            let fields = result.head?.fields
            XCTAssertEqual(fields?.first(named: "Content-Length"), "\(range.count)")
            XCTAssertEqual(
                fields?.first(named: "Content-Range"), "bytes \(range.lowerBound)-\(range.upperBound - 1)/11")
            XCTAssertEqual(fields?.first(named: "A"), "1")
            XCTAssertEqual(fields?.first(named: "Age"), "0")
        }
        for text in ["bytes=11-", "bytes=99-100", "bytes=-0", "bytes=9223372036854775807-"] {
            let result = decision(cached([("Content-Length", "11")]), with: [("Range", text)])
            guard case .answerPart(0, let head, .hit, nil, nil) = result else { return XCTFail("\(result)") }
            XCTAssertEqual(head.status, 416, text)
            XCTAssertEqual(head.fields.first(named: "Content-Range"), "bytes */11")
        }
        for text in [
            "bytes=0-1,4-5", "bytes=", "bytes=2-1", "bytes=a-b", "bytes", "items=0-1", "bytes=--1", "bytes=1",
            "bytes=99999999999999999999-", "bytes=+1-2", "bytes=0x1-2",
        ] {
            let result = decision(cached(), with: [("Range", text)])
            XCTAssertEqual(result, .forward(adding: [], stores: false), "\(text) is left to the server")
            XCTAssertEqual(decision(cached(), with: [("Range", text)], mode: .only), .unavailable)
        }
    }

    /// Section 3.3: "A cache MUST NOT use an incomplete response to answer requests unless the response has been made
    /// complete, or the request is partial and specifies a range wholly within the incomplete response."
    func testRangesWithinAPart() {
        func part(_ content: String, length: Int64, asked: String = "bytes=4-9") -> StoredResponse? {
            stored(
                [fresh, ("Content-Range", "bytes \(content)"), ("ETag", "\"a\"")], status: 206,
                to: request([("Range", asked)]), length: length)
        }
        for (content, text, range, shown) in [
            ("4-9/20", "bytes=4-9", 0..<6, "4-9/20"), ("4-9/20", "bytes=6-8", 2..<5, "6-8/20"),
            ("4-9/*", "bytes=9-9", 5..<6, "9-9/*"), ("4-9/10", "bytes=6-", 2..<6, "6-9/10"),
            ("4-9/10", "bytes=-2", 4..<6, "8-9/10"), ("4-9/10", "bytes=8-99", 4..<6, "8-9/10"),
        ] as [(String, String, Range<Int64>, String)] {
            let result = decision(part(content, length: 6), with: [("Range", text)])
            XCTAssertEqual(result.range, range, text)
            XCTAssertEqual(result.head?.status, 206)
            XCTAssertEqual(result.head?.fields.filter { $0.name == "Content-Range" }.map(\.value), ["bytes \(shown)"])
        }
        for (content, text) in [
            ("4-9/20", "bytes=3-5"), ("4-9/20", "bytes=8-10"), ("4-9/20", "bytes=6-"), ("4-9/20", "bytes=-2"),
            ("4-9/*", "bytes=6-"), ("4-9/10", "bytes=-7"), ("4-9/20", "bytes=10-11"),
        ] {
            XCTAssertTrue(decision(part(content, length: 6), with: [("Range", text)]).asksServer, text)
        }
        XCTAssertTrue(decision(part("4-9/20", length: 6), with: []).asksServer, "it is not the whole")
        XCTAssertNil(part("4-9/20", length: 6, asked: "bytes=0-1,4-9"), "several parts are not kept")
        XCTAssertNil(part("*/20", length: 6))
        XCTAssertNotEqual(
            part("4-9/20", length: 6)?.varying, part("4-8/20", length: 5)?.varying, "kept beside each other")
        let held = part("4-9/20", length: 6)
        XCTAssertEqual(decision(held, with: [("Range", "bytes=4-5"), ("If-Range", "\"a\"")]).range, 0..<2)
        XCTAssertTrue(decision(held, with: [("Range", "bytes=4-5"), ("If-Range", "\"b\"")]).asksServer)
        let whole = stored([fresh], length: 20)
        XCTAssertTrue(decision(held, whole, with: []).isHit)
        XCTAssertEqual(decision(held, whole, with: [("Range", "bytes=0-1")]).index, 1)
    }

    func testRangesOfWhatIsNotKeptAsItWasSent() {
        let encoded = cached([("Content-Encoding", "gzip")], isEncoded: true)
        XCTAssertTrue(decision(encoded, with: [("Range", "bytes=0-1")]).asksServer)
        let head = decision(cached(), to: request([("Range", "bytes=0-1")], method: "HEAD")).head
        XCTAssertEqual(head?.status, 200, "a range is defined for GET alone")
        let partial = response([fresh, ("Content-Range", "bytes 0-1/11")], status: 206)
        XCTAssertNil(CacheRules.stored(request(), partial, requestTime: start, responseTime: start))
        XCTAssertNotNil(stored([fresh], to: request([("Range", "bytes=0-1")])), "a 200 is whole")
    }

    /// RFC 9110 section 13.1.5: strong comparison, or the exact date where it is strong; else the range is passed over.
    func testIfRange() {
        let tagged = [("ETag", "\"a\"")]
        for (fields, validator, isPart) in [
            (tagged, "\"a\"", true), (tagged, "\"b\"", false), (tagged, "W/\"a\"", false),
            ([("ETag", "W/\"a\"")], "W/\"a\"", false),
            ([("Last-Modified", date(-60))], date(-60), true), ([("Last-Modified", date(-59))], date(-59), false),
            ([("Last-Modified", date(-60))], date(-30), false), (tagged, date(-60), false), (tagged, "a", false),
        ] as [(Fields, String, Bool)] {
            let result = decision(cached(fields), with: [("Range", "bytes=0-1"), ("If-Range", validator)])
            XCTAssertEqual(result.range != nil, isPart, validator)
            XCTAssertEqual(result.isHit, !isPart, validator)
        }
        XCTAssertTrue(decision(cached(), with: [("If-Range", "\"a\"")]).isHit, "without Range it says nothing")
    }

    /// RFC 9110 section 14.4.
    func testContentRange() {
        for (text, range, total) in [
            ("bytes 0-4/10", 0..<5, 10), ("bytes 4-9/10", 4..<10, 10), ("bytes 0-4/*", 0..<5, nil),
            ("BYTES 0-0/1", 0..<1, 1),
            ("bytes */10", nil, 10), ("bytes */0", nil, 0),
        ] as [(String, Range<Int64>?, Int64?)] {
            XCTAssertEqual(ContentRange(text)?.range, range, text)
            XCTAssertEqual(ContentRange(text)?.total, total, text)
        }
        for text in [
            "", "bytes", "bytes 0-4", "bytes 0-4/", "bytes 5-4/10", "bytes 0-10/10", "bytes */*", "bytes -4/10",
            "bytes 0-/10",
            "items 0-4/10", "bytes=0-4/10", "bytes 0-4/10/11", "bytes  0-4/10", "bytes 0-4/10 ", "bytes 0 - 4/10",
            "bytes +0-4/10", "bytes 0-4/99999999999999999999", "bytes 0-9223372036854775807/*", "bytes a-b/c",
        ] {
            XCTAssertNil(ContentRange(text), text)
        }
    }
}
