import Glibc
import ImgdlCore
import Synchronization
import XCTest

@testable import ImgdlCache

/// A cache without directory: issue 5, the memory tier.
final class MemoryCacheTests: XCTestCase {
    func testGivesTheSlicesThatWereStored() throws {
        let cache = try Cache(CacheConfiguration(), clock: MonotonicClock()) { _ in XCTFail("no event is due") }
        var body = Body(expected: 5)
        XCTAssertTrue(
            "hello".utf8.withContiguousStorageIfAvailable { body.append(UnsafeRawBufferPointer($0)) } ?? false)
        let response = StoredResponse(
            status: 200, httpVersion: 11, fields: [], requestTime: 1, responseTime: 2, context: .blank)
        let writer = try XCTUnwrap(cache.write("http://a/", response))
        writer.append(body.slices(from: 0))
        XCTAssertNil(cache.findInMemory("http://a/") { _ in .entry(0, withBody: true) })
        writer.finish(response)
        let found = try XCTUnwrap(cache.findInMemory("http://a/") { _ in .entry(0, withBody: true) })
        XCTAssertEqual(found.body.map(\.start), body.slices(from: 0).map(\.start))
        XCTAssertEqual(found.entry.response.bodyLength, 5)
        cache.close()
        XCTAssertNil(cache.findInMemory("http://a/") { _ in .entry(0, withBody: true) })
    }
}

final class MemoryTierTests: XCTestCase {
    private func cache(_ change: (inout CacheConfiguration) -> Void = { _ in }) throws -> Cache {
        var configuration = CacheConfiguration()
        configuration.maximumMemoryBytes = 100_000
        change(&configuration)
        return try Cache(configuration, clock: TestClock()) { _ in XCTFail("no event is due") }
    }

    func testTheOneUsedLongestAgoGoesFirst() throws {
        let cache = try cache()
        for name in ["a", "b", "c"] { cache.put(name, bytes(30_000)) }
        cache.use(try XCTUnwrap(cache.wait("a")).entry.id)
        cache.put("d", bytes(30_000))
        XCTAssertNil(cache.wait("b"))
        for name in ["a", "c", "d"] { XCTAssertEqual(cache.wait(name)?.bytes, bytes(30_000), name) }
        let statistics = try cache.statistics()
        XCTAssertEqual(statistics.memoryEntries, 3)
        XCTAssertTrue((90_000...100_000).contains(statistics.memoryBytes), "\(statistics.memoryBytes)")
        XCTAssertEqual(statistics.evicted, 1)
        XCTAssertFalse(statistics.isWritable)
    }

    func testABodyOfMoreThanHalfIsNotKept() throws {
        var configuration = CacheConfiguration()
        configuration.maximumMemoryBytes = 100_000
        let cache = try Cache(configuration, clock: TestClock()) { XCTAssertEqual($0.kind, .notStored) }
        cache.put("a", bytes(10))
        cache.put("b", bytes(50_001))
        XCTAssertNil(cache.wait("b"))
        XCTAssertNotNil(cache.wait("a"))
    }

    /// Whoever asks is told what became of it.
    func testWhatIsNotKeptIsCountedAndTold() throws {
        let log = EventLog()
        var configuration = CacheConfiguration()
        configuration.maximumMemoryBytes = 100_000
        let cache = try Cache(configuration, clock: TestClock()) { log.add($0) }
        let told = expectation(description: "the first is told")
        told.assertForOverFulfill = false
        nonisolated(unsafe) var codes: [ErrorCode?] = []
        log.listen { [unowned cache] _ in
            if !codes.isEmpty { return }
            let calls: [() throws -> Void] = [
                { _ = try cache.query("a") }, { try cache.removeAndWait(key: "a") }, { try cache.removeOlder(than: 0) },
                { try cache.clear() }, { try cache.flush() }, { _ = try cache.statistics() },
            ]
            codes = calls.map { call in
                do {
                    try call()
                    return nil
                } catch { return (error as? Failure)?.code }
            }
            told.fulfill()
        }
        for name in ["a", "b"] { cache.put(name, bytes(10)) }
        for size in [50_001, 49_990, 200_000] {
            let writer = try XCTUnwrap(cache.write("b", response()))
            writer.append(slices(bytes(size)))
            XCTAssertTrue(writer.finish(response()), "\(size): nobody has overtaken it")
            XCTAssertTrue(writer.isLost, "\(size)")
        }
        let writer = try XCTUnwrap(cache.write("c", response()))
        writer.finish(response())
        XCTAssertFalse(writer.isLost)
        wait(for: [told], timeout: 20)
        XCTAssertEqual(codes, Array(repeating: .wouldDeadlock, count: 6))
        let statistics = try cache.statistics()
        XCTAssertEqual(statistics.stored, 3)
        XCTAssertEqual(statistics.notStored, 3)
        XCTAssertEqual(statistics.memoryEntries, 3)
        XCTAssertEqual(cache.wait("b")?.bytes, bytes(10), "what none of them could replace is there")
        cache.close()
        XCTAssertTrue(log.kinds.allSatisfy { $0 == .notStored })
        let counts = log.all.compactMap { Int64($0.message.prefix { $0.isNumber }) }
        XCTAssertEqual(counts.reduce(0, +), 3, "each is told: \(log.all.map(\.message))")
        let message = log.all[0].message
        XCTAssertTrue(message.hasSuffix("more of memory than max_memory_bytes allows one"), message)
    }

    /// It is tried again with each loss and at the end; then who closes the cache tells it.
    func testWhatNoThreadCouldTellIsToldWhenTheCacheIsClosed() throws {
        let ends: [(String, (inout Cache?) -> Void)] = [
            ("closed", { $0?.close() }), ("let go of", { $0 = nil }),
            (
                "the process exits",
                {
                    $0?.beginClosing(by: MonotonicClock().now())
                    $0?.abandon(at: MonotonicClock().now().advanced(byMilliseconds: 20_000))
                }
            ),
        ]
        for (name, end) in ends {
            for refusals in [2, 3] where refusals == 2 || name != "the process exits" {
                let log = EventLog()
                let attempts = Atomic(0)
                var tuning = CacheTuning()
                tuning.startTelling = { body throws(Failure) in
                    let number = attempts.wrappingAdd(1, ordering: .relaxed).newValue
                    guard number > refusals else { throw Failure(.outOfMemory, "no new thread") }
                    return try ImgdlCore.Thread.start(name: "telling", body)
                }
                var configuration = CacheConfiguration()
                configuration.maximumMemoryBytes = 1_000
                let caller = pthread_self()
                let isHere = Atomic(false)
                log.listen { _ in isHere.store(pthread_equal(pthread_self(), caller) != 0, ordering: .relaxed) }
                var cache: Cache? = try Cache(configuration, clock: TestClock(), tuning: tuning) { log.add($0) }
                for key in ["a", "b"] { cache?.put(key, bytes(5_000)) }
                XCTAssertEqual(try cache?.statistics().notStored, 2, name)
                XCTAssertEqual(log.all, [], name)
                end(&cache)
                XCTAssertEqual(attempts.load(ordering: .relaxed), 3, name)
                XCTAssertEqual(log.kinds, [.notStored], name)
                XCTAssertTrue(log.all.first?.message.hasPrefix("2 answers were not stored") == true, "\(log.all)")
                XCTAssertEqual(isHere.load(ordering: .relaxed), refusals == 3, name)
            }
        }
    }

    /// Its last user may let go of it there, and the thread ends with it.
    func testACacheMayEndInItsOwnCallback() throws {
        var configuration = CacheConfiguration()
        configuration.maximumMemoryBytes = 1_000
        let user = LastUser()
        let gone = expectation(description: "the callback is let go of")
        do {
            let end = End { gone.fulfill() }
            let cache = try Cache(configuration, clock: TestClock()) { _ in withExtendedLifetime(end) { user.letGo() } }
            user.cache = cache
            cache.put("a", bytes(5_000))
        }
        user.begin()
        wait(for: [gone], timeout: 20)
    }

    private final class LastUser: @unchecked Sendable {
        private let lock = Lock()
        private let changed: Condition
        private var mayLetGo = false
        var cache: Cache?

        init() { changed = Condition(lock) }

        /// Nobody else has it any more.
        func begin() {
            lock.withLock {
                mayLetGo = true
                changed.signal()
            }
        }

        func letGo() {
            lock.withLock { while !mayLetGo { changed.wait() } }
            cache = nil
        }
    }

    private final class End: Sendable {
        private let hasEnded: @Sendable () -> Void
        init(_ hasEnded: @escaping @Sendable () -> Void) { self.hasEnded = hasEnded }
        deinit { hasEnded() }
    }

    /// As on a disk: it does not only stay unused, it is gone.
    func testWhatWasNotUsedForTooLongGoesWhenAnythingIsAskedOrStored() throws {
        let asking: [(String, (Cache) throws -> Void)] = [
            ("query", { XCTAssertNil(try $0.query("old")) }),
            ("statistics", { _ = try $0.statistics() }),
            ("look-up", { XCTAssertNil($0.wait("other")) }),
            ("look-up in memory", { XCTAssertNil($0.findInMemory("other") { _ in .entry(0, withBody: true) }) }),
            ("store", { $0.put("new", bytes(10)) }),
        ]
        for (words, ask) in asking {
            let clock = TestClock()
            var configuration = CacheConfiguration()
            configuration.maximumAge = 60
            configuration.maximumImageBytes = 1 << 20
            let cache = try Cache(configuration, clock: clock) { _ in XCTFail("no event is due") }
            for key in ["old", "used", "validated", "old2"] { cache.put(key, bytes(10)) }
            let ids = try ["old", "used", "validated"].map { try XCTUnwrap(cache.wait($0)).entry.id }
            for key in ["old", "used"] {
                let entry = try XCTUnwrap(cache.wait(key)).entry
                try XCTUnwrap(cache.images).keep(try Self.image(10), DecodeOptions(), of: entry, key: key)
            }
            clock.advance(seconds: 50)
            cache.use(ids[1])
            cache.update(ids[2], response(at: 300))
            clock.advance(seconds: 11)
            try ask(cache)
            let kept = cache.memory.totals.count
            XCTAssertEqual(kept, words == "store" ? 3 : 2, words)
            XCTAssertEqual(cache.counted.evicted, 2, words)
            XCTAssertNil(try cache.query("old2"), words)
            for key in ["used", "validated"] { XCTAssertNotNil(try cache.query(key), "\(words): \(key)") }
            XCTAssertNil(cache.images?.image(ids[0], DecodeOptions()), words)
            clock.advance(seconds: 50)
            XCTAssertEqual(try cache.statistics().memoryEntries, words == "store" ? 1 : 0, words)
            cache.close()
        }
    }

    /// A use in the future counts as now, also where nobody asks for it.
    func testAClockThatRanAheadKeepsNothingForLonger() throws {
        let clock = TestClock()
        var configuration = CacheConfiguration()
        configuration.maximumAge = 60
        let cache = try Cache(configuration, clock: clock) { _ in XCTFail("no event is due") }
        clock.advance(seconds: 1_000)
        for key in ["a", "b"] { cache.put(key, bytes(10)) }
        clock.advance(seconds: -1_000)
        cache.put("c", bytes(10))
        clock.advance(seconds: 60)
        XCTAssertEqual(try cache.statistics().memoryEntries, 3)
        clock.advance(seconds: 1)
        XCTAssertEqual(try cache.statistics().memoryEntries, 0)
        cache.close()
    }

    func testWhatAClockThatRanAheadHasStoredIsOldAtOnce() throws {
        let clock = TestClock()
        let cache = try Cache(CacheConfiguration(), clock: clock) { _ in XCTFail("no event is due") }
        clock.advance(seconds: 1_000)
        cache.put("a", bytes(10))
        clock.advance(seconds: -1_000)
        try cache.removeOlder(than: 10)
        XCTAssertNotNil(cache.wait("a"), "as if it was used now")
        clock.advance(seconds: 11)
        try cache.removeOlder(than: 10)
        XCTAssertNil(cache.wait("a"))
        cache.close()
    }

    /// What was put in with the time of before is not walked over at each change of second.
    func testThreadsAroundAChangeOfSecondDoNotTurnTimeBack() throws {
        let clock = TestClock()
        let cache = try Cache(CacheConfiguration(), clock: clock) { _ in XCTFail("no event is due") }
        cache.put("a", bytes(10))
        clock.advance(seconds: -1)
        cache.put("b", bytes(10))
        clock.advance(seconds: 1)
        XCTAssertEqual(try cache.query("a")?.usedTime, clock.wallTime())
        cache.close()
    }

    /// Nobody has used it.
    func testWhatIsMadeStaleIsNotUsed() throws {
        let clock = TestClock()
        let cache = try Cache(CacheConfiguration(), clock: clock) { _ in XCTFail("no event is due") }
        for name in ["a", "b"] { cache.put(name, bytes(10)) }
        clock.advance(seconds: 5)
        for (name, time) in [("a", clock.wallTime()), ("b", nil)] {
            let entry = try XCTUnwrap(cache.wait(name)).entry
            var response = entry.response
            response.overtakenTime = time
            cache.update(entry.id, response)
        }
        try cache.removeOlder(than: 4)
        XCTAssertNil(cache.wait("a"))
        XCTAssertNotNil(cache.wait("b"), "a validation is a use")
        cache.close()
    }

    /// With what it keeps of headers it takes more than half.
    func testAValidationThatMakesAnAnswerTooLargeIsItsEnd() throws {
        let cache = try cache()
        cache.put("a", bytes(30_000))
        let entry = try XCTUnwrap(cache.wait("a")).entry
        var response = entry.response
        response.fields.append(HeaderField("X-Long", String(repeating: "x", count: 40_000)))
        cache.update(entry.id, response)
        XCTAssertNil(cache.wait("a"))
        let statistics = try cache.statistics()
        XCTAssertEqual([statistics.memoryEntries, statistics.evicted, statistics.memoryBytes], [0, 1, 0])
    }

    /// Nobody misses it: the answer broke off.
    func testABeginningThatIsNotKeptIsNoLoss() throws {
        let cache = try cache { $0.maximumPartialBytes = 4_000 }
        let writer = try XCTUnwrap(cache.write("a", response()))
        writer.append(slices(bytes(3_900)))
        var beginning = response()
        beginning.extent = .beginning(total: 90_000)
        writer.keep(beginning)
        XCTAssertNil(cache.wait("a"))
        XCTAssertEqual(try cache.statistics().notStored, 0)
        cache.close()
    }

    private static func image(_ width: Int) throws -> DecodedImage {
        let pixels = try PixelBuffer(width: width, height: 10, format: .rgba8)
        let header = ImageHeader(format: .png, width: width, height: 10, hasAlpha: true, isProgressive: false)
        return DecodedImage(
            header: header, pixels: pixels, ready: PixelRectangle(x: 0, y: 0, width: width, height: 10),
            isComplete: true)
    }

    /// Beside a disk they age by themselves.
    func testImagesThatWereNotUsedForTooLongGoWhenAnythingIsAskedOrKept() throws {
        let asking: [(String, (ImageTier) throws -> Void)] = [
            ("totals", { _ = $0.totals }), ("entries", { XCTAssertTrue($0.entries("other").isEmpty) }),
            ("keep", { $0.expect("k9").areOf(new: Self.entry(9)) }),
        ]
        for (words, ask) in asking {
            let clock = TestClock()
            let tier = ImageTier(maximumBytes: 10 << 20, maximumAge: 60, clock: clock, changes: SharedChanges())
            var other = DecodeOptions()
            other.targetWidth = 5
            for number in 1...4 {
                tier.keep(try Self.image(10), DecodeOptions(), of: Self.entry(number), key: "k\(number)")
                tier.keep(try Self.image(10), other, of: Self.entry(number), key: "k\(number)")
            }
            clock.advance(seconds: 50)
            // Of this the other image is the one used longest ago.
            XCTAssertNotNil(tier.image(Self.entry(1).id, other))
            tier.update(Self.entry(3).id, response(at: 300))
            clock.advance(seconds: 11)
            try ask(tier)
            for (number, isThere) in [(1, true), (2, false), (3, true), (4, false)] {
                let image = tier.image(Self.entry(number).id, DecodeOptions())
                XCTAssertEqual(image != nil, isThere, "\(words): \(number)")
            }
        }
    }

    private static func entry(_ number: Int) -> StoredEntry {
        StoredEntry(id: EntryID(rawValue: Int64(number)), response: response(), mark: ChangeMark())
    }

    func testBeginningsHaveALimitOfTheirOwn() throws {
        let cache = try cache { $0.maximumPartialBytes = 2 * (1_000 + 1_500) }
        let beginning = response(extent: .beginning(total: nil))
        for name in ["a", "b", "c"] { cache.put(name, bytes(1_000), beginning, keeps: true) }
        cache.put("whole", bytes(5_000))
        XCTAssertNil(cache.wait("a"))
        XCTAssertNotNil(cache.wait("c"))
        XCTAssertEqual(try cache.statistics().partialEntries, 2)
        XCTAssertTrue((2_000...5_000).contains(try cache.statistics().partialBytes))
    }

    /// Issue 20: headers cost nothing, and neither did what a few bytes keep of memory.
    func testHeadersAndMemoryThatIsKeptCount() throws {
        let cache = try cache { $0.maximumMemoryBytes = 1_000_000 }
        let long = String(repeating: "x", count: 50_000)
        for i in 0..<100 { cache.put("h\(i)", [], response([HeaderField("X", long)])) }
        var statistics = try cache.statistics()
        XCTAssertTrue((10...20).contains(statistics.memoryEntries), "\(statistics.memoryEntries)")
        XCTAssertLessThanOrEqual(statistics.memoryBytes, 1_000_000)
        let id = try XCTUnwrap(cache.wait("h99")).entry.id
        cache.update(id, response([HeaderField("X", long), HeaderField("Y", long)], at: 300))
        XCTAssertLessThanOrEqual(try cache.statistics().memoryBytes, 1_000_000)
        XCTAssertNotNil(cache.wait("h99"))
        try cache.clear()
        // Of unknown length: a segment of 16 KiB for ten bytes.
        for i in 0..<1_000 {
            var body = Body()
            bytes(10).withUnsafeBytes { XCTAssertTrue(body.append($0)) }
            let writer = try XCTUnwrap(cache.write("s\(i)", response()))
            writer.append(body.slices(from: 0))
            writer.finish(response())
        }
        statistics = try cache.statistics()
        XCTAssertGreaterThan(statistics.memoryEntries, 500, "they are kept in as much memory as they need")
        XCTAssertLessThanOrEqual(statistics.memoryBytes, 1_000_000)
        XCTAssertEqual(cache.wait("s999")?.bytes, bytes(10))
        XCTAssertLessThan(cache.wait("s999")?.body.first?.segmentBytes ?? .max, 100)
    }

    func testImagesOfManyVariantsAreLimited() throws {
        let tier = ImageTier(maximumBytes: 10 << 20, clock: TestClock(), changes: SharedChanges())
        let header = ImageHeader(format: .png, width: 1, height: 1, hasAlpha: true, isProgressive: false)
        for i in 0..<100 {
            let pixels = try PixelBuffer(width: 1, height: 1, format: .rgba8)
            let image = DecodedImage(
                header: header, pixels: pixels, ready: PixelRectangle(x: 0, y: 0, width: 1, height: 1), isComplete: true
            )
            let varying = [VaryingField(name: "a", value: "\(i)")]
            let entry = StoredEntry(
                id: EntryID(rawValue: Int64(i)), response: response(varying: varying), mark: ChangeMark())
            tier.keep(image, DecodeOptions(), of: entry, key: "k")
        }
        XCTAssertEqual(tier.entries("k").count, 32)
        XCTAssertEqual(tier.totals.count, 32)
        XCTAssertGreaterThan(tier.totals.bytes, 500 * tier.totals.count)
    }

    func testReplacesUpdatesAndRemoves() throws {
        let cache = try cache()
        cache.put("k", bytes(10, seed: 1))
        cache.put("k", bytes(10, seed: 2), response(at: 200))
        let found = try XCTUnwrap(cache.wait("k"))
        XCTAssertEqual(found.bytes, bytes(10, seed: 2))
        cache.update(found.entry.id, response(at: 300))
        XCTAssertEqual(cache.wait("k")?.entry.response.responseTime, 300)
        XCTAssertEqual(try cache.query("k")?.response.bodyLength, 10)
        try cache.removeAndWait(key: "k")
        XCTAssertNil(cache.wait("k"))
        cache.put("l", bytes(10))
        try cache.clear()
        XCTAssertNil(cache.wait("l"))
        XCTAssertEqual(try cache.statistics().memoryEntries, 0)
    }

    func testRecencyListKeepsOrderAndCost() {
        var list = RecencyList<Int, String>()
        for i in 0..<1_000 {
            list.insert(i % 37, "\(i)", cost: Int64(i % 5))
            if i % 3 == 0 { _ = list.use(i % 11) }
            if i % 7 == 0 { list.remove(i % 13) }
            if i % 50 == 0 { _ = list.removeOldest() }
        }
        var order: [Int] = []
        list.oldestFirst { key, _ in order.append(key) }
        XCTAssertEqual(order.count, list.count)
        XCTAssertEqual(Set(order).count, order.count)
        for key in order { XCTAssertEqual(list.removeOldest()?.key, key) }
        XCTAssertEqual(list.totalCost, 0)
        XCTAssertNil(list.removeOldest())
    }
}

/// Issue 5: the tier of decoded images.
final class ImageTierTests: XCTestCase {
    private func image(_ width: Int) throws -> DecodedImage {
        let pixels = try PixelBuffer(width: width, height: 10, format: .rgba8)
        let header = ImageHeader(format: .png, width: width, height: 10, hasAlpha: true, isProgressive: false)
        return DecodedImage(
            header: header, pixels: pixels, ready: PixelRectangle(x: 0, y: 0, width: width, height: 10),
            isComplete: true)
    }

    func testTheSameImageForTheSameEntryAndOptionsUntilTheEntryGoes() throws {
        var configuration = CacheConfiguration()
        configuration.maximumImageBytes = 12_000
        let cache = try Cache(configuration, clock: TestClock()) { _ in }
        let images = try XCTUnwrap(cache.images)
        var options = DecodeOptions()
        func keep(_ key: String) throws -> (StoredEntry, DecodedImage) {
            cache.put(key, bytes(10))
            let entry = try XCTUnwrap(cache.wait(key)).entry
            let picture = try image(100)
            images.keep(picture, options, of: entry, key: key)
            return (entry, picture)
        }
        let (a, picture) = try keep("a")
        XCTAssertTrue(try XCTUnwrap(images.image(a.id, options)).pixels === picture.pixels)
        XCTAssertEqual(images.entries("a").map(\.id), [a.id])
        options.targetWidth = 5
        XCTAssertNil(images.image(a.id, options))
        options.targetWidth = 0
        // 4,000 bytes each: the third pushes out the one used longest ago.
        let (b, _) = try keep("b")
        XCTAssertNotNil(images.image(a.id, options))
        let (c, _) = try keep("c")
        XCTAssertNil(images.image(b.id, options))
        XCTAssertEqual(images.entries("b").count, 0)
        XCTAssertEqual(try cache.statistics().imageEntries, 2)
        XCTAssertTrue((8_000...12_000).contains(try cache.statistics().imageBytes))
        // Validated: the fields are new, the image is the same. Replaced: it is gone.
        cache.update(a.id, response(at: 300))
        XCTAssertEqual(images.entries("a")[0].response.responseTime, 300)
        cache.put("a", bytes(11), response(at: 301))
        XCTAssertNil(images.image(a.id, options))
        cache.remove(c.id)
        XCTAssertNil(images.image(c.id, options))
        XCTAssertEqual(try cache.statistics().imageBytes, 0)
        // Too large for the whole tier.
        images.keep(try image(1_000), options, of: c, key: "c")
        XCTAssertNil(images.image(c.id, options))
    }
}
