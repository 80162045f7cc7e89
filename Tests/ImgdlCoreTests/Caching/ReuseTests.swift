import XCTest

@testable import ImgdlCore

/// RFC 9111 sections 4, 4.2.4, 5.2 and 5.4; RFC 5861; RFC 8246: whether a stored response is used.
final class ReuseTests: CacheTestCase {
    private let etag = ("ETag", "\"a\"")
    private func cached(_ directives: String, _ fields: Fields = []) -> StoredResponse? {
        stored([("Cache-Control", directives), etag] + fields)
    }
    private func asking(_ directives: String) -> Fields { [("Cache-Control", directives)] }

    /// Section 4: "When a stored response is used to satisfy a request without validation, a cache MUST generate an Age
    /// header field, replacing any present in the response with a value equal to the stored response's current_age".
    /// Date stays.
    func testAgeIsGenerated() {
        let fields = [("Date", date(-5)), ("age", "30"), ("Cache-Control", "max-age=600"), ("Age", "7")]
        let head = decision(stored(fields), after: 10).head
        XCTAssertEqual(head?.fields.lines, ["Date: \(date(-5))", "Cache-Control: max-age=600", "Age: 40"])
        XCTAssertEqual(head?.outcome, .hit)
        XCTAssertEqual(head?.contentLength, 100)
        XCTAssertEqual(decision(stored([("Expires", date(600))]), after: 3).head?.fields.first(named: "Age"), "3")
        let old = stored([("Age", "99999999999"), ("Cache-Control", "max-age=600")])
        XCTAssertEqual(
            decision(old, to: request(mode: .only), after: 5).head?.fields.first(named: "Age"), "2147483648", "1.2.2")
    }

    /// Section 4: "A cache MUST write through requests with methods that are unsafe … to the origin server".
    func testOtherMethodsAreForwarded() {
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "M-SEARCH", "get"] {
            let asked = request(method: method)
            XCTAssertEqual(decision(cached("max-age=60"), to: asked), .forward(adding: [], stores: false), method)
            let only = request(method: method, mode: .only)
            XCTAssertEqual(decision(cached("max-age=60"), to: only), .unavailable, "\(method): nothing is sent")
        }
    }

    /// Section 4: "the request method associated with the stored response allows it to be used for the presented
    /// request".
    func testHead() {
        let head = decision(cached("max-age=60", [("Content-Length", "100")]), to: request(method: "HEAD"))
        guard case .answerPart(0, let answer, .hit, nil, nil) = head else { return XCTFail("\(head)") }
        XCTAssertEqual(answer.status, 200)
        XCTAssertEqual(answer.fields.first(named: "Content-Length"), "100")
        let stale = decision(cached("max-age=1"), to: request(method: "HEAD"), after: 5)
        XCTAssertEqual(stale, .forward(adding: [], stores: true))
    }

    /// Section 4: "the stored response does not contain the no-cache directive, unless it is successfully validated";
    /// 5.2.2.4: "MUST NOT be used to satisfy any other request without forwarding it for validation and receiving a
    /// successful response".
    func testNoCache() {
        for directives in [
            "no-cache", "max-age=10000, no-cache", "No-CaChE, max-age=10000", "no-cache=\"a b\", max-age=9",
        ] {
            let result = decision(cached(directives, [("Expires", date(9999))]))
            XCTAssertEqual(
                result, .validate(index: 0, adding: [HeaderField("If-None-Match", "\"a\"")], stale: .never), directives)
        }
        let none = stored([("Cache-Control", "max-age=60, no-cache")])
        XCTAssertEqual(decision(none), .forward(adding: [], stores: true), "even without validator")
        let permitted = cached("no-cache, stale-while-revalidate=99, stale-if-error=99")
        XCTAssertEqual(decision(permitted, with: asking("max-stale")).stale, .never)
    }

    /// 5.2.2.4: "if the listed header fields are excluded from the subsequent response or the subsequent response has
    /// been successfully revalidated".
    func testNoCacheWithNames() {
        let entry = cached(
            "max-age=60, no-cache=\"Set-Cookie, x-b\"", [("Set-Cookie", "a=b"), ("X-B", "1"), ("X-C", "2")])
        let fields = decision(entry).head?.fields.map(\.name)
        XCTAssertEqual(fields, ["Cache-Control", "ETag", "X-C", "Date", "Age"])
        let validated = entry.map {
            CacheRules.head(
                of: StoredEntry(id: EntryID(rawValue: 1), response: $0, mark: ChangeMark()), outcome: .validated,
                wallTime: start)
        }
        XCTAssertEqual(validated?.fields.first(named: "Set-Cookie"), "a=b")
    }

    /// 5.2.2.2: "once the response has become stale, a cache MUST NOT reuse that response to satisfy another request
    /// until it has been successfully validated by the origin"; 4.2.4: "MUST NOT generate a stale response if it is
    /// prohibited".
    func testMustRevalidate() {
        let entry = cached("max-age=10, must-revalidate, stale-while-revalidate=99, stale-if-error=99")
        XCTAssertTrue(decision(entry).isHit)
        let stale = decision(entry, with: asking("max-stale"), after: 20)
        XCTAssertEqual(stale, .validate(index: 0, adding: [HeaderField("If-None-Match", "\"a\"")], stale: .never))
    }

    /// Directives for shared caches alone say nothing here: 5.2.2.7, 5.2.2.8, 5.2.2.10.
    func testSharedDirectives() {
        XCTAssertTrue(decision(cached("private, max-age=60")).isHit)
        XCTAssertTrue(decision(cached("private=\"etag\", max-age=60")).isHit)
        let stale = decision(cached("max-age=2, proxy-revalidate, s-maxage=2"), with: asking("max-stale"), after: 9)
        XCTAssertTrue(stale.isStaleAnswer)
    }

    /// 4.2.4: "A cache MUST NOT generate a stale response unless it is disconnected or doing so is explicitly
    /// permitted".
    func testStaleIsValidated() {
        XCTAssertEqual(
            decision(cached("max-age=1"), after: 9),
            .validate(index: 0, adding: [HeaderField("If-None-Match", "\"a\"")], stale: .whenUnreachable(until: .max)))
        let unmarked = stored([("Cache-Control", "max-age=1")])
        XCTAssertEqual(
            decision(unmarked, after: 9), .validate(index: 0, adding: [], stale: .whenUnreachable(until: .max)))
    }

    /// 5.2.1: request directives.
    func testRequestDirectives() {
        let aged = cached("max-age=3600", [("Age", "1800")])
        for directives in [
            "max-age=0", "max-age=1799", "max-age=600", "max-age=x", "min-fresh=1801", "min-fresh=x", "no-cache",
            "max-age=0, max-stale", "no-cache, max-stale",
        ] {
            XCTAssertEqual(
                decision(aged, with: asking(directives)).adding, [HeaderField("If-None-Match", "\"a\"")], directives)
        }
        for directives in [
            "max-age=1800", "max-age=9999", "min-fresh=1800", "min-fresh=0", "max-stale", "foo", "no-transform",
        ] {
            XCTAssertTrue(decision(aged, with: asking(directives)).isHit, directives)
        }
        let stale = cached("max-age=1500", [("Age", "2000")])
        for directives in [
            "max-stale", "max-stale=500", "max-stale=1000", "max-stale=\"1000\"", "max-stale=1000, max-age=2000",
        ] {
            XCTAssertTrue(decision(stale, with: asking(directives)).isStaleAnswer, directives)
        }
        for directives in ["max-stale=499", "max-stale=x", "max-stale=0", "min-fresh=0", "max-stale, min-fresh=1"] {
            XCTAssertTrue(decision(stale, with: asking(directives)).asksServer, directives)
        }
    }

    /// 5.2.1.7: "either respond using a stored response consistent with the other constraints of the request or respond
    /// with a 504"; here a failure that says so.
    func testOnlyIfCached() {
        let asked = asking("only-if-cached")
        XCTAssertEqual(decision(with: asked), .unavailable)
        XCTAssertTrue(decision(cached("max-age=60"), with: asked).isHit)
        XCTAssertEqual(decision(cached("max-age=60"), with: asked, after: 99), .unavailable)
        XCTAssertEqual(decision(cached("max-age=60"), with: asking("only-if-cached, no-store")), .unavailable)
        XCTAssertTrue(
            decision(cached("max-age=60"), with: asking("only-if-cached, max-stale"), after: 99).isStaleAnswer)
        let swr = decision(cached("max-age=1, stale-while-revalidate=99"), with: asked, after: 9)
        XCTAssertTrue(swr.isStaleAnswer, "nothing is sent, not even in the background")
    }

    /// 5.4: Pragma: no-cache is Cache-Control: no-cache where that is not there.
    func testPragma() {
        let entry = cached("max-age=60", [("Pragma", "no-cache")])
        XCTAssertTrue(decision(entry).isHit, "in a response it means nothing")
        XCTAssertTrue(decision(entry, with: [("Pragma", "no-cache")]).asksServer)
        XCTAssertTrue(decision(entry, with: [("pragma", "x, No-Cache")]).asksServer)
        XCTAssertTrue(decision(entry, with: [("Pragma", "unknown")]).isHit)
        XCTAssertTrue(decision(entry, with: [("Pragma", "no-cache"), ("Cache-Control", "max-age=60")]).isHit)
    }

    /// RFC 5861 section 3.
    func testStaleWhileRevalidate() {
        let entry = cached("max-age=10, stale-while-revalidate=5")
        XCTAssertTrue(decision(entry, after: 9).isHit)
        for seconds: Int64 in [10, 14] {
            let result = decision(entry, after: seconds)
            XCTAssertEqual(result.revalidates, [])
            XCTAssertEqual(result.head?.fields.first(named: "Age"), "\(seconds)")
        }
        XCTAssertTrue(decision(entry, after: 15).asksServer, "the window has passed")
        XCTAssertTrue(
            decision(entry, with: asking("max-age=60"), after: 12).asksServer, "5.2.1.1: no stale one is wanted")
        XCTAssertTrue(decision(entry, with: asking("no-cache"), after: 12).asksServer)
        XCTAssertTrue(decision(cached("max-age=1, stale-while-revalidate=x"), after: 2).asksServer)
        XCTAssertEqual(decision(stored(asking("max-age=1, stale-while-revalidate=9")), after: 2).revalidates, [])
    }

    /// Who wants to hear only of a change waits for the server.
    func testStaleWhileRevalidateIsNotForWhoWantsToHearOfAChange() throws {
        let entry = try XCTUnwrap(cached("max-age=10, stale-while-revalidate=50"))
        func decide(_ fields: Fields, after seconds: Int64) -> CacheDecision {
            CacheRules.decide(
                CacheQuestion(request(fields)),
                [StoredEntry(id: EntryID(rawValue: 1), response: entry, mark: ChangeMark())],
                wallTime: start + seconds, wantsChange: true)
        }
        XCTAssertEqual(decide([], after: 20).adding, [HeaderField("If-None-Match", "\"a\"")])
        XCTAssertTrue(decide([("Range", "bytes=0-9")], after: 20).asksServer)
        XCTAssertTrue(decide([], after: 9).isHit)
        XCTAssertTrue(decide(asking("max-stale"), after: 20).isStaleAnswer, "as it has asked")
        XCTAssertTrue(decide(asking("only-if-cached"), after: 20).isStaleAnswer, "nothing is sent")
    }

    /// A stale answer to a condition, a range or a HEAD leads to a validation as any does, which asks for the whole; of a
    /// part that is stored alone it asks for what the request wants.
    func testStaleWhileRevalidateOfWhatIsNotAskedForAsAWhole() {
        let directives = "max-age=10, stale-while-revalidate=50"
        let entry = cached(directives)
        let own: Fields = [("Accept", "image/png"), ("Accept-Language", "en")]
        for fields: Fields in [
            [("Range", "bytes=0-9")], [("range", "bytes=0-9"), ("If-Range", "\"a\"")], [("Range", "bytes=900-")],
            [("If-None-Match", "\"a\"")], [("If-None-Match", "\"b\"")], [("if-modified-since", date(0))],
        ] {
            let result = decision(entry, with: fields + own, after: 20)
            XCTAssertEqual(result.revalidates?.lines, ["Accept: image/png", "Accept-Language: en"], "\(fields)")
            XCTAssertNil(decision(entry, with: fields + own, after: 9).revalidates, "\(fields) fresh")
            let only = decision(entry, with: fields + own + asking("only-if-cached"), after: 20)
            XCTAssertNotNil(only.head, "\(fields)")
            XCTAssertNil(only.revalidates, "\(fields) nothing is sent")
        }
        let head = decision(entry, to: request(method: "HEAD"), after: 20)
        XCTAssertEqual(head.revalidates, [])
        let asked = request([("Range", "bytes=0-99")])
        let part = stored(
            asking(directives) + [("ETag", "\"a\""), ("Content-Range", "bytes 0-99/1000")], status: 206, to: asked)
        let result = decision(
            part, with: [("Range", "bytes=5-9"), ("If-Range", "\"a\""), ("Accept", "*/*")], after: 20)
        XCTAssertEqual(result.range, 5..<10)
        XCTAssertEqual(result.revalidates?.lines, ["Range: bytes=5-9", "Accept: */*"])
    }

    /// RFC 5861 section 4, in a response and in a request.
    func testStaleIfError() {
        func use(_ response: String, _ asked: String = "x", after seconds: Int64) -> StaleUse? {
            decision(cached("max-age=10" + response), with: asking(asked), after: seconds).stale
        }
        XCTAssertEqual(use(", stale-if-error=60", after: 30), .onError(until: start + 70))
        XCTAssertEqual(use(", stale-if-error=60", after: 71), .never)
        XCTAssertEqual(use("", "stale-if-error=60", after: 30), .onError(until: start + 70))
        XCTAssertEqual(use("", "stale-if-error=1", after: 30), .never)
        XCTAssertEqual(use(", stale-if-error=60", "stale-if-error=5", after: 30), .onError(until: start + 70))
        XCTAssertEqual(use(", stale-if-error=x", after: 30), .never)
        XCTAssertEqual(use(", stale-if-error=60", "no-cache", after: 1), .never)
        XCTAssertEqual(use("", after: 30), .whenUnreachable(until: .max))
        XCTAssertEqual(use("", "max-age=5", after: 30), .never)

        let entry = cached("max-age=10")!
        func mayUse(_ stale: StaleUse, _ status: Int32?, at seconds: Int64 = 0) -> Bool {
            CacheRules.mayUse(entry, stale: stale, insteadOf: status, wallTime: start + seconds)
        }
        for status: Int32 in [500, 502, 503, 504] {
            XCTAssertTrue(mayUse(.onError(until: start), status))
            XCTAssertFalse(mayUse(.onError(until: start), status, at: 1))
            XCTAssertFalse(mayUse(.whenUnreachable(until: .max), status) || mayUse(.never, status))
        }
        for status: Int32 in [200, 304, 404, 429, 501] { XCTAssertFalse(mayUse(.onError(until: start), status)) }
        XCTAssertTrue(mayUse(.onError(until: start), nil) && mayUse(.whenUnreachable(until: start), nil))
        XCTAssertFalse(mayUse(.never, nil) || mayUse(.onError(until: start), nil, at: 1))
        XCTAssertFalse(mayUse(.whenUnreachable(until: start), nil, at: 1))
    }

    /// RFC 8246 section 2: "Clients SHOULD NOT issue a conditional request during the response's freshness lifetime
    /// (e.g., upon a reload) unless explicitly overridden by the user".
    func testImmutable() {
        let entry = cached("max-age=10, immutable")
        XCTAssertTrue(decision(entry, to: request(mode: .refresh)).isHit)
        XCTAssertEqual(
            decision(entry, to: request(mode: .refresh), after: 20).adding?.lines,
            ["If-None-Match: \"a\"", "Cache-Control: max-age=0"])
        XCTAssertTrue(decision(entry, to: request(mode: .reload)).asksServer)
        XCTAssertTrue(decision(entry, with: asking("no-cache")).asksServer)
        var damaged = entry
        damaged?.isUndecodable = true
        XCTAssertTrue(decision(damaged, to: request(mode: .refresh)).asksServer)
    }

    func testModes() {
        let entry = cached("max-age=10, must-revalidate")
        for mode in [CacheMode.off, .reload, .refresh] {
            XCTAssertTrue(decision(entry, to: request(mode: mode)).asksServer)
        }
        XCTAssertEqual(decision(entry, to: request(mode: .off)), .forward(adding: [], stores: false))
        let noCache = HeaderField("Cache-Control", "no-cache")
        XCTAssertEqual(decision(entry, to: request(mode: .reload)), .forward(adding: [noCache], stores: true))
        let refreshed = [HeaderField("If-None-Match", "\"a\""), HeaderField("Cache-Control", "max-age=0")]
        XCTAssertEqual(
            decision(entry, to: request(mode: .refresh)), .validate(index: 0, adding: refreshed, stale: .never))
        XCTAssertEqual(decision(to: request(mode: .refresh)), .forward(adding: [refreshed[1]], stores: true))
        let own = decision(entry, with: asking("max-age=5"), mode: .reload)
        XCTAssertEqual(own, .forward(adding: [], stores: true), "the caller said what caches on the way are to do")
    }

    /// However old, and whatever it says: the program asks for what it has, as a history does (section 6).
    func testOnly() {
        let only = request(mode: .only)
        XCTAssertEqual(decision(to: only), .unavailable)
        XCTAssertTrue(decision(cached("max-age=10"), to: only).isHit)
        for directives in ["max-age=10, must-revalidate", "no-cache", "max-age=0", "stale-while-revalidate=9999", "x"] {
            XCTAssertTrue(decision(cached(directives), to: only, after: 9999).isStaleAnswer, directives)
        }
    }

    /// Section 4: "A cache without a clock MUST revalidate stored responses upon every use." A clock that stands still
    /// or goes back makes nothing older or younger than it was.
    func testAClockThatGoesBack() {
        XCTAssertTrue(decision(cached("max-age=10"), after: -1000).isHit)
        XCTAssertTrue(decision(cached("max-age=0"), after: -1000).asksServer)
        // By more than a day: it was stored while the clock ran ahead, and would stay fresh until that time comes.
        for days in [2, 3650] as [Int64] {
            XCTAssertTrue(decision(cached("max-age=10"), after: -86_400 * days).asksServer)
            XCTAssertTrue(decision(cached("max-age=10"), to: request(mode: .only), after: -86_400 * days).isStaleAnswer)
        }
    }
}
