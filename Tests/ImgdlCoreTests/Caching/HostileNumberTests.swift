import XCTest

@testable import ImgdlCore

/// Numbers that mean harm, in what servers send, callers ask and an index gives back: what is stored of them is sound, and
/// what is answered lies within what is stored.
final class HostileNumberTests: CacheTestCase {
    private let numbers: [String] = [
        "0", "1", "5", "6", "99", "2147483647", "4294967296", "9007199254740992", "9223372036854775800",
        "9223372036854775806", "9223372036854775807", "9223372036854775808", "18446744073709551615",
        "99999999999999999999999", "-1", "",
    ]

    private var asked: [String] {
        numbers.flatMap { first in numbers.map { "bytes=\(first)-\($0)" } } + [
            "bytes=-5", "bytes=5-9223372036854775807",
        ]
    }

    private func decide(_ stored: StoredResponse, _ range: String, mode: CacheMode = .only) -> CacheDecision {
        decision(stored, with: [("Range", range)], mode: mode)
    }

    /// Of a part, whatever its Content-Range says: either it is not stored, or every range comes out of its bytes.
    func testContentRanges() {
        let contents =
            numbers.flatMap { first in
                numbers.flatMap { last in numbers.map { "bytes \(first)-\(last)/\($0)" } + ["bytes \(first)-\(last)/*"]
                }
            }
        var kept = 0
        for content in contents {
            let part = stored(
                [("Cache-Control", "max-age=60"), ("Content-Range", content)], status: 206,
                to: request([("Range", "bytes=-5")]), length: 7)
            guard let part, part.isSound else { continue }
            kept += 1
            for range in asked {
                let result = decide(part, range)
                if let found = result.range { XCTAssertTrue((0..<7).contains(found), "\(content), \(range): \(found)") }
            }
        }
        XCTAssertEqual(kept, 5, "bytes 0-6 of four possible lengths, and of one that nobody knows")
    }

    /// What was seen to end processes.
    func testPartsThatAreNotWhatTheySay() {
        for content in [
            "9223372036854775800-9223372036854775806/9223372036854775807", "9223372036854775800-9223372036854775806/*",
            "0-9223372036854775806/9223372036854775807", "9007199254740991-9007199254740992/*",
        ] {
            let part = stored(
                [("Content-Range", "bytes \(content)")], status: 206, to: request([("Range", "bytes=-5")]), length: 7)
            XCTAssertNil(part, content)
            XCTAssertNil(ContentRange("bytes \(content)"), content)
        }
        let longer = stored(
            [("Content-Range", "bytes 4-9/10")], status: 206, to: request([("Range", "bytes=-5")]), length: 7)
        XCTAssertEqual(longer?.isSound, false, "six bytes are not seven")
        XCTAssertEqual(ContentRange("bytes 0-9007199254740991/9007199254740992")?.range?.count, 1 << 53)
    }

    func testRangesOfTheCaller() {
        let part = stored(
            [("Cache-Control", "max-age=60"), ("Content-Range", "bytes 4-9/10")], status: 206,
            to: request([("Range", "bytes=4-9")]), length: 6)
        let whole = stored([("Cache-Control", "max-age=60")], length: 10)
        for (text, inPart, inWhole) in [
            ("bytes=5-9223372036854775807", 1..<6, 5..<10), ("bytes=4-9223372036854775806", 0..<6, 4..<10),
            ("bytes=-9223372036854775807", nil, 0..<10), ("bytes=-6", 0..<6, 4..<10), ("bytes=-7", nil, 3..<10),
            ("bytes=0-9223372036854775807", nil, 0..<10), ("bytes=9223372036854775806-9223372036854775807", nil, nil),
        ] as [(String, Range<Int64>?, Range<Int64>?)] {
            XCTAssertEqual(part.map { decide($0, text) }?.range, inPart, text)
            XCTAssertEqual(whole.map { decide($0, text) }?.range, inWhole, text)
        }
    }

    func testWhatIsSound() {
        let most = StoredResponse.greatestLength
        for (length, extent, isSound) in [
            (0, .whole, true), (most, .whole, true), (most + 1, .whole, false), (.max, .whole, false),
            (-1, .whole, false), (.min, .headAlone, false), (40, .beginning(total: nil), true),
            (40, .beginning(total: 41), true), (40, .beginning(total: 40), false), (40, .beginning(total: -1), false),
            (40, .beginning(total: .max), false), (6, .part(4..<10, total: 10), true),
            (6, .part(4..<10, total: nil), true), (6, .part(4..<10, total: 9), false),
            (5, .part(4..<10, total: 10), false), (.max, .part(0..<Int64.max, total: nil), false),
            (7, .part(Int64.max - 7..<Int64.max, total: .max), false), (6, .part(-6..<0, total: nil), false),
            (-1, .part(Int64.min..<Int64.max, total: nil), false), (0, .part(0..<0, total: 0), true),
        ] as [(Int64, StoredResponse.Extent, Bool)] {
            var response = StoredResponse(
                status: 206, httpVersion: 11, fields: [], requestTime: 0, responseTime: 0, context: .blank)
            response.bodyLength = length
            response.extent = extent
            XCTAssertEqual(response.isSound, isSound, "\(length) \(extent)")
            _ = decide(response, "bytes=-5")
            for time in [Int64.min, .max, 1 << 41, -(1 << 41)] {
                (response.requestTime, response.responseTime) = (time, 0)
                XCTAssertFalse(response.isSound, "\(time)")
                (response.requestTime, response.responseTime) = (0, time)
                XCTAssertFalse(response.isSound, "\(time)")
            }
        }
    }

    /// Times and ages as far apart as 64 bits allow, in what a store gives back and in what a server says.
    func testTimes() {
        let times: [Int64] = [.min, -(1 << 40), 0, start, 1 << 40, .max]
        let dates = [
            "Mon, 01 Jan 0001 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "", "Sunday, 06-Nov-94 08:49:37 GMT",
        ]
        let ages = ["0", "2147483648", "9223372036854775807", "99999999999999999999", "-1"]
        for requestTime in times {
            for responseTime in times {
                for (number, date) in dates.enumerated() {
                    for age in ages {
                        let fields = [
                            ("Date", date), ("Expires", dates[(number + 1) % 4]), ("Age", age),
                            ("Last-Modified", dates[(number + 2) % 4]), ("ETag", "\"a\""),
                            ("Cache-Control", "stale-if-error=\(age)"),
                        ]
                        var response = StoredResponse(
                            status: 200, httpVersion: 11, fields: fields.map { HeaderField($0.0, $0.1) },
                            requestTime: requestTime, responseTime: responseTime, context: .blank)
                        response.bodyLength = 10
                        for wallTime in times {
                            let shown = Freshness(response, wallTime: wallTime)
                            XCTAssertGreaterThanOrEqual(shown.age(wallTime), 0)
                            let entry = StoredEntry(id: EntryID(rawValue: 1), response: response, mark: ChangeMark())
                            for fields in [[], [HeaderField("Cache-Control", "max-stale, min-fresh=\(age)")]] {
                                let question = CacheQuestion(
                                    CacheRequest(
                                        method: "GET", fields: fields, mode: .use, context: StoredContext.blank))
                                let head = CacheRules.decide(question, [entry], wallTime: wallTime).head
                                let told = head?.fields.first(named: "Age").flatMap { Int64($0) }
                                XCTAssertTrue((0...1 << 31).contains(told ?? 0), "\(told ?? 0)")
                            }
                        }
                    }
                }
            }
        }
    }

    func testBeginningsOfBodiesThatCannotBe() {
        for (total, isKept) in [("100", true), ("9007199254740992", true), ("9223372036854775807", false)] {
            let head = response([("ETag", "\"a\""), ("Content-Length", total)])
            let kept = ResumeRules.beginning(request(), head, received: 40, requestTime: start, responseTime: start)
            XCTAssertEqual(kept != nil, isKept, total)
        }
    }
}
