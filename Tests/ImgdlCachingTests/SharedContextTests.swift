import XCTest

@testable import ImgdlCore

/// Requests of one security context share what runs, what failed and what is stored, however they are spelled.
final class SharedContextTests: ContextTestCase {
    private func remembering() throws {
        try open {
            $0.limits.failureLifetime = 60_000
            $0.defaults.cacheMode = .off
        }
    }

    func testOneTransferIsForBothSpellings() throws {
        for (index, pair) in Way.spelledTwice.enumerated() {
            for ways in [[pair.one, pair.other], [pair.other, pair.one]] {
                let before = network.count
                network.answers { _ in nil }
                let path = "/\(index)-\(ways[0].name)"
                let heard = try ways.map { try start($0, path, mode: .off) }
                // Once this one is there, so are those before it.
                let last = try start("/last")
                try network.exchange(before).answer(Reply(200, [], [1]))
                try network.exchange(before + 1).answer(Reply(200, [], [2]))
                XCTAssertEqual(try (heard + [last]).map { try end($0).bytes }, [[1], [1], [2]], path)
                XCTAssertEqual(network.count, before + 2, path)
            }
        }
    }

    func testWhatIsStoredAnswersBothSpellings() throws {
        serveEach([("Cache-Control", "max-age=60")])
        for (index, pair) in Way.spelledTwice.enumerated() {
            let own = try get(pair.one, "/\(index)")
            let other = try get(pair.other, "/\(index)")
            XCTAssertEqual(own.outcome, .network)
            XCTAssertEqual(other.outcome, .hit, pair.other.name)
            XCTAssertEqual(other.bytes, own.bytes)
        }
    }

    func testOneFailureIsForBothSpellings() throws {
        try remembering()
        network.answers { _ in .failed(.protocolError) }
        for (index, pair) in Way.spelledTwice.enumerated() {
            XCTAssertEqual(try get(pair.one, "/\(index)", mode: .off).failure?.code, .protocolError)
            let before = network.count
            XCTAssertEqual(try get(pair.other, "/\(index)", mode: .off).failure?.code, .blacklisted, pair.other.name)
            XCTAssertEqual(network.count, before)
        }
    }

    /// What failed in one context is remembered for the same alone; where a hook says what is asked, for nobody.
    func testNoPairSharesAFailure() throws {
        try remembering()
        network.answers { _ in .failed(.protocolError) }
        var told = 0
        for (index, first) in Way.all.enumerated() where first.trust.isEmpty {
            for (number, second) in Way.all.enumerated() where second.trust.isEmpty {
                let path = "/\(index)-\(number)"
                XCTAssertEqual(try get(first, path, mode: .off).failure?.code, .protocolError)
                let isTold = first.name == second.name && first.hooks == nil
                let heard = try get(second, path, mode: .off).failure?.code
                XCTAssertEqual(heard, isTold ? .blacklisted : .protocolError, "\(first.name) for \(second.name)")
                told += isTold ? 1 : 0
            }
        }
        XCTAssertEqual(told, Way.all.count - 2)
    }

    /// A Cookie field is what the server gets, whoever wrote it.
    func testOneFailureIsForGivenCookiesAndThoseOfTheJar() throws {
        try remembering()
        network.answers { _ in .failed(.protocolError) }
        let given = Way(name: "given", fields: [HeaderField("Cookie", "a=1")])
        let jar = Way(name: "jar", identity: Way.identity { $0.usesCookies = true }, cookies: "Cookie: a=1")
        for (first, second) in [(given, jar), (jar, given)] {
            XCTAssertEqual(try get(first, "/\(first.name)", mode: .off).failure?.code, .protocolError)
            XCTAssertEqual(try get(second, "/\(first.name)", mode: .off).failure?.code, .blacklisted)
        }
        XCTAssertEqual(network.count, 2)
    }

    /// A jar that changes while a request waits, and changes back: what failed was asked with what it had in between.
    func testAFailureIsOfTheCookiesThatWereSent() throws {
        try open {
            $0.limits.failureLifetime = 60_000
            $0.limits.maximumConcurrent = 1
        }
        network.answers { _ in nil }
        let first = try start("/first")
        _ = try network.exchange(0)
        network.cookies = Array("a=1".utf8)
        let waiting = try start("/a", .off, usesCookies: true)
        // Once this one is there, so is that before it.
        let gone = try start("/gone")
        downloader.cancel(gone.subscription)
        try end(gone)
        network.cookies = Array("a=2".utf8)
        try network.exchange(0).answer(Reply(200, [], [0]))
        try end(first)
        try network.exchange(1).answer(.failed(.protocolError))
        XCTAssertEqual(try end(waiting).failure?.code, .protocolError)
        network.answers { _ in Reply(200, [], [1]) }
        network.cookies = Array("a=1".utf8)
        XCTAssertEqual(try end(try start("/a", .off, usesCookies: true)).bytes, [1])
    }
}
