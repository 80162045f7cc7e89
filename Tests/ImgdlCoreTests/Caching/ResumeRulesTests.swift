import XCTest

@testable import ImgdlCore

/// Features B11, R01, R33, I31 and I33; RFC 9110 sections 8.8, 13.1.5, 14 and 15.3.7; RFC 9111 sections 3.3 and 3.4.
final class ResumeRulesTests: CacheTestCase {
    private let tag = ("ETag", "\"a\"")

    private func beginning(
        _ fields: Fields, received: Int64 = 40, total: Int64? = 100, status: Int32 = 200, isEncoded: Bool = false,
        of asked: CacheRequest? = nil
    ) -> StoredResponse? {
        let length = total.map { [("Content-Length", "\($0)")] } ?? []
        let head = response(fields + length + [("Date", date(0))], status: status, isEncoded: isEncoded)
        return ResumeRules.beginning(
            asked ?? request(), head, received: received, requestTime: start, responseTime: start)
    }
    private func part(_ range: String?, _ fields: Fields = [("ETag", "\"a\"")], isEncoded: Bool = false) -> ResponseHead
    {
        response(fields + (range.map { [("Content-Range", $0)] } ?? []), status: 206, isEncoded: isEncoded)
    }
    private enum Answer: Equatable { case continues, whole, refetch }
    private func answer(_ stored: StoredResponse?, _ head: ResponseHead) -> Answer? {
        switch stored.map({ ResumeRules.answer(to: $0, head) }) {
        case .continues: .continues
        case .whole: .whole
        case .refetch: .refetch
        case nil: nil
        }
    }

    func testWhatIsKept() {
        let kept = beginning([tag])
        XCTAssertEqual(kept?.extent, .beginning(total: 100))
        XCTAssertEqual(kept?.bodyLength, 40)
        XCTAssertEqual(beginning([tag], total: nil)?.extent, .beginning(total: nil))
        XCTAssertNotNil(beginning([("Last-Modified", date(-60))]))
        XCTAssertNotNil(beginning([tag, ("Accept-Ranges", "bytes"), ("Content-Encoding", "identity")]))
        for fields in [
            [], [("ETag", "W/\"a\"")], [("ETag", "a")], [("ETag", "\"é\"")], [("Last-Modified", date(-59))],
            [("Last-Modified", "x")],
            // RFC 9110 section 13.1.5: the date only where there is no entity tag.
            [("ETag", "W/\"a\""), ("Last-Modified", date(-9999))],
            [tag, ("Accept-Ranges", "none")], [tag, ("Accept-Ranges", "None")], [tag, ("Content-Encoding", "gzip")],
            [tag, ("Cache-Control", "no-store")], [tag, ("Vary", "*")],
        ] {
            XCTAssertNil(beginning(fields), "\(fields)")
        }
        for received: Int64 in [0, 100, 101] { XCTAssertNil(beginning([tag], received: received), "\(received)") }
        for status: Int32 in [203, 206, 404, 500] {
            XCTAssertNil(beginning([tag, ("Cache-Control", "max-age=9")], status: status), "\(status)")
        }
        XCTAssertNil(beginning([tag], isEncoded: true))
        for asked in [
            request(mode: .off), request(method: "POST"), request([("Range", "bytes=0-50")]),
            request([("Cache-Control", "no-store")]),
        ] {
            XCTAssertNil(beginning([tag], of: asked))
        }
    }

    func testTheRestIsAskedFor() {
        XCTAssertEqual(decision(beginning([tag])).adding?.lines, ["Range: bytes=40-", "If-Range: \"a\""])
        let dated = beginning([("Last-Modified", date(-60))])
        XCTAssertEqual(decision(dated).adding?.lines, ["Range: bytes=40-", "If-Range: \(date(-60))"])
        XCTAssertEqual(
            decision(dated, to: request(mode: .refresh)).adding?.lines.last, "Cache-Control: max-age=0")
        guard case .resume(0, _) = decision(beginning([tag])) else { return XCTFail("resumes") }
        for asked in [
            request(method: "HEAD"), request(mode: .reload), request([("Range", "bytes=0-5")]),
            request([("If-None-Match", "\"a\"")]), request([("Cache-Control", "no-store")]),
        ] {
            guard case .forward = decision(beginning([tag]), to: asked) else { return XCTFail("\(asked)") }
        }
        let varying = beginning([tag, ("Vary", "Foo")], of: request([("Foo", "1")]))
        guard case .resume = decision(varying, with: [("Foo", "1")]) else { return XCTFail("the same") }
        guard case .forward = decision(varying, with: [("Foo", "2")]) else { return XCTFail("another") }
        let whole = stored([("Cache-Control", "max-age=1"), tag])
        guard case .validate(1, _, _) = decision(beginning([tag]), whole, after: 9) else {
            return XCTFail("a whole one first")
        }
    }

    func testTheRest() {
        let kept = beginning([tag, ("X", "1"), ("Y", "1")])!
        let head = part("bytes 40-99/100", [tag, ("Content-Length", "60"), ("X", "2"), ("Date", date(9))])
        guard case .continues(let whole) = ResumeRules.answer(to: kept, head) else { return XCTFail("continues") }
        XCTAssertEqual(whole.status, 200)
        XCTAssertEqual(whole.contentLength, 100)
        XCTAssertEqual(whole.outcome, .resumed)
        XCTAssertEqual(
            whole.fields.lines, ["Y: 1", "ETag: \"a\"", "X: 2", "Date: \(date(9))", "Content-Length: 100"], "3.4, 3.2")
        let again = ResumeRules.beginning(request(), whole, received: 70, requestTime: start, responseTime: start)
        XCTAssertEqual(again?.extent, .beginning(total: 100), "what breaks off again is kept again")
        XCTAssertEqual(again?.bodyLength, 70)

        let unknown = beginning([tag], total: nil)
        XCTAssertEqual(answer(unknown, part("bytes 40-99/100")), .continues)
        XCTAssertEqual(answer(kept, part("bytes 40-99/*")), .continues)
        let dated = beginning([("Last-Modified", date(-60))])
        XCTAssertEqual(answer(dated, part("bytes 40-99/100", [("Last-Modified", date(-60))])), .continues)
    }

    /// Texts that look alike are other bytes.
    func testATagOfOtherBytesIsAnother() {
        let kept = beginning([("ETag", "\"\u{10D}\"")])
        XCTAssertEqual(answer(kept, part("bytes 40-99/100", [("ETag", "\"\u{10D}\"")])), .continues)
        XCTAssertEqual(answer(kept, part("bytes 40-99/100", [("ETag", "\"c\u{30C}\"")])), .refetch)
    }

    /// I33: anything else drops what is kept and asks once more.
    func testWhatIsNotTheRest() {
        let kept = beginning([tag])
        for range in [
            nil, "bytes 41-99/100", "bytes 0-99/100", "bytes 39-99/100", "bytes 40-99/101", "bytes 40-98/100",
            "bytes 40-98/99",
            "bytes 40-98/*", "bytes */100", "items 40-99/100", "nonsense",
        ] {
            XCTAssertEqual(answer(kept, part(range)), .refetch, range ?? "none")
        }
        XCTAssertEqual(answer(beginning([tag], total: nil), part("bytes 40-99/*")), .refetch, "how long is the whole?")
        for fields in [[("ETag", "\"b\"")], [("ETag", "W/\"a\"")], [("ETag", "a")], [], [("Last-Modified", date(-60))]]
        {
            XCTAssertEqual(answer(kept, part("bytes 40-99/100", fields)), .refetch, "\(fields)")
        }
        let dated = beginning([("Last-Modified", date(-60))])
        for fields in [[], [("Last-Modified", date(-61))], [tag]] {
            XCTAssertEqual(answer(dated, part("bytes 40-99/100", fields)), .refetch, "\(fields)")
        }
        XCTAssertEqual(answer(kept, part("bytes 40-99/100", isEncoded: true)), .refetch)
        XCTAssertEqual(answer(kept, part("bytes 40-99/100", [tag, ("Content-Encoding", "br")])), .refetch)
        XCTAssertEqual(answer(kept, part("bytes 40-99/100", [tag, ("Content-Length", "59")])), .refetch)
        XCTAssertEqual(answer(kept, part("bytes 40-99/100", [tag, ("Content-Range", "bytes 0-1/100")])), .refetch)
        XCTAssertEqual(
            answer(kept, part(nil, [tag, ("Content-Type", "multipart/byteranges; boundary=x")])), .refetch)
        for status: Int32 in [304, 412, 416] { XCTAssertEqual(answer(kept, response([tag], status: status)), .refetch) }
        for status: Int32 in [200, 203, 301, 401, 404, 500, 503] {
            XCTAssertEqual(answer(kept, response([tag], status: status)), .whole, "\(status)")
        }
    }

    /// R33: a cancel is not worth it when the rest would come sooner than the first byte of another try.
    func testNearlyDone() {
        let million: Int64 = 1_000_000
        for (received, expected, body, first, isNearlyDone) in [
            (99, 100, 990 * million, 11 * million, true), (99, 100, 990 * million, 10 * million, false),
            (50, 100, 100 * million, 101 * million, true), (50, 100, 100 * million, 100 * million, false),
            (100, 100, 5, 1, true), (0, 100, 0, 100, false), (10, -1, 10, 100, false), (10, 5, 10, 100, false),
            (1, .max, .max, .max, false), (.max - 1, .max, 1000, 1, true), (10, 20, 0, 1, true),
            // An answer that came in the moment of its request.
            (999, 1000, 5 * million, 0, true), (500, 1000, 5 * million, 0, false),
        ] as [(Int64, Int64, Int64, Int64, Bool)] {
            XCTAssertEqual(
                ResumeRules.isNearlyDone(
                    received: received, expected: expected, bodyNanoseconds: body, firstByteNanoseconds: first),
                isNearlyDone, "\(received) of \(expected) in \(body), first \(first)")
        }
    }
}
