import XCTest

@testable import ImgdlCore

/// Whose an answer is: what was answered in one context answers no other.
final class ContextTests: ContextTestCase {
    private let bytes = [UInt8]((0..<2500).map { UInt8(truncatingIfNeeded: $0 * 7) })

    private func serve(_ fields: [(String, String)]) {
        network.answers { [bytes] _ in Reply(200, [("ETag", "\"1\"")] + fields, bytes) }
    }

    /// Who asks for what has been stored: who stored it, the same after a restart, or another program at the same time.
    private enum Asker: CaseIterable { case itself, restarted, beside }

    private func move(to asker: Asker) throws {
        switch asker {
        case .itself: break
        case .restarted: try reopen()
        case .beside: try openBeside()
        }
    }

    private func checkPairs(_ origin: String, _ ways: [Way], by asker: Asker = .itself) throws {
        for (fields, isForAll) in [
            ("max-age=60", false), ("private, must-revalidate, max-age=60", false), ("public, max-age=60", true),
        ] {
            let urls = ways.indices.map { "\(origin)/\($0)-\(fields.count)" }
            func store(_ index: Int) throws -> [UInt8] {
                serveEach([("Cache-Control", fields)])
                return try XCTUnwrap(get(ways[index], urls[index]).bytes)
            }
            let stored = asker == .itself ? [] : try ways.indices.map(store)
            try move(to: asker)
            for (index, first) in ways.enumerated() {
                let url = urls[index]
                let own = asker == .itself ? try store(index) : stored[index]
                XCTAssertEqual(try get(first, url).bytes, own, "\(first.name) shares with itself")
                XCTAssertEqual(try get(first, url, mode: .only).bytes, own, "\(first.name) shares with itself")
                for second in ways where second.name != first.name {
                    let isSameTrust = !first.isTrust && !second.isTrust
                    let heard = try get(second, url, mode: .only)
                    if isForAll, isSameTrust, first.asksAlike(second) {
                        XCTAssertEqual(heard.bytes, own, "\(first.name) for \(second.name): \(fields)")
                    } else {
                        XCTAssertEqual(heard.failure?.code, .notCached, "\(first.name) for \(second.name): \(fields)")
                    }
                }
            }
        }
    }

    func testNoPairSharesWhatIsInMemory() throws { try checkPairs("https://a.example", Way.all) }

    func testNoPairSharesWhatIsOnDisk() throws {
        try open(onDisk: true) { _ in }
        try checkPairs("https://a.example", Way.all)
    }

    func testNoPairSharesWhatIsOnDiskAfterARestart() throws {
        try open(onDisk: true) { _ in }
        try checkPairs("https://a.example", Way.all, by: .restarted)
    }

    func testNoPairSharesWhatAnotherProgramHasStored() throws {
        try open(onDisk: true) { _ in }
        try checkPairs("https://a.example", Way.all, by: .beside)
    }

    /// A Cookie field is what the server gets, whoever wrote it.
    func testGivenCookiesAndThoseOfTheJarAreAlike() throws {
        try open(onDisk: true) { _ in }
        let ways = [
            Way(name: "given", fields: [HeaderField("Cookie", "a=1; b=2")]),
            Way(name: "jar", identity: Way.identity { $0.usesCookies = true }, cookies: "Cookie: a=1; b=2"),
            Way(
                name: "both", fields: [HeaderField("Cookie", "a=1")], identity: Way.identity { $0.usesCookies = true },
                cookies: "Cookie: a=1; b=2"),
        ]
        let others = [
            Way(name: "less", fields: [HeaderField("Cookie", "a=1")]),
            Way(name: "two lines", fields: [HeaderField("Cookie", "a=1"), HeaderField("Cookie", "b=2")]),
            Way(name: "one line of two", fields: [HeaderField("Cookie", "a=1; b=2"), HeaderField("Cookie", "")]),
            Way(name: "none", identity: Way.identity { $0.usesCookies = true }),
        ]
        for (index, first) in ways.enumerated() {
            serveEach([("Cache-Control", "max-age=60")])
            let bytes = try XCTUnwrap(get(first, "/\(index)").bytes)
            for second in ways {
                let heard = try get(second, "/\(index)", mode: .only)
                XCTAssertEqual(heard.bytes, bytes, "\(first.name) for \(second.name)")
            }
            for other in others {
                let heard = try get(other, "/\(index)", mode: .only)
                XCTAssertEqual(heard.failure?.code, .notCached, "\(first.name) for \(other.name)")
            }
        }
        XCTAssertEqual(network.count, ways.count)
    }

    /// What a server chooses by is kept as far as it is no secret, and nothing is by which a request says who asks.
    func testNothingThatSaysWhoAsksIsWritten() throws {
        try open(onDisk: true) { _ in }
        let names = ["X-Api-Key", "X-Token", "Host", "Authorization", "Cookie", "Origin"]
        serve([("Cache-Control", "max-age=60"), ("Vary", (names + ["Accept"]).joined(separator: ", "))])
        for name in names {
            let fields = [HeaderField(name, "sesame"), HeaderField("Accept", "image/known")]
            for outcome in [CacheOutcome.network, .hit] {
                XCTAssertEqual(try get("/\(name)", fields: fields).outcome, outcome, name)
            }
        }
        let ways = [
            Way(
                name: "user", identity: Way.identity { $0.credential = Credential(user: "sesame", password: "sesame") }),
            Way.trusting("key") {
                $0.tls.clientCertificate = "/c"
                $0.tls.clientKey = "/k"
                $0.tls.clientKeyPassword = "sesame"
            },
            Way(name: "jar", identity: Way.identity { $0.usesCookies = true }, cookies: "a=sesame"),
            Way(name: "proxy", trust: Array("http://sesame:sesame@p.example".utf8), isTrust: true),
        ]
        for way in ways {
            for outcome in [CacheOutcome.network, .hit] {
                XCTAssertEqual(try get(way, "/\(way.name)").outcome, outcome, way.name)
            }
        }
        try store.cache.flush()
        func files(with text: String) throws -> [String] {
            let folder = URL(fileURLWithPath: try XCTUnwrap(directory))
            let names = try XCTUnwrap(FileManager.default.subpaths(atPath: folder.path))
            return names.filter { name in
                let bytes = try? Data(contentsOf: folder.appendingPathComponent(name))
                return bytes?.range(of: Data(text.utf8)) != nil
            }
        }
        XCTAssertFalse(try files(with: "image/known").isEmpty, "the files are read where it is written")
        // As it is, and as Basic sends it.
        for secret in ["sesame", Data("sesame".utf8).base64EncodedString()] {
            XCTAssertEqual(try files(with: secret), [], secret)
        }
    }

    /// Requests that run at the same time share a transfer where all is equal, and nowhere else.
    func testNoPairSharesATransfer() throws {
        let ways = Way.all.filter { $0.trust.isEmpty && $0.cookies == nil }
        var asked = 0
        for first in ways {
            for second in ways {
                let path = "/\(asked)"
                network.answers { _ in nil }
                let pair = try [first, second].map {
                    try start(path, fields: $0.fields, body: $0.body, hooks: $0.hooks, identity: $0.identity)
                }
                let count = first.name == second.name ? 1 : 2
                for number in 0..<count {
                    try network.exchange(asked + number).answer(Reply(200, [], [UInt8(number)]))
                }
                let bodies = try Set(pair.map { try end($0).bytes })
                XCTAssertEqual(bodies.count, count, "\(first.name), \(second.name)")
                asked += count
                XCTAssertEqual(network.count, asked)
            }
        }
    }

    /// Requests join a transfer that asks with the same cookies of the jar, and no other.
    func testOtherCookiesShareNoTransfer() throws {
        let identity = Way.identity { $0.usesCookies = true }
        network.answers { _ in nil }
        network.cookies = Array("a=1".utf8)
        var heard = [try start("/a", identity: identity), try start("/a", identity: identity)]
        // Once this one is there, so are those before it.
        heard.append(try start("/b"))
        try network.exchange(1).answer(Reply(200, [], [0]))
        network.cookies = Array("a=2".utf8)
        heard.append(try start("/a", identity: identity))
        try network.exchange(2).answer(Reply(200, [], [2]))
        try network.exchange(0).answer(Reply(200, [], [1]))
        XCTAssertEqual(try heard.map { try end($0).bytes }, [[1], [1], [0], [2]])
        XCTAssertEqual(network.count, 3)
    }

    /// A jar that changes while a request waits, and changes back: it is sent with what the jar had in between.
    func testAJarThatChangesBackHasNobodyJoin() throws {
        try open { $0.limits.maximumConcurrent = 1 }
        network.answers { _ in nil }
        let first = try start("/first")
        _ = try network.exchange(0)
        network.cookies = Array("a=1".utf8)
        let waiting = try start("/a", .off, usesCookies: true)
        let joined = try start("/a", .off, usesCookies: true)
        // Once this one is there, so are those before it.
        let gone = try start("/gone")
        downloader.cancel(gone.subscription)
        try end(gone)
        network.cookies = Array("a=2".utf8)
        try network.exchange(0).answer(Reply(200, [], [0]))
        let sent = try network.exchange(1)
        XCTAssertEqual(sent.cookies, Array("a=2".utf8))
        network.cookies = Array("a=1".utf8)
        let other = try start("/a", .off, usesCookies: true)
        sent.answer(Reply(200, [], [2]))
        try network.exchange(2).answer(Reply(200, [], [1]))
        XCTAssertEqual(try [first, waiting, joined, other].map { try end($0).bytes }, [[0], [2], [2], [1]])
        XCTAssertEqual(network.count, 3)
    }

    /// The same where it was kept from being sent by a pause, and is sent with what the jar has by then.
    func testWhatBeginsAnewIsSentWithTheCookiesOfThen() throws {
        network.answers { _ in nil }
        network.cookies = Array("a=1".utf8)
        let paused = try start("/a", .off, usesCookies: true)
        let sent = try network.exchange(0)
        network.cookies = Array("a=2".utf8)
        sent.cookies = network.cookies
        sent.beginAnew()
        sent.connect()
        // Once this one is there, it has begun.
        let next = try start("/b")
        try network.exchange(1).answer(Reply(200, [], [0]))
        try end(next)
        network.cookies = Array("a=1".utf8)
        let other = try start("/a", .off, usesCookies: true)
        try network.exchange(2).answer(Reply(200, [], [1]))
        sent.head(200, [], length: 1)
        sent.body([2])
        sent.finish()
        XCTAssertEqual(try [paused, other].map { try end($0).bytes }, [[2], [1]])
    }

    /// Cookies of a redirect's target alone; the same ones share.
    func testOtherCookiesOfALaterHopShareNoTransfer() throws {
        network.answers { request in
            request.url.canonical.hasSuffix("/a") ? Reply(302, [("Location", "/b")]) : nil
        }
        network.setCookies(Array("b=1".utf8), of: "https://a.example/b")
        var heard = [try start("/a", .off, usesCookies: true)]
        let sent = try network.exchange(1)
        heard.append(try start("/a", .off, usesCookies: true))
        let gone = try start("/gone")
        downloader.cancel(gone.subscription)
        try end(gone)
        let before = network.count
        network.setCookies(Array("b=2".utf8), of: "https://a.example/b")
        heard.append(try start("/a", .off, usesCookies: true))
        let other = try network.exchange(before + 1)
        sent.answer(Reply(200, [], [1]))
        other.answer(Reply(200, [], [2]))
        XCTAssertEqual(try heard.map { try end($0).bytes }, [[1], [1], [2]])
    }

    /// Nothing that anybody may have answered is stored, and nothing that is stored answers who trusts anybody.
    func testNothingUnverifiedIsStored() throws {
        serve([("Cache-Control", "public, max-age=60")])
        for url in ["https://a.example/a", "http://a.example/a"] {
            let before = network.count
            for expected in 1...2 {
                _ = try get(Way.unverified, url)
                XCTAssertEqual(network.count, before + expected, url)
            }
            XCTAssertEqual(try get(Way.all[0], url).outcome, .network, url)
            XCTAssertEqual(try get(Way.all[0], url).outcome, .hit, url)
            XCTAssertEqual(try get(Way.unverified, url).outcome, .network, url)
        }
    }

    /// What broke off is continued by whom it belongs to alone, and by that one it is.
    private func checkResumption(by asker: Asker) throws {
        let fields = [("ETag", "\"1\""), ("Cache-Control", "public, max-age=60"), ("Accept-Ranges", "bytes")]
        network.answers { [bytes] _ in Reply(200, fields, bytes).cut(after: 20) }
        for (index, first) in Way.all.enumerated() {
            XCTAssertEqual(try get(first, "/\(index)").failure?.code, .truncated)
        }
        try move(to: asker)
        network.answers { _ in Reply(500) }
        for (index, first) in Way.all.enumerated() {
            for second in Way.all where second.name != first.name {
                _ = try get(second, "/\(index)")
                XCTAssertNil(network.last.fields.first(named: "Range"), "\(first.name) for \(second.name)")
                XCTAssertNil(network.last.fields.first(named: "If-None-Match"))
            }
            _ = try get(first, "/\(index)")
            XCTAssertEqual(network.last.fields.first(named: "Range"), "bytes=20-", "\(first.name) for itself")
        }
    }

    func testNoPairResumesForAnother() throws { try checkResumption(by: .itself) }

    func testNoPairResumesForAnotherOnDisk() throws {
        for asker in Asker.allCases {
            try openAnew(onDisk: true, memory: 0)
            try checkResumption(by: asker)
        }
    }

    /// A HEAD's answer says nothing of what is another's.
    func testAHeadUpdatesWhatIsItsOwn() throws {
        serve([("Cache-Control", "max-age=60"), ("X-Who", "nobody")])
        _ = try get("/a")
        let key = [HeaderField("X-Api-Key", "1")]
        network.answers { _ in Reply(200, [("ETag", "\"1\""), ("X-Who", "somebody"), ("Cache-Control", "max-age=60")]) }
        _ = try end(try start("/a", .reload, method: "HEAD", fields: key))
        XCTAssertEqual(try get("/a").response?.head.first(named: "X-Who"), "nobody")
        _ = try end(try start("/a", .reload, method: "HEAD"))
        XCTAssertEqual(try get("/a").response?.head.first(named: "X-Who"), "somebody")
    }

    /// Whoever asks with other cookies than those that the answer was chosen for gets no stale one, when the server is away.
    func testOtherCookiesGetNoStaleAnswer() throws {
        let identity = Way.identity { $0.usesCookies = true }
        network.cookies = Array("a=1".utf8)
        serve([("Cache-Control", "max-age=60")])
        _ = try end(try start("/a", identity: identity))
        clock.pass(seconds: 61)
        network.answers { _ in nil }
        var heard = try start("/a", identity: identity)
        var asked = try network.exchange(1)
        network.cookies = Array("a=2".utf8)
        asked.answer(.failed(.connectFailed))
        // Asked once more, as whoever it is now.
        asked = try network.exchange(2)
        XCTAssertNil(asked.field("If-None-Match"))
        asked.answer(.failed(.connectFailed))
        XCTAssertEqual(try end(heard).failure?.code, .connectFailed)
        network.cookies = Array("a=1".utf8)
        heard = try start("/a", identity: identity)
        try network.exchange(3).answer(.failed(.connectFailed))
        XCTAssertEqual(try end(heard).outcome, .stale)
    }

    /// Cookies that change between the look-up and the answer: the 304 is about what another has.
    func testA304OfOtherCookiesIsAskedAgain() throws {
        let identity = Way.identity { $0.usesCookies = true }
        network.cookies = Array("a=1".utf8)
        serve([("Cache-Control", "max-age=60")])
        _ = try end(try start("/a", identity: identity))
        clock.pass(seconds: 61)
        network.answers { _ in nil }
        network.cookies = Array("a=1".utf8)
        let heard = try start("/a", identity: identity)
        let second = try network.exchange(1)
        XCTAssertEqual(second.field("If-None-Match"), "\"1\"")
        second.cookies = Array("a=2".utf8)
        second.answer(Reply(304, [("ETag", "\"1\"")]))
        let third = try network.exchange(2)
        XCTAssertNil(third.field("If-None-Match"))
        third.answer(Reply(200, [], [5]))
        XCTAssertEqual(try end(heard).bytes, [5])
    }
}
