import XCTest

@testable import ImgdlCore

/// What is stored, after a newer answer came that is not: stale from then on, and for no longer.
final class OvertakenTests: CacheTestCase {
    private func overtaken(_ fields: Fields, at seconds: Int64 = 10) throws -> StoredResponse {
        CacheRules.overtaken(try XCTUnwrap(stored(fields + [("ETag", "\"a\"")])), at: start + seconds)
    }

    func testItIsStaleFromThenOnAndForNoLonger() throws {
        let response = try overtaken([("Cache-Control", "max-age=1000")])
        XCTAssertEqual(CacheRules.remainingFreshness(of: response, wallTime: start + 10), 0)
        XCTAssertEqual(CacheRules.remainingFreshness(of: response, wallTime: start + 13), -3)
        XCTAssertEqual(CacheRules.remainingFreshness(of: response, wallTime: start), 0, "the clock was set back")
        XCTAssertTrue(decision(response, after: 13).asksServer)
        for (limit, isAllowed) in [(2, false), (3, true), (3_600, true)] {
            let only = request(mode: .only, staleLimit: StaleLimit(seconds: Int64(limit)))
            XCTAssertEqual(decision(response, to: only, after: 13).isStaleAnswer, isAllowed, "\(limit) s")
        }
        XCTAssertEqual(decision(response, to: request(mode: .only, staleLimit: .never), after: 10), .unavailable)
        XCTAssertTrue(decision(response, with: [("Cache-Control", "max-stale=3")], after: 13).isStaleAnswer)
        XCTAssertTrue(decision(response, with: [("Cache-Control", "max-stale=2")], after: 13).asksServer)
        let only = decision(response, to: request(mode: .only), after: 13).head
        XCTAssertEqual(only?.fields.first(named: "Age"), "13", "its age is what it was")
    }

    /// It was stale for longer already; and a second answer makes it no fresher.
    func testItStaysAsStaleAsItWas() throws {
        let response = try overtaken([("Cache-Control", "max-age=4")])
        XCTAssertEqual(CacheRules.remainingFreshness(of: response, wallTime: start + 10), -6)
        let again = CacheRules.overtaken(try overtaken([("Cache-Control", "max-age=1000")]), at: start + 50)
        XCTAssertEqual(CacheRules.remainingFreshness(of: again, wallTime: start + 60), -50)
    }

    /// A portal's page is no reason to be without the picture where its server said that it may be stale.
    func testTroubleAfterwardsIsAnsweredAsItsServerAllows() throws {
        let response = try overtaken([("Cache-Control", "max-age=1000, stale-if-error=86400")])
        let stale = try XCTUnwrap(decision(response, after: 12).stale)
        XCTAssertEqual(stale, .onError(until: start + 12 - 2 + 86_400))
        XCTAssertTrue(CacheRules.mayUse(response, stale: stale, insteadOf: 503, wallTime: start + 12))
        XCTAssertTrue(CacheRules.mayUse(response, stale: stale, insteadOf: nil, wallTime: start + 12))
    }

    /// Whoever has seen the newer answer is not given this one while the server is asked.
    func testItDoesNotAnswerWhileItIsValidated() throws {
        let response = try overtaken([("Cache-Control", "max-age=1000, stale-while-revalidate=600")])
        XCTAssertTrue(decision(response, after: 12).asksServer)
    }

    func testTheServersWordForItMakesItFreshAgain() throws {
        let response = try overtaken([("Cache-Control", "max-age=1000")])
        for status: Int32 in [304, 200] {
            let validated = CacheRules.validated(
                response, by: self.response([("ETag", "\"a\"")], status: status), for: request(),
                requestTime: start + 20, responseTime: start + 20)
            XCTAssertNil(try XCTUnwrap(validated).response.overtakenTime, "\(status)")
            XCTAssertTrue(decision(validated?.response, after: 30).isHit, "\(status)")
        }
        let other = CacheRules.validated(
            response, by: self.response([("ETag", "\"b\"")]), for: request(), requestTime: start + 20,
            responseTime: start + 20)
        XCTAssertEqual(other?.response.overtakenTime, start + 10, "a HEAD tells of another body")
    }

    /// Nobody has asked for it but the cache: what is stored answers until it may no longer.
    func testAnAnswerThatNobodyWaitedForOvertakesOnlyWhereItIsStored() throws {
        let response = try XCTUnwrap(stored([("Cache-Control", "max-age=1000")]))
        let known = [StoredEntry(id: EntryID(rawValue: 1), response: response, mark: ChangeMark())]
        for status: Int32 in [200, 302, 404, 410] {
            for isUnattended in [false, true] {
                let found = CacheRules.overtaken(
                    known, by: self.response(status: status), for: request(), stored: nil, isUnattended: isUnattended)
                guard case .madeStale(let entry)? = found.first else {
                    XCTAssertTrue(isUnattended && found.isEmpty, "\(status)")
                    continue
                }
                XCTAssertFalse(isUnattended, "\(status)")
                XCTAssertEqual(entry.id, known[0].id)
            }
        }
    }

    func testItsTimeIsSound() throws {
        for (time, isSound) in [(Int64.min, false), (-(1 << 41), false), (0, true), (1 << 40, true), (.max, false)] {
            var response = try XCTUnwrap(stored([("Cache-Control", "max-age=1000")]))
            response.overtakenTime = time
            XCTAssertEqual(response.isSound, isSound, "\(time)")
            _ = decision(response, after: 5)
        }
    }
}
