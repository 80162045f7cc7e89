import CStore
import CacheTesting
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Issue 20: what removes and flushes says when nothing was done, and makes room on a full disk.
final class TruthTests: StoreTestCase {
    private func code(_ body: () throws -> Void) -> ErrorCode {
        do {
            try body()
            return .ok
        } catch { return (error as? Failure)?.code ?? .internal }
    }

    private func codes(_ cache: Cache) -> [ErrorCode] {
        [
            code { try cache.removeAndWait(key: "a") }, code { try cache.removeOlder(than: 0) },
            code { try cache.clear() }, code { try cache.flush() },
        ]
    }

    private func makeStored(_ count: Int = 2, size: Int = 100) throws {
        let cache = try open()
        for number in 0..<count { cache.put(["a", "b"].dropFirst(number).first ?? "k\(number)", bytes(size)) }
        try cache.flush()
        cache.close()
    }

    func testAnotherProgramInATransactionIsBusy() throws {
        tuning.busyMilliseconds = 250
        try makeStored()
        clock.advance(seconds: 10)
        let cache = try open()
        XCTAssertNotNil(cache.wait("a"))
        try cache.finishBackgroundWork()
        let other = try Database(path + "/index-1.sqlite", busyMilliseconds: 5_000)
        try other.execute("BEGIN IMMEDIATE")
        XCTAssertEqual(codes(cache), [.cacheBusy, .cacheBusy, .cacheBusy, .cacheBusy])
        XCTAssertEqual(code { try cache.removeAndWait(key: "never") }, .cacheBusy, "the other may be storing it now")
        XCTAssertNil(cache.wait("a"), "this program serves it no more")
        XCTAssertNil(cache.wait("b"))
        XCTAssertEqual(try other.integer("SELECT count(*) FROM entries"), 2, "nothing was done")
        try other.execute("COMMIT")
        XCTAssertEqual(codes(cache), [.ok, .ok, .ok, .ok])
        XCTAssertEqual(try other.integer("SELECT count(*) FROM entries"), 0)
        XCTAssertEqual(files, [])
        cache.close()
    }

    private func mountSmallDisk() throws {
        mkdir(path, 0o700)
        guard mount("tmpfs", path, "tmpfs", 0, "size=640k,mode=700") == 0 else {
            throw XCTSkip("this machine cannot mount a file system")
        }
    }

    /// Nothing is left, not even for a page of the index.
    private func fill() {
        let descriptor = Glibc.open(path + "/filler", O_WRONLY | O_CREAT, 0o600)
        let block = [UInt8](repeating: 1, count: 4096)
        while Glibc.write(descriptor, block, block.count) > 0 {}
        close(descriptor)
    }

    func testAFullDiskIsClearedAndWorksAgain() throws {
        try mountSmallDisk()
        defer { umount(path) }
        let cache = try open()
        for number in 0..<10 { cache.put("k\(number)", bytes(20_000)) }
        try cache.flush()
        fill()
        cache.put("more", bytes(20_000))
        XCTAssertEqual(code { try cache.flush() }, .diskFull)
        XCTAssertEqual(log.kinds, [.unwritable])
        XCTAssertEqual(code { try cache.clear() }, .ok)
        XCTAssertEqual(files, [])
        XCTAssertEqual(log.kinds, [.unwritable, .writable])
        cache.put("new", bytes(20_000))
        try cache.flush()
        XCTAssertEqual(cache.wait("new")?.bytes, bytes(20_000))
        cache.close()
    }

    /// Answers without a body: the index alone has room to give.
    func testAFullDiskWithoutBodiesIsCleared() throws {
        try mountSmallDisk()
        defer { umount(path) }
        var cache = try open()
        for number in 0..<200 { cache.put("k\(number)", []) }
        try cache.flush()
        fill()
        for number in 0..<200 { cache.put("more\(number)", []) }
        XCTAssertEqual(code { try cache.flush() }, .diskFull)
        XCTAssertEqual(code { try cache.removeAndWait(key: "k1") }, .diskFull, "there is nothing that makes room")
        XCTAssertNil(cache.wait("k1"))
        clock.advance(seconds: 100)
        XCTAssertEqual(code { try cache.removeOlder(than: 50) }, .diskFull, "all is that old, and nothing makes room")
        XCTAssertNotNil(cache.wait("k2"), "it stays until that is asked for again")
        XCTAssertEqual(code { try cache.clear() }, .ok)
        XCTAssertNil(cache.wait("k2"))
        XCTAssertEqual(try cache.statistics().entries, 0)
        cache.close()
        cache = try open()
        cache.put("new", bytes(10))
        try cache.flush()
        XCTAssertNil(cache.wait("k1"))
        XCTAssertEqual(cache.wait("new")?.bytes, bytes(10))
        cache.close()
    }

    func testRemovingMakesRoomOnAFullDisk() throws {
        try mountSmallDisk()
        defer { umount(path) }
        let cache = try open()
        for number in 0..<10 { cache.put("k\(number)", bytes(20_000)) }
        try cache.flush()
        clock.advance(seconds: 100)
        cache.put("young", bytes(20_000))
        try cache.flush()
        fill()
        XCTAssertEqual(code { try cache.removeAndWait(key: "k1") }, .ok)
        XCTAssertEqual(files.count, 10)
        fill()
        XCTAssertEqual(code { try cache.removeOlder(than: 50) }, .ok)
        XCTAssertEqual(files.count, 1)
        XCTAssertNotNil(cache.wait("young"))
        cache.close()
    }

    /// What was asked for before and had no room is in nobody's way, and what was just used stays.
    func testRemovingWhatIsOldMakesRoomOnAFullDiskThatOwesARemoval() throws {
        try mountSmallDisk()
        defer { umount(path) }
        let cache = try open()
        for number in 0..<10 { cache.put("k\(number)", bytes(20_000)) }
        cache.put("small", bytes(1_000))
        cache.put("empty", [])
        try cache.flush()
        clock.advance(seconds: 100)
        cache.put("young", bytes(20_000))
        try cache.flush()
        let used = try XCTUnwrap(cache.wait("k3")).entry.id
        fill()
        XCTAssertEqual(code { try cache.removeAndWait(key: "empty") }, .diskFull, "there is nothing that makes room")
        cache.use(used)
        XCTAssertEqual(code { try cache.removeOlder(than: 50) }, .ok)
        XCTAssertEqual(files.count, 2)
        for key in ["young", "k3"] { XCTAssertEqual(cache.wait(key)?.bytes.count, 20_000, key) }
        XCTAssertNil(cache.wait("empty"))
        XCTAssertEqual(try cache.statistics().entries, 2)
        XCTAssertEqual(log.kinds, [.unwritable, .writable])
        cache.put("new", bytes(20_000))
        try? cache.flush()
        try cache.flush()
        cache.close()
    }

    /// Nobody could write that they were used.
    func testWhatWasUsedStaysOnAFullDiskThatHasNoRoomForItsUse() throws {
        try mountSmallDisk()
        defer { umount(path) }
        let cache = try open()
        for number in 0..<8 { cache.put("k\(number)", bytes(20_000)) }
        try cache.flush()
        let ids = try (4..<8).map { try XCTUnwrap(cache.wait("k\($0)")).entry.id }
        clock.advance(seconds: 100)
        fill()
        for id in ids { cache.use(id) }
        cache.put("more", bytes(20_000))
        XCTAssertEqual(code { try cache.flush() }, .diskFull)
        XCTAssertEqual(code { try cache.removeOlder(than: 200) }, .ok, "nothing is that old")
        XCTAssertEqual(files.count, 8)
        XCTAssertEqual(code { try cache.removeOlder(than: 50) }, .ok)
        XCTAssertEqual(files.count, 4)
        for number in 4..<8 { XCTAssertEqual(cache.wait("k\(number)")?.bytes.count, 20_000, "\(number)") }
        XCTAssertEqual(code { try cache.removeOlder(than: 50) }, .ok)
        XCTAssertEqual(files.count, 4, "and now the index knows")
        cache.close()
    }

    /// No room is needed for that, and it is no error.
    func testThereIsNothingToRemoveOnAFullDisk() throws {
        try mountSmallDisk()
        defer { umount(path) }
        let cache = try open()
        for number in 0..<5 { cache.put("k\(number)", bytes(20_000)) }
        cache.put("empty", [])
        try cache.flush()
        // It writes to the index, too, when there is time.
        try cache.finishBackgroundWork()
        fill()
        func check(_ words: String) throws {
            XCTAssertEqual(code { try cache.removeAndWait(key: "never") }, .ok, words)
            XCTAssertEqual(code { try cache.removeOlder(than: 50) }, .ok, words)
            XCTAssertTrue(try XCTUnwrap(cache.disk).withState { $0.changes.bodies("never").isEmpty }, words)
            XCTAssertEqual(files.count, 5, words)
        }
        try check("while nobody knows that it is full")
        XCTAssertEqual(log.kinds, [], "nothing was written")
        cache.put("more", bytes(20_000))
        XCTAssertEqual(code { try cache.flush() }, .diskFull)
        try check("while it is known to be full")
        XCTAssertEqual(code { try cache.removeAndWait(key: "empty") }, .diskFull)
        try check("while another removal waits")
        XCTAssertEqual(code { try cache.removeAndWait(key: "empty") }, .diskFull, "it is still there")
        XCTAssertEqual(cache.wait("k1")?.bytes, bytes(20_000))
        cache.close()
    }

    /// What is on its way there is not stored after that, by whomever.
    func testAnAnswerUnderWayIsNotStoredWhereThereIsNothingToRemoveYet() throws {
        let (cache, other) = (try open(), try open())
        try cache.flush()
        try other.flush()
        let writers = [try XCTUnwrap(cache.write("k", response())), try XCTUnwrap(other.write("k", response()))]
        try cache.removeAndWait(key: "k")
        XCTAssertTrue(try XCTUnwrap(cache.disk).withState { $0.changes.isEmpty })
        for writer in writers {
            writer.append(slices(bytes(10)))
            writer.finish(response())
        }
        for cache in [cache, other] { try cache.flush() }
        for cache in [cache, other] { XCTAssertNil(cache.wait("k")) }
        XCTAssertEqual(files, [])
        cache.put("k", bytes(10))
        // It is not written yet, and so the index does not know it.
        try cache.removeAndWait(key: "k")
        try cache.flush()
        XCTAssertNil(other.wait("k"))
        XCTAssertEqual(files, [])
        for cache in [cache, other] { cache.close() }
    }

    /// A process that finds the disk full when it opens: what is there is served, and can be cleared.
    func testAFullDiskServesAndIsClearedByWhoOpensItLater() throws {
        try mountSmallDisk()
        defer { umount(path) }
        try makeStored(10, size: 20_000)
        fill()
        let cache = try open()
        XCTAssertEqual(cache.wait("a")?.bytes, bytes(20_000))
        XCTAssertEqual(code { try cache.clear() }, .ok)
        XCTAssertEqual(files, [])
        cache.put("new", bytes(100))
        try cache.flush()
        XCTAssertEqual(cache.wait("new")?.bytes, bytes(100))
        cache.close()
    }

    /// As of a folder that was copied without the file by which programs have the log in common: there is no room for one.
    func testAFullDiskServesWhatIsInTheLog() throws {
        try mountSmallDisk()
        defer { umount(path) }
        let stored = clock.wallTime()
        try makeStored()
        clock.advance(seconds: 10)
        let index = path + "/index-1.sqlite"
        var other: Database? = try Database(index, busyMilliseconds: 0)
        try other?.execute("UPDATE entries SET used = used + 1")
        let copies = [index, index + "-wal"].map { (name: $0, content: read($0)) }
        // It may bring the log into the file.
        other = nil
        for copy in copies { write(copy.content, to: copy.name) }
        XCTAssertGreaterThan(FileVersion.size(index + "-wal"), 0)
        XCTAssertEqual(unlink(index + "-shm"), 0)
        fill()
        configuration.maximumMemoryBytes = 1 << 20
        // The first one may leave the beginning of that file.
        for _ in 0..<2 {
            let cache = try open()
            XCTAssertEqual(cache.wait("a")?.bytes, bytes(100))
            XCTAssertEqual(try cache.query("b")?.usedTime, stored + 1, "what is in the log counts")
            XCTAssertEqual(try cache.statistics().entries, 2)
            XCTAssertFalse(try cache.statistics().isWritable)
            cache.put("c", bytes(10))
            XCTAssertEqual(code { try cache.flush() }, .diskFull)
            XCTAssertEqual(cache.wait("b")?.bytes, bytes(100))
            cache.close()
        }
        let cache = try open()
        XCTAssertEqual(cache.wait("a")?.bytes, bytes(100))
        XCTAssertEqual(unlink(path + "/filler"), 0)
        XCTAssertEqual(code { try cache.flush() }, .ok)
        cache.put("c", bytes(10))
        XCTAssertEqual(code { try cache.flush() }, .ok)
        for (key, count) in [("a", 100), ("b", 100), ("c", 10)] { XCTAssertEqual(cache.wait(key)?.bytes, bytes(count)) }
        cache.close()
    }

    func testAReadOnlyDiskServesWhatItHasAndSaysSo() throws {
        for (leavesLog, isShared) in [(false, true), (true, true), (true, false)] {
            let before = log.all.count
            let stored = clock.wallTime()
            try makeStored()
            clock.advance(seconds: 10)
            var kept = leavesLog ? try Database(path + "/index-1.sqlite", busyMilliseconds: 0) : nil
            if let kept { try kept.execute("UPDATE entries SET used = used + 1") }
            // As of a folder that was copied without it.
            if !isShared { unlink(path + "/index-1.sqlite-shm") }
            try mountReadOnly()
            defer {
                kept = nil
                XCTAssertEqual(umount(path), 0)
                removeFolder(path)
            }
            configuration.maximumMemoryBytes = 1 << 20
            let cache = try open()
            XCTAssertEqual(cache.wait("a")?.bytes, bytes(100))
            XCTAssertEqual(cache.wait("b")?.bytes, bytes(100))
            XCTAssertEqual(try cache.query("b")?.response.bodyLength, 100)
            XCTAssertEqual(try cache.query("b")?.usedTime, leavesLog ? stored + 1 : stored, "what is in the log counts")
            XCTAssertEqual(try cache.statistics().entries, 2)
            XCTAssertFalse(try cache.statistics().isWritable)
            XCTAssertEqual(log.kinds.dropFirst(before), [.unwritable])
            XCTAssertEqual(code { try cache.removeAndWait(key: "never") }, .ok, "there is nothing to remove")
            XCTAssertEqual(code { try cache.removeOlder(than: 50) }, .ok, "nothing is that old")
            XCTAssertEqual(codes(cache), [.readOnly, .readOnly, .readOnly, .readOnly])
            XCTAssertNil(cache.wait("a"), "it was removed, as far as this program is concerned")
            cache.close()
        }
    }

    /// Whoever may only read it finds the new one, and the key by which its answers are found, without waiting for the time
    /// when the disk is tried again.
    func testAReaderFindsAFolderThatIsMadeAnew() throws {
        tuning.firstRetryMilliseconds = 3_600_000
        tuning.lastRetryMilliseconds = 3_600_000
        var digest = try store("a")
        try mountReadOnly()
        let reader = try open()
        defer { reader.close() }
        XCTAssertEqual(reader.wait("a")?.bytes, bytes(100))
        XCTAssertEqual(reader.digest(ContextMessage()), digest)
        for (name, isEmptyMeanwhile) in [("b", false), ("c", true), ("d", false)] {
            try unmount()
            removeFolder(path)
            if isEmptyMeanwhile {
                XCTAssertEqual(mkdir(path, 0o700), 0)
                try mountReadOnly()
                for _ in 0..<3 {
                    XCTAssertNil(reader.wait("a"))
                    _ = try reader.statistics()
                    clock.advance(seconds: 1)
                }
                try unmount()
            }
            let before = digest
            digest = try store(name)
            XCTAssertNotEqual(digest, before)
            try mountReadOnly()
            _ = reader.wait(name)
            _ = try reader.statistics()
            XCTAssertEqual(reader.digest(ContextMessage()), digest)
            XCTAssertEqual(reader.wait(name)?.bytes, bytes(100))
            XCTAssertFalse(try reader.statistics().isWritable)
            clock.advance(seconds: 1)
        }
        try unmount()
    }

    private func unmount() throws { XCTAssertEqual(umount2(path, Int32(MNT_DETACH)), 0) }

    private func store(_ key: String) throws -> ContextDigest {
        let cache = try open()
        defer { cache.close() }
        cache.put(key, bytes(100))
        try cache.flush()
        return cache.digest(ContextMessage())
    }

    private func mountReadOnly() throws {
        guard mount(path, path, nil, UInt(MS_BIND), nil) == 0,
            mount(nil, path, nil, UInt(MS_BIND | MS_REMOUNT | MS_RDONLY), nil) == 0
        else { throw XCTSkip("this machine cannot mount a file system") }
    }

    func testABrokenDiskIsSaidByTheNextFlush() throws {
        let disk = FailingDisk()
        tuning.disk = disk
        let cache = try open()
        disk.fail(.write, EIO)
        cache.put("k", bytes(100))
        XCTAssertEqual(code { try cache.flush() }, .diskFailed)
        XCTAssertEqual(code { try cache.flush() }, .diskFailed)
        disk.fail(.write, nil)
        clock.advance(seconds: 1)
        XCTAssertFalse(cache.put("k", bytes(100)), "this one finds out")
        XCTAssertEqual(code { try cache.flush() }, .diskFailed, "and is lost")
        XCTAssertTrue(cache.put("k", bytes(100)))
        XCTAssertEqual(code { try cache.flush() }, .ok)
        cache.close()
    }

    func testWhatWasLostIsSaidByTheNextFlushAlsoWhenTheDiskWorksAgain() throws {
        let disk = FailingDisk()
        tuning.disk = disk
        let cache = try open()
        disk.fail(.write, ENOSPC)
        cache.put("k", bytes(100))
        _ = try cache.statistics()
        disk.fail(.write, nil)
        clock.advance(seconds: 1)
        cache.put("l", bytes(100))
        _ = try cache.statistics()
        XCTAssertEqual(log.kinds, [.unwritable, .writable])
        XCTAssertEqual(code { try cache.flush() }, .diskFull)
        XCTAssertEqual(code { try cache.flush() }, .ok)
        cache.close()
    }
}
