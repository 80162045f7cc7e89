import CacheTesting
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Issue 20: an answer that began before something newer, or before a removal, does not come back by being written later.
final class OlderAnswerTests: StoreTestCase {
    /// Both began at the same time.
    private let older = response([HeaderField("Date", "Thu, 01 Jan 1970 00:00:10 GMT")])
    private let newer = response([HeaderField("Date", "Thu, 01 Jan 1970 00:01:20 GMT")])

    private func inMemoryOnly() throws -> Cache {
        var configuration = CacheConfiguration()
        configuration.maximumMemoryBytes = 1 << 20
        return try Cache(configuration, clock: clock) { [log] in log.add($0) }
    }

    private func content(_ cache: Cache) -> [UInt8]? { cache.wait("k")?.bytes }

    private func inMemory(_ cache: Cache) -> [UInt8]? {
        cache.findInMemory("k") { $0.isEmpty ? .nothing : .entry(0, withBody: true) }?.bytes
    }

    private func finish(_ writer: any StoreWriter, _ bytes: [UInt8], _ response: StoredResponse) -> Bool {
        writer.append(slices(bytes))
        return writer.finish(response)
    }

    func testAnOlderAnswerOfThisProgramIsNotStored() throws {
        configuration.maximumMemoryBytes = 1 << 20
        for cache in [try open(), try inMemoryOnly()] {
            let slow = try XCTUnwrap(cache.write("k", older))
            cache.put("k", bytes(100, seed: 2), newer)
            XCTAssertFalse(finish(slow, bytes(100, seed: 1), older))
            XCTAssertEqual(content(cache), bytes(100, seed: 2))
            XCTAssertEqual(inMemory(cache), bytes(100, seed: 2))
            if cache.disk != nil { try cache.flush() }
            cache.releaseMemory()
            if cache.disk != nil { XCTAssertEqual(content(cache), bytes(100, seed: 2)) }
            let statistics = try cache.statistics()
            XCTAssertEqual([statistics.stored, statistics.notStored], [1, 0], "it is neither stored nor a loss")
            cache.close()
        }
        XCTAssertEqual(files.count, 1)
        XCTAssertEqual(temporaries, [])
        XCTAssertEqual(log.all, [])
    }

    /// As many as there may be: one that takes the place of another needs no room.
    func testOfAllVariantsThatCameMeanwhileNoneIsForgottenForOneThatIsReplaced() {
        let meanwhile = StoredMeanwhile()
        let watches = [meanwhile.watch("k"), meanwhile.watch("k")]
        func variant(_ number: Int, _ fields: [HeaderField]) -> StoredResponse {
            response(fields, varying: [VaryingField(name: "a", value: "\(number)")])
        }
        func isKnown(_ number: Int) -> Bool {
            meanwhile.hasOvertaken(variant(number, older.fields), "k", wallTime: clock.wallTime())
        }
        func add(_ number: Int) {
            meanwhile.add(variant(number, newer.fields), "k", wallTime: clock.wallTime())
        }
        let count = StoredResponse.maximumVariants
        for number in 0..<count { add(number) }
        XCTAssertEqual((0..<count).filter { !isKnown($0) }, [])
        add(5)
        XCTAssertEqual((0..<count).filter { !isKnown($0) }, [])
        add(count)
        XCTAssertEqual((0...count).filter { !isKnown($0) }, [0], "the one that came first")
        withExtendedLifetime(watches) {}
    }

    func testAnOlderAnswerIsNotStoredOverOneInTheIndex() throws {
        let cache = try open()
        let slow = try XCTUnwrap(cache.write("k", older))
        cache.put("k", bytes(100, seed: 2), newer)
        try cache.flush()
        _ = finish(slow, bytes(100, seed: 1), older)
        XCTAssertEqual(content(cache), bytes(100, seed: 2), "it is not served while it waits")
        try cache.flush()
        XCTAssertEqual(content(cache), bytes(100, seed: 2))
        XCTAssertEqual(files.count, 1)
        let statistics = try cache.statistics()
        XCTAssertEqual([statistics.stored, statistics.notStored, statistics.entries], [1, 0, 1])
        cache.close()
    }

    /// And of one Date: one had come before the other was asked for. By one program, and by two.
    func testWithinOneSecond() throws {
        configuration.maximumMemoryBytes = 1 << 20
        var (first, reload) = (newer, newer)
        first.fractions = TimeFractions(request: 1, response: 2)
        reload.fractions = TimeFractions(request: 3, response: 999_999)
        for areTwo in [false, true] {
            let one = try open()
            let other = areTwo ? try open() : one
            for cache in [one, other] { try cache.flush() }
            let slow = try XCTUnwrap(one.write("k", first))
            other.put("k", bytes(100, seed: 2), reload)
            try other.flush()
            _ = finish(slow, bytes(100, seed: 1), first)
            for flushes in [false, true] {
                if flushes { try one.flush() }
                for cache in [one, other] { XCTAssertEqual(content(cache), bytes(100, seed: 2), "\(areTwo)") }
            }
            XCTAssertEqual(try one.query("k")?.response.fractions, reload.fractions, "as the index has it")
            other.put("k", bytes(100, seed: 3), reload)
            try other.flush()
            XCTAssertEqual(content(one), bytes(100, seed: 3), "of the same moment the last one stays")
            try one.removeAndWait(key: "k")
            for cache in [one, other] { cache.close() }
        }
    }

    /// Nothing but the index knows the newer one by then: it was evicted, or is too long for memory.
    func testAnOlderAnswerIsNotServedFromMemoryBesideOneInTheIndex() throws {
        configuration.maximumMemoryBytes = 10_000
        configuration.maximumImageBytes = 1 << 20
        for newerCount in [100, 8_000] {
            let cache = try open()
            let slow = try XCTUnwrap(cache.write("k", older))
            cache.put("k", bytes(newerCount, seed: 2), newer)
            try cache.flush()
            cache.releaseMemory()
            let pictures = try XCTUnwrap(cache.images).expect("k")
            pictures.areOf(new: StoredEntry(id: slow.id, response: older, mark: slow.mark))
            XCTAssertFalse(finish(slow, bytes(100, seed: 1), older))
            XCTAssertNil(inMemory(cache))
            XCTAssertEqual(content(cache), bytes(newerCount, seed: 2))
            try cache.flush()
            XCTAssertEqual(content(cache), bytes(newerCount, seed: 2))
            let statistics = try cache.statistics()
            XCTAssertEqual([statistics.stored, statistics.notStored, statistics.entries], [1, 0, 1])
            try cache.clear()
            cache.close()
        }
    }

    /// Another program has written the newer one, before the older one's head came or after.
    func testAnOlderAnswerIsNotServedFromMemoryBesideAnotherProgramsInTheIndex() throws {
        configuration.maximumMemoryBytes = 1 << 20
        configuration.maximumImageBytes = 1 << 20
        for isBeforeItsHead in [true, false] {
            let (one, other) = (try open(), try open())
            for cache in [one, other] { try cache.flush() }
            let mark = one.requestMark("k")
            let early = isBeforeItsHead ? nil : one.write("k", older, since: mark)
            other.put("k", bytes(100, seed: 2), newer)
            try other.flush()
            let slow = try XCTUnwrap(early ?? one.write("k", older, since: mark))
            let images = try XCTUnwrap(one.images)
            let pictures = images.expect("k")
            pictures.areOf(new: StoredEntry(id: slow.id, response: older, mark: slow.mark))
            _ = finish(slow, bytes(100, seed: 1), older)
            pictures.keep(try picture(), DecodeOptions())
            for round in ["while it waits", "afterwards"] {
                XCTAssertNotEqual(inMemory(one), bytes(100, seed: 1), round)
                XCTAssertEqual(images.entries("k").count, 0, round)
                XCTAssertEqual(content(one), bytes(100, seed: 2), round)
                try one.flush()
            }
            try one.clear()
            for cache in [one, other] { cache.close() }
        }
        XCTAssertEqual(log.all, [])
    }

    /// As soon as it is whole: nothing else has come for it meanwhile, or memory knows what has.
    func testWhatNothingHasOvertakenIsInMemoryAtOnce() throws {
        configuration.maximumMemoryBytes = 1 << 20
        let cache = try open()
        cache.put("k", bytes(100, seed: 1), older)
        XCTAssertEqual(inMemory(cache), bytes(100, seed: 1))
        let slow = try XCTUnwrap(cache.write("k", newer))
        cache.put("k", bytes(100, seed: 3), older)
        XCTAssertEqual(inMemory(cache), bytes(100, seed: 3))
        cache.put("other", bytes(100), newer)
        try cache.flush()
        cache.releaseMemory()
        XCTAssertTrue(finish(slow, bytes(100, seed: 2), newer))
        XCTAssertEqual(inMemory(cache), bytes(100, seed: 2))
        try cache.flush()
        XCTAssertEqual(content(cache), bytes(100, seed: 2))
        cache.close()
    }

    /// What nobody waits for any more is not noted.
    func testNothingIsNotedForEver() throws {
        let cache = try open()
        for _ in 0..<2 {
            let writers = (0..<40).compactMap { cache.write("k\($0 % 2)", $0 < 20 ? older : newer) }
            for writer in writers { _ = finish(writer, bytes(10), newer) }
            XCTAssertEqual(cache.disk?.meanwhile.keyCount, 2)
        }
        XCTAssertEqual(cache.disk?.meanwhile.keyCount, 0)
        try cache.flush()
        cache.close()
    }

    func testANewerAnswerOfAnotherProgramIsSeenWhenItIsWritten() throws {
        for memory in [0, 1 << 20] as [Int64] {
            configuration.maximumMemoryBytes = memory
            let (one, other) = (try open(), try open())
            for cache in [one, other] { try cache.flush() }
            one.put("k", bytes(100, seed: 1), older)
            other.put("k", bytes(100, seed: 2), newer)
            try other.flush()
            let third = try open()
            for round in ["at once", "when both have been written"] {
                for cache in [one, other, third] {
                    XCTAssertNotEqual(inMemory(cache), bytes(100, seed: 1), round)
                    XCTAssertEqual(content(cache), bytes(100, seed: 2), round)
                }
                try one.flush()
            }
            XCTAssertEqual(files.count, 1)
            for cache in [one, other, third] { cache.close() }
        }
        XCTAssertEqual(log.all, [])
    }

    /// The other way round it takes the place, as ever.
    func testANewerAnswerTakesThePlaceOfAnOlderOne() throws {
        let (one, other) = (try open(), try open())
        for cache in [one, other] { try cache.flush() }
        one.put("k", bytes(100, seed: 2), newer)
        other.put("k", bytes(100, seed: 1), older)
        try other.flush()
        XCTAssertEqual(content(one), bytes(100, seed: 2))
        try one.flush()
        for cache in [one, other] {
            XCTAssertEqual(content(cache), bytes(100, seed: 2))
            cache.close()
        }
        XCTAssertEqual(files.count, 1)
    }

    /// A whole one that is older answers beside the beginning of a newer one, which answers nobody.
    func testABeginningKeepsNoWholeAnswerAway() throws {
        var beginning = newer
        beginning.extent = .beginning(total: 200)
        let cache = try open()
        cache.put("k", bytes(50, seed: 2), beginning, keeps: true)
        cache.put("k", bytes(100, seed: 1), older)
        try cache.flush()
        XCTAssertEqual(try cache.statistics().entries, 2)
        cache.close()
    }

    // MARK: Removals

    private func check(_ cache: Cache, _ name: String, _ remove: () throws -> Void) throws {
        let mark = cache.requestMark("k")
        let otherMark = cache.requestMark("other")
        try remove()
        let slow = try XCTUnwrap(cache.write("k", older, since: mark))
        XCTAssertFalse(finish(slow, bytes(100, seed: 1), older), name)
        XCTAssertNil(content(cache), name)
        XCTAssertNil(inMemory(cache), name)
        if !name.contains("clear") {
            let writer = try XCTUnwrap(cache.write("other", older, since: otherMark))
            XCTAssertTrue(finish(writer, bytes(10), older), "another key")
        }
        try cache.flush()
        XCTAssertNil(content(cache), name)
        XCTAssertTrue(cache.put("k", bytes(100, seed: 3), older))
        XCTAssertEqual(content(cache), bytes(100, seed: 3), "what began afterwards is stored")
        XCTAssertEqual(try cache.statistics().notStored, 0, name)
    }

    func testWhatBeganBeforeARemovalIsNotStored() throws {
        configuration.maximumMemoryBytes = 1 << 20
        for cache in [try open(), try inMemoryOnly()] {
            try check(cache, "remove") { cache.remove(key: "k") }
            try check(cache, "remove and wait") { try cache.removeAndWait(key: "k") }
            try check(cache, "clear") { try cache.clear() }
            cache.close()
        }
        XCTAssertEqual(log.all, [])
    }

    func testWhatBeganBeforeARemovalByAnotherProgramIsNotStored() throws {
        configuration.maximumMemoryBytes = 1 << 20
        let (one, other) = (try open(), try open())
        for cache in [one, other] { try cache.flush() }
        try check(one, "remove") { other.remove(key: "k") }
        try check(one, "clear") { try other.clear() }
        for cache in [one, other] { cache.close() }
        XCTAssertEqual(log.all, [])
    }

    // MARK: Pictures

    private func picture() throws -> DecodedImage {
        let pixels = try PixelBuffer(width: 1, height: 1, format: .rgba8)
        let header = ImageHeader(format: .png, width: 1, height: 1, hasAlpha: true, isProgressive: false)
        return DecodedImage(
            header: header, pixels: pixels, ready: PixelRectangle(x: 0, y: 0, width: 1, height: 1), isComplete: true)
    }

    /// Each has something else under the key go.
    private var losses: [(String, (Cache, EntryID) throws -> Void)] {
        let content = bytes(100, seed: 2)
        return [
            ("removed by URL", { cache, _ in cache.remove(key: "k") }),
            ("removed by itself", { cache, id in cache.remove(id) }),
            ("cleared", { cache, _ in try cache.clear() }),
            (
                "not used for long",
                { [clock] cache, _ in
                    clock.advance(seconds: 10)
                    try cache.removeOlder(than: 5)
                }
            ),
            ("replaced in the same second", { [older] cache, _ in cache.put("k", content, older) }),
            ("replaced", { [newer] cache, _ in cache.put("k", content, newer) }),
            (
                "replaced in the index, too",
                { [newer] cache, _ in
                    cache.put("k", content, newer)
                    try cache.flush()
                    cache.releaseMemory()
                }
            ),
            ("closed", { cache, _ in cache.close() }),
        ]
    }

    private func openAll() throws -> [Cache] {
        configuration.maximumMemoryBytes = 0
        configuration.maximumImageBytes = 1 << 20
        var inMemory = CacheConfiguration()
        inMemory.maximumMemoryBytes = 1 << 20
        inMemory.maximumImageBytes = 1 << 20
        return [try open(), try Cache(inMemory, clock: clock) { [log] in log.add($0) }]
    }

    /// It was decoded meanwhile.
    func testAPictureOfWhatWentMeanwhileIsNotKept() throws {
        for (name, lose) in losses {
            for cache in try openAll() {
                let images = try XCTUnwrap(cache.images)
                try? cache.clear()
                let writer = try XCTUnwrap(cache.write("k", older))
                let stored = images.expect("k")
                stored.areOf(new: StoredEntry(id: writer.id, response: older, mark: writer.mark))
                XCTAssertTrue(finish(writer, bytes(100), older))
                let found = images.expect("k")
                found.areOf(found: try XCTUnwrap(cache.wait("k")).entry)
                try lose(cache, writer.id)
                for pictures in [stored, found] {
                    pictures.keep(try picture(), DecodeOptions())
                    XCTAssertEqual(images.entries("k").count, 0, name)
                }
                if name != "closed" {
                    cache.put("k", bytes(100, seed: 3), newer)
                    images.keep(try picture(), DecodeOptions(), of: try XCTUnwrap(cache.wait("k")).entry, key: "k")
                    XCTAssertEqual(images.entries("k").count, 1, name)
                }
                cache.close()
            }
        }
    }

    /// It was found, and before anybody could say that pictures are made of it it went.
    func testAPictureOfWhatWentWhileItWasLookedForIsNotKept() throws {
        for (name, lose) in losses {
            for cache in try openAll() {
                let images = try XCTUnwrap(cache.images)
                try? cache.clear()
                cache.put("k", bytes(100), older)
                let pictures = images.expect("k")
                let entry = try XCTUnwrap(cache.wait("k")).entry
                try lose(cache, entry.id)
                pictures.areOf(found: entry)
                pictures.keep(try picture(), DecodeOptions())
                XCTAssertEqual(images.entries("k").count, 0, name)
                cache.close()
            }
        }
    }

    /// Neither an older answer that is stored all the same, as of another variant, nor other keys.
    func testAPictureOfWhatStaysIsKept() throws {
        for cache in try openAll() {
            let images = try XCTUnwrap(cache.images)
            let pictures = images.expect("k")
            let writer = try XCTUnwrap(cache.write("k", newer))
            pictures.areOf(new: StoredEntry(id: writer.id, response: newer, mark: writer.mark))
            XCTAssertTrue(finish(writer, bytes(100), newer))
            var other = older
            other.varying = [VaryingField(name: "accept", value: "image/png")]
            cache.put("k", bytes(100), other)
            cache.put("other", bytes(100), other)
            cache.remove(key: "other")
            cache.update(writer.id, response(at: 300))
            pictures.keep(try picture(), DecodeOptions())
            XCTAssertEqual(images.entries("k").map(\.response.responseTime), [300], "as it was validated meanwhile")
            XCTAssertNotNil(images.image(writer.id, DecodeOptions()))
            cache.close()
        }
    }

    /// Where the cache is full something goes all the time.
    func testAPictureIsKeptThatWasLookedForWhileOthersWent() throws {
        for count in [1, 20_000] {
            for cache in try openAll() {
                let images = try XCTUnwrap(cache.images as? ImageTier)
                cache.put("k", bytes(100), newer)
                let pictures = images.expect("k")
                let entry = try XCTUnwrap(cache.wait("k")).entry
                images.remove((0..<count).map { EntryID(rawValue: 1_000 + Int64($0)) })
                pictures.areOf(found: entry)
                pictures.keep(try picture(), DecodeOptions())
                XCTAssertEqual(images.entries("k").count, count == 1 ? 1 : 0)
                cache.close()
            }
        }
    }

    /// A look reads what was known before it was validated.
    func testAPictureHasTheNewestHeaders() throws {
        let tier = ImageTier(maximumBytes: 10 << 20, clock: clock, changes: SharedChanges())
        let id = EntryID(rawValue: 1)
        for (time, expected) in [(100, 100), (300, 300), (200, 300)] as [(Int64, Int64)] {
            let entry = StoredEntry(id: id, response: response(at: time), mark: ChangeMark())
            tier.keep(try picture(), DecodeOptions(), of: entry, key: "k")
            XCTAssertEqual(tier.entries("k").map(\.response.responseTime), [expected])
        }
    }

    /// As bodies do: what has not been used for too long is not served, also where no body is kept beside it.
    func testAPictureThatHasNotBeenUsedForTooLong() throws {
        let tier = ImageTier(maximumBytes: 10 << 20, maximumAge: 60, clock: clock, changes: SharedChanges())
        let ids = (0..<4).map { EntryID(rawValue: $0) }
        func keep(_ index: Int) throws {
            tier.keep(
                try picture(), DecodeOptions(), of: StoredEntry(id: ids[index], response: older, mark: ChangeMark()),
                key: "k\(index)")
        }
        for index in 0..<3 { try keep(index) }
        clock.advance(seconds: 60)
        XCTAssertNotNil(tier.image(ids[1], DecodeOptions()), "used")
        tier.update(ids[2], newer)
        clock.advance(seconds: 1)
        XCTAssertEqual((0..<3).map { tier.entries("k\($0)").count }, [0, 1, 1])
        clock.advance(seconds: 1_000)
        try keep(3)
        clock.advance(seconds: -1_000)
        XCTAssertEqual(tier.entries("k3").count, 1, "the clock ran ahead")
        clock.advance(seconds: 61)
        XCTAssertEqual((0..<4).map { tier.entries("k\($0)").count }, [0, 0, 0, 0])
        XCTAssertEqual(tier.totals.count, 0)
    }

    /// The body is too long for memory, its picture is not.
    func testAPictureWithoutABodyIsRemovedWithWhatIsOlder() throws {
        var configuration = CacheConfiguration()
        configuration.maximumMemoryBytes = 1_000
        configuration.maximumImageBytes = 1 << 20
        let cache = try Cache(configuration, clock: clock) { [log] in log.add($0) }
        defer { cache.close() }
        let images = try XCTUnwrap(cache.images)
        let pictures = images.expect("k")
        let writer = try XCTUnwrap(cache.write("k", newer))
        pictures.areOf(new: StoredEntry(id: writer.id, response: newer, mark: writer.mark))
        XCTAssertTrue(finish(writer, bytes(2_000), newer))
        pictures.keep(try picture(), DecodeOptions())
        XCTAssertNil(cache.wait("k"))
        XCTAssertEqual(images.entries("k").count, 1)
        clock.advance(seconds: 10)
        try cache.removeOlder(than: 10)
        XCTAssertEqual(images.entries("k").count, 1, "not older than that")
        try cache.removeOlder(than: 9)
        XCTAssertEqual(images.entries("k").count, 0)
    }

    /// What nobody makes pictures of any more takes no room.
    func testNothingIsExpectedForEver() throws {
        let images = ImageTier(maximumBytes: 1 << 20, clock: TestClock(), changes: SharedChanges())
        for number in 0..<3 {
            let pictures = images.expect("k\(number)")
            if number > 0 {
                let id = EntryID(rawValue: Int64(number))
                pictures.areOf(new: StoredEntry(id: id, response: older, mark: ChangeMark()))
                XCTAssertEqual(images.expectedCount, 1)
            }
            if number == 2 { images.remove(key: "k2") }
        }
        XCTAssertEqual(images.expectedCount, 0)
    }
}
