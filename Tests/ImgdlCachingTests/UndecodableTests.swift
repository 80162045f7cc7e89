import ImgdlCache
import XCTest

@testable import ImgdlCore

/// What turned out to be no picture is not answered with as if it were good.
final class UndecodableTests: CachingTestCase {
    private let bytes = [UInt8]((0..<2500).map { UInt8(truncatingIfNeeded: $0 * 7) })

    /// 304 for its tag, else the body, fresh for a minute.
    private func serve() {
        network.answers { [bytes] request in
            let fields = [("ETag", "\"1\""), ("Cache-Control", "max-age=60, stale-if-error=600")]
            return request.fields.first(named: "If-None-Match") == "\"1\""
                ? Reply(304, fields) : Reply(200, fields, bytes)
        }
    }

    private func picture(_ mode: CacheMode = .use, _ change: (inout SubscriberOptions) -> Void = { _ in }) throws
        -> Ended
    {
        try get("/a", mode) {
            $0.decode = DecodeOptions()
            $0.wantsBody = false
            change(&$0)
        }
    }

    private var wasConditional: Bool { network.last.fields.first(named: "If-None-Match") != nil }

    func testItIsValidatedAndThenFetchedAnew() throws {
        for onDisk in [false, true] {
            let before = network.count
            try open(onDisk: onDisk) { _ in }
            serve()
            codec.judges { _, _, isWhole in isWhole ? .badImageData : nil }
            XCTAssertEqual(try picture().code, .badImageData)
            XCTAssertEqual(network.count, before + 1)
            XCTAssertEqual(try picture().code, .badImageData)
            XCTAssertTrue(wasConditional)
            XCTAssertEqual(network.count, before + 2)
            // The server stands by what is no picture here: it may have been damaged on the way.
            codec.judges(nil)
            let healed = try picture()
            XCTAssertEqual(healed.outcome, .network)
            XCTAssertFalse(wasConditional)
            XCTAssertEqual(healed.code, .ok)
            XCTAssertEqual(try picture().outcome, .hit)
            XCTAssertEqual(network.count, before + 3)
        }
    }

    /// Before its last byte, too: what came is not kept to be continued.
    func testWhatFailsEarlyLeavesNothing() throws {
        network.answers { _ in nil }
        codec.judges { _, count, _ in count > 0 ? .badImageData : nil }
        let heard = try start("/a") {
            $0.decode = DecodeOptions()
            $0.wantsBody = false
        }
        let exchange = try network.exchange(0)
        exchange.connect()
        let fields = [("ETag", "\"1\""), ("Cache-Control", "max-age=60"), ("Content-Length", "2500")]
        exchange.head(200, fields.map { HeaderField($0.0, $0.1) }, length: 2500)
        exchange.body(Array(bytes[..<1500]))
        XCTAssertEqual(try end(heard).code, .badImageData)
        serve()
        codec.judges(nil)
        XCTAssertEqual(try picture().outcome, .network)
        XCTAssertNil(network.last.fields.first(named: "Range"))
        XCTAssertFalse(wasConditional)
    }

    /// The beginning that was kept is bad: it is not continued for ever.
    func testABadBeginningIsNotContinuedAgain() throws {
        network.answers { [bytes] request in
            let fields = [("ETag", "\"1\""), ("Date", "Tue, 25 Nov 2025 00:00:00 GMT")]
            guard request.fields.first(named: "Range") != nil else { return Reply(200, fields, bytes).cut(after: 1500) }
            let content = ("Content-Range", "bytes 1500-2499/2500")
            return Reply(206, fields + [content], Array(bytes[1500...]))
        }
        XCTAssertEqual(try get("/a").code, .truncated)
        codec.judges { _, _, isWhole in isWhole ? .badImageData : nil }
        let resumed = try picture()
        XCTAssertEqual(resumed.outcome, .resumed)
        XCTAssertEqual(resumed.code, .badImageData)
        codec.judges(nil)
        serve()
        XCTAssertEqual(try picture().code, .ok)
        XCTAssertNil(network.last.fields.first(named: "Range"))
        XCTAssertFalse(wasConditional)
    }

    func testTheBodyAloneIsValidatedToo() throws {
        serve()
        codec.judges { _, _, isWhole in isWhole ? .truncated : nil }
        let both = try get("/a") { $0.decode = DecodeOptions() }
        XCTAssertEqual(both.code, .truncated)
        let body = try get("/a")
        XCTAssertEqual(body.outcome, .validated)
        XCTAssertEqual(body.bytes, bytes)
        XCTAssertEqual(try get("/a").outcome, .hit, "the server has said that it is good")
    }

    /// A picture that is found bad in the cache: stored for its body, by another program, say.
    func testWhatIsFoundBadInTheCacheIsValidated() throws {
        serve()
        _ = try get("/a")
        codec.judges { _, _, isWhole in isWhole ? .badImageData : nil }
        let hit = try picture()
        XCTAssertEqual(hit.outcome, .hit)
        XCTAssertEqual(hit.code, .badImageData)
        XCTAssertEqual(try get("/a").outcome, .validated)
    }

    /// What is no picture stands in for no server, and nothing of it is as good as an error.
    func testItDoesNotStandIn() throws {
        serve()
        codec.judges { _, _, isWhole in isWhole ? .badImageData : nil }
        _ = try picture()
        network.answers { _ in .failed(.connectFailed) }
        XCTAssertEqual(try picture().code, .connectFailed)
        XCTAssertEqual(try picture(.only).code, .badImageData, "who asks for what is stored alone gets it")
    }

    /// One request's limits, and a hook's own bytes, spoil nothing for others.
    func testWhatIsNotAboutTheBytesChangesNothing() throws {
        for code in [ErrorCode.pixelLimit, .memoryLimit, .decodeTimeout] {
            serve()
            codec.judges { _, _, isWhole in isWhole ? code : nil }
            XCTAssertEqual(try picture(.reload).code, code)
            codec.judges(nil)
            XCTAssertEqual(try picture().outcome, .hit)
        }
        let hooks = TestHooks([.transformBody])
        hooks.body = { _ in .replaced([7, 7]) }
        codec.judges { _, _, isWhole in isWhole ? .badImageData : nil }
        let changed = try get("/a", hooks: hooks) { $0.decode = DecodeOptions() }
        XCTAssertEqual(changed.code, .badImageData)
        XCTAssertEqual(try get("/a").outcome, .hit)
    }

    /// One picture of it is good, another way to decode it is not.
    func testAnotherPictureOfItGoesWithTheBody() throws {
        serve()
        XCTAssertEqual(try picture().code, .ok)
        codec.judges { options, _, isWhole in options.pixelFormat == .bgra8 && isWhole ? .badImageData : nil }
        let other = try picture { $0.decode?.pixelFormat = .bgra8 }
        XCTAssertEqual(other.outcome, .hit)
        XCTAssertEqual(other.code, .badImageData)
        let first = try picture()
        XCTAssertEqual(first.outcome, .validated)
        XCTAssertEqual(first.code, .ok)
    }
}
