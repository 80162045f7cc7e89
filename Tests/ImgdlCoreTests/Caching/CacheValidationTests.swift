import XCTest

@testable import ImgdlCore

/// RFC 9111 sections 3.2, 4.3.1, 4.3.4 and 4.3.5: validation, and what it changes.
final class CacheValidationTests: CacheTestCase {
    private func validated(_ stored: StoredResponse?, by head: ResponseHead, at seconds: Int64 = 50) -> StoredResponse?
    {
        stored.flatMap {
            CacheRules.validated(
                $0, by: head, for: request(), requestTime: start + seconds - 1, responseTime: start + seconds)?.response
        }
    }
    private func notModified(_ fields: Fields) -> ResponseHead { response(fields, status: 304) }

    /// 4.3.1: "MUST send the relevant entity tags …; SHOULD send the Last-Modified value (using If-Modified-Since) if
    /// the request is not for a subrange, a single stored response is being validated".
    func testValidators() {
        let modified = ("Last-Modified", date(-9999))
        for (fields, expected) in [
            ([("ETag", "\"abcdef\"")], ["If-None-Match: \"abcdef\""]),
            ([("ETag", "W/\"x\"")], ["If-None-Match: W/\"x\""]),
            ([modified], ["If-Modified-Since: \(modified.1)"]),
            ([modified, ("ETag", "\"a\"")], ["If-None-Match: \"a\"", "If-Modified-Since: \(modified.1)"]),
            ([("ETag", "unquoted")], ["If-None-Match: unquoted"]), ([("Last-Modified", "yesterday")], []), ([], []),
            // What came may have been the byte E9, and what is sent would be C3 A9: another version's, perhaps.
            ([("ETag", "\"é\"")], []),
            ([modified, ("ETag", "\"é\"")], ["If-Modified-Since: \(modified.1)"]),
            ([("ETag", "\"č\"")], ["If-None-Match: \"č\""]),
            // A server's long one would have the caller's request refused.
            ([("ETag", "\"" + String(repeating: "t", count: 8_189) + "\"")], []),
        ] as [(Fields, [String])] {
            let entry = stored([("Cache-Control", "max-age=1")] + fields)
            XCTAssertEqual(decision(entry, after: 9).adding?.lines, expected)
        }
    }

    /// Issue 20: each 304 may have other fields, and none is ever removed: 41 MB for one picture.
    func testFieldsOfManyValidationsStayWithinTheLimitOfOneHead() throws {
        var entry = stored([
            ("ETag", "\"a\""), ("Cache-Control", "max-age=1"), ("X-Own", "1"), ("Content-Type", "image/png"),
        ])
        let long = String(repeating: "x", count: 1_000)
        for round in 0..<10 {
            let many = (0..<100).map { ("X-\(round)-\($0)", long) }
            let fields =
                many + [("ETag", "\"a\""), ("Cache-Control", "max-age=\(round)"), ("Date", date(Int64(round)))]
            entry = validated(entry, by: notModified(fields))
            let found = try XCTUnwrap(entry).fields
            XCTAssertLessThanOrEqual(
                found.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }, Limits.headerBytes)
            XCTAssertEqual(found.first(named: "Cache-Control"), "max-age=\(round)")
            XCTAssertEqual(found.first(named: "Date"), date(Int64(round)))
            XCTAssertEqual(found.first(named: "Content-Type"), "image/png")
            XCTAssertEqual(found.first(named: "X-Own"), "1")
            XCTAssertGreaterThan(found.count, 100, "what fits is there")
        }
    }

    func testFieldsOfManyValidationsAreNoMoreThanThoseOfOneHead() throws {
        var entry = stored([("ETag", "\"a\""), ("Cache-Control", "max-age=1"), ("X-Own", "1")])
        for round in 0..<10 {
            let many = (0..<900).map { ("X\(round)-\($0)", "y") }
            let fields = many + [("ETag", "\"a\""), ("Cache-Control", "max-age=\(round)")]
            entry = validated(entry, by: notModified(fields))
            let found = try XCTUnwrap(entry).fields
            XCTAssertLessThanOrEqual(found.count, 1_000)
            XCTAssertGreaterThan(found.count, 900, "what fits is there")
            XCTAssertEqual(found.first(named: "Cache-Control"), "max-age=\(round)")
            XCTAssertEqual(found.first(named: "X-Own"), "1")
        }
    }

    /// 3.2: "the cache MUST add each header field in the provided response to the stored response, replacing field
    /// values that are already present, with the following exceptions".
    func testUpdatedFields() {
        let old = stored([
            ("ETag", "\"a\""), ("Date", date(0)), ("Cache-Control", "max-age=1"), ("X-Kept", "1"), ("X-Changed", "1"),
            ("x-changed", "2"), ("Content-Length", "5"), ("Content-Encoding", "gzip"), ("Content-Range", "x"),
            ("Age", "9"),
            ("Content-Type", "text/plain"), ("Set-Cookie", "a=b"), ("Expires", date(1)),
        ])
        let new = validated(
            old,
            by: notModified([
                ("etag", "\"a\""), ("Date", date(49)), ("Cache-Control", "max-age=2"), ("X-Changed", "3"),
                ("X-New", "1"),
                ("X-New", "2"), ("Content-Length", "10"), ("Content-Encoding", "br"), ("Content-Range", "y"),
                ("Content-Type", "image/png"), ("Set-Cookie", "a=c"), ("Connection", "x-hop"), ("X-Hop", "1"),
                ("Transfer-Encoding", "chunked"), ("Proxy-Authenticate", "x"), ("Content-Location", "/b"),
            ]))
        XCTAssertEqual(
            new?.fields.lines,
            [
                "X-Kept: 1", "Content-Length: 5", "Content-Encoding: gzip", "Content-Range: x", "Expires: \(date(1))",
                "etag: \"a\"", "Date: \(date(49))", "Cache-Control: max-age=2", "X-Changed: 3", "X-New: 1", "X-New: 2",
                "Content-Type: image/png", "Set-Cookie: a=c", "Content-Location: /b",
            ])
        XCTAssertEqual(new?.status, 200)
        XCTAssertEqual(new?.bodyLength, 100)
        XCTAssertEqual([new?.requestTime, new?.responseTime], [start + 49, start + 50])
    }

    /// 4.2: the age counts from the last validation.
    func testItIsFreshAgain() {
        let old = stored([("ETag", "\"a\""), ("Cache-Control", "max-age=10"), ("Age", "5"), ("Date", date(0))])
        XCTAssertTrue(decision(old, after: 50).asksServer)
        for fields in [[("ETag", "\"a\"")], [("ETag", "\"a\""), ("Date", date(50))], []] {
            let new = validated(old, by: notModified(fields))
            XCTAssertTrue(decision(new, after: 55).isHit, "\(fields)")
            XCTAssertTrue(decision(new, after: 60).asksServer, "\(fields)")
        }
        let aged = validated(old, by: notModified([("ETag", "\"a\""), ("Age", "7")]))
        XCTAssertTrue(decision(aged, after: 51).isHit && decision(aged, after: 53).asksServer)
    }

    /// 4.3.4: "If none of the initial set contains at least one of the same strong validators, then the cache MUST NOT
    /// use the new response to update any stored responses."
    func testWhichResponseItIsAbout() {
        let modified = ("Last-Modified", date(-9999))
        for (own, received, isAbout) in [
            ([("ETag", "\"a\"")], [("ETag", "\"a\"")], true), ([("ETag", "\"a\"")], [("ETag", "\"b\"")], false),
            ([("ETag", "\"a\"")], [("ETag", "W/\"a\"")], true), ([("ETag", "W/\"a\"")], [("ETag", "W/\"a\"")], true),
            ([("ETag", "W/\"a\"")], [("ETag", "W/\"b\"")], false), ([("ETag", "W/\"a\"")], [("ETag", "\"a\"")], false),
            ([modified], [("ETag", "\"a\"")], false), ([("ETag", "odd")], [("ETag", "odd")], true),
            ([("ETag", "odd")], [("ETag", "\"odd\"")], false), ([modified], [modified], true),
            ([modified], [("Last-Modified", date(-1))], false), ([("ETag", "\"a\"")], [modified], true),
            ([modified, ("ETag", "\"a\"")], [], true), ([], [], true),
            // Two that read alike may have come as E9 and as C3 A9.
            ([("ETag", "\"é\"")], [("ETag", "\"é\"")], false),
        ] as [(Fields, Fields, Bool)] {
            XCTAssertEqual(validated(stored(own), by: notModified(received)) != nil, isAbout, "\(own) \(received)")
        }
    }

    /// 4.3.5: "if the stored response and HEAD response have matching values for any received validator fields … and,
    /// if the HEAD response has a Content-Length header field, the value … matches that of the stored response, the
    /// cache SHOULD update the stored response …; otherwise, the cache SHOULD consider the stored response to be
    /// stale."
    func testHead() {
        let modified = ("Last-Modified", date(-9999))
        let old = stored([("ETag", "\"a\""), modified, ("Cache-Control", "max-age=9999"), ("A", "1"), ("B", "1")])
        for fields in [
            [], [("ETag", "\"a\"")], [modified], [("Content-Length", "100")],
            [("ETag", "\"a\""), ("Content-Length", "100")],
        ] {
            let new = validated(old, by: response(fields + [("A", "2")]))
            XCTAssertTrue(decision(new, after: 99).isHit, "\(fields)")
            XCTAssertEqual(["A", "B"].map { new?.fields.first(named: $0) }, ["2", "1"])
            XCTAssertEqual(new?.responseTime, start + 50)
        }
        for fields in [
            [("ETag", "\"b\"")], [("ETag", "W/\"a\"")], [("Last-Modified", date(-1))], [("Content-Length", "99")],
            [("ETag", "\"a\""), ("Content-Length", "101")],
        ] {
            let new = validated(old, by: response(fields + [("A", "2")]))
            XCTAssertEqual(new?.fields, old?.fields)
            XCTAssertEqual(
                decision(new, after: 99).adding?.lines, ["If-None-Match: \"a\"", "If-Modified-Since: \(modified.1)"])
        }
        let forGood = stored([("Cache-Control", "max-age=99999999999")])
        XCTAssertTrue(decision(validated(forGood, by: response([("Content-Length", "1")]))).asksServer)
        let encoded = stored([("Content-Length", "40"), ("Content-Encoding", "gzip")], isEncoded: true)
        XCTAssertEqual(validated(encoded, by: response([("Content-Length", "40")]))?.responseTime, start + 50)
        for status: Int32 in [204, 404, 410, 500] { XCTAssertNil(validated(old, by: response(status: status))) }
        XCTAssertNil(validated(stored([("Cache-Control", "max-age=1")], status: 404), by: response()))
    }

    /// 3 and 4.1: the fields that a response has now say whether it is stored, and for whom.
    func testFieldsOfAValidationSayForWhomItIsStored() throws {
        let anna = request([("Accept-Language", "de")], cookies: "anna")
        let bert = request([("Accept-Language", "fr")], cookies: "bert")
        let first = stored([("ETag", "\"a\""), ("Cache-Control", "public, max-age=1")], to: anna)
        let old = try XCTUnwrap(first)
        for (fields, after304, afterHead) in [
            ([("Cache-Control", "public, max-age=600")], [anna, bert], [anna, bert]),
            ([("Cache-Control", "private, max-age=600")], [anna], [anna]),
            ([("Cache-Control", "public, max-age=600"), ("Vary", "Accept-Language")], [anna], []),
            ([("Cache-Control", "public, max-age=600"), ("Vary", "Cookie")], [anna], []),
            ([("Cache-Control", "public, max-age=600"), ("Vary", "*")], [], []),
            ([("Cache-Control", "no-store, max-age=600")], [], []),
            ([("Cache-Control", "public, no-store, must-understand, max-age=600")], [anna, bert], [anna, bert]),
        ] as [(Fields, [CacheRequest], [CacheRequest])] {
            for (status, expected): (Int32, [CacheRequest]) in [(304, after304), (200, afterHead)] {
                let validation = CacheRules.validated(
                    old, by: response([("ETag", "\"a\"")] + fields, status: status), for: anna, requestTime: start + 49,
                    responseTime: start + 50)
                var kept: StoredResponse?
                if case .kept(let response) = validation { kept = response }
                XCTAssertEqual(kept == nil, expected.isEmpty, "\(status) \(fields)")
                XCTAssertEqual(validation?.response.responseTime, start + 50, "who has asked is answered")
                for (name, asker) in [("anna", anna), ("bert", bert)] {
                    let isExpected = expected.contains { $0.context == asker.context }
                    XCTAssertEqual(
                        decision(kept, to: asker, after: 60).isHit, isExpected, "\(status) \(fields) \(name)")
                }
            }
        }
    }

    /// A 304 is about what this request would have got, whoever has got it first.
    func testAFieldThatIsNamedAnewIsThatOfWhoHasAsked() throws {
        let first = request([("Accept-Language", "de")]), second = request([("Accept-Language", "fr")])
        let old = try XCTUnwrap(stored([("ETag", "\"a\""), ("Cache-Control", "max-age=1")], to: first))
        let head = notModified([("ETag", "\"a\""), ("Cache-Control", "max-age=600"), ("Vary", "Accept-Language")])
        let new = CacheRules.validated(old, by: head, for: second, requestTime: start + 49, responseTime: start + 50)
        XCTAssertTrue(decision(new?.response, to: second, after: 60).isHit)
        XCTAssertFalse(decision(new?.response, to: first, after: 60).isHit)
    }

    func testAPartStaysAPart() throws {
        let asked = request([("Range", "bytes=0-9"), ("Accept-Language", "de")])
        let fields = [("ETag", "\"a\""), ("Cache-Control", "max-age=1"), ("Content-Range", "bytes 0-9/100")]
        let old = try XCTUnwrap(stored(fields, status: 206, to: asked, length: 10))
        let head = notModified([("ETag", "\"a\""), ("Cache-Control", "max-age=600"), ("Vary", "Accept-Language")])
        let new = CacheRules.validated(old, by: head, for: asked, requestTime: start + 49, responseTime: start + 50)
        XCTAssertEqual(
            new?.response.varying, [VaryingField(name: "accept-language", value: "de"), VaryRules.part(0..<10)])
    }

    /// 4.4: "A cache MUST invalidate the target URI … when it receives a non-error status code in response to an unsafe
    /// request method (including methods whose safety is unknown)"; Location and Content-Location are candidates.
    func testInvalidation() {
        let fields = [("Location", "/a"), ("X", "/no"), ("Content-Location", "b")]
        for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "FOO", "get"] {
            for status: Int32 in [200, 201, 204, 302, 399] {
                XCTAssertEqual(CacheRules.invalidates(method: method, response(fields, status: status)), ["/a", "b"])
                XCTAssertEqual(CacheRules.invalidates(method: method, response(status: status)), [])
            }
            for status: Int32 in [100, 400, 404, 500, 503] {
                XCTAssertNil(CacheRules.invalidates(method: method, response(fields, status: status)))
            }
        }
        for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
            XCTAssertNil(CacheRules.invalidates(method: method, response(fields)))
        }
    }
}
