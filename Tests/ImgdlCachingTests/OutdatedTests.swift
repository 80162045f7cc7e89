import ImgdlCache
import XCTest

@testable import ImgdlCore

/// Who asks after a URL was removed from the cache, or changed at its server, gets nothing that was asked for before.
final class OutdatedTests: CachingTestCase {
    private let key = testURL("https://a.example/a").cacheKey
    private let fields = [("Cache-Control", "max-age=60"), ("ETag", "\"1\"")]
    private let old = [UInt8](repeating: 1, count: 2_500)
    private let new = [UInt8](repeating: 2, count: 100)
    private var others: [Downloader] = []
    private var gate = Gate()

    override func tearDownWithError() throws {
        // Where the test has failed meanwhile nobody else opens it.
        gate.open()
        for other in others { other.destroy() }
        others = []
        try super.tearDownWithError()
    }

    /// What says that a URL is outdated, as seen by the downloader that has a transfer under way.
    private var removals: [(name: String, remove: () throws -> Void)] {
        [
            ("remove", { try self.store.cache.removeAndWait(key: self.key) }),
            ("remove, without waiting", { self.store.cache.remove(key: self.key) }),
            ("clear", { try self.store.cache.clear() }),
            ("PUT", { try self.change("/a", "PUT") }), ("POST", { try self.change("/a", "POST") }),
            ("DELETE", { try self.change("/a", "DELETE") }), ("PATCH", { try self.change("/a", "PATCH") }),
            ("Location", { try self.change("/b", "POST", [("Location", "/a")]) }),
            ("Content-Location", { try self.change("/b", "POST", [("Content-Location", "https://a.example/a")]) }),
        ]
    }

    /// Succeeds.
    private func change(
        _ path: String, _ method: String, _ fields: [(String, String)] = [], _ mode: CacheMode = .off
    ) throws {
        network.answers { $0.method == method ? Reply(201, fields) : nil }
        XCTAssertEqual(try get(path, mode, method: method).code, .ok)
        network.answers { _ in nil }
    }

    /// A second downloader with the same cache is `downloader` from now on.
    private func openOther() throws {
        others.append(downloader)
        downloader = nil
        try open { _ in }
    }

    /// `first` began before: it gets the old bytes. Who asks now shares a transfer with who comes next, and not with that.
    private func expectParted(
        _ first: Heard, _ name: String, mode: CacheMode = .use, answersFirst: () throws -> Void
    ) throws {
        let before = network.count
        let second = try start("/a", mode)
        let answer = try network.exchange(before)
        let third = try start("/a", mode)
        answer.answer(Reply(200, fields, new))
        XCTAssertEqual(try end(second).bytes, new, name)
        XCTAssertEqual(try end(third).bytes, new, name)
        try answersFirst()
        XCTAssertEqual(try end(first).bytes, old, "\(name): who asked gets it")
        XCTAssertEqual(network.count, before + 1, name)
        if mode != .off { XCTAssertEqual(try get("/a", .only).bytes, new, name) }
    }

    func testWhatWasSentIsNotJoined() throws {
        for onDisk in [false, true] {
            for (name, remove) in removals {
                try openAnew(onDisk: onDisk, memory: 32 << 20)
                network.answers { _ in nil }
                let before = network.count
                let first = try start("/a")
                let exchange = try network.exchange(before)
                try remove()
                try expectParted(first, name) { exchange.answer(Reply(200, fields, old)) }
            }
        }
    }

    func testWhatIsBeingReceivedIsNotJoined() throws {
        for (name, remove) in removals {
            try openAnew(onDisk: false, memory: 32 << 20)
            network.answers { _ in nil }
            let before = network.count
            let first = try start("/a")
            let exchange = try network.exchange(before)
            exchange.connect()
            exchange.head(200, [], length: Int64(old.count))
            exchange.body(Array(old.prefix(1_000)))
            try remove()
            try expectParted(first, name) {
                exchange.body(Array(old.dropFirst(1_000)))
                exchange.finish()
            }
        }
    }

    /// Fetched, or stored: the bytes are there, and their picture is not.
    func testWhatIsBeingDecodedIsNotJoined() throws {
        for isStored in [false, true] {
            for (name, remove) in removals {
                try openAnew(onDisk: false, memory: 32 << 20)
                let gate = Gate()
                self.gate = gate
                codec.judges { [old] _, count, isWhole in
                    if isWhole, count == old.count { gate.pass() }
                    return nil
                }
                network.answers { [fields, old] _ in Reply(200, fields, old) }
                if isStored { _ = try get("/a") }
                let first = try start("/a") { $0.decode = DecodeOptions() }
                XCTAssertTrue(gate.waitUntilHeld())
                network.answers { _ in nil }
                try remove()
                try expectParted(first, "\(name), \(isStored)") { gate.open() }
            }
        }
    }

    func testWhatIsBeingValidatedIsNotJoined() throws {
        for (name, remove) in removals {
            try openAnew(onDisk: false, memory: 32 << 20)
            network.answers { [fields, old] _ in Reply(200, fields, old) }
            _ = try get("/a")
            network.answers { _ in nil }
            let before = network.count
            let first = try start("/a", .refresh)
            let validation = try network.exchange(before)
            XCTAssertEqual(validation.field("If-None-Match"), "\"1\"")
            try remove()
            let removed = network.count
            let second = try start("/a", .refresh)
            try network.exchange(removed).answer(Reply(200, fields, new))
            XCTAssertEqual(try end(second).bytes, new, name)
            // What it found good is gone, and what took its place is not what was validated.
            validation.answer(Reply(304, fields))
            try network.exchange(removed + 1).answer(Reply(200, fields, old))
            XCTAssertEqual(try end(first).bytes, old, name)
        }
    }

    /// After a stale answer (RFC 5861 section 3): that one is not joined, and the next one does not wait for its end.
    func testWhatIsValidatedInTheBackgroundIsNotJoined() throws {
        for (name, remove) in removals {
            try openAnew(onDisk: false, memory: 32 << 20)
            let stale = [("Cache-Control", "max-age=60, stale-while-revalidate=600"), ("ETag", "\"1\"")]
            network.answers { [old] _ in Reply(200, stale, old) }
            _ = try get("/a")
            clock.pass(seconds: 61)
            network.answers { _ in nil }
            var before = network.count
            XCTAssertEqual(try get("/a").outcome, .stale)
            _ = try network.exchange(before)
            try remove()
            before = network.count
            let second = try start("/a", .refresh, followsRedirects: false)
            try network.exchange(before).answer(Reply(200, stale, new))
            XCTAssertEqual(try end(second).bytes, new, name)
            clock.pass(seconds: 61)
            before = network.count
            XCTAssertEqual(try get("/a").outcome, .stale)
            try network.exchange(before).answer(Reply(200, stale, new))
        }
    }

    /// What is found before it is removed is played to who asked.
    func testWhatIsBeingLookedForIsNotJoined() throws {
        for isBeginning in [false, true] {
            try openAnew(onDisk: true, memory: 0)
            let whole = Reply(200, fields, old)
            network.answers { _ in isBeginning ? whole.cut(after: 2_000) : whole }
            _ = try get("/a")
            let cache = store.cache
            try cache.flush()
            network.answers { [fields, old, new] request in
                guard request.fields.first(named: "Range") != nil else { return Reply(200, fields, new) }
                return Reply(206, fields + [("Content-Range", "bytes 2000-2499/2500")], Array(old[2_000...]))
            }
            let met = Met()
            store.interrupt { [self] found in
                guard found?.body.isEmpty == false, met.isFirst else { return }
                cache.remove(key: key)
                met.second = try? start("/a")
            }
            let first = try get("/a")
            XCTAssertEqual(first.bytes, old, "who asked gets it")
            XCTAssertEqual(first.outcome, isBeginning ? .resumed : .hit)
            XCTAssertEqual(try end(XCTUnwrap(met.second)).bytes, new, "\(isBeginning)")
        }
    }

    private final class Met: @unchecked Sendable {
        private let lock = Lock()
        private var count = 0
        private var started: Heard?
        var isFirst: Bool {
            lock.withLock {
                count += 1
                return count == 1
            }
        }
        var second: Heard? {
            get { lock.withLock { started } }
            set { lock.withLock { started = newValue } }
        }
    }

    func testWhatWasRedirectedIsNotJoined() throws {
        for (name, remove) in removals {
            for (from, to) in [("/a", "/b"), ("/c", "/a")] {
                try openAnew(onDisk: false, memory: 32 << 20)
                network.answers { _ in nil }
                var before = network.count
                let first = try start(from)
                try network.exchange(before).answer(Reply(302, [("Location", to)]))
                let exchange = try network.exchange(before + 1)
                try remove()
                before = network.count
                let second = try start(from)
                try network.exchange(before).answer(Reply(200, fields, new))
                XCTAssertEqual(try end(second).bytes, new, "\(name), \(from)")
                exchange.answer(Reply(200, fields, old))
                XCTAssertEqual(try end(first).bytes, old, "\(name), \(from)")
            }
        }
    }

    /// With the same cache.
    func testOtherDownloadersLearnOfIt() throws {
        for (name, remove) in removals {
            try openAnew(onDisk: false, memory: 32 << 20)
            network.answers { _ in nil }
            let before = network.count
            let first = try start("/a")
            let exchange = try network.exchange(before)
            let own = downloader
            try openOther()
            try remove()
            swap(&downloader, &others[others.count - 1])
            XCTAssertTrue(downloader === own)
            try expectParted(first, name) { exchange.answer(Reply(200, fields, old)) }
        }
    }

    /// Without a cache, and past it.
    func testWhatIsNotStoredIsNotJoinedEither() throws {
        for hasStore in [false, true] {
            for (name, remove) in removals.dropFirst(hasStore ? 0 : 3) {
                try openAnew(onDisk: false, memory: 32 << 20)
                try open { if !hasStore { $0.store = nil } }
                network.answers { _ in nil }
                let before = network.count
                let first = try start("/a", .off)
                let exchange = try network.exchange(before)
                try remove()
                try expectParted(first, "\(name), \(hasStore)", mode: .off) {
                    exchange.answer(Reply(200, fields, old))
                }
            }
        }
    }

    /// Nothing that was not said: another URL is removed, a method that changes nothing, one that fails, one on its way.
    func testWhatIsNotOutdatedIsJoined() throws {
        let harmless: [(String, () throws -> Void)] = [
            ("nothing", {}), ("another", { self.store.cache.remove(key: testURL("https://a.example/b").cacheKey) }),
            ("elsewhere", { try self.change("/b", "POST", [("Location", "https://b.example/a")]) }),
            ("older", { try self.store.cache.removeOlder(than: 0) }),
            (
                "OPTIONS",
                {
                    self.network.answers { $0.method == "OPTIONS" ? Reply(200) : nil }
                    _ = try self.get("/a", method: "OPTIONS")
                }
            ),
            (
                "500",
                {
                    self.network.answers { $0.method == "POST" ? Reply(500) : nil }
                    _ = try self.get("/a", method: "POST")
                }
            ),
            (
                "on its way",
                {
                    let before = self.network.count
                    _ = try self.start("/a", method: "POST")
                    _ = try self.network.exchange(before)
                }
            ),
        ]
        for (name, act) in harmless {
            try openAnew(onDisk: false, memory: 32 << 20)
            network.answers { _ in nil }
            var before = network.count
            let first = try start("/a")
            let exchange = try network.exchange(before)
            try act()
            before = network.count
            let second = try start("/a")
            exchange.answer(Reply(200, fields, old))
            XCTAssertEqual(try end(first).bytes, old)
            XCTAssertEqual(try end(second).bytes, old, name)
            XCTAssertEqual(network.count, before, name)
        }
    }

    /// Nothing that was found has a part in what it is to send.
    func testWhatWaitsIsJoined() throws {
        for (name, remove) in removals.prefix(3) {
            for isStale in [false, true] {
                try openAnew(onDisk: false, memory: 32 << 20)
                network.answers { [fields, old] _ in Reply(200, fields, old) }
                if isStale { _ = try get("/a") }
                clock.pass(seconds: 61)
                try open { $0.limits.maximumConcurrent = 1 }
                network.answers { _ in nil }
                let before = network.count
                let busy = try start("/busy")
                let exchange = try network.exchange(before)
                let first = try start("/a")
                // Once it has been looked for.
                try end(start("/none", .only))
                try remove()
                let second = try start("/a")
                exchange.answer(Reply(200))
                _ = try end(busy)
                let only = try network.exchange(before + 1)
                if only.field("If-None-Match") == nil {
                    only.answer(Reply(200, fields, new))
                } else {
                    only.answer(Reply(304, fields))
                    try network.exchange(before + 2).answer(Reply(200, fields, new))
                }
                XCTAssertEqual(try end(first).bytes, new, name)
                XCTAssertEqual(try end(second).bytes, new, name)
                XCTAssertEqual(network.count, before + (isStale ? 3 : 2), name)
            }
        }
    }

    /// Nobody is asked for it: a server's failure a moment ago hides nothing of what is stored.
    func testAFailureOfBeforeHidesNothingInModeOnly() throws {
        try open { $0.limits.failureLifetime = 60_000 }
        network.answers { [fields, old] _ in Reply(200, fields, old) }
        _ = try get("/a")
        network.answers { _ in .failed(.tlsCertificate) }
        XCTAssertEqual(try get("/a", .reload).code, .tlsCertificate)
        for _ in 0..<2 {
            XCTAssertEqual(try get("/a", .only).code, .ok)
            XCTAssertEqual(try get("/a", .reload).code, .blacklisted, "and forgets no failure either")
        }
        XCTAssertEqual(try get("/b", .only).code, .notCached)
    }

    /// A failure is remembered for what was there before.
    func testAFailureOfBeforeIsForgotten() throws {
        for hasStore in [false, true] {
            for (name, remove) in removals.dropFirst(hasStore ? 0 : 3) {
                for path in ["/a", "/from"] {
                    try openAnew(onDisk: false, memory: 32 << 20)
                    try open {
                        $0.limits.failureLifetime = 60_000
                        if !hasStore { $0.store = nil }
                    }
                    codec.judges { [old] _, count, isWhole in isWhole && count == old.count ? .badImageData : nil }
                    let serve = { [network, fields, old] in
                        network.answers {
                            $0.url.canonical.hasSuffix("/from")
                                ? Reply(302, [("Location", "/a")]) : Reply(200, fields, old)
                        }
                    }
                    let mode: CacheMode = hasStore ? .use : .off
                    let picture = { try self.get(path, mode) { $0.decode = DecodeOptions() }.code }
                    serve()
                    XCTAssertEqual(try picture(), .badImageData)
                    XCTAssertEqual(try picture(), .blacklisted)
                    try change("/other", "POST")
                    XCTAssertEqual(try picture(), .blacklisted)
                    try remove()
                    serve()
                    XCTAssertEqual(try picture(), .badImageData, "\(name), \(path), \(hasStore)")
                }
            }
        }
    }
}
