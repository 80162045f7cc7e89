import CacheTesting
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Issue 20: what is lost is said, and what is removed takes nothing else with it.
final class LossTests: StoreTestCase {
    private func code(_ body: () throws -> Void) -> ErrorCode {
        do {
            try body()
            return .ok
        } catch { return (error as? Failure)?.code ?? .internal }
    }

    /// The writing thread stands still meanwhile.
    private func whileTheWriterStands(_ cache: Cache, _ body: () throws -> Void) throws {
        let standing = try XCTUnwrap(cache.disk)
        let lock = Lock()
        let changed = Condition(lock)
        nonisolated(unsafe) var mayGoOn = false
        let begun = expectation(description: "the writer stands still")
        let thread = try ImgdlCore.Thread.start(name: "standing") {
            try? standing.onWriter { _ in
                begun.fulfill()
                lock.withLock { while !mayGoOn { changed.wait() } }
            }
        }
        wait(for: [begun], timeout: 20)
        try body()
        lock.withLock {
            mayGoOn = true
            changed.broadcast()
        }
        thread.join()
    }

    func testAWriterThatStaysIsNamed() throws {
        tuning.busyMilliseconds = 250
        let cache = try open()
        try cache.flush()
        let database = try Database(path + "/index-1.sqlite", busyMilliseconds: 100)
        try database.execute("BEGIN IMMEDIATE")
        for number in 0..<8 {
            cache.put("k\(number)", bytes(100_000))
            XCTAssertEqual(code { try cache.flush() }, .cacheBusy)
        }
        XCTAssertGreaterThan(try cache.statistics().notStored, 0)
        XCTAssertEqual(Set(log.kinds), [.notStored])
        let message = try XCTUnwrap(log.all.first).message
        XCTAssertTrue(message.hasSuffix("another program has been writing to the index for some seconds"), message)
        try database.execute("COMMIT")
        try cache.flush()
        cache.close()
    }

    // MARK: Removals

    func testRemovalsThatFindTheQueueFullOfBodiesRemoveNothingElse() throws {
        tuning.queueBytes = 100_000
        let cache = try open()
        for number in 0..<10 { cache.put("old\(number)", bytes(100)) }
        try cache.flush()
        let updated = try XCTUnwrap(cache.wait("old1")).entry.id
        try whileTheWriterStands(cache) {
            for number in 0..<20 { cache.put("big\(number)", bytes(50_000)) }
            // The last bytes, too.
            for number in 0..<2_000 { cache.put("small\(number)", []) }
            for number in 0..<100 { cache.remove(key: "never\(number)/" + String(repeating: "a", count: 5_000)) }
            cache.remove(key: "old0")
            cache.update(updated, response(at: 300))
        }
        _ = code { try cache.flush() }
        XCTAssertGreaterThan(try cache.statistics().notStored, 0, "the queue was full")
        XCTAssertNil(cache.wait("old0"))
        XCTAssertNil(cache.wait("old1"), "an update without room is a removal")
        for number in 2..<10 { XCTAssertEqual(cache.wait("old\(number)")?.bytes, bytes(100), "old\(number)") }
        XCTAssertEqual(cache.disk?.withState { $0.queued }, QueuedMemory())
        cache.close()
    }

    /// They hide what they are about for some seconds, and no longer.
    private func forgetAnnouncements() { unlink(path + "/changes-1") }

    /// A POST that succeeded, and the program ends: the next one may not answer from before.
    func testWhatIsRemovedStaysRemovedWhereAnotherProgramWritesUntilTheCacheIsClosed() throws {
        tuning.closingMilliseconds = 1
        tuning.closingRemovalMilliseconds = 1
        var cache = try open()
        for key in ["a", "b", "c"] { cache.put(key, bytes(100)) }
        try cache.flush()
        let ids = try ["b", "c"].map { try XCTUnwrap(cache.wait($0)).entry.id }
        let other = try Database(path + "/index-1.sqlite", busyMilliseconds: 5_000)
        try other.execute("BEGIN IMMEDIATE")
        cache.remove(key: "a")
        cache.remove(ids[0])
        cache.close()
        try other.execute("ROLLBACK")
        forgetAnnouncements()
        cache = try open()
        XCTAssertNil(cache.wait("a"))
        XCTAssertNil(cache.wait("b"))
        XCTAssertEqual(cache.wait("c")?.bytes, bytes(100))
        XCTAssertEqual(files.count, 1)
        cache.close()
    }

    /// Answers without a body have nothing but the index.
    func testRemovalsGetMoreTimeThanBodiesWhenTheCacheIsClosed() throws {
        tuning.closingMilliseconds = 1
        tuning.closingRemovalMilliseconds = 20_000
        var cache = try open()
        cache.put("head", [])
        try cache.flush()
        let other = try Database(path + "/index-1.sqlite", busyMilliseconds: 5_000)
        try other.execute("BEGIN IMMEDIATE")
        cache.remove(key: "head")
        let lost = expectation(description: "the body is given up")
        log.listen { if $0.kind == .notStored { lost.fulfill() } }
        cache.put("body", bytes(100))
        let closing = try ImgdlCore.Thread.start(name: "closing") { [cache] in cache.close() }
        wait(for: [lost], timeout: 20)
        try other.execute("ROLLBACK")
        closing.join()
        forgetAnnouncements()
        cache = try open()
        XCTAssertNil(cache.wait("head"))
        cache.close()
    }

    // MARK: Bodies

    private func checkThatFlushSaysIt(_ harm: (String) throws -> Void, line: UInt = #line) throws {
        let cache = try open()
        cache.put("first", bytes(100))
        try cache.flush()
        cache.put("second", bytes(100))
        XCTAssertEqual(try cache.statistics().unflushed, 1, line: line)
        try harm(path)
        XCTAssertEqual(code { try cache.flush() }, .diskFailed, line: line)
        XCTAssertNil(cache.wait("second"), line: line)
        XCTAssertEqual(try cache.statistics().notStored, 1, line: line)
        XCTAssertEqual(try cache.statistics().unflushed, 0, line: line)
        XCTAssertEqual(code { try cache.flush() }, .ok, "said once", line: line)
        cache.put("second", bytes(100))
        XCTAssertEqual(code { try cache.flush() }, .ok, line: line)
        XCTAssertEqual(cache.wait("second")?.bytes, bytes(100), line: line)
        cache.close()
        removeFolder(path)
    }

    func testAFlushSaysThatABodyWasLost() throws {
        try checkThatFlushSaysIt { removeFolder($0) }
        try checkThatFlushSaysIt { removeFolder($0 + "/writers-1") }
        try checkThatFlushSaysIt { path in
            for writer in Folder.names(in: path + "/writers-1") {
                for name in Folder.names(in: "\(path)/writers-1/\(writer)") {
                    unlink("\(path)/writers-1/\(writer)/\(name)")
                }
            }
        }
        try checkThatFlushSaysIt { path in
            try Database(path + "/index-1.sqlite", busyMilliseconds: 100).execute("DROP TABLE entries")
        }
    }

    func testWhatIsGoneIsNotUnflushed() throws {
        let cache = try open()
        func put(_ count: Int) throws {
            for number in 0..<count { cache.put("k\(number)", bytes(100)) }
            try cache.disk?.writeRemovals()
            XCTAssertEqual(try cache.statistics().unflushed, Int64(count))
        }
        try put(30)
        try cache.clear()
        XCTAssertEqual(try cache.statistics().unflushed, 0)
        try put(5)
        try cache.removeAndWait(key: "k0")
        XCTAssertEqual(try cache.statistics().unflushed, 4)
        cache.put("k1", bytes(10))
        try cache.disk?.writeRemovals()
        XCTAssertEqual(try cache.statistics().unflushed, 4, "one took the other's place")
        clock.advance(seconds: 10)
        try cache.removeOlder(than: 5)
        XCTAssertEqual(try cache.statistics().unflushed, 0)
        try put(3)
        removeFolder(path)
        try put(1)
        cache.close()
    }

    // MARK: Pictures

    private func keepPicture(_ cache: Cache, _ key: String) throws -> StoredEntry {
        let entry = try XCTUnwrap(cache.findInMemory(key) { _ in .entry(0, withBody: true) }).entry
        let pixels = try PixelBuffer(width: 10, height: 10, format: .rgba8)
        let header = ImageHeader(format: .png, width: 10, height: 10, hasAlpha: true, isProgressive: false)
        let whole = PixelRectangle(x: 0, y: 0, width: 10, height: 10)
        let image = DecodedImage(header: header, pixels: pixels, ready: whole, isComplete: true)
        try XCTUnwrap(cache.images).keep(image, DecodeOptions(), of: entry, key: key)
        XCTAssertEqual(try cache.statistics().imageEntries, 1)
        return entry
    }

    func testRemoveOlderAlsoRemovesPicturesOfWhatTheDiskDidNotStore() throws {
        configuration.maximumBytes = 4_096
        configuration.maximumMemoryBytes = 1 << 20
        configuration.maximumImageBytes = 1 << 20
        let cache = try open()
        cache.put("k", bytes(100))
        _ = code { try cache.flush() }
        XCTAssertEqual(try cache.statistics().entries, 0)
        let entry = try keepPicture(cache, "k")
        clock.advance(seconds: 10)
        try cache.removeOlder(than: 5)
        XCTAssertNil(cache.images?.image(entry.id, DecodeOptions()))
        cache.close()
    }

    func testRemoveOlderRemovesPicturesAlsoWhereTheDiskCannot() throws {
        tuning.busyMilliseconds = 250
        configuration.maximumMemoryBytes = 1 << 20
        configuration.maximumImageBytes = 1 << 20
        let cache = try open()
        cache.put("k", bytes(100))
        try cache.flush()
        let entry = try keepPicture(cache, "k")
        let other = try Database(path + "/index-1.sqlite", busyMilliseconds: 5_000)
        try other.execute("BEGIN IMMEDIATE")
        clock.advance(seconds: 10)
        XCTAssertEqual(code { try cache.removeOlder(than: 5) }, .cacheBusy)
        XCTAssertNil(cache.images?.image(entry.id, DecodeOptions()))
        try other.execute("ROLLBACK")
        cache.close()
    }

    func testHeadersThatGrowCountWithThePictureAndWithWhatTheyPushOut() throws {
        configuration.directory = nil
        configuration.maximumMemoryBytes = 40_000
        configuration.maximumImageBytes = 40_000
        let cache = try open()
        cache.put("k", bytes(15_000))
        let entry = try keepPicture(cache, "k")
        let before = try cache.statistics().imageBytes
        cache.update(entry.id, response([HeaderField("X", String(repeating: "x", count: 2_000))]))
        XCTAssertGreaterThan(try cache.statistics().imageBytes, before + 2_000)
        cache.put("m", bytes(9_000))
        cache.put("l", bytes(3_000))
        let other = try XCTUnwrap(cache.wait("l")).entry.id
        cache.update(other, response([HeaderField("X", String(repeating: "x", count: 11_000))]))
        XCTAssertEqual(try cache.statistics().memoryEntries, 2)
        XCTAssertEqual(try cache.statistics().evicted, 1)
        XCTAssertNil(cache.images?.image(entry.id, DecodeOptions()), "its entry was evicted")
        cache.close()
    }

    // MARK: The key

    /// It began without the folder; another program was there first.
    func testTheFoldersKeyIsTakenWhereItComesLater() throws {
        write([1], to: path)
        let cache = try open()
        XCTAssertEqual(code { try cache.flush() }, .diskFailed)
        unlink(path)
        let other = try open()
        try other.flush()
        clock.advance(seconds: 1)
        XCTAssertFalse(cache.put("k", bytes(10)), "this one finds out")
        XCTAssertEqual(code { try cache.flush() }, .diskFailed, "and is lost")
        var message = ContextMessage()
        message.add("u")
        XCTAssertEqual(cache.digest(message), other.digest(message))
        cache.close()
        other.close()
    }
}
