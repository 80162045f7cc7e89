import CacheTesting
import CSystem
import Glibc
import ImgdlCore
import XCTest

@testable import ImgdlCache

/// Issue 5: a full or read-only disk degrades to no cache, with an event; it is tried again now and then.
final class FailingDiskTests: StoreTestCase {
    func testEveryStepMayFailAndTheStoreComesBack() throws {
        for (step, number) in [
            (FailingDisk.Step.create, EROFS), (.write, ENOSPC), (.write, EDQUOT), (.close, EDQUOT),
            (.rename, EROFS),
        ] {
            let disk = FailingDisk()
            tuning.disk = disk
            let cache = try open()
            let before = log.all.count
            cache.put("old", bytes(100))
            try cache.flush()
            disk.fail(step, number)
            cache.put("k", bytes(100))
            XCTAssertThrowsError(try cache.flush(), "\(step)")
            XCTAssertNil(cache.wait("k"), "\(step)")
            XCTAssertEqual(temporaries, [], "\(step)")
            XCTAssertEqual(files.count, 1, "\(step)")
            XCTAssertEqual(log.kinds.dropFirst(before), [.unwritable], "\(step)")
            XCTAssertTrue(try XCTUnwrap(log.all.last).message.contains(String(cString: strerror(number))), "\(step)")
            XCTAssertFalse(try cache.statistics().isWritable)
            XCTAssertEqual(cache.wait("old")?.bytes, bytes(100), "what is there can be read")
            // It is left alone for a second; then for two.
            XCTAssertFalse(cache.put("k", bytes(100)))
            clock.advance(seconds: 1)
            XCTAssertFalse(cache.put("k", bytes(100)))
            XCTAssertThrowsError(try cache.flush(), "\(step)")
            XCTAssertEqual(log.kinds.dropFirst(before), [.unwritable], "said once")
            disk.fail(step, nil)
            clock.advance(seconds: 1)
            XCTAssertFalse(cache.put("k", bytes(100)), "\(step)")
            clock.advance(seconds: 1)
            XCTAssertFalse(cache.put("k", bytes(100)), "this one finds out")
            XCTAssertEqual(failure(cache)?.code, DiskError.code(number), "\(step): and is lost")
            XCTAssertEqual(log.kinds.dropFirst(before), [.unwritable, .writable], "\(step)")
            XCTAssertTrue(cache.put("k", bytes(100)), "\(step)")
            try cache.flush()
            XCTAssertEqual(cache.wait("k")?.bytes, bytes(100), "\(step)")
            XCTAssertTrue(try cache.statistics().isWritable)
            cache.remove(key: "k")
            cache.remove(key: "old")
            cache.close()
        }
    }

    /// What is stored can be read, and a flush says that the disk does not keep it.
    func testASyncMayFail() throws {
        let disk = FailingDisk()
        tuning.disk = disk
        let cache = try open()
        let before = log.all.count
        disk.fail(.synchronize, EIO)
        cache.put("k", bytes(100))
        XCTAssertThrowsError(try cache.flush()) { XCTAssertEqual(($0 as? Failure)?.code, .diskFailed) }
        XCTAssertEqual(log.kinds.dropFirst(before), [.unwritable])
        XCTAssertEqual(cache.wait("k")?.bytes, bytes(100))
        disk.fail(.synchronize, nil)
        clock.advance(seconds: 1)
        XCTAssertFalse(cache.put("l", bytes(100)), "this one finds out")
        XCTAssertEqual(failure(cache)?.code, .diskFailed, "and is lost")
        XCTAssertEqual(log.kinds.dropFirst(before), [.unwritable, .writable])
        cache.close()
    }

    /// Issue 20: one sync for all that came before, and none without a flush.
    func testOneSyncForManyBodies() throws {
        let disk = FailingDisk()
        tuning.disk = disk
        let cache = try open()
        for number in 0..<2_000 { cache.put("\(number)", bytes(10)) }
        XCTAssertTrue(disk.synchronizations == (0, 0))
        try cache.flush()
        XCTAssertTrue(disk.synchronizations == (0, 1))
        cache.put("k", bytes(10))
        try cache.flush()
        XCTAssertTrue((1...5).contains(disk.synchronizations.single), "the body, its folder, the index")
        let before = disk.synchronizations
        cache.put("l", bytes(10))
        cache.close()
        XCTAssertTrue(disk.synchronizations == before)
    }

    private func failure(_ cache: Cache) -> Failure? {
        do {
            try cache.flush()
            return nil
        } catch { return error }
    }

    /// What comes while the disk is known not to work is nowhere: the next flush says so, also where the disk works by then.
    func testAFlushSaysOnceThatSomethingCameWhileTheDiskDidNotWork() throws {
        let disk = FailingDisk()
        tuning.disk = disk
        let cache = try open()
        cache.put("changed", bytes(100))
        try cache.flush()
        let changed = try XCTUnwrap(cache.wait("changed")).entry.id
        let comings: [(String, () -> Void)] = [
            ("body", { XCTAssertFalse(cache.put("second", bytes(100))) }),
            ("headers", { cache.update(changed, response(at: 300)) }),
        ]
        for (words, come) in comings {
            disk.fail(.write, ENOSPC)
            cache.put("first", bytes(100))
            XCTAssertEqual(failure(cache)?.code, .diskFull, words)
            come()
            disk.fail(.write, nil)
            let told = try XCTUnwrap(failure(cache), words)
            XCTAssertEqual(told.code, .diskFull, words)
            XCTAssertTrue(told.message.contains(String(cString: strerror(ENOSPC))), told.message)
            XCTAssertNil(failure(cache), "\(words): said once")
            disk.fail(.write, ENOSPC)
            cache.put("first", bytes(100))
            XCTAssertEqual(failure(cache)?.code, .diskFull, words)
            disk.fail(.write, nil)
            XCTAssertNil(failure(cache), "\(words): nothing has come since")
        }
        XCTAssertNil(cache.wait("changed"), "without the new headers it is none")
        XCTAssertEqual(try cache.statistics().notStored, 5)
        cache.close()
    }

    /// It works again once all works that storing needs.
    func testWhatStoringNeedsIsTriedBeforeItWorksAgain() throws {
        let disk = FailingDisk()
        tuning.disk = disk
        let damages: [(String, damage: (String) -> Void, mend: (String) -> Void)] = [
            (
                "the lock",
                { path in
                    unlink(path + "/lock-1")
                    mkdir(path + "/lock-1", 0o700)
                    mkdir(path + "/lock-1/full", 0o700)
                }, { path in rmdir(path + "/lock-1/full") }
            ),
            ("the bodies' folder", { _ in disk.fail(.publish, EACCES) }, { _ in disk.fail(.publish, nil) }),
        ]
        for (words, damage, mend) in damages {
            let cache = try open()
            let before = log.all.count
            cache.put("before", bytes(100))
            try cache.flush()
            damage(path)
            for number in 0..<6 {
                cache.put("\(number)", bytes(100))
                XCTAssertNotNil(failure(cache), "\(words): \(number)")
            }
            XCTAssertEqual(log.kinds.dropFirst(before), [.unwritable], words)
            XCTAssertFalse(try cache.statistics().isWritable, words)
            mend(path)
            XCTAssertNil(failure(cache), words)
            XCTAssertEqual(log.kinds.dropFirst(before), [.unwritable, .writable], words)
            XCTAssertEqual(files.count, 1, "\(words): nothing is left of trying")
            cache.put("after", bytes(100))
            XCTAssertNil(failure(cache), words)
            XCTAssertEqual(cache.wait("after")?.bytes, bytes(100), words)
            cache.close()
            removeFolder(path)
        }
    }

    func testWhatIsRemovedWhileTheDiskFailsStaysRemoved() throws {
        let disk = FailingDisk()
        tuning.disk = disk
        let cache = try open()
        cache.put("a", bytes(100))
        cache.put("b", bytes(100))
        try cache.flush()
        disk.fail(.write, ENOSPC)
        cache.put("c", bytes(100))
        XCTAssertThrowsError(try cache.flush())
        cache.remove(key: "a")
        XCTAssertThrowsError(try cache.flush())
        XCTAssertNil(cache.wait("a"))
        disk.fail(.write, nil)
        clock.advance(seconds: 1)
        XCTAssertFalse(cache.put("c", bytes(100)))
        XCTAssertEqual(failure(cache)?.code, .diskFull, "it is lost")
        XCTAssertEqual(log.kinds, [.unwritable, .writable])
        XCTAssertNil(cache.wait("a"))
        XCTAssertEqual(files.count, 1)
        XCTAssertEqual(cache.wait("b")?.bytes, bytes(100))
        cache.close()
    }

    func testMemoryGoesOnWhileTheDiskFails() throws {
        let disk = FailingDisk()
        tuning.disk = disk
        configuration.maximumMemoryBytes = 1 << 20
        let cache = try open()
        disk.fail(.write, ENOSPC)
        cache.put("k", bytes(100))
        XCTAssertThrowsError(try cache.flush())
        XCTAssertTrue(cache.put("l", bytes(100)))
        XCTAssertNotNil(cache.findInMemory("k") { _ in .entry(0, withBody: true) })
        XCTAssertNotNil(cache.findInMemory("l") { _ in .entry(0, withBody: true) })
        cache.close()
    }

    func testAFileInThePlaceOfTheFolder() throws {
        write([1], to: path)
        let cache = try open()
        XCTAssertNil(cache.wait("k"))
        XCTAssertThrowsError(try cache.flush())
        XCTAssertEqual(log.kinds, [.unwritable])
        XCTAssertTrue(log.all[0].message.contains(path))
        XCTAssertFalse(cache.put("k", bytes(10)))
        unlink(path)
        clock.advance(seconds: 1)
        XCTAssertFalse(cache.put("k", bytes(10)))
        XCTAssertEqual(failure(cache)?.code, .diskFailed, "it is lost")
        XCTAssertTrue(cache.put("k", bytes(10)))
        try cache.flush()
        XCTAssertEqual(cache.wait("k")?.bytes, bytes(10))
        XCTAssertEqual(log.kinds, [.unwritable, .writable])
        try checkSharedKey(cache)
        cache.close()
    }

    func testAFolderThatCannotBeMade() throws {
        for directory in ["", "/proc/nothing/here", "/dev/null/cache"] {
            configuration.directory = directory
            let events = EventLog()
            let cache = try Cache(configuration, clock: clock, tuning: tuning) { events.add($0) }
            XCTAssertThrowsError(try cache.flush())
            XCTAssertEqual(events.kinds, [.unwritable], directory)
            XCTAssertNil(cache.wait("k"))
            XCTAssertEqual(try cache.statistics().entries, 0)
            cache.close()
        }
    }

    func testTheFolderIsTakenAway() throws {
        let cache = try open()
        cache.put("k", bytes(10))
        try cache.flush()
        removeFolder(path)
        XCTAssertNil(cache.wait("k"))
        // It is made again before anything is written.
        cache.put("k", bytes(10))
        try cache.flush()
        XCTAssertEqual(log.kinds, [])
        XCTAssertEqual(cache.wait("k")?.bytes, bytes(10))
        try checkSharedKey(cache)
        cache.close()
    }

    /// Whoever opens the folder from now on tells contexts apart by the key that this one has.
    private func checkSharedKey(_ cache: Cache) throws {
        var message = ContextMessage()
        message.add("u")
        let other = try open()
        XCTAssertEqual(other.digest(message), cache.digest(message))
        other.close()
    }

    /// The index itself has no room: a real file system of 256 KiB, where one can be mounted.
    func testAFullFileSystem() throws {
        mkdir(path, 0o700)
        guard mount("tmpfs", path, "tmpfs", 0, "size=512k,mode=700") == 0 else {
            throw XCTSkip("this machine cannot mount a file system")
        }
        defer { umount(path) }
        let cache = try open()
        try cache.flush()
        var stored = 0
        while log.all.isEmpty, stored < 100 {
            cache.put("k\(stored)", bytes(20_000, seed: UInt64(stored)))
            try? cache.flush()
            stored += 1
        }
        XCTAssertEqual(log.kinds, [.unwritable])
        XCTAssertGreaterThan(stored, 3)
        for i in 0..<stored {
            if let found = cache.wait("k\(i)") { XCTAssertEqual(found.bytes, bytes(20_000, seed: UInt64(i))) }
        }
        XCTAssertNotNil(cache.wait("k0"))
        // Others make room.
        for file in files { unlink(file) }
        for _ in 0..<12 where log.kinds.last != .writable {
            clock.advance(seconds: 600)
            cache.put("k", bytes(10))
            try? cache.flush()
        }
        XCTAssertEqual(log.kinds, [.unwritable, .writable])
        cache.put("k", bytes(10))
        try cache.flush()
        XCTAssertEqual(cache.wait("k")?.bytes, bytes(10))
        cache.close()
    }
}
