import ImgdlCache
import XCTest

@testable import ImgdlCore

/// What is answered from the cache, and when it is asked (DESIGN section 6, features O2, X15).
final class HitTests: CachingTestCase {
    private let bytes = [UInt8]((0..<2500).map { UInt8(truncatingIfNeeded: $0 * 7) })

    private func serve(_ fields: [(String, String)], status: Int32 = 200) {
        network.answers { [bytes] _ in Reply(status, fields, bytes) }
    }

    func testAFreshResponseNeedsNoNetwork() throws {
        serve([("Cache-Control", "max-age=60"), ("X-Twice", "a"), ("X-Twice", "b")])
        XCTAssertEqual(try get("/a").outcome, .network)
        clock.pass(seconds: 10)
        let again = try start("/a")
        let result = try end(again)
        XCTAssertEqual(result.outcome, .hit)
        XCTAssertEqual(result.bytes, bytes)
        XCTAssertEqual(result.field("Age"), "10")
        XCTAssertEqual(result.response?.head.fields.filter { $0.name == "X-Twice" }.map(\.value), ["a", "b"])
        XCTAssertEqual(network.count, 1)
        XCTAssertEqual(again.log.first, "started")
        XCTAssertEqual(
            again.log.filter { !$0.hasPrefix("progress") }, ["started", "response 200", "terminal ok"])
        XCTAssertEqual(again.log.last { $0.hasPrefix("progress") }, "progress 2500/2500")
        XCTAssertEqual(result.metrics.bytesReceived, 0)
        XCTAssertEqual(result.metrics.transfer, 0)
        XCTAssertEqual(result.metrics.bodyBytes, 2500)
        XCTAssertEqual(downloader.statistics.read { [$0.transfers, $0.cached] }, [1, 1])
    }

    /// It told contexts apart by the one of before: what it had found out about requests holds no longer.
    func testWhatIsStoredAfterAnotherProgramsKeyHasComeIsFoundByTheNext() throws {
        try open(onDisk: true) { _ in }
        serve([("Cache-Control", "max-age=60")])
        let profile = TransferRequest.Profile(
            method: "GET", fields: [], body: nil, identity: RequestIdentity(credential: nil, usesCookies: false),
            followsRedirects: true, cacheMode: .use, staleLimit: .none, hooks: nil)
        _ = try end(start("/a", profile: profile))
        try store.cache.flush()
        let directory = try XCTUnwrap(directory)
        XCTAssertEqual(unlink(directory + "/key"), 0)
        var other = CacheConfiguration()
        other.directory = directory
        try Cache(other, clock: clock) { _ in }.close()
        try store.cache.flush()
        _ = try end(start("/b", profile: profile))
        XCTAssertEqual(try end(start("/b", profile: profile)).outcome, .hit)
        try reopen()
        XCTAssertEqual(try get("/b", .only).bytes, bytes)
        XCTAssertEqual(try get("/a", .only).failure?.code, .notCached)
    }

    /// What is known of the latest kinds of request holds none of them: the host waits for its hooks' destructor.
    func testHooksEndWithTheirRequest() throws {
        serve([("Cache-Control", "max-age=60")])
        let ended = expectation(description: "the hooks have ended")
        ended.expectedFulfillmentCount = 2
        for path in ["/a", "/b"] {
            let end = End { ended.fulfill() }
            let hooks = TestHooks([.modifyRequest])
            hooks.request = { [end] _ in withExtendedLifetime(end) { .unchanged } }
            let heard = try start(path, hooks: hooks)
            XCTAssertEqual(try self.end(heard).code, .ok)
            heard.subscription = nil
        }
        wait(for: [ended], timeout: 20)
    }

    private final class End {
        private let isReached: () -> Void

        init(_ isReached: @escaping () -> Void) { self.isReached = isReached }

        deinit { isReached() }
    }

    func testFromDiskToo() throws {
        try open(onDisk: true) { _ in }
        serve([("Cache-Control", "max-age=60")])
        _ = try get("/a")
        let result = try get("/a")
        XCTAssertEqual(result.outcome, .hit)
        XCTAssertEqual(result.bytes, bytes)
        XCTAssertEqual(network.count, 1)
    }

    func testWithoutACacheOrWithModeOffEverythingGoesToTheServer() throws {
        serve([("Cache-Control", "max-age=60")])
        _ = try get("/a", .off)
        XCTAssertEqual(try get("/a", .off).outcome, .network)
        XCTAssertEqual(try get("/a").outcome, .network, "mode off stores nothing")
        try open { $0.store = nil }
        XCTAssertEqual(try get("/a").outcome, .network)
        XCTAssertEqual(try get("/a", .only).code, .notCached)
        XCTAssertEqual(network.count, 4)
    }

    func testAHitWaitsForNoPlace() throws {
        try open { $0.limits.maximumConcurrent = 1 }
        serve([("Cache-Control", "max-age=60")])
        _ = try get("/a")
        network.answers { _ in nil }
        let slow = try start("/slow")
        let exchange = try network.exchange(1)
        XCTAssertEqual(try get("/a").outcome, .hit)
        exchange.answer(Reply(200, [], [1]))
        XCTAssertEqual(try end(slow).bytes, [1])
    }

    func testSuspendedNothingComesUntilItGoesOn() throws {
        serve([("Cache-Control", "max-age=60")])
        _ = try get("/a")
        let finds = store.findCount
        downloader.setSuspended(true)
        let waiting = try start("/a")
        // What comes later to the engine has gone through the same mailbox.
        let gone = try start("/gone")
        downloader.cancel(gone.subscription)
        try end(gone)
        XCTAssertNil(waiting.result)
        XCTAssertEqual(store.findCount, finds)
        downloader.setSuspended(false)
        XCTAssertEqual(try end(waiting).outcome, .hit)
        XCTAssertEqual(network.count, 1)
    }

    func testManyRequestsAreOneConsultationAndOneTransfer() throws {
        serve([("Cache-Control", "max-age=60")])
        store.hold()
        let all = try (0..<5).map { _ in try start("/a") }
        XCTAssertTrue(store.waitUntilHeld(1))
        let finds = store.findCount
        store.release()
        for heard in all { XCTAssertEqual(try end(heard).bytes, bytes) }
        XCTAssertEqual(finds, 1)
        XCTAssertEqual(network.count, 1)
    }

    func testWhoIsCancelledMeanwhileHearsNothingOfTheAnswer() throws {
        serve([("Cache-Control", "max-age=60")])
        _ = try get("/a")
        store.hold()
        let cancelled = try start("/a")
        XCTAssertTrue(store.waitUntilHeld(1))
        downloader.cancel(cancelled.subscription)
        XCTAssertEqual(try end(cancelled).code, .cancelled)
        let other = try start("/a")
        XCTAssertTrue(store.waitUntilHeld(2))
        store.release()
        XCTAssertEqual(try end(other).outcome, .hit)
        XCTAssertEqual(cancelled.log, ["terminal cancelled"])
        XCTAssertEqual(network.count, 1)
    }

    /// RFC 9111 section 4.2.2 "cacheable by default"; a followed redirect is stored without its body.
    func testACachedRedirectCostsNoRequest() throws {
        network.answers { [bytes] request in
            request.url.canonical.hasSuffix("/old")
                ? Reply(301, [("Location", "/new"), ("Cache-Control", "max-age=60")], [1, 2, 3])
                : Reply(200, [("Cache-Control", "max-age=30")], bytes)
        }
        _ = try get("/old")
        XCTAssertEqual(network.count, 2)
        let cached = try get("/old")
        XCTAssertEqual(cached.outcome, .hit)
        XCTAssertEqual(cached.bytes, bytes)
        XCTAssertEqual(cached.response?.hops.map(\.status), [301])
        XCTAssertEqual(cached.response?.url.canonical, "https://a.example/new")
        XCTAssertEqual(network.count, 2)
        clock.pass(seconds: 31)
        // The redirect is fresh, its target is not.
        XCTAssertEqual(try get("/old").bytes, bytes)
        XCTAssertEqual(network.exchanges.map(\.request.url.canonical).last, "https://a.example/new")
        XCTAssertEqual(network.count, 3)
    }

    func testErrorPagesThatNobodyTakesAreNotStored() throws {
        serve([("Cache-Control", "max-age=60")], status: 404)
        XCTAssertEqual(try get("/a").code, .invalidStatus)
        XCTAssertEqual(try get("/a").code, .invalidStatus)
        XCTAssertEqual(network.count, 2)
        XCTAssertEqual(try get("/a") { $0.acceptsAnyStatus = true }.bytes, bytes)
        XCTAssertEqual(try get("/a") { $0.acceptsAnyStatus = true }.outcome, .hit)
        XCTAssertEqual(network.count, 3)
    }

    // MARK: Modes

    func testOnlyNeverAsks() throws {
        XCTAssertEqual(try get("/a", .only).code, .notCached)
        serve([("Cache-Control", "max-age=60")])
        _ = try get("/a")
        XCTAssertEqual(try get("/a", .only).outcome, .hit)
        clock.pass(seconds: 600)
        XCTAssertEqual(try get("/a", .only).outcome, .stale)
        XCTAssertEqual(network.count, 1)
    }

    func testReloadAsksAndStores() throws {
        serve([("Cache-Control", "max-age=60")])
        _ = try get("/a")
        network.answers { _ in Reply(200, [("Cache-Control", "max-age=60")], [9]) }
        XCTAssertEqual(try get("/a", .reload).bytes, [9])
        XCTAssertEqual(try get("/a").bytes, [9])
        XCTAssertEqual(network.count, 2)
    }

    func testRefreshValidatesWhatIsFresh() throws {
        network.answers { [bytes] request in
            request.fields.first(named: "If-None-Match") == "\"1\""
                ? Reply(304, [("ETag", "\"1\"")])
                : Reply(200, [("ETag", "\"1\""), ("Cache-Control", "max-age=60")], bytes)
        }
        _ = try get("/a")
        let result = try get("/a", .refresh)
        XCTAssertEqual(result.outcome, .validated)
        XCTAssertEqual(result.bytes, bytes)
        XCTAssertEqual(network.count, 2)
    }

    // MARK: Who may share

    /// Features B4: a jar's cookies are compared as those that are given.
    func testWhatVariesOverCookiesOfTheJar() throws {
        serve([("Cache-Control", "max-age=60"), ("Vary", "Cookie")])
        for (cookies, outcome) in [("a=1", CacheOutcome.network), ("a=1", .hit), ("a=2", .network), ("a=1", .hit)] {
            network.cookies = Array(cookies.utf8)
            XCTAssertEqual(try end(try start("/a", usesCookies: true)).outcome, outcome, cookies)
        }
        XCTAssertEqual(network.count, 2)
        _ = try get("/a")
        XCTAssertEqual(try get("/a").outcome, .hit)
        XCTAssertEqual(network.count, 3)
    }

    func testARequestThatAHookMakesIsConsultedAboutAfterwards() throws {
        serve([("Cache-Control", "max-age=60")])
        let hooks = TestHooks([.modifyRequest])
        hooks.request = { request in
            var request = request
            request.url = testURL("https://a.example/other")
            return .replaced(request)
        }
        XCTAssertEqual(try get("/a", hooks: hooks).outcome, .network)
        XCTAssertEqual(try get("/a", hooks: hooks).outcome, .hit)
        XCTAssertEqual(try get("/other").outcome, .hit)
        XCTAssertEqual(network.count, 1)
    }

    /// Features R2: stored as the server sent it.
    func testAResponseThatAHookChangesIsStoredAsItCame() throws {
        serve([("Cache-Control", "max-age=60"), ("X-From", "server")])
        let hooks = TestHooks([.modifyResponse, .transformBody])
        hooks.response = { _ in .replaced(ModifiedResponse(status: 200, fields: [HeaderField("X-From", "hook")])) }
        hooks.body = { _ in .replaced([7, 7]) }
        let changed = try get("/a", hooks: hooks)
        XCTAssertEqual(changed.field("X-From"), "hook")
        XCTAssertEqual(changed.bytes, [7, 7])
        let stored = try get("/a")
        XCTAssertEqual(stored.outcome, .hit)
        XCTAssertEqual(stored.field("X-From"), "server")
        XCTAssertEqual(stored.bytes, bytes)
        let again = try get("/a", hooks: hooks)
        XCTAssertEqual(again.outcome, .hit)
        XCTAssertEqual(again.field("X-From"), "hook")
        XCTAssertEqual(again.bytes, [7, 7])
        XCTAssertEqual(network.count, 1)
    }

    // MARK: Pictures

    func testTheSamePictureIsHandedOutAgain() throws {
        serve([("Cache-Control", "max-age=60")])
        func picture() throws -> Ended {
            try get("/a") {
                $0.decode = DecodeOptions()
                $0.wantsBody = false
            }
        }
        let first = try picture()
        let second = try picture()
        XCTAssertEqual(second.outcome, .hit)
        XCTAssertTrue(try XCTUnwrap(first.image).pixels === XCTUnwrap(second.image).pixels)
        XCTAssertEqual(second.progress.received, 2500)
        XCTAssertEqual(codec.decoderCount, 1)
        let other = try get("/a") {
            $0.decode = DecodeOptions()
            $0.decode?.pixelFormat = .bgra8
            $0.wantsBody = false
        }
        XCTAssertEqual(other.outcome, .hit)
        XCTAssertEqual(codec.decoderCount, 2)
        let withBody = try get("/a") { $0.decode = DecodeOptions() }
        XCTAssertEqual(withBody.bytes, bytes)
        XCTAssertEqual(network.count, 1)
    }
}
