import ImgdlCache
import XCTest

@testable import ImgdlCore

/// Issue 20: a picture that is still being made when what it is of goes from the cache does not come back.
final class LatePictureTests: CachingTestCase {
    /// How it comes to what the picture is made of.
    private enum Way: CaseIterable { case hit, fetched, validated, stale, joined }

    private static let large = [UInt8](repeating: 1, count: 2_500)
    private static let small = [UInt8](repeating: 2, count: 100)
    private let fields = [("Cache-Control", "max-age=60, stale-while-revalidate=600"), ("ETag", "\"1\"")]

    private var held: [Heard] = []
    private var gate = Gate()

    override func tearDownWithError() throws {
        // Where the test has failed meanwhile nobody else opens it.
        gate.open()
        held = []
        try super.tearDownWithError()
    }

    /// For what differs between the versions a field says which it is.
    private func serve(_ bytes: [UInt8], _ version: String) {
        network.answers { [fields] request in
            let fields = fields + [("X-Version", version)]
            return request.fields.first(named: "If-None-Match") == nil ? Reply(200, fields, bytes) : Reply(304, fields)
        }
    }

    private func wantPicture(_ options: inout SubscriberOptions) {
        options.decode = DecodeOptions()
        options.wantsBody = false
    }

    private func picture(_ mode: CacheMode) throws -> Ended { try get("/a", mode) { wantPicture(&$0) } }

    /// The decoders of large bodies wait at the gate.
    private func hold(_ way: Way) throws -> Gate {
        let gate = Gate()
        self.gate = gate
        codec.judges { _, count, isWhole in
            if isWhole, count == Self.large.count { gate.pass() }
            return nil
        }
        serve(Self.large, "1")
        if way != .fetched { _ = try get("/a") }
        if way == .validated || way == .stale { clock.pass(seconds: 61) }
        if way == .stale { network.answers { _ in nil } }
        let mode = way == .validated ? CacheMode.refresh : .use
        held = [try start("/a", mode) { wantPicture(&$0) }]
        XCTAssertTrue(gate.waitUntilHeld(), "\(way)")
        if way == .joined {
            held.append(
                try start("/a") {
                    wantPicture(&$0)
                    $0.decode?.targetWidth = 1
                })
            XCTAssertTrue(held[1].waitForEvent(), "it has joined")
        }
        return gate
    }

    private func release(_ gate: Gate) throws {
        gate.open()
        for heard in held { XCTAssertEqual(try end(heard).code, .ok) }
    }

    func testWhatWasRemovedMeanwhileIsNotServed() throws {
        let key = testURL("https://a.example/a").cacheKey
        let removals: [(String, (Cache) throws -> Void)] = [
            ("clear", { try $0.clear() }), ("remove", { try $0.removeAndWait(key: key) }),
            ("remove, without waiting", { $0.remove(key: key) }),
            (
                "remove older",
                { [clock] in
                    try $0.flush()
                    clock.pass(seconds: 1)
                    try $0.removeOlder(than: 0)
                }
            ),
        ]
        for onDisk in [false, true] {
            for memory in [0, 32 << 20] as [Int64] where onDisk || memory > 0 {
                for (name, remove) in removals {
                    for way in Way.allCases {
                        let name = "\(name), \(way), \(onDisk ? "on disk" : "in memory"), \(memory)"
                        try openAnew(onDisk: onDisk, memory: memory)
                        let gate = try hold(way)
                        try remove(store.cache)
                        try release(gate)
                        XCTAssertEqual(try picture(.only).code, .notCached, name)
                        XCTAssertEqual(try store.cache.statistics().imageEntries, 0, name)
                    }
                }
            }
        }
    }

    /// Not removed, it is there: the tests above see something.
    func testWhatStayedIsServed() throws {
        for onDisk in [false, true] {
            for way in Way.allCases {
                try openAnew(onDisk: onDisk, memory: onDisk ? 0 : 32 << 20)
                let gate = try hold(way)
                try release(gate)
                let decoders = codec.decoderCount
                XCTAssertEqual(try picture(.only).code, .ok)
                XCTAssertEqual(codec.decoderCount, decoders, "\(way): the same picture again")
            }
        }
    }

    /// Of the same second, and of a later one.
    func testAnOlderPictureTakesNoNewerOnesPlace() throws {
        for onDisk in [false, true] {
            for later: Int64 in [0, 1] {
                for asPicture in [true, false] {
                    for way in Way.allCases where way != .stale {
                        try openAnew(onDisk: onDisk, memory: onDisk ? 0 : 32 << 20)
                        let name = "\(way), \(onDisk), \(later), \(asPicture)"
                        let gate = try hold(way)
                        clock.pass(seconds: later)
                        serve(Self.small, "2")
                        if asPicture { _ = try picture(.reload) } else { _ = try get("/a", .reload) }
                        for flushes in [false, true] {
                            if flushes { try store.cache.flush() }
                            XCTAssertEqual(try get("/a", .only).field("X-Version"), "2", name)
                            XCTAssertEqual(try get("/a", .only).bytes, Self.small, name)
                        }
                        try release(gate)
                        for mode in [CacheMode.only, .use] {
                            XCTAssertEqual(try picture(mode).field("X-Version"), "2", name)
                            XCTAssertEqual(try get("/a", mode).bytes, Self.small, name)
                        }
                        XCTAssertEqual(try store.cache.statistics().imageEntries, 1, name)
                    }
                }
            }
        }
    }

    /// Both on their way at the same time: the one that is stored last stays, whichever is decoded last.
    func testTheOneThatIsStoredLastStays() throws {
        for onDisk in [false, true] {
            try openAnew(onDisk: onDisk, memory: onDisk ? 0 : 32 << 20)
            let gate = Gate()
            self.gate = gate
            codec.judges { _, count, isWhole in
                if isWhole, count == Self.large.count { gate.pass() }
                return nil
            }
            network.answers { _ in nil }
            let before = network.count
            held = [try start("/a", .reload) { wantPicture(&$0) }]
            let first = try network.exchange(before)
            let other = try start("/a", .reload, fields: [HeaderField("X-Request-Id", "2")]) { wantPicture(&$0) }
            let second = try network.exchange(before + 1)
            first.answer(Reply(200, fields + [("X-Version", "1")], Self.large))
            XCTAssertTrue(gate.waitUntilHeld())
            second.answer(Reply(200, fields + [("X-Version", "2")], Self.small))
            XCTAssertEqual(try end(other).code, .ok)
            try release(gate)
            XCTAssertEqual(try picture(.only).field("X-Version"), "2")
            XCTAssertEqual(try get("/a", .only).bytes, Self.small)
        }
    }

    /// What is found good meanwhile stays as good: the picture does not bring back what was known when it was begun.
    func testAValidationMeanwhileHolds() throws {
        let gate = try hold(.stale)
        // The validation that nobody waits for.
        let validation = try network.exchange(1)
        validation.answer(Reply(304, fields + [("X-Version", "1")]))
        let limit = MonotonicClock().now().advanced(byMilliseconds: 20_000)
        while try get("/a", .only).outcome == .stale, MonotonicClock().now() < limit {}
        try release(gate)
        XCTAssertEqual(try picture(.use).outcome, .hit)
        XCTAssertEqual(network.count, 2)
    }

    func testAClosedCacheKeepsNothing() throws {
        for onDisk in [false, true] {
            for way in Way.allCases {
                try openAnew(onDisk: onDisk, memory: 32 << 20)
                let gate = try hold(way)
                let images = try XCTUnwrap(store.cache.images)
                store.cache.close()
                try release(gate)
                XCTAssertEqual(images.entries(testURL("https://a.example/a").cacheKey).count, 0, "\(way)")
            }
        }
    }
}
