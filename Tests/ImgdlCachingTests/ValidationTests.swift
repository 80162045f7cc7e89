import XCTest

@testable import ImgdlCore

/// What is stale (RFC 9111 section 4.3, RFC 5861), and what others make of what is stored.
final class ValidationTests: CachingTestCase {
    private let bytes = [UInt8]((0..<2500).map { UInt8(truncatingIfNeeded: $0 * 7) })

    /// 304 for the tag it was told, else the body.
    private func serve(_ tag: String, _ fields: [(String, String)], _ body: [UInt8]? = nil) {
        let body = body ?? bytes
        network.answers { request in
            let fields = [("ETag", tag)] + fields
            return request.fields.first(named: "If-None-Match") == tag ? Reply(304, fields) : Reply(200, fields, body)
        }
    }

    func testAStaleResponseThatIsStillGoodIsPlayed() throws {
        serve("\"1\"", [("Cache-Control", "max-age=60"), ("X-Round", "1")])
        _ = try get("/a")
        clock.pass(seconds: 61)
        serve("\"1\"", [("Cache-Control", "max-age=60"), ("X-Round", "2")])
        let heard = try start("/a")
        let result = try end(heard)
        XCTAssertEqual(result.outcome, .validated)
        XCTAssertEqual(result.bytes, bytes)
        XCTAssertEqual(result.response?.head.status, 200)
        XCTAssertEqual(result.field("X-Round"), "2")
        XCTAssertEqual(heard.log.filter { !$0.hasPrefix("progress") }, ["started", "response 200", "terminal ok"])
        clock.pass(seconds: 59)
        let fresh = try get("/a")
        XCTAssertEqual(fresh.outcome, .hit)
        XCTAssertEqual(fresh.field("X-Round"), "2")
        XCTAssertEqual(network.count, 2)
    }

    /// By the mark memory knows what other programs have changed: without it the picture would be lost, or served for too long.
    func testThePictureOfAValidatedResponseIsKeptWithTheMarkOfItsEntry() throws {
        serve("\"1\"", [("Cache-Control", "max-age=60")])
        _ = try get("/a")
        clock.pass(seconds: 61)
        let result = try get("/a") { $0.decode = DecodeOptions() }
        XCTAssertEqual(result.outcome, .validated)
        let kept = try XCTUnwrap(store.images?.entries("https://a.example/a").first)
        let found = store.findInMemory("https://a.example/a") { _ in .entry(0, withBody: false) }
        XCTAssertEqual(kept.mark, try XCTUnwrap(found).entry.mark)
        XCTAssertNotEqual(kept.mark, ChangeMark())
    }

    func testAStaleResponseThatHasChangedIsReplaced() throws {
        serve("\"1\"", [("Cache-Control", "max-age=60")])
        _ = try get("/a")
        clock.pass(seconds: 61)
        serve("\"2\"", [("Cache-Control", "max-age=60")], [1, 2])
        let result = try get("/a")
        XCTAssertEqual(result.outcome, .network)
        XCTAssertEqual(result.bytes, [1, 2])
        XCTAssertEqual(try get("/a").bytes, [1, 2])
        XCTAssertEqual(network.count, 2)
    }

    /// The entry goes while the server is asked: it is asked again without a condition, and no retry is used.
    func testWhatIsGoneWhenItsTimeComesIsAskedForAgain() throws {
        serve("\"1\"", [("Cache-Control", "max-age=60")])
        _ = try get("/a")
        clock.pass(seconds: 61)
        network.answers { _ in nil }
        let heard = try start("/a")
        let exchange = try network.exchange(1)
        store.remove(key: "https://a.example/a")
        exchange.answer(Reply(304, [("ETag", "\"1\"")]))
        let second = try network.exchange(2)
        XCTAssertNil(second.field("If-None-Match"))
        second.answer(Reply(200, [], [5]))
        XCTAssertEqual(try end(heard).bytes, [5])
        XCTAssertEqual(heard.result?.metrics.retries, 0)
    }

    /// Section 4.3.4: a 304 about something else says nothing.
    func testA304OfAnotherResponseIsAskedAgain() throws {
        serve("\"1\"", [("Cache-Control", "max-age=60")])
        _ = try get("/a")
        clock.pass(seconds: 61)
        network.answers { request in
            let isConditional = request.fields.first(named: "If-None-Match") != nil
            return isConditional ? Reply(304, [("ETag", "\"other\"")]) : Reply(200, [], [5])
        }
        XCTAssertEqual(try get("/a").bytes, [5])
        XCTAssertEqual(network.count, 3)
    }

    func testWhatA304ForbidsToStoreAnswersWhoHasAskedAndGoes() throws {
        serve("\"1\"", [("Cache-Control", "max-age=60")])
        _ = try get("/a")
        for said in [("Cache-Control", "no-store, max-age=60"), ("Vary", "*")] {
            clock.pass(seconds: 61)
            serve("\"1\"", [("Cache-Control", "max-age=60")].filter { $0.0 != said.0 } + [said])
            let answered = try get("/a")
            XCTAssertEqual(answered.outcome, .validated)
            XCTAssertEqual(answered.bytes, bytes)
            serve("\"1\"", [("Cache-Control", "max-age=60")])
            XCTAssertEqual(try get("/a").outcome, .network, "\(said)")
            XCTAssertNil(network.last.fields.first(named: "If-None-Match"))
            XCTAssertEqual(try get("/a").outcome, .hit)
        }
    }

    /// Who asks next would get the older one as if nothing had come since.
    func testWhatAnAnswerHasOvertakenIsNotUsedWhetherItIsStoredOrNot() throws {
        let fresh = ("Cache-Control", "max-age=1000")
        let varying = [fresh, ("Vary", "Accept-Language")]
        let cases: [(name: String, first: [(String, String)], second: Reply, isKept: Bool)] = [
            ("no-store", [fresh], Reply(200, [("Cache-Control", "no-store")], [2]), false),
            ("star", [fresh], Reply(200, [fresh, ("Vary", "*")], [2]), false),
            ("gone", [fresh], Reply(410, []), false),
            ("not found", [fresh], Reply(404, [("Cache-Control", "max-age=60")]), false),
            ("stored", [fresh], Reply(200, [fresh], [2]), true),
            ("stored without Vary", varying, Reply(200, [fresh], [2]), true),
            ("stored with Vary", [fresh], Reply(200, varying, [2]), true),
        ]
        for (name, first, second, isKept) in cases {
            let path = "/" + name.filter { $0 != " " }
            network.answers { _ in Reply(200, first, [1]) }
            _ = try get(path)
            XCTAssertEqual(try get(path).outcome, .hit, name)
            network.answers { _ in second }
            _ = try get(path, .reload)
            network.answers { _ in Reply(200, [fresh], [3]) }
            XCTAssertEqual(try get(path).bytes, isKept ? [2] : [3], name)
        }
        network.answers { _ in Reply(200, [fresh], [1]) }
        _ = try get("/trouble")
        for status: Int32 in [500, 503, 401, 403, 429] {
            network.answers { _ in Reply(status, []) }
            _ = try get("/trouble", .reload)
            XCTAssertEqual(try get("/trouble").outcome, .hit, "\(status) says nothing of it")
        }
    }

    /// Its server has said meanwhile that it is for one alone: nothing that was asked for before makes it everybody's again.
    func testASlowAnswerDoesNotUndoWhatWasSaidMeanwhile() throws {
        let own = HeaderField("Cookie", "a"), others = [HeaderField("Cookie", "b")]
        let open = ("Cache-Control", "public, max-age=60"), tag = ("ETag", "\"1\"")
        let slow: [(String, String, Reply)] = [
            ("no-store", "GET", Reply(200, [("Cache-Control", "no-store")], [2])), ("404", "GET", Reply(404, [])),
            ("HEAD", "HEAD", Reply(200, [tag])), ("304", "GET", Reply(304, [tag])),
        ]
        for (name, method, reply) in slow {
            let path = "/" + name
            network.answers { [bytes] _ in Reply(200, [open, tag], bytes) }
            _ = try get(path, fields: [own])
            XCTAssertEqual(try get(path, fields: others).outcome, .hit, name)
            network.answers { _ in nil }
            let count = network.count
            let first = try start(
                path, name == "no-store" || name == "404" ? .reload : .refresh, method: method,
                fields: [own, HeaderField("Accept", "a/b")])
            let exchange = try network.exchange(count)
            clock.pass(seconds: 1)
            network.answers { _ in Reply(304, [("Cache-Control", "private, max-age=60"), tag]) }
            XCTAssertEqual(try get(path, .refresh, fields: [own]).outcome, .validated, name)
            XCTAssertEqual(try end(start(path, .only, fields: others)).code, .notCached, name)
            exchange.answer(reply)
            _ = try end(first)
            XCTAssertEqual(try end(start(path, .only, fields: others)).code, .notCached, name)
            XCTAssertEqual(try get(path, fields: [own]).outcome, .hit, "\(name): and it stays as fresh as was said")
        }
    }

    func testAStaleOneIsNotUsedAfterAnAnswerThatIsNotStored() throws {
        serve("\"1\"", [("Cache-Control", "max-age=60")])
        _ = try get("/a")
        clock.pass(seconds: 61)
        network.answers { _ in Reply(200, [("Cache-Control", "no-store")], [2]) }
        XCTAssertEqual(try get("/a").bytes, [2])
        XCTAssertEqual(try end(start("/a", .only, staleLimit: .never)).code, .notCached)
        XCTAssertEqual(try get("/a", .only).outcome, .stale, "what is stored, however old")
    }

    /// A portal at the door answers for everybody, and lets nothing be stored: it may have the server asked again, and no more.
    func testAnAnswerThatIsNotStoredThrowsNothingAway() throws {
        serve("\"1\"", [("Cache-Control", "max-age=1000")])
        _ = try get("/a")
        let portal = [
            Reply(200, [("Cache-Control", "no-store"), ("Content-Type", "text/html")], [9]),
            Reply(302, [("Location", "https://portal.example/"), ("Cache-Control", "no-store")]), Reply(404, []),
        ]
        for reply in portal {
            let page = Reply(200, [("Cache-Control", "no-store")], [9])
            network.answers { $0.url.canonical.contains("portal") ? page : reply }
            _ = try get("/a", .reload)
            serve("\"1\"", [("Cache-Control", "max-age=1000")])
            let after = try get("/a")
            XCTAssertEqual(after.outcome, .validated, "\(reply.status)")
            XCTAssertEqual(after.bytes, bytes)
        }
    }

    /// Two versions would be put together.
    func testAPartIsNotUsedAfterANewerWhole() throws {
        let fresh = ("Cache-Control", "max-age=1000"), range = [HeaderField("Range", "bytes=0-4")]
        network.answers { _ in Reply(206, [fresh, ("Content-Range", "bytes 0-4/2500")], [1, 1, 1, 1, 1]) }
        _ = try get("/a", fields: range)
        XCTAssertEqual(try get("/a", fields: range).outcome, .hit)
        network.answers { [bytes] _ in Reply(200, [fresh], bytes) }
        _ = try get("/a", .reload)
        XCTAssertEqual(try get("/a", fields: range).bytes, Array(bytes[..<5]))
    }

    func testNobodyGetsWhatA304OrAHeadSaysIsForAnotherLanguage() throws {
        for method in ["GET", "HEAD"] {
            let path = "/\(method)"
            serve("\"1\"", [("Cache-Control", "max-age=60")])
            _ = try get(path, fields: [HeaderField("Accept-Language", "de")])
            clock.pass(seconds: 61)
            serve("\"1\"", [("Cache-Control", "max-age=60"), ("Vary", "Accept-Language")])
            _ = try get(path, method: method, fields: [HeaderField("Accept-Language", "de")])
            let before = network.count
            let other = try get(path, fields: [HeaderField("Accept-Language", "fr")])
            XCTAssertEqual(other.outcome, .network, method)
            XCTAssertEqual(network.count, before + 1)
        }
    }

    /// What the server says to a HEAD for one variant is about that one alone: another is neither fresh nor stale by it, and has
    /// its own fields and bytes.
    func testAHEADForOneVariantLeavesTheOtherAsItIs() throws {
        func asking(_ language: String) -> [HeaderField] { [HeaderField("Accept-Language", language)] }
        for (tag, isChanged) in [(nil, false), ("1", false), ("1", true)] as [(String?, Bool)] {
            let path = "/\(tag ?? "")\(isChanged)"
            func serve(_ said: String, _ tag: String?) {
                network.answers { request in
                    let language = request.fields.first(named: "Accept-Language") ?? ""
                    let fields = [("Cache-Control", "max-age=60"), ("Vary", "Accept-Language"), ("X-Said", said)]
                    return Reply(
                        200, fields + (tag.map { [("ETag", "\"\(language)-\($0)\"")] } ?? []), Array(language.utf8))
                }
            }
            func check(_ language: String, _ outcome: CacheOutcome, _ said: String) throws {
                let heard = try get(path, .only, fields: asking(language))
                XCTAssertEqual(heard.outcome, outcome, "\(path) \(language)")
                XCTAssertEqual(heard.field("X-Said"), said, "\(path) \(language)")
                XCTAssertEqual(heard.bytes, Array(language.utf8), "\(path) \(language)")
            }
            serve("to a GET", tag)
            for language in ["de", "en"] { _ = try get(path, fields: asking(language)) }
            clock.pass(seconds: 40)
            serve("to a HEAD", isChanged ? "2" : tag)
            _ = try get(path, .reload, method: "HEAD", fields: asking("en"))
            try check("de", .hit, "to a GET")
            try check("en", isChanged ? .stale : .hit, isChanged ? "to a GET" : "to a HEAD")
            clock.pass(seconds: 30)
            try check("de", .stale, "to a GET")
            try check("en", isChanged ? .stale : .hit, isChanged ? "to a GET" : "to a HEAD")
        }
    }

    /// What is stored for whom a challenge has found out answers them, and is validated in their name.
    func testAChallengeFindsWhatIsStoredForWhomItFindsOut() throws {
        let fields = [("ETag", "\"1\""), ("Cache-Control", "max-age=60")]
        network.answers { [bytes] request in request.credential == nil ? Reply(401) : Reply(200, fields, bytes) }
        let hooks = TestHooks([.authenticate])
        hooks.credential = { _ in .replaced(Credential(user: "u", password: "p")) }
        _ = try get("/a", hooks: hooks)
        XCTAssertEqual(try get("/a", hooks: hooks).outcome, .hit)
        XCTAssertEqual(network.count, 3, "the third was anonymous")
        clock.pass(seconds: 61)
        network.answers { request in request.credential == nil ? Reply(401) : Reply(304, [("ETag", "\"1\"")]) }
        let result = try get("/a", hooks: hooks)
        XCTAssertEqual(result.outcome, .validated)
        XCTAssertEqual(result.bytes, bytes)
        XCTAssertEqual(network.last.fields.first(named: "If-None-Match"), "\"1\"")
    }

    /// Features B18: the caller's own condition is the caller's.
    func testTheCallersConditionIsAnsweredWithNotModified() throws {
        serve("\"1\"", [("Cache-Control", "max-age=60"), ("X-Kept", "1")])
        let condition = [HeaderField("If-None-Match", "\"1\"")]
        let fromServer = try get("/a", fields: condition)
        XCTAssertEqual(fromServer.code, .notModified)
        _ = try get("/a")
        let fromCache = try get("/a", fields: condition)
        XCTAssertEqual(fromCache.code, .notModified)
        XCTAssertEqual(fromCache.field("X-Kept"), "1")
        XCTAssertEqual(fromCache.response?.head.status, 304)
        XCTAssertEqual(network.count, 2)
        clock.pass(seconds: 61)
        XCTAssertEqual(try get("/a", fields: condition).code, .notModified)
        XCTAssertEqual(network.count, 3)
    }

    func testARangeOfWhatIsStored() throws {
        serve("\"1\"", [("Cache-Control", "max-age=60")])
        _ = try get("/a")
        let part = try get("/a", fields: [HeaderField("Range", "bytes=10-1999")])
        XCTAssertEqual(part.response?.head.status, 206)
        XCTAssertEqual(part.bytes, Array(bytes[10...1999]))
        XCTAssertEqual(network.count, 1)
    }

    /// RFC 9111 section 3.3: what came of a body answers ranges within it, and never the whole.
    func testARangeThatTheServerGave() throws {
        let fields = [("Cache-Control", "max-age=60"), ("Content-Range", "bytes 100-199/\(bytes.count)")]
        network.answers { [bytes] _ in Reply(206, fields, Array(bytes[100..<200])) }
        _ = try get("/a", fields: [HeaderField("Range", "bytes=100-199")])
        let part = try get("/a", fields: [HeaderField("Range", "bytes=110-119")])
        XCTAssertEqual(part.response?.head.status, 206)
        XCTAssertEqual(part.response?.head.outcome, .hit)
        XCTAssertEqual(part.field("Content-Range"), "bytes 110-119/\(bytes.count)")
        XCTAssertEqual(part.bytes, Array(bytes[110..<120]))
        XCTAssertEqual(network.count, 1)
        _ = try get("/a", fields: [HeaderField("Range", "bytes=150-200")])
        XCTAssertEqual(network.count, 2)
        serve("\"1\"", [])
        XCTAssertEqual(try get("/a").bytes, bytes)
        XCTAssertEqual(network.count, 3)
    }

    /// A part of another length than its Content-Range says reaches who asked, and nobody else.
    func testAPartThatIsNotWhatItSays() throws {
        let parts = [
            ("9223372036854775800-9223372036854775806/9223372036854775807", "bytes=-5"), ("100-199/*", "bytes=100-199"),
            ("0-9223372036854775806/9223372036854775807", "bytes=5-9223372036854775807"),
        ]
        for (index, (content, asked)) in parts.enumerated() {
            let fields = [("Cache-Control", "max-age=60"), ("Content-Range", "bytes \(content)")]
            network.answers { [bytes] _ in Reply(206, fields, Array(bytes[100..<150])) }
            let range = [HeaderField("Range", asked)]
            for count in 1...2 {
                let part = try get("/\(index)", fields: range)
                XCTAssertEqual(part.response?.head.status, 206)
                XCTAssertEqual(part.bytes, Array(bytes[100..<150]))
                XCTAssertEqual(network.count, 2 * index + count)
            }
            XCTAssertEqual(try get("/\(index)", .only, fields: range).code, .notCached, content)
        }
    }

    // MARK: RFC 5861

    func testStaleWhileRevalidateAnswersAtOnceAndValidatesOnce() throws {
        serve("\"1\"", [("Cache-Control", "max-age=60, stale-while-revalidate=600")])
        _ = try get("/a")
        clock.pass(seconds: 100)
        network.answers { _ in nil }
        for _ in 0..<3 {
            let result = try get("/a")
            XCTAssertEqual(result.outcome, .stale)
            XCTAssertEqual(result.bytes, bytes)
        }
        let background = try network.exchange(1)
        XCTAssertEqual(background.request.priority, .low)
        XCTAssertEqual(background.field("If-None-Match"), "\"1\"")
        XCTAssertEqual(network.count, 2, "one at a time")
        background.answer(Reply(304, [("ETag", "\"1\""), ("Cache-Control", "max-age=60")]))
        // What comes later to the engine comes after it.
        network.answers { _ in Reply(200, [], [1]) }
        _ = try get("/other")
        XCTAssertEqual(try get("/a").outcome, .hit)
        XCTAssertEqual(network.count, 3)
    }

    /// What the request would not take does not replace what is stored, and no more of a body comes than it takes.
    func testABackgroundValidationTakesWhatItsRequestTakes() throws {
        let lasting = [("Cache-Control", "max-age=600")]
        let html = lasting + [("Content-Type", "text/html")]
        let refused: [(String, Reply)] = [
            ("404", Reply(404, lasting, [1])), ("410", Reply(410, [], [1])), ("500", Reply(500, lasting, [1])),
            ("type", Reply(200, html, [1])), ("length", Reply(200, lasting, Array(repeating: 1, count: 4000))),
            ("body", Reply(200, lasting, Array(repeating: 1, count: 4000)).withoutLength()),
        ]
        func picture(_ name: String) throws -> Ended {
            try get("/" + name) {
                $0.validation.contentTypes = ["image/*"]
                $0.maximumBodyBytes = 3000
            }
        }
        for (name, reply) in refused {
            let type = [("Content-Type", "image/png")]
            serve("\"1\"", [("Cache-Control", "max-age=60, stale-while-revalidate=600")] + type)
            _ = try picture(name)
            clock.pass(seconds: 100)
            let before = network.count
            network.answers { _ in reply }
            XCTAssertEqual(try picture(name).outcome, .stale, name)
            _ = try get("/nothing", .only)
            XCTAssertEqual(network.count, before + 1, name)
            let after = try picture(name)
            XCTAssertEqual(after.outcome, .stale, name)
            XCTAssertEqual(after.bytes, bytes, name)
            _ = try get("/nothing", .only)
            serve("\"2\"", [("Cache-Control", "max-age=60")] + type, [1, 2])
            _ = try picture(name)
            _ = try get("/nothing", .only)
            XCTAssertEqual(try picture(name).bytes, [1, 2], name)
        }
    }

    /// Who follows redirects does not look at their type.
    func testAPictureThatHasMovedIsFoundInTheBackground() throws {
        let type = ("Content-Type", "image/png"), page = ("Content-Type", "text/html")
        func picture() throws -> Ended { try get("/moves") { $0.validation.contentTypes = ["image/*"] } }
        serve("\"1\"", [("Cache-Control", "max-age=60, stale-while-revalidate=600"), type])
        _ = try picture()
        clock.pass(seconds: 100)
        network.answers { [bytes] request in
            request.url.canonical.hasSuffix("/moves")
                ? Reply(301, [("Location", "https://a.example/new"), ("Cache-Control", "max-age=600"), page])
                : Reply(200, [("Cache-Control", "max-age=600"), type], bytes + [7])
        }
        XCTAssertEqual(try picture().outcome, .stale)
        _ = try get("/nothing", .only)
        XCTAssertEqual(try picture().bytes, bytes + [7])
    }

    /// Who does not follow a redirect takes it for a picture neither in the foreground nor in the background; who wants the
    /// body alone takes it, where it has the type that is asked for.
    func testARedirectThatIsNotFollowedTakesThePlaceOfAPictureNowhere() throws {
        let type = ("Content-Type", "image/png"), page = ("Content-Type", "text/html")
        for isPicture in [true, false] {
            for isTyped in [true, false] {
                let path = "/\(isPicture)/\(isTyped)"
                func ask(_ mode: CacheMode = .use) throws -> Ended {
                    let heard = try start(path, mode, followsRedirects: false) {
                        if isPicture { $0.decode = DecodeOptions() }
                        if isTyped { $0.validation.contentTypes = ["image/*"] }
                    }
                    return try end(heard)
                }
                serve("\"1\"", [("Cache-Control", "max-age=60, stale-while-revalidate=600"), type])
                XCTAssertEqual(try ask().code, .ok, path)
                clock.pass(seconds: 100)
                let before = network.count
                network.answers { _ in
                    Reply(301, [("Location", "https://a.example/new"), ("Cache-Control", "max-age=600"), page], [1])
                }
                XCTAssertEqual(try ask().outcome, .stale, path)
                _ = try get("/nothing", .only)
                XCTAssertEqual(network.count, before + 1, "\(path): it was validated")
                let stored = try ask(.only)
                let takesRedirect = !isPicture && !isTyped
                XCTAssertEqual(stored.code, .ok, path)
                XCTAssertEqual(stored.bytes, takesRedirect ? [1] : bytes, path)
                XCTAssertEqual(try ask(.reload).code == .ok, takesRedirect, "\(path): as in the foreground")
            }
        }
    }

    func testWhoWantsToHearOfAChangeHearsOfItWithinStaleWhileRevalidate() throws {
        let window = [("Cache-Control", "max-age=0, stale-while-revalidate=600")]
        for isPicture in [false, true] {
            let path = "/\(isPicture)"
            func ask(ignoresCached: Bool = true) throws -> Ended {
                try get(path) {
                    $0.ignoresCached = ignoresCached
                    $0.decode = isPicture ? DecodeOptions() : nil
                    $0.wantsBody = !isPicture
                }
            }
            let before = network.count
            serve("\"1\"", window)
            _ = try ask(ignoresCached: false)
            XCTAssertEqual(store.images?.entries("https://a.example" + path).isEmpty, !isPicture)
            clock.pass(seconds: 100)
            XCTAssertEqual(try ask().code, .notModified)
            XCTAssertEqual(network.count, before + 2, "it was asked, and nothing is asked in the background")
            serve("\"2\"", window, [1, 2])
            let changed = try ask()
            XCTAssertEqual(changed.code, .ok)
            if !isPicture { XCTAssertEqual(changed.bytes, [1, 2]) }
            XCTAssertEqual(try ask().code, .notModified)
            XCTAssertEqual(network.count, before + 4)
        }
    }

    func testAStaleAnswerToARangeAHeadOrAConditionIsValidated() throws {
        let window = [("Cache-Control", "max-age=60, stale-while-revalidate=600")]
        let part = [HeaderField("Range", "bytes=0-9")]
        let condition = [HeaderField("If-None-Match", "\"1\"")]
        for (path, method, fields) in [
            ("/range", "GET", part), ("/head", "HEAD", []), ("/condition", "GET", condition),
        ] {
            serve("\"1\"", window)
            _ = try get(path)
            clock.pass(seconds: 100)
            serve("\"2\"", window, [1, 2])
            let before = network.count
            let stale = try get(path, method: method, fields: fields)
            XCTAssertEqual(stale.code, path == "/condition" ? .notModified : .ok, path)
            let background = try network.exchange(before)
            XCTAssertEqual(background.request.method, "GET", path)
            XCTAssertNil(background.field("Range"), path)
            XCTAssertEqual(background.field("If-None-Match"), "\"1\"", path)
            _ = try get("/nothing", .only)
            let whole = try get(path)
            XCTAssertEqual(whole.outcome, .hit, path)
            XCTAssertEqual(whole.bytes, [1, 2], path)
            XCTAssertEqual(network.count, before + 1, path)
        }
    }

    /// The whole may be much more than anybody wants.
    func testAPartThatIsStoredAloneIsValidatedAsSuch() throws {
        let range = [HeaderField("Range", "bytes=100-199")]
        let fields = [
            ("Cache-Control", "max-age=60, stale-while-revalidate=600"), ("ETag", "\"1\""),
            ("Content-Range", "bytes 100-199/2500"),
        ]
        network.answers { [bytes] _ in Reply(206, fields, Array(bytes[100..<200])) }
        _ = try get("/a", fields: range)
        clock.pass(seconds: 100)
        XCTAssertEqual(try get("/a", fields: range).outcome, .stale)
        let background = try network.exchange(1)
        XCTAssertEqual(background.field("Range"), "bytes=100-199")
        _ = try get("/nothing", .only)
        let fresh = try get("/a", fields: range)
        XCTAssertEqual(fresh.outcome, .hit)
        XCTAssertEqual(fresh.bytes, Array(bytes[100..<200]))
        XCTAssertEqual(network.count, 2)
    }

    func testABackgroundTransferHoldsUpNoShutdown() throws {
        serve("\"1\"", [("Cache-Control", "max-age=60, stale-while-revalidate=600")])
        _ = try get("/a")
        clock.pass(seconds: 100)
        network.answers { _ in nil }
        _ = try get("/a")
        _ = try network.exchange(1)
        let isOver = expectation(description: "shut down")
        downloader.shutDown(cancelling: false) { isOver.fulfill() }
        wait(for: [isOver], timeout: 20)
        XCTAssertEqual(network.cancelled, 1)
    }

    func testStaleIfError() throws {
        serve("\"1\"", [("Cache-Control", "max-age=60, stale-if-error=600")])
        _ = try get("/a")
        clock.pass(seconds: 100)
        network.answers { _ in Reply(503, [], [1, 2, 3]) }
        let instead = try get("/a")
        XCTAssertEqual(instead.outcome, .stale)
        XCTAssertEqual(instead.bytes, bytes)
        network.answers { _ in .failed(.connectFailed) }
        XCTAssertEqual(try get("/a").outcome, .stale)
        clock.pass(seconds: 1000)
        XCTAssertEqual(try get("/a").code, .connectFailed)
        network.answers { _ in Reply(503) }
        XCTAssertEqual(try get("/a").code, .invalidStatus)
        XCTAssertEqual(network.count, 5)
    }

    /// A connection that comes to nothing in time is none.
    func testStaleIfTheServerDoesNotAnswerInTime() throws {
        try open { $0.limits.connectTimeout = 1 }
        serve("\"1\"", [("Cache-Control", "max-age=60, stale-if-error=600")])
        _ = try get("/a")
        clock.pass(seconds: 100)
        network.answers { _ in nil }
        let heard = try start("/a")
        _ = try network.exchange(1)
        clock.pass(milliseconds: 2_000)
        downloader.setMaximumConcurrent(7)
        XCTAssertEqual(try end(heard).outcome, .stale)
    }

    func testRetriesComeBeforeWhatIsStale() throws {
        serve("\"1\"", [("Cache-Control", "max-age=60, stale-if-error=600")])
        _ = try get("/a")
        clock.pass(seconds: 100)
        network.answers { _ in .failed(.connectionLost) }
        let result = try get("/a") {
            $0.retry.count = 2
            $0.retry.base = 0
        }
        XCTAssertEqual(result.outcome, .stale)
        XCTAssertEqual(network.count, 4)
    }

    /// The first that has no attempt left has it, and all that share its transfer.
    func testWhoHasNoRetriesHasWhatIsStaleThoughOthersHaveSome() throws {
        serve("\"1\"", [("Cache-Control", "max-age=60, stale-if-error=600")])
        _ = try get("/a")
        clock.pass(seconds: 100)
        network.answers { _ in nil }
        let heard = [
            try start("/a"),
            try start("/a") {
                $0.retry.count = 2
                $0.retry.base = 0
            },
        ]
        try network.exchange(1).answer(.failed(.connectionLost))
        for one in heard { XCTAssertEqual(try end(one).outcome, .stale) }
        XCTAssertEqual(network.count, 2)
    }

    // MARK: IgnoreCachedResponse (features O3)

    func testWhatHasNotChangedIsNotModified() throws {
        serve("\"1\"", [("Cache-Control", "max-age=60")])
        _ = try get("/a")
        func look(_ mode: CacheMode = .use) throws -> ErrorCode {
            try get("/a", mode) {
                $0.ignoresCached = true
                $0.decode = DecodeOptions()
                $0.events = []
            }.code
        }
        XCTAssertEqual(try look(), .notModified, "a hit")
        clock.pass(seconds: 61)
        XCTAssertEqual(try look(), .notModified, "a 304")
        network.answers { [bytes] _ in Reply(200, [("ETag", "\"2\""), ("Cache-Control", "max-age=60")], bytes) }
        XCTAssertEqual(try look(.reload), .notModified, "the same bytes")
        clock.pass(seconds: 61)
        XCTAssertEqual(try look(), .notModified, "the same bytes after a condition")
        XCTAssertEqual(codec.decoderCount, 0, "nothing is decoded")
        network.answers { _ in Reply(200, [("Cache-Control", "max-age=60")], [1, 2, 3]) }
        XCTAssertEqual(try look(.reload), .ok)
        let changed = [UInt8](repeating: 9, count: 3)
        network.answers { _ in Reply(200, [("Cache-Control", "max-age=60")], changed) }
        XCTAssertEqual(try look(.reload), .ok, "as long, and different")
        XCTAssertEqual(try get("/a").bytes, changed)
    }

    func testOthersOfTheSameTransferGetWhatHasNotChanged() throws {
        serve("\"1\"", [("Cache-Control", "max-age=60")])
        _ = try get("/a")
        store.hold()
        let ignoring = try start("/a") { $0.ignoresCached = true }
        XCTAssertTrue(store.waitUntilHeld(1))
        let other = try start("/a")
        // The engine has heard of it before the answer comes.
        downloader.setMaximumConcurrent(7)
        let marker = try start("/marker")
        XCTAssertTrue(store.waitUntilHeld(2))
        store.release()
        XCTAssertEqual(try end(ignoring).code, .notModified)
        XCTAssertEqual(try end(other).code, .ok)
        XCTAssertTrue(other.result?.bytes == bytes)
        try end(marker)
    }

    // MARK: Other methods

    /// Section 4.4.
    func testUnsafeMethodsInvalidate() throws {
        func fill() throws {
            network.answers { _ in Reply(200, [("Cache-Control", "max-age=600")], [1]) }
            for path in ["/a", "/b", "/c", "/d"] { _ = try get(path, .reload) }
        }
        try fill()
        network.answers { _ in
            Reply(200, [("Location", "/b"), ("Content-Location", "https://a.example/c")])
        }
        _ = try get("/a", .off, method: "POST")
        XCTAssertEqual(try get("/d", .only).outcome, .hit)
        for path in ["/a", "/b", "/c"] { XCTAssertEqual(try get(path, .only).code, .notCached, path) }
        try fill()
        network.answers { _ in Reply(500, [("Location", "/b")]) }
        _ = try get("/a", method: "DELETE")
        for path in ["/a", "/b"] { XCTAssertEqual(try get(path, .only).outcome, .hit, "an error changes nothing") }
        network.answers { _ in Reply(200, [("Location", "https://elsewhere.example/b")]) }
        _ = try get("/a", method: "PUT")
        XCTAssertEqual(try get("/a", .only).code, .notCached)
    }

    /// A program that is offline neither changes what a server has, nor loses what it has of it.
    func testNothingIsSentInModeOnly() throws {
        network.answers { _ in Reply(200, [("Cache-Control", "max-age=600")], [1]) }
        _ = try get("/a")
        let count = network.count
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            XCTAssertEqual(try get("/a", .only, method: method).code, .notCached, method)
        }
        XCTAssertEqual(network.count, count)
        XCTAssertEqual(try get("/a", .only).outcome, .hit)
    }

    /// The server may have made it before it changed anything.
    func testAGETThatBeganBeforeAPUTIsNotStored() throws {
        for onDisk in [false, true] {
            for hasHead in [false, true] {
                try open(onDisk: onDisk) { _ in }
                network.answers { request in request.method == "PUT" ? Reply() : nil }
                let count = network.count
                let slow = try start("/\(hasHead)")
                let exchange = try network.exchange(count)
                if hasHead {
                    exchange.connect()
                    exchange.head(200, [HeaderField("Cache-Control", "max-age=600")], length: 1)
                }
                XCTAssertEqual(try get("/\(hasHead)", method: "PUT").code, .ok)
                if hasHead {
                    exchange.body([1])
                    exchange.finish()
                } else {
                    exchange.answer(Reply(200, [("Cache-Control", "max-age=600")], [1]))
                }
                XCTAssertEqual(try end(slow).bytes, [1])
                XCTAssertEqual(try get("/\(hasHead)", .only).code, .notCached)
                network.answers { _ in Reply(200, [("Cache-Control", "max-age=600")], [2]) }
                XCTAssertEqual(try get("/\(hasHead)").bytes, [2])
                XCTAssertEqual(try get("/\(hasHead)", .only).bytes, [2], "what began afterwards is stored")
            }
        }
    }

    func testAGETThatEndsAfterAReloadDoesNotTakeItsPlace() throws {
        func reply(_ second: Int, _ byte: UInt8) -> Reply {
            let date = HTTPDate.text(clock.wallTime() - 100 + Int64(second))
            return Reply(200, [("Cache-Control", "max-age=600"), ("Date", date)], [byte])
        }
        for onDisk in [false, true] {
            try open(onDisk: onDisk) { _ in }
            network.answers { _ in nil }
            let count = network.count
            let path = "/ends-later-\(onDisk)"
            let slow = try start(path)
            let exchange = try network.exchange(count)
            let reload = try start(path, .reload)
            try network.exchange(count + 1).answer(reply(2, 2))
            XCTAssertEqual(try end(reload).bytes, [2])
            exchange.answer(reply(1, 1))
            XCTAssertEqual(try end(slow).bytes, [1], "who asked gets what came")
            XCTAssertEqual(try get(path, .only).bytes, [2])
        }
    }

    /// Section 4.3.5.
    func testAHEADFreshensWhatIsStored() throws {
        serve("\"1\"", [("Cache-Control", "max-age=60")])
        _ = try get("/a")
        clock.pass(seconds: 61)
        XCTAssertEqual(try get("/a", method: "HEAD").outcome, .network)
        XCTAssertEqual(try get("/a").outcome, .hit)
        XCTAssertEqual(try get("/a", method: "HEAD").outcome, .hit)
        XCTAssertEqual(network.count, 2)
    }
}
