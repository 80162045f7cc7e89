import XCTest

@testable import ImgdlCore

/// Whose an answer is, on every road that leads to it besides a plain look-up: updates, stale use, redirects, pictures,
/// comparisons, and the memory of failures.
final class ContextUseTests: ContextTestCase {
    private let bytes = [UInt8](repeating: 7, count: 100)

    private func serve(_ fields: [(String, String)], _ status: Int32 = 200) {
        network.answers { [bytes] _ in Reply(status, [("ETag", "\"1\"")] + fields, bytes) }
    }

    /// Every way to ask, with every other one.
    private func forEachPair(_ body: (_ first: Way, _ second: Way, _ path: String) throws -> Void) rethrows {
        for (index, first) in Way.all.enumerated() {
            for (number, second) in Way.all.enumerated() where number != index {
                try body(first, second, "/\(index)-\(number)")
            }
        }
    }

    private func pair(_ first: Way, _ second: Way) -> String { "\(first.name), then \(second.name)" }

    func testNoPairUsesWhatIsStaleOfTheOther() throws {
        try forEachPair { first, second, path in
            serve([("Cache-Control", "max-age=60")])
            _ = try get(first, path)
            clock.pass(seconds: 61)
            network.answers { _ in .failed(.connectFailed) }
            XCTAssertEqual(try get(second, path).failure?.code, .connectFailed, pair(first, second))
            XCTAssertEqual(try get(first, path).outcome, .stale, pair(first, second))
        }
    }

    func testNoPairValidatesForTheOther() throws {
        try forEachPair { first, second, path in
            serve([("Cache-Control", "max-age=60")])
            _ = try get(first, path)
            clock.pass(seconds: 61)
            _ = try get(second, path)
            XCTAssertNil(network.last.fields.first(named: "If-None-Match"), pair(first, second))
        }
    }

    func testNoPairFollowsAKeptRedirectOfTheOther() throws {
        try forEachPair { first, second, path in
            network.answers { [bytes] request in
                request.url.canonical.hasSuffix("/to")
                    ? Reply(200, [("Cache-Control", "no-store")], bytes)
                    : Reply(301, [("Location", "/to"), ("Cache-Control", "max-age=60")])
            }
            _ = try get(first, path)
            var asked = network.count
            _ = try get(second, path)
            XCTAssertEqual(network.count, asked + 2, pair(first, second))
            asked = network.count
            _ = try get(first, path)
            XCTAssertEqual(network.count, asked + 1, "its own redirect is kept")
        }
    }

    func testNoHeadBringsUpToDateWhatIsTheOthers() throws {
        try forEachPair { first, second, path in
            serve([("Cache-Control", "max-age=60"), ("X-Who", "first")])
            _ = try get(first, path)
            serve([("Cache-Control", "max-age=60"), ("X-Who", "second")])
            _ = try get(second, path, mode: .reload, method: "HEAD")
            XCTAssertEqual(try get(first, path).field("X-Who"), "first", pair(first, second))
        }
    }

    func testNoPairSharesAPicture() throws {
        let wantsPicture: (inout SubscriberOptions) -> Void = {
            $0.decode = DecodeOptions()
            $0.wantsBody = false
        }
        try forEachPair { first, second, path in
            serve([("Cache-Control", "max-age=60")])
            let own = try get(first, path, wantsPicture)
            XCTAssertEqual(
                try get(second, path, mode: .only, wantsPicture).failure?.code, .notCached, pair(first, second))
            guard first.hooks == nil else { return }
            XCTAssertTrue(try get(first, path, wantsPicture).image?.pixels === own.image?.pixels)
        }
    }

    /// "Only if it has changed" is about what who asks has had, not about what somebody else has.
    func testNoPairIsComparedWithWhatTheOtherHas() throws {
        try forEachPair { first, second, path in
            serve([("Cache-Control", "max-age=60")])
            _ = try get(first, path)
            let heard = try get(second, path) { $0.ignoresCached = true }
            XCTAssertEqual(heard.code, .ok, pair(first, second))
            XCTAssertEqual(heard.bytes, bytes)
            XCTAssertEqual(try get(first, path) { $0.ignoresCached = true }.code, .notModified)
        }
    }

    /// Another variant than the one that was asked for is not what who asks has had either.
    func testAnotherVariantIsNotCompared() throws {
        serve([("Cache-Control", "max-age=60"), ("Vary", "Accept-Language")])
        _ = try get("/a", fields: [HeaderField("Accept-Language", "de")])
        let heard = try get("/a", fields: [HeaderField("Accept-Language", "en")]) { $0.ignoresCached = true }
        XCTAssertEqual(heard.code, .ok)
    }

    func testNoPairIsHeldUpByAFailureOfTheOther() throws {
        try open { $0.limits.failureLifetime = 60_000 }
        try forEachPair { first, second, path in
            network.answers { _ in .failed(.tlsCertificate) }
            XCTAssertEqual(try get(first, path, mode: .off).failure?.code, .tlsCertificate)
            serve([])
            XCTAssertEqual(try get(second, path, mode: .off).code, .ok, pair(first, second))
            guard first.hooks == nil, first.trust == second.trust else { return }
            XCTAssertEqual(try get(first, path, mode: .off).failure?.code, .blacklisted, pair(first, second))
        }
    }

    /// What one hook's credential was answered with says nothing of what another's will be.
    func testNoHookIsHeldUpByAFailureOfAnother() throws {
        try open { $0.limits.failureLifetime = 60_000 }
        func hooks(_ user: String) -> TestHooks {
            let hooks = TestHooks([.authenticate])
            hooks.credential = { _ in .replaced(Credential(user: user, password: "p")) }
            return hooks
        }
        network.answers { [bytes] request in
            switch request.credential?.user {
            case nil: Reply(401)
            case "a": .failed(.protocolError)
            default: Reply(200, [], bytes)
            }
        }
        XCTAssertEqual(try get("/a", .off, hooks: hooks("a")).failure?.code, .protocolError)
        XCTAssertEqual(try get("/a", .off, hooks: hooks("b")).code, .ok)
    }

    /// What a hook's credential was answered with is for that credential, and not for who has none.
    func testWhatAHooksCredentialFetched() throws {
        func hooks(_ user: String) -> TestHooks {
            let hooks = TestHooks([.authenticate])
            hooks.credential = { _ in .replaced(Credential(user: user, password: "p")) }
            return hooks
        }
        network.answers { request in
            guard let user = request.credential?.user else { return Reply(401) }
            return Reply(200, [("Cache-Control", "max-age=60")], Array(user.utf8))
        }
        XCTAssertEqual(try get("/a", hooks: hooks("a")).outcome, .network)
        XCTAssertEqual(try get("/a", .only).failure?.code, .notCached)
        XCTAssertEqual(try get("/a", hooks: hooks("b")).bytes, Array("b".utf8))
        let again = try get("/a", hooks: hooks("a"))
        XCTAssertEqual(again.outcome, .hit)
        XCTAssertEqual(again.bytes, Array("a".utf8))
        let given = Way.identity { $0.credential = Credential(user: "a", password: "p") }
        XCTAssertEqual(
            try end(try start("/a", .only, identity: given)).bytes, Array("a".utf8), "the same by another road")
    }

    /// A challenge says nothing of who can answer it: it is not kept from the hook that can.
    func testAChallengeIsNotKept() throws {
        let hooks = TestHooks([.authenticate])
        hooks.credential = { _ in .replaced(Credential(user: "a", password: "p")) }
        network.answers { [bytes] request in
            request.credential == nil ? Reply(401, [("Cache-Control", "public, max-age=60")]) : Reply(200, [], bytes)
        }
        XCTAssertEqual(try get("/a") { $0.acceptsAnyStatus = true }.status, 401)
        XCTAssertEqual(try get("/a", hooks: hooks).code, .ok)
    }

    /// Other trust may get other answers.
    func testANewSessionForgetsWhatFailed() throws {
        try open { $0.limits.failureLifetime = 60_000 }
        network.answers { _ in .failed(.tlsCertificate) }
        XCTAssertEqual(try get("/a").failure?.code, .tlsCertificate)
        serve([])
        try downloader.reconfigure(configuration)
        XCTAssertEqual(try get("/a").code, .ok)
    }

    /// What is validated while nobody waits for it is asked as the request that was answered, with its body.
    func testABodyIsSentAgainInTheBackground() throws {
        serve([("Cache-Control", "max-age=60, stale-while-revalidate=600")])
        let profile = TransferRequest.Profile(body: [1], cacheMode: .use)
        _ = try end(try start("/a", profile: profile))
        clock.pass(seconds: 61)
        XCTAssertEqual(try end(try start("/a", profile: profile)).outcome, .stale)
        let validation = try network.exchange(1)
        XCTAssertEqual(validation.request.body, [1])
        XCTAssertEqual(validation.field("If-None-Match"), "\"1\"")
    }

    // MARK: What is open to all

    private static let others = [HeaderField("Cookie", "a=1")]

    /// A server that answers others with what is theirs does not say it to whom the stored answer belongs.
    func testWhatIsSaidToOthersStaysTheirs() throws {
        for method in ["GET", "HEAD"] {
            for said in ["private, max-age=60", "max-age=60"] {
                let path = "/\(method)-\(said.count)"
                serve([("Cache-Control", "public, max-age=60"), ("X-Who", "first")])
                _ = try get(path)
                clock.pass(seconds: 61)
                serve([("Cache-Control", said), ("X-Who", "second")], method == "GET" ? 304 : 200)
                let heard = try get(path, .refresh, method: method, fields: Self.others)
                XCTAssertEqual(heard.field("X-Who"), "second")
                if method == "GET" { XCTAssertEqual(heard.bytes, bytes) }
                XCTAssertEqual(try get(path, .only).field("X-Who"), "first", "\(method): \(said)")
                XCTAssertEqual(
                    try get(path, .only, fields: Self.others).field("X-Who"), "first", "it is open as it was")
            }
        }
    }

    func testWhatIsSaidToAllBringsItUpToDate() throws {
        for method in ["GET", "HEAD"] {
            serve([("Cache-Control", "public, max-age=60"), ("X-Who", "first")])
            _ = try get("/\(method)")
            clock.pass(seconds: 61)
            serve(
                [("Cache-Control", "public, max-age=60"), ("X-Who", "second"), ("Set-Cookie", "a=2")],
                method == "GET" ? 304 : 200)
            _ = try get("/\(method)", .refresh, method: method, fields: Self.others)
            let heard = try get("/\(method)", .only)
            XCTAssertEqual(heard.field("X-Who"), "second")
            XCTAssertNil(heard.field("Set-Cookie"))
            XCTAssertEqual(heard.outcome, .hit)
        }
    }
}
