import XCTest

@testable import ImgdlCore

/// RFC 9111 section 4.2: lifetime and age.
final class FreshnessTests: CacheTestCase {
    private func remaining(_ fields: [(String, String)], status: Int32 = 200, after seconds: Int64 = 0) -> Int64? {
        stored(fields, status: status).map {
            Freshness($0, wallTime: start + seconds).remaining(start + seconds)
        }
    }

    /// 4.2.1: "evaluating the following rules and using the first match"; 5.3: "a recipient MUST ignore the Expires
    /// header field" where there is max-age; s-maxage is for shared caches.
    func testExplicitLifetime() {
        for (fields, expected) in [
            ([("Cache-Control", "max-age=60")], 60),
            ([("Cache-Control", "max-age=60"), ("Expires", date(3600))], 60),
            ([("Cache-Control", "max-age=60"), ("Expires", date(-3600))], 60),
            ([("Cache-Control", "max-age=60"), ("Expires", "0")], 60),
            ([("Cache-Control", "max-age=0"), ("Expires", date(3600))], 0),
            ([("Cache-Control", "s-maxage=3600, max-age=1")], 1),
            ([("Cache-Control", "s-maxage=3600"), ("Cache-Control", "max-age=1")], 1),
            ([("Cache-Control", "s-maxage=3600"), ("Expires", date(50))], 50),
            ([("Expires", date(100)), ("Date", date(0))], 100),
            ([("Expires", date(100))], 100), ([("Expires", date(100)), ("Date", "foo")], 100),
            ([("Expires", date(300)), ("Date", date(400))], 0), ([("Expires", date(-30)), ("Date", date(0))], 0),
            ([("Expires", date(0)), ("Date", date(0))], 0),
            ([("Expires", date(100)), ("Expires", date(100))], 100),
            // "either the first occurrence should be used or the response should be considered stale".
            ([("Expires", date(100)), ("Expires", date(200))], 0), ([("Expires", date(100)), ("Expires", "x")], 0),
            // "Caches are encouraged to consider responses that have invalid freshness information … to be stale."
            ([("Cache-Control", "max-age=x"), ("Expires", date(100))], 0),
            ([("Cache-Control", "max-age=1800, max-age=1")], 0),
            ([("Cache-Control", "max-age=99999999999")], 1 << 31),
            ([], 0),
        ] as [([(String, String)], Int64)] {
            XCTAssertEqual(remaining(fields), expected, "\(fields)")
        }
    }

    /// 5.3: "A cache recipient MUST interpret invalid date formats, especially the value "0", as representing a time in
    /// the past". 4.2: "a cache recipient SHOULD match the field value case-insensitively", "SHOULD consider a date
    /// with a zone abbreviation other than "GMT" to be invalid".
    func testExpiresDates() {
        for text in [
            "Thu, 18 Aug 2050 02:01:18 GMT", "THU, 18 Aug 2050 02:01:18 GMT", "Thu, 18 AUG 2050 02:01:18 GMT",
            "thu, 18 aug 2050 02:01:18 gMT", "Thursday, 18-Aug-50 02:01:18 GMT", "THURSDAY, 18-aUG-50 02:01:18 gmt",
            "Thu Aug 18 02:01:18 2050", "Tue, 19 Jan 2038 14:14:08 GMT", "Sun, 21 Nov 2286 04:46:39 GMT",
            "Fri, 31 Dec 9999 23:59:59 GMT",
        ] {
            XCTAssertTrue(decision(stored([("Expires", text), ("Date", date(0))]), after: 3).isHit, text)
        }
        for text in [
            "0", "-1", "", "never", "Thu, 18 Aug 2050 02:01:18 UTC", "Thu, 18 Aug 2050 02:01:18 AEST",
            "Thu, 18 Aug 2050 02:01:18 +0000", "Thu, 18 Aug 50 02:01:18 GMT", "Thu 18 Aug 2050 02:01:18 GMT",
            "Thu, 18  Aug  2050 02:01:18 GMT", "Thu, 18-Aug-2050 02:01:18 GMT", "Thu, 18 Aug 2050 02.01.18 GMT",
            "Thu, 18 Aug 2050 2:01:18 GMT",
        ] {
            let heuristic = ("Last-Modified", date(-864_000))
            let response = stored([("Expires", text), ("Date", date(0)), heuristic])
            XCTAssertTrue(decision(response).asksServer, text)
        }
    }

    /// 4.2.2: a tenth of the time since the last change, a week at most; "A cache MUST NOT use heuristics to determine
    /// freshness when an explicit expiration time is present".
    func testHeuristicLifetime() {
        let day: Int64 = 86_400
        let modified = ("Last-Modified", date(-day))
        for (fields, expected) in [
            ([modified, ("Date", date(0))], 8640), ([modified], 8640),
            ([("Last-Modified", date(-10)), ("Date", date(0))], 1),
            ([("Last-Modified", date(-3650 * day))], 7 * day), ([("Last-Modified", date(5))], 0),
            ([("Last-Modified", "yesterday")], 0), ([modified, ("Cache-Control", "s-maxage=5")], 8640),
            ([modified, ("Expires", "0")], 0), ([modified, ("Cache-Control", "max-age=0")], 0),
            ([modified, ("Cache-Control", "max-age=x")], 0), ([modified, ("Expires", date(-1))], 0),
            ([modified, ("Date", date(100))], 8650),
        ] as [([(String, String)], Int64)] {
            XCTAssertEqual(remaining(fields), expected, "\(fields)")
        }
    }

    /// 4.2.2: "heuristics can only be used on responses without explicit freshness whose status codes are defined as
    /// heuristically cacheable … and those responses … marked as explicitly cacheable (e.g., with a public response
    /// directive)".
    func testHeuristicStatuses() {
        let fields = [("Last-Modified", date(-86_400)), ("Date", date(0))]
        for status: Int32 in [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
            XCTAssertTrue(decision(stored(fields, status: status)).isHit, "\(status)")
        }
        for status: Int32 in [201, 202, 302, 303, 307, 400, 403, 500, 502, 503, 504, 599] {
            XCTAssertNil(stored(fields, status: status), "\(status)")
            XCTAssertTrue(decision(stored(fields + [("Cache-Control", "public")], status: status)).isHit, "\(status)")
            let isPrivate = stored(fields + [("Cache-Control", "private")], status: status)
            XCTAssertNotNil(isPrivate)
            XCTAssertTrue(decision(isPrivate).asksServer, "private says nothing about how long")
        }
    }

    /// 4.2.3, and 5.1: "SHOULD use the first member of the field value, discarding subsequent ones … If the field value
    /// … is invalid …, a cache SHOULD ignore the field."
    func testAgeField() {
        for (lines, expected) in [
            ([], 0), (["30"], 30), ([" 30\t"], 30), (["7200, 0"], 7200), (["0, 7200"], 0), (["7200", "0"], 7200),
            (["0", "7200"], 0), (["abc"], 0), (["-7200"], 0), (["7200.0"], 0), (["7200;foo=bar"], 0), ([""], 0),
            ([", 5"], 0), (["+5"], 0), (["2147483647"], 2_147_483_647), (["2147483648"], 1 << 31),
            (["99999999999999999999"], 1 << 31),
        ] as [([String], Int64)] {
            let response = stored([("Cache-Control", "max-age=3600")] + lines.map { ("Age", $0) })
            XCTAssertEqual(response.map { Freshness($0, wallTime: start).age(start) }, expected, "\(lines)")
            XCTAssertEqual(decision(response).isHit, expected < 3600, "\(lines)")
        }
    }

    /// 4.2.3: the larger of what Date and Age say, and "A cache MUST interpret this value relative to the time the
    /// request was initiated, not the time that the response was received."
    func testAge() {
        func age(_ fields: [(String, String)], delay: Int64, after seconds: Int64) -> Int64? {
            CacheRules.stored(request(), response(fields), requestTime: start - delay, responseTime: start).map {
                Freshness($0, wallTime: start + seconds).age(start + seconds)
            }
        }
        XCTAssertEqual(age([("Date", date(0))], delay: 0, after: 7), 7)
        XCTAssertEqual(age([("Date", date(-20))], delay: 0, after: 7), 27)
        XCTAssertEqual(age([("Date", date(-20)), ("Age", "5")], delay: 0, after: 7), 27)
        XCTAssertEqual(age([("Date", date(-20)), ("Age", "50")], delay: 3, after: 7), 60)
        XCTAssertEqual(age([("Date", date(500))], delay: 3, after: 7), 10, "a clock that is fast")
        XCTAssertEqual(age([("Date", "foo"), ("Age", "50")], delay: 3, after: 7), 60)
        XCTAssertEqual(age([("Date", date(0))], delay: -9, after: -50), 0, "clocks that were set back")
    }

    /// 4.2: "response_is_fresh = (freshness_lifetime > current_age)".
    func testTheSecondAtWhichItBecomesStale() {
        let response = stored([("Cache-Control", "max-age=10"), ("ETag", "\"a\"")])
        XCTAssertTrue(decision(response, after: 9).isHit)
        XCTAssertEqual(decision(response, after: 10).adding, [HeaderField("If-None-Match", "\"a\"")])
        let slow = stored([("Date", date(-10)), ("Expires", date(10)), ("Age", "25")])
        XCTAssertTrue(decision(slow).asksServer)
        let fast = stored([("Date", date(10)), ("Expires", date(20)), ("Age", "15")])
        XCTAssertTrue(decision(fast).asksServer)
    }

    /// 4.2: "A cache recipient MUST NOT allow local time zones to influence the calculation": dates are numbers since
    /// 1970.
    func testDatesAreWrittenAsTheyAreRead() {
        for (seconds, text) in [
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (-1, "Wed, 31 Dec 1969 23:59:59 GMT"), (951_825_600, "Tue, 29 Feb 2000 12:00:00 GMT"),
            (-62_135_596_800, "Mon, 01 Jan 0001 00:00:00 GMT"), (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (.max, "Fri, 31 Dec 9999 23:59:59 GMT"), (.min, "Mon, 01 Jan 0001 00:00:00 GMT"),
        ] as [(Int64, String)] {
            XCTAssertEqual(HTTPDate.text(seconds), text)
        }
        for seconds in stride(from: Int64(-62_135_596_800), through: 253_402_300_799, by: 86_399 * 977) {
            XCTAssertEqual(HTTPDate.seconds(HTTPDate.text(seconds), wallTime: start), seconds)
        }
    }
}
